package redisstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestFreeHostsAreForgotten checks that old answers do not fill the memory.
func TestFreeHostsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freeHosts
		const perSecond = 1000
		for n := range 10 * perSecond {
			f.add(&lease{host: fmt.Sprint("host", n), before: time.Now()})
			time.Sleep(time.Second / perSecond)
		}
		usable := int(fresh * perSecond / time.Second)
		if got := len(f.byName); got > 5*usable {
			t.Errorf("%d hosts are remembered, and %d answers are fresh", got, usable)
		}
		if f.find("host0") != nil || f.find(fmt.Sprint("host", 10*perSecond-1)) == nil {
			t.Error("find returns a lease that relies on an old answer, or none for a fresh one")
		}
	})
}
