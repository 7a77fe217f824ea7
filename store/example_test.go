package store_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

// put writes a record that expires after ttl.
func put(s store.Store, key, value string, ttl time.Duration) error {
	return s.Update(context.Background(), key, ttl, func([]byte) ([]byte, error) { return []byte(value), nil })
}

// A record is there until its time to live has passed, or until Update is called with a function
// that returns nil.
func ExampleNewMemory() {
	s := store.NewMemory()
	defer s.Close()
	if err := put(s, "https://example.com", "User-agent: *", time.Hour); err != nil {
		fmt.Println(err)
	}
	value, err := s.Get(context.Background(), "https://example.com")
	fmt.Printf("%q %v\n", value, err)

	err = s.Update(context.Background(), "https://example.com", 0, func(old []byte) ([]byte, error) { return nil, nil })
	fmt.Println("deleted:", err)
	value, err = s.Get(context.Background(), "https://example.com")
	fmt.Println(value == nil, err)
	// Output:
	// "User-agent: *" <nil>
	// deleted: <nil>
	// true <nil>
}

// A record that Update has acknowledged is still there after a restart.
func ExampleOpenDir() {
	path, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(path)

	first, err := store.OpenDir(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(put(first, "https://example.com", "User-agent: *", 0))
	fmt.Println(first.Close())
	_, err = first.Get(context.Background(), "https://example.com")
	fmt.Println(err)

	second, err := store.OpenDir(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	value, err := second.Get(context.Background(), "https://example.com")
	fmt.Printf("%q %v\n", value, err)
	// Output:
	// <nil>
	// <nil>
	// store: closed
	// "User-agent: *" <nil>
}

// Several crawlers share a store and count in it. Each computes the new value from the old one
// within Update. It would be wrong to call Get first and then to write a value that depends on the
// result, because another Update may run between the two calls.
func ExampleStore() {
	s := store.NewMemory()
	defer s.Close()
	count := func(old []byte) ([]byte, error) {
		n, _ := strconv.Atoi(string(old)) // if there is no value yet, n is 0
		return strconv.AppendInt(nil, int64(n+1), 10), nil
	}
	var crawlers sync.WaitGroup
	for range 8 {
		crawlers.Go(func() {
			for range 100 {
				if err := s.Update(context.Background(), "pages", 0, count); err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	crawlers.Wait()
	value, err := s.Get(context.Background(), "pages")
	fmt.Printf("%s %v\n", value, err)
	// Output:
	// 800 <nil>
}
