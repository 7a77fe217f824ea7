package collyrobots_test

import (
	"testing"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/frontiertest"
)

// keptInMemory is a memoryStore that survives the runs of a crawl.
type keptInMemory struct{ store *memoryStore }

func (k *keptInMemory) Open(*testing.T) collyrobots.URLStore {
	k.store = k.store.reopen()
	return k.store
}

func (k *keptInMemory) Drop(*testing.T) { k.store.close() }

// TestFrontierRestarts runs programs that are stopped and continued.
func TestFrontierRestarts(t *testing.T) {
	frontiertest.Run(t, func(*testing.T) frontiertest.Store { return &keptInMemory{store: newMemoryStore()} })
}
