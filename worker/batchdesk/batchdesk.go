// Package batchdesk is the orchestrator of a worker that sees to batches at vendors: orders, lines and reports
// go as blobs. It must not import what sees to batches, nor anything of units: it knows only what goes over.
package batchdesk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// A Desk asks the orchestrator that blobs are carried to. While there is none it waits.
type Desk struct{ blobs protocol.Blobs }

// New returns the desk of the orchestrator to and from which blobs are carried.
func New(blobs protocol.Blobs) *Desk { return &Desk{blobs} }

var _ protocol.BatchDesk = (*Desk)(nil)

// Orders implements protocol.BatchDesk.
func (d *Desk) Orders(ctx context.Context) (orders []protocol.BatchOrder, err error) {
	data, err := d.get(ctx, protocol.Held{}, protocol.Blob{Kind: protocol.BlobBatches})
	if err == nil {
		err = json.Unmarshal(data, &orders)
	}
	return orders, err
}

// Lines implements protocol.BatchDesk. They are read as they come, so that a batch is not in memory twice.
func (d *Desk) Lines(ctx context.Context, job mapreduce.JobID, number int64) ([]protocol.BatchLine, error) {
	r, w := io.Pipe()
	var coming sync.WaitGroup
	var lost error // of what brings them
	coming.Go(func() {
		lost = d.read(ctx, protocol.Held{Job: job}, protocol.Blob{Kind: protocol.BlobBatchLines, FirstEntry: int(number)}, w)
		_ = w.CloseWithError(lost) // it is always nil
	})
	lines, err := decodeLines(r)
	_ = r.CloseWithError(errRead) // likewise
	coming.Wait()

	// Of lines that did not all come, the reason counts, and not where they broke off.
	if lost != nil && !errors.Is(lost, errRead) {
		return nil, lost
	}
	return lines, err
}

// errRead ends a transfer of which no more is wanted.
var errRead = errors.New("no more of it is read")

// decodeLines reads the lines of a batch.
func decodeLines(r io.Reader) (lines []protocol.BatchLine, err error) {
	for dec := json.NewDecoder(r); ; {
		var one protocol.BatchLine
		switch err := dec.Decode(&one); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return nil, errs.New(errs.DataLoss, "line %d of the batch cannot be read: %v", len(lines), err)
		}
		lines = append(lines, one)
	}
}

// Report implements protocol.BatchDesk.
func (d *Desk) Report(ctx context.Context, job mapreduce.JobID, number int64, r *protocol.BatchReport) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(data)
	q := &protocol.BlobRequest{
		Held: protocol.Held{Job: job},
		Blob: protocol.Blob{Kind: protocol.BlobBatchReport, FirstEntry: int(number), SHA256: sum[:], Length: int64(len(data))},
	}
	_, err = d.blobs.PutBlob(ctx, q, func() ([]byte, error) {
		if len(data) == 0 {
			return nil, io.EOF
		}
		n := min(len(data), protocol.PartSize)
		part := data[:n:n]
		data = data[n:]
		return part, nil
	})
	return err
}

// maxBatch bounds what is got of a batch, in bytes: its lines, which an orchestrator bounds as well.
const maxBatch = 256 << 20

func (d *Desk) get(ctx context.Context, h protocol.Held, b protocol.Blob) ([]byte, error) {
	var data bytes.Buffer
	err := d.read(ctx, h, b, &data)
	return data.Bytes(), err
}

// read writes what is got of a batch.
func (d *Desk) read(ctx context.Context, h protocol.Held, b protocol.Blob, to io.Writer) error {
	got := 0
	return d.blobs.GetBlob(ctx, &protocol.BlobRequest{Held: h, Blob: b}, func(part []byte) error {
		if got += len(part); got > maxBatch {
			return errs.New(errs.DataLoss, "more than %d bytes came of a batch", maxBatch)
		}
		_, err := to.Write(part)
		return err
	})
}
