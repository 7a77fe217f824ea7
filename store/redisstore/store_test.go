package redisstore_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newServer(t).client(t)) })
}
