package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

// A job is what a child process is to do: to crawl, or to keep a Redis.
type job struct {
	Worker int    // its number; 0: it keeps a Redis
	Redis  string // where it is, or is to be
	Prefix string // of the keys of redisstore
	Queue  string // of asynq
	Sites  string // where they are
}

// jobVariable says to a process of this program that it is a child, and what its job is.
const jobVariable = "COLLYROBOTS_EXAMPLE_JOB"

// asChild does the job that the environment names, if it names one. The job ends when standard
// input does: so it ends with the parent, however that ends.
func asChild() (status int, isChild bool) {
	text, isChild := os.LookupEnv(jobVariable)
	if !isChild {
		return 0, false
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Println(jobVariable+":", err)
		return 2, true
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	do := work
	if j.Worker == 0 {
		do = keepRedis
	}
	if err := do(ctx, j); err != nil {
		fmt.Println(err)
		return 1, true
	}
	return 0, true
}

// A child is a process of this program with a job.
type child struct {
	job     job
	process *exec.Cmd
	stdin   io.Closer
	wanted  atomic.Bool   // its end is no surprise
	ended   chan struct{} // closed when it is gone
	err     error         // why, then
}

// startChild starts a child. What it prints goes to say, line by line, behind its name.
func startChild(j job, say func(format string, args ...any)) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := &child{job: j, process: exec.Command(program), ended: make(chan struct{})}
	c.process.Env = append(os.Environ(), jobVariable+"="+string(text))
	c.process.Stdout = &lines{say: say, name: c.name()}
	c.process.Stderr = c.process.Stdout
	c.process.WaitDelay = time.Second
	apart(c.process)
	if c.stdin, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		if c.err = c.process.Wait(); c.err == nil {
			c.err = errors.New("it has ended")
		}
	}()
	return c, nil
}

func (c *child) name() string {
	if c.job.Worker == 0 {
		return "redis"
	}
	return fmt.Sprint("worker ", c.job.Worker)
}

// end ends the child and returns when it is gone. It is asked to go, and killed if it does not.
func (c *child) end() {
	c.wanted.Store(true)
	c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}

// kill is kill -9. It returns when the child is gone.
func (c *child) kill() {
	c.wanted.Store(true)
	c.process.Process.Kill()
	<-c.ended
}

// lines says what a child prints.
type lines struct {
	say  func(format string, args ...any)
	name string
	rest string
}

// Write implements io.Writer.
func (l *lines) Write(text []byte) (int, error) {
	l.rest += string(text)
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole {
			return len(text), nil
		}
		l.say("%-9s  %s", l.name, line)
		l.rest = rest
	}
}
