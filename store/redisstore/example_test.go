package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store/redisstore"
)

// Two processes share a Redis. Before each request, a process waits until the delay since the last
// request to the host has passed, even if that was the request of the other process.
func ExampleStore_Acquire() {
	server, err := miniredis.Run() // stands for a Redis that both processes can reach
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	const delay = 100 * time.Millisecond
	var last time.Time
	for _, process := range []string{"one", "the other", "one again"} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer client.Close()
		shared, err := redisstore.New(context.Background(), client)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer shared.Close()

		lease, err := shared.Acquire(context.Background(), "example.com", delay)
		if err != nil {
			fmt.Println("nothing is sent:", err)
			return
		}
		if lease.Valid() { // check this immediately before the request
			fmt.Printf("%s asks; too early: %v\n", process, time.Since(last) < delay)
		}
		last = time.Now()
		lease.Release(true, delay, time.Time{})
	}
	// Output:
	// one asks; too early: false
	// the other asks; too early: false
	// one again asks; too early: false
}

// Every process can read what one process has stored.
func ExampleStore_Update() {
	server, err := miniredis.Run() // stands for a Redis that all processes can reach
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	shared, err := redisstore.New(context.Background(), client, redisstore.Prefix("crawl of May:"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()

	err = shared.Update(context.Background(), "robots:https://example.com", time.Hour, func(old []byte) ([]byte, error) {
		return append(old, "User-agent: *"...), nil
	})
	fmt.Println(err)
	value, err := shared.Get(context.Background(), "robots:https://example.com")
	fmt.Printf("%q %v\n", value, err)
	// Output:
	// <nil>
	// "User-agent: *" <nil>
}
