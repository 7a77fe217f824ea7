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

// A job is the job of a child process: to crawl, or to run a Redis.
type job struct {
	Worker int    // the number of the worker; 0 means to run a Redis
	Redis  string // the address of the Redis
	Prefix string // of the keys of redisstore
	Crawl  string // the name of the crawl in hostqueue
	Sites  string // the address of the sites
}

// jobVariable is the environment variable with the job of a child process.
const jobVariable = "COLLYROBOTS_EXAMPLE_JOB"

// asChild does the job in the environment, if there is one. The job ends when standard input ends,
// so it also ends if the parent is killed.
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
	wanted  atomic.Bool   // the parent has ended the process
	ended   chan struct{} // closed when the process has ended
	err     error         // why the process has ended; set before ended is closed
}

// startChild starts a child. It passes the lines that the child prints to say, after its name.
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
	ignoreInterrupt(c.process)
	c.stdin, err = c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.ended)
		c.err = c.process.Wait()
		if c.err == nil {
			c.err = errors.New("the process has ended")
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

// end closes the standard input of the child, and waits until the child has ended. It kills the
// child after ten seconds.
func (c *child) end() {
	c.wanted.Store(true)
	c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}

// kill kills the child with -9, and waits until it has ended.
func (c *child) kill() {
	c.wanted.Store(true)
	c.process.Process.Kill()
	<-c.ended
}

// lines is a writer that passes whole lines to say.
type lines struct {
	say  func(format string, args ...any)
	name string // of the child
	rest string // the beginning of a line
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
