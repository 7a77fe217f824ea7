package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/store"
)

// paces keeps the pace of hosts in a store.Store. It implements pace.Memory.
type paces struct {
	store store.Store
	log   *slog.Logger
}

// paceLife is how long a record is kept after its last change. It is longer than any process runs.
const paceLife = 365 * 24 * time.Hour

const paceVersion = 1

// A paceRecord is a record, in JSON.
type paceRecord struct {
	Version int `json:"version"`
	pace.Kept
}

// paceKey returns the key of the record of a host or a group.
func paceKey(host string) string { return "pace:" + host }

// Load implements pace.Memory.
func (p paces) Load(host string) (*pace.Kept, error) {
	raw, err := p.store.Get(context.Background(), paceKey(host))
	var k *pace.Kept
	if err == nil {
		k, err = decodePace(raw)
	}
	if err != nil {
		p.log.Error("stored pace not available, the host waits for one delay", "host", host, "error", err)
	}
	return k, err
}

// decodePace returns the pace in a record. It returns nil if there is no record.
func decodePace(raw []byte) (*pace.Kept, error) {
	if raw == nil {
		return nil, nil
	}
	var r paceRecord
	err := json.Unmarshal(raw, &r)
	if err == nil && r.Version != paceVersion {
		err = fmt.Errorf("unknown record version %d", r.Version)
	}
	if err != nil {
		return nil, err
	}
	return &r.Kept, nil
}

// Save implements pace.Memory.
func (p paces) Save(host string, k pace.Kept) {
	update := func(old []byte) ([]byte, error) {
		saved, err := decodePace(old)
		if err == nil && saved != nil && saved.At.After(k.At) && time.Now().After(saved.At) {
			return old, nil
		}
		return json.Marshal(paceRecord{Version: paceVersion, Kept: k})
	}
	err := p.store.Update(context.Background(), paceKey(host), paceLife, update)
	if err != nil {
		p.log.Error("pace could not be stored, a restart may ask the host too early", "host", host, "error", err)
	}
}
