package exchange

import (
	"slices"
	"time"

	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// AddStore makes the wire report the pace of each host to a urlstore.Store.
func (w *Wire) AddStore(store urlstore.Store) {
	for {
		known := w.stores.Load()
		all := []urlstore.Store{store}
		if known != nil {
			if slices.Contains(*known, store) {
				return
			}
			all = append(all, *known...)
		}
		if w.stores.CompareAndSwap(known, &all) {
			return
		}
	}
}

// TellNextStart reports the pace of a host, one of whose requests has ended, to the URLStores.
func (w *Wire) TellNextStart(host *pace.Host) {
	stores := w.stores.Load()
	if stores == nil || host == nil {
		return
	}
	w.tellPace(host, stores, host.NextStart)
}

// TellReturn reports the pace of a host to the URLStores when a page of the host goes back to a
// urlstore.Store.
func (w *Wire) TellReturn(host *pace.Host) {
	stores := w.stores.Load()
	if stores == nil {
		return
	}
	w.tellPace(host, stores, host.Reserve)
}

// tellPace reports the pace of a host to the URLStores in stores. when returns that pace.
func (w *Wire) tellPace(host *pace.Host, stores *[]urlstore.Store, when func(now time.Time) (next time.Time, alone bool)) {
	next, alone := when(time.Now())
	for _, store := range *stores {
		store.Pace(host.Name(), next, alone)
	}
}

// GroupsOnDisk returns how many pages of each group wait in the URLStores, by the names of the
// groups. It returns nil if there are none.
func (w *Wire) GroupsOnDisk(now time.Time) map[string]int {
	if w.stores.Load() == nil || !w.hasGroups() {
		return nil
	}
	pages := make(map[string]int)
	for host := range w.Hosts.All() {
		if group := host.Stats(now).Group; group != "" {
			pages[group] += w.OnDisk(host)
		}
	}
	return pages
}

// OnDisk returns the number of pages of a host that wait in the URLStores.
func (w *Wire) OnDisk(host *pace.Host) (n int) {
	stores := w.stores.Load()
	if stores == nil {
		return 0
	}
	for _, store := range *stores {
		n += store.Waiting(host.Name())
	}
	return n
}

// Pause makes a pause begin or end for a host, or for all hosts if the name is "", and reports the pace
// of these hosts to the URLStores.
func (w *Wire) Pause(name string, paused bool) {
	w.Hosts.Pause(name, paused)
	if w.stores.Load() == nil {
		return
	}
	for host := range w.Hosts.All() {
		if name == "" || host.Name() == name {
			w.TellNextStart(host)
		}
	}
}
