// Package walk reads a store that may be damaged, a little at a time, and finds fault with
// it: in short transactions, whose findings count when they end well, and around what
// cannot be read. What should agree with what is for package check to say.
package walk

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/tuple"
)

// Page bounds the pairs of one look.
const Page = 200

// WholeOnly is the advice that findings give about entries which should not be there, which no command
// removes, and which are in the way of some.
const WholeOnly = "no command corrects that: restore the store from a backup"

// A Step checks a part of a store or of a job.
type Step struct {
	What  string
	Check func(context.Context) error
}

// A Walker is one run of a check.
type Walker struct {
	*records.Records
	Wrongs int  // findings so far that something is wrong
	Torn   bool // something of what is checked cannot be read

	db     *records.DB
	emit   func(mapreduce.Finding) error
	failed int // looks that did, lately: the next looks at fewer things
}

// New returns what walks over the store of db, and calls found with each finding. An error
// of found ends the walk.
func New(db *records.DB, found func(mapreduce.Finding) error) *Walker {
	return &Walker{Records: db.Records(), db: db, emit: found}
}

// Emit passes a finding on, and counts it if it says that something is wrong.
func (w *Walker) Emit(f mapreduce.Finding) error {
	if f.Severity == mapreduce.Wrong {
		w.Wrongs++
	}
	return w.emit(f)
}

// A Look is one transaction of a check. Its findings count when it ends well.
type Look struct {
	store.Reader
	*records.Records
	Job    mapreduce.JobID // whose the findings are
	found  []mapreduce.Finding
	failed int // of this look and of those before it
}

// PageLimit returns how many of n things this look has time for.
func (l *Look) PageLimit(n int) int { return records.ShrinkLimit(n, 1, l.failed) }

// Look runs fn, which may run again, in a transaction that only reads.
func (w *Walker) Look(ctx context.Context, job mapreduce.JobID, fn func(l *Look) error) error {
	var l *Look
	failed := w.failed
	err := w.db.Store().View(ctx, func(tx store.Tx) error {
		l = &Look{Reader: tx.Snapshot(), Records: w.Records, Job: job, failed: failed}
		failed++
		return fn(l)
	})
	if err != nil {
		return err
	}

	// A look that went well lets the next one see a little more.
	w.failed = max(0, l.failed-1)
	for _, f := range l.found {
		if err := w.Emit(f); err != nil {
			return err
		}
	}
	return nil
}

// Find finds fault with what a key has.
func (l *Look) Find(key []byte, format string, args ...any) {
	l.found = append(l.found, mapreduce.Finding{
		Severity: mapreduce.Wrong, Job: l.Job, Key: KeyName(key), Message: fmt.Sprintf(format, args...),
	})
}

// Forget drops what this look has found: an earlier look has reported it.
func (l *Look) Forget() { l.found = nil }

// KeyName returns a key as people can read it.
func KeyName(key []byte) string {
	if key == nil {
		return ""
	}
	if t, err := tuple.Unpack(key); err == nil {
		return t.String()
	}
	return fmt.Sprintf("%x", key)
}

// Decode reports whether value is an encoded m, and finds fault if not.
func (l *Look) Decode(key, value []byte, m proto.Message) bool {
	if err := proto.Unmarshal(value, m); err != nil {
		l.Find(key, "the value cannot be decoded: %v; restore it from a backup, or delete the job", err)
		return false
	}
	return true
}

// Load decodes the value of key into m, and reports whether there is a good one.
func (l *Look) Load(ctx context.Context, key []byte, m proto.Message) (bool, error) {
	value, err := l.Get(ctx, key)
	if err != nil || value == nil {
		return false, err
	}
	return l.Decode(key, value, m), nil
}

// PageOptions are the bounds of a page of most walks.
func PageOptions() store.RangeOptions {
	return store.RangeOptions{Limit: Page, Bytes: store.TargetTxSize}
}

// EachJob visits the jobs whose ids are the first elements of the keys of a range.
func (w *Walker) EachJob(ctx context.Context, of store.Range, visit func(ctx context.Context, id mapreduce.JobID) error) error {
	var ids []mapreduce.JobID
	return w.WalkRange(ctx, "", of, PageOptions(), func(_ *Look, page []store.KeyValue) error {
		// A page that is read again begins anew.
		ids = ids[:0]
		for _, kv := range page {
			_, rest, err := w.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			ids = append(ids, mapreduce.JobID(rest.Text()))
		}

		return nil
	}, func() error {
		for _, id := range ids {
			if err := visit(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}
