package lifecycle_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A listener is a store that counts the reads of a list which begin at its beginning.
type listener struct {
	store.Store
	begin []byte
	reads int
}

func (l *listener) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := l.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return listenedTx{tx, l}, nil
}

type listenedTx struct {
	store.Tx
	l *listener
}

func (tx listenedTx) Snapshot() store.Reader { return listenedReader{tx.Tx.Snapshot(), tx.l} }

type listenedReader struct {
	store.Reader
	l *listener
}

func (r listenedReader) GetRange(ctx context.Context, of store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	if bytes.Equal(of.Begin, r.l.begin) {
		r.l.reads++
	}
	return r.Reader.GetRange(ctx, of, o)
}

// A resume counts the failed units of causes that are marked once, however many steps it takes.
func TestFailuresAreCountedOnce(t *testing.T) {
	l := &listener{Store: jobstest.Open(t)}
	w := jobstest.NewWorld(t, l, 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2400))
	r := jobstest.Errored(id, w.Claim(j, id, w.Session(j), 1)[0], protocol.PermanentUnit)
	r.Errors = []string{"the page is broken"}
	w.Report(j, r)
	w.MapAll(j, id)
	w.Advance(j, id)
	w.EndAll(j, id, w.Session(j))
	w.Must(j.Causes.Mark(w.Ctx, id, r.Errors[0], mapreduce.CauseResolved))
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))

	l.begin, l.reads = keys.New().Queues(id).AllFailed().Begin, 0
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if l.reads != 1 {
		t.Errorf("the failed units were read %d times, want once", l.reads)
	}
	w.Healthy()
}
