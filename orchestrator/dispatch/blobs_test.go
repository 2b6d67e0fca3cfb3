package dispatch_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// outputOf is a request to put an output from a byte on.
func outputOf(session mapreduce.SessionID, h protocol.Held, data []byte, start int) *protocol.BlobRequest {
	sum := sha256.Sum256(data)
	return &protocol.BlobRequest{Session: session, Held: h, Blob: protocol.Blob{
		Kind: protocol.BlobOutput, Length: int64(len(data)), SHA256: sum[:], Start: int64(start),
	}}
}

// parts returns what hands out data part by part, and then fails with an error.
func parts(data []byte, end error) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(data) == 0 {
			return nil, end
		}
		n := min(len(data), protocol.PartSize)
		part := data[:n]
		data = data[n:]
		return part, nil
	}
}

// reasoned returns an output that is longer than n bytes.
func reasoned(t *testing.T, n int) []byte {
	t.Helper()
	data, err := (&output.Output{Reason: strings.Repeat("0123456789abcdef", n/16+1)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// putOutput stores an output, and fills a report of it.
func putOutput(w enginetest.Bare, session mapreduce.SessionID, h protocol.Held, data []byte) func(*protocol.Report) {
	w.T.Helper()
	put(w, session, h, data)
	sum := sha256.Sum256(data)
	return func(r *protocol.Report) { r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:] }
}

// put stores an output.
func put(w enginetest.Bare, session mapreduce.SessionID, h protocol.Held, data []byte) {
	w.T.Helper()
	stored, err := w.PutBlob(w.T.Context(), outputOf(session, h, data, 0), parts(data, io.EOF))
	if err != nil || stored.Length != int64(len(data)) {
		w.T.Fatalf("stored %+v, %v; want all %d bytes", stored, err, len(data))
	}
}

// A put that breaks off goes on from what is stored, for the session alone that holds
// the attempt; and no report publishes what is not stored whole.
func TestOutputsArePut(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	thief := enginetest.GreetWith(t, n, &protocol.FromWorker{Drain: true, Hello: &protocol.Hello{Session: "thief", Slots: 1, Offer: mapreduce.Offer{Providers: []string{"scripted"}}}})
	thief.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	w := enginetest.Greet(t, n, "w", 1)
	id := n.Submit(enginetest.Script(nil), 1)
	held := w.Assigned()
	data := reasoned(t, 1_600_000)

	_, err := thief.PutBlob(t.Context(), outputOf("thief", held, data, 0), parts(data, io.EOF))
	wantKind(t, err, errs.Precondition)
	broken := errors.New("broken off")
	some := parts(data[:1_000_000], nil)
	var stored *protocol.BlobStored
	_, err = w.PutBlob(t.Context(), outputOf("w", held, data, 0), func() ([]byte, error) {
		if part, _ := some(); part != nil {
			return part, nil
		}
		for stored == nil || stored.Length == 0 { // what was sent is stored soon
			if stored, err = w.PutBlob(t.Context(), outputOf("w", held, data, 0), parts(nil, io.EOF)); err != nil {
				return nil, err
			}
		}
		return nil, broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if stored.Length >= int64(len(data)) || stored.SHA256 != nil {
		t.Fatalf("%d bytes are stored of %d", stored.Length, 1_000_000)
	}
	_, err = w.PutBlob(t.Context(), outputOf("w", held, data, int(stored.Length)+1), parts(data[stored.Length+1:], io.EOF))
	wantKind(t, err, errs.Aborted)
	if v := w.Report(held, func(r *protocol.Report) { r.Output = nil; r.Length, r.SHA256 = int64(len(data)), stored.SHA256 }); v != protocol.Accepted {
		t.Errorf("a report before its output was given %v", v)
	}

	held = w.Assigned()
	if held.Attempt != 2 {
		t.Fatalf("attempt %d, want the second: the first did not store its output", held.Attempt)
	}
	if _, err := w.PutBlob(t.Context(), outputOf("w", held, data, 0), parts(data[:1_000_000], io.EOF)); err != nil {
		t.Fatal(err)
	}
	stored, err = w.PutBlob(t.Context(), outputOf("w", held, data, 0), parts(nil, io.EOF))
	if err != nil || stored.Length == 0 {
		t.Fatalf("%+v, %v", stored, err)
	}
	_, err = thief.PutBlob(t.Context(), outputOf("thief", held, data, int(stored.Length)), parts(make([]byte, 100), io.EOF))
	wantKind(t, err, errs.Precondition)
	stored, err = w.PutBlob(t.Context(), outputOf("w", held, data, int(stored.Length)), parts(data[stored.Length:], io.EOF))
	if err != nil || stored.Length != int64(len(data)) || len(stored.SHA256) == 0 {
		t.Fatalf("%+v, %v", stored, err)
	}
	sum := sha256.Sum256(data)
	if v := w.Report(held, func(r *protocol.Report) { r.Output = nil; r.Length, r.SHA256 = int64(len(data)), sum[:] }); v != protocol.Accepted {
		t.Errorf("the verdict is %v", v)
	}
	page, err := n.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, Outputs: true})
	if err != nil || !bytes.Equal(page.Units[0].Output, data) {
		t.Errorf("an output of %d bytes, %v", len(page.Units[0].Output), err)
	}
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want an error of kind %v", err, kind)
	}
}

func TestPutsThatAreRefused(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "w", 1)
	n.Submit(enginetest.Script(nil), 1)
	held := w.Assigned()
	data := []byte("some output")
	for name, change := range map[string]func(*protocol.BlobRequest){
		"too large":      func(q *protocol.BlobRequest) { q.Blob.Length = protocol.MaxOutput + 1 },
		"empty":          func(q *protocol.BlobRequest) { q.Blob.Length = 0 },
		"more than said": func(q *protocol.BlobRequest) { q.Blob.Length = 5 },
		"without a hash": func(q *protocol.BlobRequest) { q.Blob.SHA256 = nil },
		"another hash":   func(q *protocol.BlobRequest) { q.Blob.SHA256 = make([]byte, 32) },
		"of a text":      func(q *protocol.BlobRequest) { q.Blob.Kind = protocol.BlobText },
	} {
		q := outputOf("w", held, data, 0)
		change(q)
		if _, err := w.PutBlob(t.Context(), q, parts(data, io.EOF)); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A deaf store does not answer reads of texts until it is healed.
type deaf struct {
	store.Store
	texts  store.Range
	healed chan struct{}
}

func (d *deaf) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := d.Store.Begin(ctx)
	return deafTx{tx, d}, err
}

type deafTx struct {
	store.Tx
	store *deaf
}

func (t deafTx) Snapshot() store.Reader { return deafReader{t.Tx.Snapshot(), t.store} }

type deafReader struct {
	store.Reader
	store *deaf
}

func (r deafReader) GetRange(ctx context.Context, rng store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	if bytes.Compare(rng.Begin, r.store.texts.Begin) >= 0 && bytes.Compare(rng.Begin, r.store.texts.End) < 0 {
		select {
		case <-r.store.healed:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
	return r.Reader.GetRange(ctx, rng, o)
}

// largeTexts are documents that are too large for an assignment.
func largeTexts(n int) (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("doc%d", i)
		docs[order[i]] = strings.Repeat(fmt.Sprintf("text %d ", i), 20_000)
	}
	return docs, order
}

// Look-ups of texts that hang delay the reports of no other slot; there are only so
// many at once; and they end with the stream of their session.
func TestSlowBlobsDelayNoReports(t *testing.T) {
	c := enginetest.NewCluster(t)
	slow := &deaf{Store: c.Store, healed: make(chan struct{})}
	slow.texts = store.Range{Begin: keys.New().Job("mr_20000101_aaaaaa").Blob(nil, 0, 1).Begin, End: keys.New().Job("mr_29990101_zzzzzz").Blob(nil, 0, 1).End}
	c.Store = slow
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	const units = 3
	w := enginetest.Greet(t, n, "w", units)
	spec := enginetest.Script(nil)
	spec.MaxTokensPerUnit = 1 << 30
	docs, order := largeTexts(units)
	job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
	if err != nil {
		t.Fatal(err)
	}
	var all []protocol.Assignment
	for len(all) < units {
		all = append(all, w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments...)
	}
	heldBy := func(a protocol.Assignment) protocol.Held {
		return protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
	}
	for _, a := range all {
		if len(a.Text.Content) > 0 || len(a.Blobs) != 1 || a.Blobs[0].Length != int64(len(docs[string(a.Text.Document)])) {
			t.Fatalf("assignment of a large text: %d bytes and blobs %+v", len(a.Text.Content), a.Blobs)
		}
	}
	get := func(ctx context.Context) (string, error) {
		var got []byte
		q := &protocol.BlobRequest{Session: "w", Held: heldBy(all[0]), Blob: all[0].Blobs[0]}
		err := w.GetBlob(ctx, q, func(part []byte) error { got = append(got, part...); return nil })
		return string(got), err
	}
	ended := make(chan error, orchestrator.MaxTransfers+1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range orchestrator.MaxTransfers + 1 {
		go func() { _, err := get(ctx); ended <- err }()
	}
	var busy *errs.Error
	if err := <-ended; !errors.As(err, &busy) || busy.Kind != errs.Exhausted || busy.RetryAfter <= 0 {
		t.Errorf("one transfer too many: %v; want it refused, with a pause", err)
	}
	for _, a := range all[1:] {
		if v := w.Report(heldBy(a), enginetest.AsIs); v != protocol.Accepted {
			t.Errorf("a report beside transfers that hang was given %v", v)
		}
	}
	put(w, "w", heldBy(all[0]), make([]byte, 10_000)) // what is put does not wait either
	cancel()
	for range orchestrator.MaxTransfers {
		wantKind(t, <-ended, errs.Cancelled)
	}
	close(slow.healed)
	for {
		got, err := get(t.Context())
		if errors.Is(err, errs.Exhausted) { // those that were cancelled end soon
			continue
		}
		if err != nil || got != docs[string(all[0].Text.Document)] {
			t.Errorf("%d bytes and %v of a text that can be read again", len(got), err)
		}
		break
	}
	if v := w.Report(heldBy(all[0]), enginetest.AsIs); v != protocol.Accepted {
		t.Errorf("the last report was given %v", v)
	}
	w.Report(w.Assigned(), enginetest.AsIs)
	n.WantEnd(job.ID, mapreduce.JobComplete)
}

// A choosy fleet breaks the stream with a message that cannot be sent: one that
// hands out a certain unit.
type choosy struct {
	protocol.Fleet
	poison mapreduce.UnitID
}

func (f choosy) Work(ctx context.Context, stream protocol.WorkStream) error {
	return f.Fleet.Work(ctx, choosyStream{stream, f.poison})
}

type choosyStream struct {
	protocol.WorkStream
	poison mapreduce.UnitID
}

func (s choosyStream) Send(m *protocol.ToWorker) error {
	for _, a := range m.Assignments {
		if a.Unit == s.poison {
			return errs.New(errs.Invalid, "the message is larger than a worker takes")
		}
	}
	return s.WorkStream.Send(m)
}

// A unit whose hand-out breaks streams fails after as many attempts as it has, and takes no
// other with it, not even one that has a single attempt.
func TestAUnitThatCannotBeHandedOutIsSetAside(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		t.Run(fmt.Sprint(attempts), func(t *testing.T) {
			c := enginetest.NewCluster(t)
			c.Wrap = func(f protocol.Fleet) protocol.Fleet { return choosy{f, "doc-0000007"} }
			config := enginetest.Quick(orchestrator.Config{Adopt: true})
			config.Grace = 30 * time.Second // a worker that connects again is not dead, however slow the machine
			n := c.Orchestrator(config)
			c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 8}, n)

			spec := enginetest.Script(nil)
			spec.MaxAttempts = attempts
			id := n.Submit(spec, 20)
			job := n.WantEnd(id, mapreduce.JobComplete)

			if job.FailedUnits != 1 {
				t.Errorf("%d units have failed, want the one that cannot be handed out", job.FailedUnits)
			}
			poison := n.Units(id)["doc-0000007"]
			if poison.State != mapreduce.UnitFailed || poison.Failures != attempts || !strings.Contains(strings.Join(poison.Errors, "\n"), "could not be handed out: the message is larger than a worker takes") {
				t.Errorf("the unit ended as %+v", poison)
			}
			n.Sound()
		})
	}
}

// TestLargestDocument: an HTML document as large as is taken goes through, and is
// extracted from; no message has grown with it.
func TestLargestDocument(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const size = 64 << 20
	n := enginetest.Ruled(t)
	head, tail := "<html><body><!--", "--><p>ORDER: K-17</p><p>TOTAL: 12.50</p></body></html>"
	page := make([]byte, 0, size)
	page = append(append(append(page, head...), bytes.Repeat([]byte("x"), size-len(head)-len(tail))...), tail...)
	begun := time.Now()
	_, got := n.Run(enginetest.Extracting(t, enginetest.Orders), func(yield func(*mapreduce.Document, error) bool) {
		yield(&mapreduce.Document{ID: "page.html", MediaType: "text/html", Content: page}, nil)
	})
	if len(got.Records) != 1 || got.Records[0]["order"] != "K-17" || got.Records[0]["total"] != 12.5 {
		t.Errorf("records %v", got.Records)
	}
	t.Logf("it took %v", time.Since(begun))
}
