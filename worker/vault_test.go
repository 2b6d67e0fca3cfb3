package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

// A vault is the blobs of a fleet in memory.
type vault struct {
	part int // bytes of a part; 0 is protocol.PartSize
	// before, if not nil, is called before each part at a byte of a blob, and before
	// its end. An error breaks the transfer off.
	before func(ctx context.Context, q *protocol.BlobRequest, at int64) error

	mu   sync.Mutex // guards the fields below
	have map[string][]byte
	put  map[string][]byte // whole, or as far as it came

	journals map[mapreduce.UnitID][][]byte // entries of units
	appends  []string                      // of entries: the unit, the number of the first, and their keys
	asks     []protocol.BlobRequest        // all transfers
}

var _ protocol.Blobs = (*vault)(nil)

func newVault() *vault {
	return &vault{have: make(map[string][]byte), put: make(map[string][]byte), journals: make(map[mapreduce.UnitID][][]byte)}
}

// blobName names a blob of a vault.
func blobName(kind protocol.BlobKind, unit mapreduce.UnitID, attempt int) string {
	return fmt.Sprint(kind, " of ", unit, " ", attempt)
}

func nameOf(q *protocol.BlobRequest) string { return blobName(q.Blob.Kind, q.Unit, q.Attempt) }

func (v *vault) asked(q *protocol.BlobRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asks = append(v.asks, *q)
}

func (v *vault) step(ctx context.Context, q *protocol.BlobRequest, at int64) error {
	if ctx.Err() != nil {
		return errs.New(errs.Unavailable, "the stream is broken")
	}
	if v.before == nil {
		return nil
	}
	return v.before(ctx, q, at)
}

func (v *vault) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
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
		part = protocol.PartSize
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

func (v *vault) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	v.asked(q)
	if q.Blob.Kind == protocol.BlobJournal {
		return v.append(ctx, q, next)
	}
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
			return &protocol.BlobStored{Length: stored}, nil
		}
		if err == nil {
			err = v.step(ctx, q, stored)
		}
		if err != nil {
			return nil, err
		}
	}
}

// append adds entries to a journal, as a store does. What goes wrong before the
// second byte goes wrong before they are stored.
func (v *vault) append(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	var data []byte
	for {
		part, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	if err := v.step(ctx, q, 0); err != nil {
		return nil, err
	}
	if err := v.enterEntries(q, data); err != nil {
		return nil, err
	}
	return &protocol.BlobStored{Length: int64(len(data))}, v.step(ctx, q, int64(len(data)))
}

func (v *vault) enterEntries(q *protocol.BlobRequest, data []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	entries, err := journal.Split(data)
	if sum := sha256.Sum256(data); err != nil || !bytes.Equal(sum[:], q.Blob.SHA256) {
		return errs.New(errs.Invalid, "no entries: %v", err)
	}
	said := fmt.Sprintf("%s %d:", q.Unit, q.Blob.FirstEntry)
	for i, raw := range entries {
		e, err := journal.Decode(raw)
		had := v.journals[q.Unit]
		n := q.Blob.FirstEntry + i
		switch {
		case err != nil || e.Attempt != q.Attempt:
			return errs.New(errs.Invalid, "entry %d of attempt %d: %v", n, e.Attempt, err)
		case n < len(had) && bytes.Equal(had[n], raw):
		case n == len(had):
			v.journals[q.Unit] = append(had, bytes.Clone(raw))
		default:
			return errs.New(errs.Precondition, "entry %d of %d is another", n, len(had))
		}
		said += " " + e.Key
		if e.Begun {
			said += "?"
		}
	}
	v.appends = append(v.appends, said)
	return nil
}

// appended returns the appends to journals since the last time.
func (v *vault) appended() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.appends
	v.appends = nil
	return all
}

// again returns the next attempt at a unit, with its journal.
func (v *vault) again(a protocol.Assignment) protocol.Assignment {
	v.mu.Lock()
	defer v.mu.Unlock()
	a.Attempt++
	a.Journal, a.JournalEntries = nil, len(v.journals[a.Unit])
	for _, raw := range v.journals[a.Unit] {
		a.Journal = journal.AppendEntry(a.Journal, raw)
	}
	return a
}

// lose forgets what was put by a request.
func (v *vault) lose(q *protocol.BlobRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.put, nameOf(q))
}

// stored returns what was put.
func (v *vault) stored(kind protocol.BlobKind, unit mapreduce.UnitID, attempt int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.put[blobName(kind, unit, attempt)]
}

// keep lets a blob be got.
func (v *vault) keep(kind protocol.BlobKind, unit mapreduce.UnitID, data []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.have[blobName(kind, unit, 1)] = data
}

// starts returns where transfers of a kind began, in order.
func (v *vault) starts(kind protocol.BlobKind) (all []int64) {
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
func encoded(inputs ...protocol.Input) (all []byte) {
	for _, in := range inputs {
		sum := sha256.Sum256(in.Data)
		h := payload.InputHeader{
			Unit: in.Unit, First: in.First, End: in.End, Failed: in.Failed, Referred: in.Referred,
			Length: int64(len(in.Data)), SHA256: sum[:],
		}
		all, _ = h.Append(all) // what cannot be encoded is missing in what comes
		all = append(all, in.Data...)
	}
	return all
}
