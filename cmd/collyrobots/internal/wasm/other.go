//go:build !js || !wasm

package main

func main() { panic("this program is for JavaScript: compile it with GOOS=js and GOARCH=wasm") }
