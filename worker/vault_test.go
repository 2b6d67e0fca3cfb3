package worker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/output"
)

// A vault is the blobs of a fleet in memory.
type vault struct {
	part int // bytes of a part; 0 is mapreduce.PartSize
	// before, if not nil, is called before each part at a byte of a blob, and before
	// its end. An error breaks the transfer off.
	before func(ctx context.Context, q *mapreduce.BlobRequest, at int64) error

	mu   sync.Mutex // guards the fields below
	have map[string][]byte
	put  map[string][]byte       // whole, or as far as it came
	asks []mapreduce.BlobRequest // all transfers
}

var _ mapreduce.Blobs = (*vault)(nil)

func newVault() *vault {
	return &vault{have: make(map[string][]byte), put: make(map[string][]byte)}
}

// blobName names a blob of a vault.
func blobName(kind mapreduce.BlobKind, unit mapreduce.UnitID, attempt int) string {
	return fmt.Sprint(kind, " of ", unit, " ", attempt)
}

func nameOf(q *mapreduce.BlobRequest) string { return blobName(q.Blob.Kind, q.Unit, q.Attempt) }

func (v *vault) asked(q *mapreduce.BlobRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asks = append(v.asks, *q)
}

func (v *vault) step(ctx context.Context, q *mapreduce.BlobRequest, at int64) error {
	if ctx.Err() != nil {
		return errs.New(errs.Unavailable, "the stream is broken")
	}
	if v.before == nil {
		return nil
	}
	return v.before(ctx, q, at)
}

func (v *vault) GetBlob(ctx context.Context, q *mapreduce.BlobRequest, take func([]byte) error) error {
	v.asked(q)
	if err := v.step(ctx, q, q.Blob.Start); err != nil {
		return err
	}
	v.mu.Lock()
	data, ok := v.have[nameOf(q)]
	v.mu.Unlock()
	if !ok {
		return errs.New(errs.NotFound, "there is no blob %s", nameOf(q))
	}
	end := int64(len(data))
	if q.Blob.End > 0 {
		end = min(end, q.Blob.End)
	}
	part := int64(v.part)
	if part == 0 {
		part = mapreduce.PartSize
	}
	for at := q.Blob.Start; at < end; {
		to := min(at+part, end)
		if err := take(data[at:to]); err != nil {
			return err
		}
		at = to
		if err := v.step(ctx, q, at); err != nil {
			return err
		}
	}
	return nil
}

func (v *vault) PutBlob(ctx context.Context, q *mapreduce.BlobRequest, next func() ([]byte, error)) (*mapreduce.BlobStored, error) {
	v.asked(q)
	name := nameOf(q)
	for first := true; ; first = false {
		part, err := next()
		v.mu.Lock()
		if err == nil && first && int64(len(v.put[name])) != q.Blob.Start {
			err = errs.New(errs.Aborted, "%d bytes are stored, and it goes on from %d", len(v.put[name]), q.Blob.Start)
		}
		if err == nil {
			v.put[name] = append(v.put[name], part...)
		}
		stored := int64(len(v.put[name]))
		v.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return &mapreduce.BlobStored{Length: stored}, nil
		}
		if err == nil {
			err = v.step(ctx, q, stored)
		}
		if err != nil {
			return nil, err
		}
	}
}

// stored returns what was put.
func (v *vault) stored(kind mapreduce.BlobKind, unit mapreduce.UnitID, attempt int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.put[blobName(kind, unit, attempt)]
}

// keep lets a blob be got.
func (v *vault) keep(kind mapreduce.BlobKind, unit mapreduce.UnitID, data []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.have[blobName(kind, unit, 1)] = data
}

// starts returns where transfers of a kind began, in order.
func (v *vault) starts(kind mapreduce.BlobKind) (all []int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, q := range v.asks {
		if q.Blob.Kind == kind {
			all = append(all, q.Blob.Start)
		}
	}
	return all
}

// encoded returns inputs as a blob has them.
func encoded(inputs ...mapreduce.Input) (all []byte) {
	for _, in := range inputs {
		sum := sha256.Sum256(in.Data)
		h := output.InputHeader{
			Unit: in.Unit, First: in.First, End: in.End, Failed: in.Failed, Referred: in.Referred,
			Length: int64(len(in.Data)), SHA256: sum[:],
		}
		all, _ = h.Append(all) // what cannot be encoded is missing in what comes
		all = append(all, in.Data...)
	}
	return all
}
