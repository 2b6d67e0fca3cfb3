package storetest_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/history"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

func TestStoreInMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return new(memory.Store) })
}

// TestMutants breaks a good store in one way at a time. The suite must notice.
func TestMutants(t *testing.T) {
	checks := make(map[string]storetest.Check)
	for _, c := range storetest.Checks() {
		checks[c.Name] = c
	}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			check, ok := checks[m.caughtBy]
			if !ok {
				t.Fatalf("there is no check %q", m.caughtBy)
			}
			caught := func(t *testing.T) {
				if err := check.Run(t.Context(), m.wrap(new(memory.Store)), storetest.Options{}); err == nil {
					t.Errorf("%q passes", m.caughtBy)
				} else {
					t.Log(err)
				}
			}
			if m.waits {
				synctest.Test(t, caught) // where time passes at once
			} else {
				caught(t)
			}
			if m.lockstep {
				wantLockstepFails(t, m.wrap)
			}
			if m.history {
				wantHistoryFails(t, m.wrap)
			}
		})
	}
}

func wantLockstepFails(t *testing.T, wrap func(store.Store) store.Store) {
	t.Helper()
	s, programs := wrap(new(memory.Store)), storetest.Programs()
	const tries = 3000
	for i := range tries {
		prefix := fmt.Sprintf("%d/", i)
		if err := storetest.Lockstep(t.Context(), s, prefix, programs.Example(i), storetest.Options{}); err != nil {
			t.Logf("program %d: %v", i, err)
			return
		}
	}
	t.Errorf("lockstep passes %d programs", tries)
}

func wantHistoryFails(t *testing.T, wrap func(store.Store) store.Store) {
	t.Helper()
	const tries = 50
	for seed := range uint64(tries) {
		if err := history.Check(t.Context(), wrap(new(memory.Store)), "", seed); err != nil {
			t.Log(err)
			return
		}
	}
	t.Errorf("history passes %d seeds", tries)
}

func add(value []byte, delta int64) []byte {
	n := int64(0)
	if len(value) == 8 {
		n = int64(binary.LittleEndian.Uint64(value))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n+delta))
}
