package records_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// rangeReader reads pairs, which stand in order. Like a cluster it says of a range that was
// read as far as the limit that there may be more, also where there is not.
type rangeReader struct {
	pairs  []store.KeyValue
	ranges int // that were read
}

var errOneByOne = errors.New("keys are read one by one")

func (*rangeReader) Get(context.Context, []byte) ([]byte, error)        { return nil, errOneByOne }
func (*rangeReader) GetAll(context.Context, [][]byte) ([][]byte, error) { return nil, errOneByOne }

func (r *rangeReader) GetRange(_ context.Context, span store.Range, o store.RangeOptions) (found []store.KeyValue, more bool, err error) {
	r.ranges++
	for _, kv := range r.pairs {
		inside := bytes.Compare(span.Begin, kv.Key) <= 0 && bytes.Compare(kv.Key, span.End) < 0
		if inside && (o.Limit == 0 || len(found) < o.Limit) {
			found = append(found, kv)
		}
	}
	return found, len(found) == o.Limit, nil
}

// TestNeighboursAreReadByRanges: a page of units whose names have the order of the
// documents costs two reads of ranges, however many units are on it.
func TestNeighboursAreReadByRanges(t *testing.T) {
	const units = 100
	space := keys.New("test")
	rec := records.New(space, "node", time.Now)
	r := &rangeReader{}
	for i := range units {
		r.pairs = append(r.pairs, store.KeyValue{Key: space.Job("job").Order(0, keys.MapIndex(int64(i), 0)), Value: []byte(fmt.Sprintf("document-%03d", i))})
	}
	for i := range units {
		u := &storagev1.Unit{UnitId: fmt.Sprintf("document-%03d", i)}
		r.pairs = append(r.pairs, store.KeyValue{Key: space.Job("job").Unit(mapreduce.UnitID(u.UnitId)), Value: records.Encode(u)})
	}
	for _, limit := range []int{store.MinNear, 16, units, 2 * units} {
		r.ranges = 0
		got, err := rec.Units.From(t.Context(), r, "job", 0, 0, limit)
		if err != nil || len(got) != min(limit, units) || r.ranges != 2 {
			t.Errorf("%d of %d units were read in %d ranges: %v", len(got), min(limit, units), r.ranges, err)
		}
	}
}
