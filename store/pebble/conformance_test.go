package pebble_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, pebble.Config{FS: vfs.NewMem()}) })
}

// open opens a store that the test closes at its end.
func open(t testing.TB, c pebble.Config) *pebble.Store {
	t.Helper()
	s, err := pebble.Open("data", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
