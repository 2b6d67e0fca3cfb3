package staging_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// Who submits with a request id that another tenant has used makes the store do exactly what
// it does for an id that nobody has used: the same operations, over keys and values of the
// same sizes. So neither the answer nor the time that it takes tells that it was used.
func TestRequestIDsOfOthersChangeNothing(t *testing.T) {
	spy := &spy{Store: new(memory.Store)}
	w := jobstest.NewWorld(t, spy, 1)
	submit := func(tenant mapreduce.TenantID, id mapreduce.RequestID) (mapreduce.JobID, []string) {
		t.Helper()
		spy.seen = nil
		s := jobstest.Spec()
		s.Tenant, s.RequestID = tenant, id
		if won, err := w.Nodes[0].Submit.Requested(w.Ctx, tenant, id); err == nil && won != "" {
			return won, spy.seen
		}
		return w.Submit(w.Nodes[0], s, jobstest.Texts(3)), spy.seen
	}
	first, _ := submit("b", "the 1st request")
	theirs, seenOfTheirs := submit("a", "the 1st request")
	_, seenOfNobodys := submit("a", "the 2nd request")
	if theirs == first {
		t.Fatal("a has the job of b")
	}
	if !slices.Equal(seenOfTheirs, seenOfNobodys) {
		t.Errorf("for an id that b has used the store does\n%v\nand for one that nobody has\n%v", seenOfTheirs, seenOfNobodys)
	}
	again, seenOfOwn := submit("a", "the 1st request")
	if again != theirs || slices.Equal(seenOfOwn, seenOfNobodys) {
		t.Errorf("a's own id gives %s, want %s, by other operations: these are not seen", again, theirs)
	}
}

// A spy is a store that notes what is done in it, without the contents.
type spy struct {
	store.Store
	seen []string
}

func (s *spy) note(what string, sizes ...any) {
	s.seen = append(s.seen, fmt.Sprint(append([]any{what}, sizes...)...))
}

// Begin implements store.Store.
func (s *spy) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	s.note("begin")
	return &spiedTx{spiedReader{tx, s}, tx}, nil
}

type spiedReader struct {
	store.Reader
	spy *spy
}

// Get implements store.Reader.
func (r spiedReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	v, err := r.Reader.Get(ctx, key)
	r.spy.note("get", len(key), len(v))
	return v, err
}

// GetAll implements store.Reader.
func (r spiedReader) GetAll(ctx context.Context, all [][]byte) ([][]byte, error) {
	values, err := r.Reader.GetAll(ctx, all)
	for i, v := range values {
		r.spy.note("get one of some", len(all[i]), len(v))
	}
	return values, err
}

// GetRange implements store.Reader.
func (r spiedReader) GetRange(ctx context.Context, span store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := r.Reader.GetRange(ctx, span, o)
	r.spy.note("get range", len(pairs), more)
	return pairs, more, err
}

type spiedTx struct {
	spiedReader
	store.Tx
}

func (t *spiedTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return t.spiedReader.Get(ctx, key)
}

func (t *spiedTx) GetAll(ctx context.Context, all [][]byte) ([][]byte, error) {
	return t.spiedReader.GetAll(ctx, all)
}

func (t *spiedTx) GetRange(ctx context.Context, span store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return t.spiedReader.GetRange(ctx, span, o)
}

// Snapshot implements store.Tx.
func (t *spiedTx) Snapshot() store.Reader { return spiedReader{t.Tx.Snapshot(), t.spy} }

// Set implements store.Tx.
func (t *spiedTx) Set(key, value []byte) {
	t.spy.note("set", len(key), len(value))
	t.Tx.Set(key, value)
}

// Clear implements store.Tx.
func (t *spiedTx) Clear(key []byte) {
	t.spy.note("clear", len(key))
	t.Tx.Clear(key)
}

// ClearRange implements store.Tx.
func (t *spiedTx) ClearRange(r store.Range) {
	t.spy.note("clear range")
	t.Tx.ClearRange(r)
}

// Add implements store.Tx.
func (t *spiedTx) Add(key []byte, delta int64) {
	t.spy.note("add", len(key))
	t.Tx.Add(key, delta)
}

// SetVersionstampedKey implements store.Tx.
func (t *spiedTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.spy.note("set stamped", len(key), len(value))
	t.Tx.SetVersionstampedKey(key, offset, value)
}

// Commit implements store.Tx.
func (t *spiedTx) Commit(ctx context.Context) error {
	t.spy.note("commit")
	return t.Tx.Commit(ctx)
}
