package frontier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/storetest"
)

// ownRecords are the records of a frontier that is closed with them.
type ownRecords struct {
	store.Store
	f *frontier.Frontier
}

func (r ownRecords) Close() error { return r.f.Close() }

func TestRecords(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		f := open(t, t.TempDir())
		return ownRecords{Store: f.Records(), f: f}
	})
}

// TestRecordSurvivesAKill copies the folder in the moment when Update has returned.
func TestRecordSurvivesAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir)
		storetest.Put(t, f.Records(), "pace:a.test", "1")
		began := time.Now()
		left := open(t, killed(t, dir))
		value, err := left.Records().Get(context.Background(), "pace:a.test")
		if err != nil || string(value) != "1" || time.Since(began) > 0 {
			t.Errorf("%q, %v after %v", value, err, time.Since(began))
		}
	})
}
