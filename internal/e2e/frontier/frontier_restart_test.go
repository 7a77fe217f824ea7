package frontier

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/e2e/frontiertest"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// keptInMemory is a kit.MemoryStore that survives the runs of a crawl.
type keptInMemory struct{ store *kit.MemoryStore }

func (k *keptInMemory) Open(*testing.T) urlstore.Store {
	k.store = k.store.Reopen()
	return k.store
}

func (k *keptInMemory) Drop(*testing.T) { k.store.Close() }

// TestFrontierRestarts runs programs that are stopped and continued.
func TestFrontierRestarts(t *testing.T) {
	frontiertest.Run(t, func(*testing.T) frontiertest.Store { return &keptInMemory{store: kit.NewMemoryStore()} })
}
