package dispatch_test

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
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
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

// appendOf puts entries into the journal of a unit, as a worker does.
func appendOf(w enginetest.Bare, session mapreduce.SessionID, h protocol.Held, first int, data []byte, change ...func(*protocol.Blob)) error {
	sum := sha256.Sum256(data)
	b := protocol.Blob{Kind: protocol.BlobJournal, Length: int64(len(data)), SHA256: sum[:], FirstEntry: first}
	for _, f := range change {
		f(&b)
	}
	rest := data
	_, err := w.PutBlob(w.T.Context(), &protocol.BlobRequest{Session: session, Held: h, Blob: b}, func() ([]byte, error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		n := min(len(rest), protocol.PartSize)
		part := rest[:n]
		rest = rest[n:]
		return part, nil
	})
	return err
}

// assignment receives the next assignment.
func assignment(w enginetest.Bare) protocol.Assignment {
	w.T.Helper()
	return w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments[0]
}

func heldOf(a protocol.Assignment) protocol.Held {
	return protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
}

// A worker adds to the journal of a unit that it holds, entries of the attempt that it
// makes, behind those that are there: what else it says is refused, and changes nothing.
func TestHostileAppends(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "w", 1)
	n.Submit(enginetest.Script(nil), 2)
	held := heldOf(assignment(w))
	good := append(entry(t, "a", 1, nil), entry(t, "b", 1, []byte("what came of it"))...)
	for range 2 { // again, as when nobody knew what had become of it
		if err := appendOf(w, "w", held, 0, good); err != nil {
			t.Fatal(err)
		}
	}
	stale, other, early := held, held, held
	stale.Attempt++
	early.Attempt--
	other.Unit = "doc-0000001"
	next := entry(t, "c", 1, nil)
	large := entry(t, "large", 1, make([]byte, protocol.MaxJournalEntry))
	for name, tt := range map[string]struct {
		err  error
		want errs.Kind
	}{
		"another session":           {appendOf(w, "x", held, 2, next), errs.Aborted},
		"a later attempt":           {appendOf(w, "w", stale, 2, entry(t, "c", 2, nil)), errs.Precondition},
		"no attempt":                {appendOf(w, "w", early, 2, next), errs.Precondition},
		"another unit":              {appendOf(w, "w", other, 0, next), errs.Precondition},
		"a gap":                     {appendOf(w, "w", held, 3, next), errs.Precondition},
		"another entry":             {appendOf(w, "w", held, 1, next), errs.Precondition},
		"before the first":          {appendOf(w, "w", held, -1, next), errs.Invalid},
		"an entry of an attempt":    {appendOf(w, "w", held, 2, entry(t, "c", 2, nil)), errs.Invalid},
		"no entry":                  {appendOf(w, "w", held, 2, []byte("no entry")), errs.Invalid},
		"an entry that is too long": {appendOf(w, "w", held, 2, large), errs.Invalid},
		"too much at once":          {appendOf(w, "w", held, 2, make([]byte, protocol.MaxJournalAppend+1)), errs.Invalid},
		"nothing":                   {appendOf(w, "w", held, 2, nil), errs.Invalid},
		"another hash":              {appendOf(w, "w", held, 2, next, func(b *protocol.Blob) { b.SHA256 = make([]byte, 32) }), errs.Invalid},
		"less than was said":        {appendOf(w, "w", held, 2, next, func(b *protocol.Blob) { b.Length++ }), errs.Invalid},
		"more than was said":        {appendOf(w, "w", held, 2, next, func(b *protocol.Blob) { b.Length-- }), errs.Invalid},
		"the end of it":             {appendOf(w, "w", held, 2, next, func(b *protocol.Blob) { b.Start = 1 }), errs.Invalid},
	} {
		if tt.err == nil || errs.KindOf(tt.err) != tt.want {
			t.Errorf("%s: %v, want an error of kind %v", name, tt.err, tt.want)
		}
	}
	w.Say(&protocol.FromWorker{Reports: []protocol.Report{{Job: held.Job, Unit: held.Unit, Attempt: 1, Outcome: protocol.Returned}}})
	again := assignment(w)
	for again.Unit != held.Unit {
		w.Say(&protocol.FromWorker{Reports: []protocol.Report{{Job: held.Job, Unit: again.Unit, Attempt: again.Attempt, Outcome: protocol.Done, Size: 1}}})
		again = assignment(w)
	}
	if diff := cmp.Diff([]string{"a 1", "b 1"}, keysIn(t, again.Journal)); diff != "" || again.JournalEntries != 2 || again.Attempt != 2 {
		t.Errorf("attempt %d is given %d entries (-want +got):\n%s", again.Attempt, again.JournalEntries, diff)
	}
	if err := appendOf(w, "w", held, 2, next); errs.KindOf(err) != errs.Precondition || err == nil {
		t.Errorf("an append of the attempt before: %v", err)
	}
	n.Sound()
}

// What a worker has stored before it is lost, the next is given, however much it is;
// what it had not, nobody knows of.
func TestJournalOfALostWorker(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	lost := enginetest.Greet(t, n, "lost", 1)
	n.Submit(enginetest.Script(nil), 1)
	held := heldOf(assignment(lost))
	large := bytes.Repeat([]byte("x"), 300<<10)
	for i, data := range [][]byte{entry(t, "a", 1, large), entry(t, "b", 1, large), entry(t, "c", 1, nil)} {
		if err := appendOf(lost, "lost", held, i, data); err != nil {
			t.Fatal(err)
		}
	}
	lost.Cut()
	w := enginetest.Greet(t, n, "w", 1)
	a := assignment(w)
	if a.Attempt != 2 || a.Journal != nil || a.JournalEntries != 3 || len(a.Blobs) != 1 || a.Blobs[0].Kind != protocol.BlobJournal {
		t.Fatalf("assigned %+v", a)
	}
	b, data := a.Blobs[0], []byte(nil)
	err := w.GetBlob(t.Context(), &protocol.BlobRequest{Session: "w", Held: heldOf(a), Blob: b}, func(part []byte) error {
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
	if err := appendOf(w, "w", heldOf(a), 3, entry(t, "d", 2, nil)); err != nil {
		t.Error(err)
	}
	w.Say(&protocol.FromWorker{Reports: []protocol.Report{{
		Job: a.Job, Unit: a.Unit, Attempt: 2, Outcome: protocol.Errored, Class: protocol.PermanentUnit, Errors: []string{"broken"},
	}}})
	n.WantEnd(a.Job, mapreduce.JobFailed)
	n.Sound()
	if _, err := n.ResumeJob(t.Context(), a.Job, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	if a = assignment(w); a.JournalEntries != 4 {
		t.Errorf("after a resume, attempt %d is given %d entries; want all 4", a.Attempt, a.JournalEntries)
	}
}

// An append that takes long delays no report.
func TestSlowAppendsDelayNoReports(t *testing.T) {
	c := enginetest.NewCluster(t)
	begun, kept := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) }) // one that was held for too long is tried again
	c.Hook = func(p failpoint.Point) {
		if p == failpoint.Journal.Before() {
			begin()
			<-kept
		}
	}
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "w", 2)
	n.Submit(enginetest.Script(nil), 2)
	var held []protocol.Held
	for len(held) < 2 {
		for _, a := range w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments {
			held = append(held, heldOf(a))
		}
	}
	appended := make(chan error, 1)
	data := entry(t, "a", 1, nil)
	go func() { appended <- appendOf(w, "w", held[0], 0, data) }()
	<-begun
	w.Say(&protocol.FromWorker{Reports: []protocol.Report{{
		Job: held[1].Job, Unit: held[1].Unit, Attempt: held[1].Attempt, Outcome: protocol.Done, Size: 1,
	}}})
	first := w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts
	if len(first) != 1 || first[0].Unit != held[1].Unit || first[0].Verdict != protocol.Accepted {
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
	protocol.Fleet
	next func() (before, after bool)
}

var errCut = errs.New(errs.Unavailable, "the connection was cut")

func (f cutting) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if q.Blob.Kind != protocol.BlobJournal {
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
	c := enginetest.NewCluster(t)
	var appends atomic.Int64
	c.Wrap = func(f protocol.Fleet) protocol.Fleet {
		return cutting{f, func() (before, after bool) {
			n := appends.Add(1)
			return n%4 == 1, n%4 == 3
		}}
	}
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	made := enginetest.NewCounter()
	c.Worker(made, worker.Config{Slots: 4}, n)
	c.Worker(made, worker.Config{Slots: 4}, n)
	id := n.Submit(enginetest.Script(map[string]string{
		"script.calls": "4", "script.tokens_in": "6000", "script.fail_rate": "0.3",
	}), 20)
	job := n.WantEnd(id, mapreduce.JobComplete)
	if job.FailedUnits > 0 {
		t.Fatalf("%d units have failed: it shows too little", job.FailedUnits)
	}
	units := int64(job.TotalUnits)
	if got := made.Made(); got != 4*units || int64(made.Attempts()) == units {
		t.Errorf("%d calls in %d attempts at %d units of 4 calls", got, made.Attempts(), units)
	}
	if job.TotalTokens.Total() != 4*6000*units {
		t.Errorf("%d tokens were spent", job.TotalTokens.Total())
	}
	n.Sound()
}

// In a job that captures all, journals stay; in others, those of units alone that are
// not complete.
func TestJournalsThatStay(t *testing.T) {
	for _, capture := range []mapreduce.Capture{mapreduce.CaptureOff, mapreduce.CaptureFull} {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		c.Worker(enginetest.NewCounter(), worker.Config{Slots: 4}, n)
		spec := enginetest.Script(map[string]string{"script.calls": "3", "script.tokens_in": "12000"})
		spec.Capture = capture
		id := n.Submit(spec, 3)
		n.WantEnd(id, mapreduce.JobComplete)
		n.Sound()
		journals := journalsOf(c, t)
		if stay := journals > 0; stay != (capture == mapreduce.CaptureFull) {
			t.Errorf("capture %d: %d entries of journals are left", capture, journals)
		}
		if err := n.DeleteJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if journals = journalsOf(c, t); journals > 0 {
			t.Errorf("a job that was deleted leaves %d entries of journals", journals)
		}
	}
}

// journalsOf counts what is stored of journals.
func journalsOf(c *enginetest.Cluster, t *testing.T) (n int) {
	t.Helper()
	err := store.NewDB(c.Store, store.Config{}).View(t.Context(), func(tx store.Tx) error {
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
