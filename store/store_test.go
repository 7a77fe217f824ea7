package store_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/storetest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestDir(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openDir(t, t.TempDir()) })
}

func openDir(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := store.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
