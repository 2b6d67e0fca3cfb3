package orchestrator_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
)

// entry is an entry as it is sent.
func entry(t *testing.T, key string, attempt int, result []byte) []byte {
	t.Helper()
	raw, err := (&journal.Entry{Key: key, Attempt: attempt, Result: result}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return journal.AppendEntry(nil, raw)
}

// keysIn returns the keys of a journal, and the attempts that made its entries.
func keysIn(t *testing.T, data []byte) (all []string) {
	t.Helper()
	entries, err := journal.Split(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range entries {
		e, err := journal.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %d", e.Key, e.Attempt))
	}
	return all
}

// append puts entries into the journal of a unit, as a worker does.
func (w bare) append(session mapreduce.SessionID, h mapreduce.Held, first int, data []byte, change ...func(*mapreduce.Blob)) error {
	sum := sha256.Sum256(data)
	b := mapreduce.Blob{Kind: mapreduce.BlobJournal, Length: int64(len(data)), SHA256: sum[:], FirstEntry: first}
	for _, f := range change {
		f(&b)
	}
	rest := data
	_, err := w.PutBlob(w.t.Context(), &mapreduce.BlobRequest{Session: session, Held: h, Blob: b}, func() ([]byte, error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		n := min(len(rest), mapreduce.PartSize)
		part := rest[:n]
		rest = rest[n:]
		return part, nil
	})
	return err
}

// assignment receives the next assignment.
func (w bare) assignment() mapreduce.Assignment {
	w.t.Helper()
	return w.until(func(m *mapreduce.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments[0]
}

func heldOf(a mapreduce.Assignment) mapreduce.Held {
	return mapreduce.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
}

// A worker adds to the journal of a unit that it holds, entries of the attempt that it
// makes, behind those that are there: what else it says is refused, and changes nothing.
func TestHostileAppends(t *testing.T) {
	n := newCluster(t).orchestrator(quick(orchestrator.Config{Adopt: true}))
	w := greet(t, n, "w", 1)
	n.submit(script(nil), 2)
	held := heldOf(w.assignment())
	good := append(entry(t, "a", 1, nil), entry(t, "b", 1, []byte("what came of it"))...)
	for range 2 { // again, as when nobody knew what had become of it
		if err := w.append("w", held, 0, good); err != nil {
			t.Fatal(err)
		}
	}
	stale, other, early := held, held, held
	stale.Attempt++
	early.Attempt--
	other.Unit = "doc-0000001"
	next := entry(t, "c", 1, nil)
	large := entry(t, "large", 1, make([]byte, mapreduce.MaxJournalEntry))
	for name, tt := range map[string]struct {
		err  error
		want errs.Kind
	}{
		"another session":           {w.append("x", held, 2, next), errs.Aborted},
		"a later attempt":           {w.append("w", stale, 2, entry(t, "c", 2, nil)), errs.Precondition},
		"no attempt":                {w.append("w", early, 2, next), errs.Precondition},
		"another unit":              {w.append("w", other, 0, next), errs.Precondition},
		"a gap":                     {w.append("w", held, 3, next), errs.Precondition},
		"another entry":             {w.append("w", held, 1, next), errs.Precondition},
		"before the first":          {w.append("w", held, -1, next), errs.Invalid},
		"an entry of an attempt":    {w.append("w", held, 2, entry(t, "c", 2, nil)), errs.Invalid},
		"no entry":                  {w.append("w", held, 2, []byte("no entry")), errs.Invalid},
		"an entry that is too long": {w.append("w", held, 2, large), errs.Invalid},
		"too much at once":          {w.append("w", held, 2, make([]byte, mapreduce.MaxJournalAppend+1)), errs.Invalid},
		"nothing":                   {w.append("w", held, 2, nil), errs.Invalid},
		"another hash":              {w.append("w", held, 2, next, func(b *mapreduce.Blob) { b.SHA256 = make([]byte, 32) }), errs.Invalid},
		"less than was said":        {w.append("w", held, 2, next, func(b *mapreduce.Blob) { b.Length++ }), errs.Invalid},
		"more than was said":        {w.append("w", held, 2, next, func(b *mapreduce.Blob) { b.Length-- }), errs.Invalid},
		"the end of it":             {w.append("w", held, 2, next, func(b *mapreduce.Blob) { b.Start = 1 }), errs.Invalid},
	} {
		if tt.err == nil || errs.KindOf(tt.err) != tt.want {
			t.Errorf("%s: %v, want an error of kind %v", name, tt.err, tt.want)
		}
	}
	w.say(&mapreduce.FromWorker{Reports: []mapreduce.Report{{Job: held.Job, Unit: held.Unit, Attempt: 1, Outcome: mapreduce.Returned}}})
	again := w.assignment()
	for again.Unit != held.Unit {
		w.say(&mapreduce.FromWorker{Reports: []mapreduce.Report{{Job: held.Job, Unit: again.Unit, Attempt: again.Attempt, Outcome: mapreduce.Done, Size: 1}}})
		again = w.assignment()
	}
	if diff := cmp.Diff([]string{"a 1", "b 1"}, keysIn(t, again.Journal)); diff != "" || again.JournalEntries != 2 || again.Attempt != 2 {
		t.Errorf("attempt %d is given %d entries (-want +got):\n%s", again.Attempt, again.JournalEntries, diff)
	}
	if err := w.append("w", held, 2, next); errs.KindOf(err) != errs.Precondition || err == nil {
		t.Errorf("an append of the attempt before: %v", err)
	}
	n.sound()
}

// What a worker has stored before it is lost, the next is given, however much it is;
// what it had not, nobody knows of.
func TestJournalOfALostWorker(t *testing.T) {
	n := newCluster(t).orchestrator(quick(orchestrator.Config{Adopt: true}))
	lost := greet(t, n, "lost", 1)
	n.submit(script(nil), 1)
	held := heldOf(lost.assignment())
	large := bytes.Repeat([]byte("x"), 300<<10)
	for i, data := range [][]byte{entry(t, "a", 1, large), entry(t, "b", 1, large), entry(t, "c", 1, nil)} {
		if err := lost.append("lost", held, i, data); err != nil {
			t.Fatal(err)
		}
	}
	lost.cut()
	w := greet(t, n, "w", 1)
	a := w.assignment()
	if a.Attempt != 2 || a.Journal != nil || a.JournalEntries != 3 || len(a.Blobs) != 1 || a.Blobs[0].Kind != mapreduce.BlobJournal {
		t.Fatalf("assigned %+v", a)
	}
	b, data := a.Blobs[0], []byte(nil)
	err := w.GetBlob(t.Context(), &mapreduce.BlobRequest{Session: "w", Held: heldOf(a), Blob: b}, func(part []byte) error {
		data = append(data, part...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); int64(len(data)) != b.Length || !bytes.Equal(sum[:], b.SHA256) {
		t.Errorf("%d bytes came of %d", len(data), b.Length)
	}
	if diff := cmp.Diff([]string{"a 1", "b 1", "c 1"}, keysIn(t, data)); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if err := w.append("w", heldOf(a), 3, entry(t, "d", 2, nil)); err != nil {
		t.Error(err)
	}
	w.say(&mapreduce.FromWorker{Reports: []mapreduce.Report{{
		Job: a.Job, Unit: a.Unit, Attempt: 2, Outcome: mapreduce.Errored, Class: mapreduce.PermanentUnit, Errors: []string{"broken"},
	}}})
	n.wantEnd(a.Job, mapreduce.JobFailed)
	n.sound()
	if _, err := n.ResumeJob(t.Context(), a.Job, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	if a = w.assignment(); a.JournalEntries != 4 {
		t.Errorf("after a resume, attempt %d is given %d entries; want all 4", a.Attempt, a.JournalEntries)
	}
}

// An append that takes long delays no report.
func TestSlowAppendsDelayNoReports(t *testing.T) {
	c := newCluster(t)
	begun, kept := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) }) // one that was held for too long is tried again
	c.hook = func(p failpoint.Point) {
		if p == failpoint.Journal.Before() {
			begin()
			<-kept
		}
	}
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	w := greet(t, n, "w", 2)
	n.submit(script(nil), 2)
	var held []mapreduce.Held
	for len(held) < 2 {
		for _, a := range w.until(func(m *mapreduce.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments {
			held = append(held, heldOf(a))
		}
	}
	appended := make(chan error, 1)
	data := entry(t, "a", 1, nil)
	go func() { appended <- w.append("w", held[0], 0, data) }()
	<-begun
	w.say(&mapreduce.FromWorker{Reports: []mapreduce.Report{{
		Job: held[1].Job, Unit: held[1].Unit, Attempt: held[1].Attempt, Outcome: mapreduce.Done, Size: 1,
	}}})
	first := w.until(func(m *mapreduce.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts
	if len(first) != 1 || first[0].Unit != held[1].Unit || first[0].Verdict != mapreduce.Accepted {
		t.Errorf("the first verdicts are %+v; want that on the other report", first)
	}
	close(kept)
	if err := <-appended; err != nil {
		t.Error(err)
	}
}

// cutting ends a worker's stream around its appends: before one is stored, or after,
// when the worker has not heard of it.
type cutting struct {
	mapreduce.Fleet
	next func() (before, after bool)
}

var errCut = errs.New(errs.Unavailable, "the connection was cut")

func (f cutting) PutBlob(ctx context.Context, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	if q.Blob.Kind != mapreduce.BlobJournal {
		return f.Fleet.PutBlob(ctx, q, next)
	}
	before, after := f.next()
	if before {
		return nil, errCut
	}
	stored, err := f.Fleet.PutBlob(ctx, q, next)
	if err == nil && after {
		return nil, errCut
	}
	return stored, err
}

// Units of several calls fail, and are tried again on whichever worker: no call is made
// twice, although half of the appends break off before they are stored or after.
func TestNoCallIsMadeTwice(t *testing.T) {
	c := newCluster(t)
	var appends atomic.Int64
	c.wrap = func(f mapreduce.Fleet) mapreduce.Fleet {
		return cutting{f, func() (before, after bool) {
			n := appends.Add(1)
			return n%4 == 1, n%4 == 3
		}}
	}
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	made := newCounter()
	c.worker(made, worker.Config{Slots: 4}, n)
	c.worker(made, worker.Config{Slots: 4}, n)
	id := n.submit(script(map[string]string{
		"script.calls": "4", "script.tokens_in": "6000", "script.fail_rate": "0.3",
	}), 20)
	job := n.wantEnd(id, mapreduce.JobComplete)
	if job.FailedUnits > 0 {
		t.Fatalf("%d units have failed: it shows too little", job.FailedUnits)
	}
	units := int64(job.TotalUnits)
	if got := made.made(); got != 4*units || int64(made.attempts()) == units {
		t.Errorf("%d calls in %d attempts at %d units of 4 calls", got, made.attempts(), units)
	}
	if job.TotalTokens.Total() != 4*6000*units {
		t.Errorf("%d tokens were spent", job.TotalTokens.Total())
	}
	n.sound()
}

// In a job that captures all, journals stay; in others, those of units alone that are
// not complete.
func TestJournalsThatStay(t *testing.T) {
	for _, capture := range []mapreduce.Capture{mapreduce.CaptureOff, mapreduce.CaptureFull} {
		c := newCluster(t)
		n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
		c.worker(newCounter(), worker.Config{Slots: 4}, n)
		spec := script(map[string]string{"script.calls": "3", "script.tokens_in": "12000"})
		spec.Capture = capture
		id := n.submit(spec, 3)
		n.wantEnd(id, mapreduce.JobComplete)
		n.sound()
		journals := c.journals(t)
		if stay := journals > 0; stay != (capture == mapreduce.CaptureFull) {
			t.Errorf("capture %d: %d entries of journals are left", capture, journals)
		}
		if err := n.DeleteJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if journals = c.journals(t); journals > 0 {
			t.Errorf("a job that was deleted leaves %d entries of journals", journals)
		}
	}
}

// journals counts what is stored of journals.
func (c *testCluster) journals(t *testing.T) (n int) {
	t.Helper()
	err := store.NewDB(c.store, store.Config{}).View(t.Context(), func(tx store.Tx) error {
		n = 0
		pairs, _, err := tx.Snapshot().GetRange(t.Context(), keys.New().Everything(), store.RangeOptions{})
		for _, kv := range pairs {
			if name, _, err := keys.New().Last(kv.Key); err == nil && name == "journal" {
				n++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
