package fault_test

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/store/storetest"
	"github.com/coditect/mapreduce/store/storetest/history"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

func openMemory(*testing.T) store.Store { return new(memory.Store) }

func openPebble(t *testing.T) store.Store {
	s, err := pebble.Open("data", pebble.Config{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drivers() map[string]func(*testing.T) store.Store {
	return map[string]func(*testing.T) store.Store{"memory": openMemory, "pebble": openPebble}
}

// TestConformanceWithoutFaults: a wrapper that does nothing changes nothing.
func TestConformanceWithoutFaults(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	for name, inner := range drivers() {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store { return fault.New(inner(t), fault.Config{}) })
		})
	}
}

// TestConformanceWithFaults: faults are errors that the contract allows, and never wrong
// answers. The rate is low, since a check has to get through without one.
func TestConformanceWithFaults(t *testing.T) {
	for name, inner := range drivers() {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				testenv.Variant(t, seed == 0)

				storetest.RunWith(t, func(t *testing.T) store.Store {
					return fault.New(inner(t), fault.Config{Seed: seed, Rates: fault.Retryable(0.002)})
				}, storetest.Options{Faulty: true})
			})
		}
	}
}

// TestStorms runs what copes with faults by itself under many of them.
func TestStorms(t *testing.T) {
	storms := map[string]fault.Rates{
		"all":     fault.Retryable(0.03),
		"twice":   fault.Twice(),
		"unknown": {fault.UnknownCommitted: 0.2, fault.UnknownLost: 0.2},
		"late":    {fault.TimedOutLate: 0.2, fault.TimedOutLost: 0.05},
	}
	for name, inner := range drivers() {
		for storm, rates := range storms {
			t.Run(name+"/"+storm, func(t *testing.T) {
				s := fault.New(inner(t), fault.Config{Rates: rates})
				for seed := range uint64(5) {
					if err := history.Check(t.Context(), s, fmt.Sprintf("history/%d/", seed), seed); err != nil {
						t.Error(err)
					}
				}
				programs := storetest.Programs()
				for i := range 200 {
					err := storetest.Lockstep(t.Context(), s, fmt.Sprintf("lockstep/%d/", i), programs.Example(i),
						storetest.Options{Faulty: true})
					if err != nil {
						t.Errorf("program %d: %v", i, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				for kind := range rates {
					if s.Count(kind) == 0 && kind != fault.SpuriousWatch {
						t.Errorf("%v never happened", kind)
					}
				}
			})
		}
	}
}
