package queue_test

import (
	"context"
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A cluster answers as late to one read as to many together. So candidates are read with the
// turn's own keys where few would be read in vain: where these are few, and each has a slot.
func TestFewCandidatesAreReadEarly(t *testing.T) {
	for name, tt := range map[string]struct {
		candidates, slots int
		answers           int // that the turn waits for
	}{
		"one":                            {1, 1, 1},
		"few":                            {5, 5, 1},
		"few, for more slots":            {5, 9, 1},
		"few, and not a slot for each":   {5, 4, 2},
		"as many as are read as a range": {store.MinNear, store.MinNear, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := &awaited{Store: jobstest.Open(t)}
			w := jobstest.NewWorld(t, s.Store, 1)
			j := jobs.New(store.NewDB(s, store.Config{}), w.Space, w.Nodes[0].Node(), w.Clock)
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(tt.candidates))
			claim := w.ClaimOf(j, id, w.Session(j), tt.slots)

			var answers []int // by run
			res := w.Turn(j, &queue.Turn{Job: id, Claim: claim, Claiming: func([]queue.Claimed) { answers = append(answers, s.answers) }})
			if want := min(tt.candidates, tt.slots); len(res.Claimed) != want || answers[0] != tt.answers {
				t.Errorf("%d units are claimed after %d answers of the store, want %d after %d", len(res.Claimed), answers[0], want, tt.answers)
			}
		})
	}
}

// An awaited store counts how often its answers are waited for.
type awaited struct {
	store.Store
	answers int // to the transaction that has begun last
}

func (s *awaited) Begin(ctx context.Context) (store.Tx, error) {
	s.answers = 0
	tx, err := s.Store.Begin(ctx)
	return awaitedTx{tx, awaitedReader{tx, s}}, err
}

type awaitedTx struct {
	store.Tx
	awaitedReader
}

func (t awaitedTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return t.awaitedReader.Get(ctx, key)
}

func (t awaitedTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return t.awaitedReader.GetAll(ctx, keys)
}

func (t awaitedTx) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return t.awaitedReader.GetRange(ctx, r, o)
}

func (t awaitedTx) Snapshot() store.Reader { return awaitedReader{t.Tx.Snapshot(), t.store} }

type awaitedReader struct {
	from  store.Reader
	store *awaited
}

func (r awaitedReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	r.store.answers++
	return r.from.Get(ctx, key)
}

func (r awaitedReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	r.store.answers++
	return r.from.GetAll(ctx, keys)
}

func (r awaitedReader) GetRange(ctx context.Context, span store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	r.store.answers++
	return r.from.GetRange(ctx, span, o)
}
