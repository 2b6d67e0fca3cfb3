package rig

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/tuple"
)

// An Observer is a store that notes when what it is asked to keep was durable.
type Observer struct {
	store.Store
	space *keys.Space
	ctl   []byte // prefix of the switches
	kept  []byte // prefix of the checkpoints
	held  store.Range
	runs  store.Range

	Claims    *Sample      // of transactions that claim, from beginning to acknowledgement
	Conflicts atomic.Int64 // runs of transactions that conflicted
	Refused   atomic.Int64 // of these, claims: counted after the whole

	mu    sync.Mutex // guards the variables below
	ready map[mapreduce.JobID]time.Time
	turns map[mapreduce.JobID][]time.Time // changes of state or level
	moved map[mapreduce.JobID]time.Time   // units of the map level ended
}

func newObserver(s store.Store, space *keys.Space) *Observer {
	checkpoint, _ := space.Job("").NextCheckpoint()
	return &Observer{
		Store: s, space: space, held: space.Nodes().HeldAll(), runs: space.AllTenants().Runs(), Claims: new(Sample),
		ctl: withoutJob(space.Job("").Ctl()), kept: withoutJob(checkpoint),
		ready: make(map[mapreduce.JobID]time.Time), turns: make(map[mapreduce.JobID][]time.Time),
		moved: make(map[mapreduce.JobID]time.Time),
	}
}

// withoutJob returns the part of a key before an empty job id.
func withoutJob(key []byte) []byte { return key[:bytes.LastIndex(key, tuple.AppendString(nil, ""))] }

// ReadyAt returns when a job became one that may run, for the first time.
func (o *Observer) ReadyAt(id mapreduce.JobID) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ready[id]
}

// MappedAt returns when the last units of a job's map level ended.
func (o *Observer) MappedAt(id mapreduce.JobID) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.moved[id]
}

// LastTurn returns when a job changed last.
func (o *Observer) LastTurn(id mapreduce.JobID) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.turns[id]
	if len(all) == 0 {
		return time.Time{}
	}
	return all[len(all)-1]
}

// Begin returns a transaction that is watched.
func (o *Observer) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := o.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &observedTx{Tx: tx, o: o, began: time.Now()}, nil
}

type observedTx struct {
	store.Tx
	o     *Observer
	began time.Time
	claim bool
	ready mapreduce.JobID
	turn  mapreduce.JobID
	moved mapreduce.JobID
}

// Set notes what the key means.
func (t *observedTx) Set(key, value []byte) {
	t.Tx.Set(key, value)
	switch {
	case isInRange(key, t.o.held):
		t.claim = true
	case isInRange(key, t.o.runs):
		t.ready = t.o.jobOf(key, 1)
	case bytes.HasPrefix(key, t.o.ctl):
		t.turn = t.o.jobOf(key, 0)
	}
}

// SetVersionstampedKey notes that units ended.
func (t *observedTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.Tx.SetVersionstampedKey(key, offset, value)
	if bytes.HasPrefix(key, t.o.kept) {
		t.moved = t.o.jobOf(key, 0)
	}
}

// jobOf returns the job that a key names after so many other elements.
func (o *Observer) jobOf(key []byte, skip int) mapreduce.JobID {
	_, rest, err := o.space.Last(key)
	if err != nil {
		return ""
	}
	for range skip {
		rest.Skip()
	}
	return mapreduce.JobID(rest.Text())
}

func isInRange(key []byte, r store.Range) bool {
	return bytes.Compare(key, r.Begin) >= 0 && bytes.Compare(key, r.End) < 0
}

// Commit notes the time when it is done.
func (t *observedTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	if errors.Is(err, store.ErrConflict) {
		t.o.Conflicts.Add(1)
		if t.claim {
			t.o.Refused.Add(1)
		}
	}

	if err != nil || !t.claim && t.ready == "" && t.turn == "" && t.moved == "" {
		return err
	}

	now := time.Now()
	if t.claim {
		t.o.Claims.Add(now.Sub(t.began))
	}

	t.o.mu.Lock()
	defer t.o.mu.Unlock()
	if _, known := t.o.ready[t.ready]; !known {
		t.o.ready[t.ready] = now
	}

	// After its first turn and before the next, units that end are of the map level.
	if t.moved != "" && t.turn == "" && len(t.o.turns[t.moved]) == 1 {
		t.o.moved[t.moved] = now
	}
	if t.turn != "" {
		t.o.turns[t.turn] = append(t.o.turns[t.turn], now)
	}
	return nil
}
