package store_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/collyrobots/collyrobots/store"
)

func BenchmarkMemory(b *testing.B) { bench(b, store.NewMemory()) }

func BenchmarkDir(b *testing.B) {
	s, err := store.OpenDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	bench(b, s)
}

func bench(b *testing.B, s store.Store) {
	ctx, value := context.Background(), make([]byte, 2000)
	b.Run("Update", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			err := s.Update(ctx, strconv.Itoa(i%1000), 0, func([]byte) ([]byte, error) { return value, nil })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.Get(ctx, strconv.Itoa(i%1000)); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := s.Close(); err != nil {
		b.Error(err)
	}
}
