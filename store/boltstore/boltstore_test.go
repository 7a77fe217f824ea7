package boltstore_test

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/boltstore"
	"github.com/collyrobots/collyrobots/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "records.db")) })
}

func open(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := boltstore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
