//go:build !unix

package batch

// cpuTime returns 0, because this system has no getrusage.
func cpuTime() int64 { return 0 }
