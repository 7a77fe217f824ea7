//go:build js && wasm

// Command wasm is package readings for JavaScript. It defines the function readRobots;
// docs/tools/playground.md describes it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall/js"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/readings"
)

func main() {
	reader := new(readings.Reader)
	js.Global().Set("readRobots", js.FuncOf(func(_ js.Value, args []js.Value) any {
		answer, err := read(reader, args)
		if err != nil {
			return js.Global().Get("Error").New(err.Error())
		}
		return answer
	}))
	select {} // until the page is closed
}

// read answers the question in args[1] about the text in args[0].
func read(reader *readings.Reader, args []js.Value) (answer js.Value, err error) {
	if len(args) != 2 {
		return js.Undefined(), errors.New("readRobots needs a text and a question")
	}
	format := js.Global().Get("JSON")
	var q readings.Question
	if err := json.Unmarshal([]byte(format.Call("stringify", args[1]).String()), &q); err != nil {
		return js.Undefined(), fmt.Errorf("not a question: %w", err)
	}
	q.Text, err = textOf(args[0])
	if err != nil {
		return js.Undefined(), err
	}
	encoded, err := json.Marshal(reader.Answer(q))
	if err != nil {
		return js.Undefined(), err
	}
	return format.Call("parse", string(encoded)), nil
}

// textOf returns the bytes of a string or a Uint8Array.
func textOf(v js.Value) ([]byte, error) {
	switch {
	case v.Type() == js.TypeString:
		return []byte(v.String()), nil
	case v.InstanceOf(js.Global().Get("Uint8Array")):
		text := make([]byte, v.Length())
		js.CopyBytesToGo(text, v)
		return text, nil
	}
	return nil, errors.New("the text must be a string or a Uint8Array")
}
