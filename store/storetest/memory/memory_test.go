package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// The rest of the contract is tested by package storetest.

func begin(t *testing.T, s store.Store) store.Tx {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tx.Discard)
	return tx
}

func TestAge(t *testing.T) {
	for _, test := range []struct {
		name string
		age  time.Duration
		want error
	}{
		{"young", store.MaxTxAge, nil},
		{"old", store.MaxTxAge + 1, store.ErrTooOld},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := new(memory.Store)
				reading, writing, idle := begin(t, s), begin(t, s), begin(t, s)
				for _, tx := range []store.Tx{reading, writing} {
					if _, err := tx.ReadVersion(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				<-time.After(test.age)
				if _, err := reading.Get(t.Context(), []byte("k")); !errors.Is(err, test.want) {
					t.Errorf("get: got %v, want %v", err, test.want)
				}
				writing.Set([]byte("k"), nil)
				if err := writing.Commit(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("commit: got %v, want %v", err, test.want)
				}
				// Age counts from the first read.
				if _, err := idle.Get(t.Context(), []byte("k")); err != nil {
					t.Errorf("first get: %v", err)
				}
			})
		})
	}
}

// TestForgetting goes on for long, so that old commits are forgotten. Those that
// a transaction may still conflict with must not be.
func TestForgetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(memory.Store)
		for i := range 20 {
			tx := begin(t, s)
			if _, err := tx.Get(t.Context(), []byte("k")); err != nil {
				t.Fatal(err)
			}
			tx.Set([]byte("seen"), nil)
			other := begin(t, s)
			other.Set([]byte("k"), []byte(fmt.Sprint(i)))
			if err := other.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(store.MaxTxAge)
			last := begin(t, s)
			last.Set([]byte("other"), nil)
			if err := last.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); !errors.Is(err, store.ErrConflict) {
				t.Errorf("round %d: got %v, want %v", i, err, store.ErrConflict)
			}
		}
	})
}
