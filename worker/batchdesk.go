package worker

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
)

// A Batcher sees to batches at vendors. batching.Holder is one.
type Batcher interface {
	// Providers returns the names of the providers whose batches it can make.
	Providers() []string

	// Run sees to batches until ctx ends.
	Run(ctx context.Context, desk mapreduce.BatchDesk)
}

// A batchDesk is the orchestrator that the session is connected to, for batches. While there is none it
// waits.
type batchDesk struct{ session *session }

var _ mapreduce.BatchDesk = batchDesk{}

// Orders implements mapreduce.BatchDesk.
func (d batchDesk) Orders(ctx context.Context) (orders []mapreduce.BatchOrder, err error) {
	data, err := d.get(ctx, mapreduce.Held{}, mapreduce.Blob{Kind: mapreduce.BlobBatches})
	if err == nil {
		err = json.Unmarshal(data, &orders)
	}
	return orders, err
}

// Lines implements mapreduce.BatchDesk. They are read as they come, so that a batch is not in memory twice.
func (d batchDesk) Lines(ctx context.Context, job mapreduce.JobID, number int64) ([]mapreduce.BatchLine, error) {
	r, w := io.Pipe()
	var coming sync.WaitGroup
	var lost error // of what brings them
	coming.Go(func() {
		lost = d.read(ctx, mapreduce.Held{Job: job}, mapreduce.Blob{Kind: mapreduce.BlobBatchLines, FirstEntry: int(number)}, w)
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
func decodeLines(r io.Reader) (lines []mapreduce.BatchLine, err error) {
	for dec := json.NewDecoder(r); ; {
		var one mapreduce.BatchLine
		switch err := dec.Decode(&one); {
		case errors.Is(err, io.EOF):
			return lines, nil
		case err != nil:
			return nil, errs.New(errs.DataLoss, "line %d of the batch cannot be read: %v", len(lines), err)
		}
		lines = append(lines, one)
	}
}

// Report implements mapreduce.BatchDesk.
func (d batchDesk) Report(ctx context.Context, job mapreduce.JobID, number int64, r *mapreduce.BatchReport) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(data)
	q := &mapreduce.BlobRequest{
		Held: mapreduce.Held{Job: job},
		Blob: mapreduce.Blob{Kind: mapreduce.BlobBatchReport, FirstEntry: int(number), SHA256: sum[:], Length: int64(len(data))},
	}
	_, err = d.session.transfers.PutBlob(ctx, q, func() ([]byte, error) {
		if len(data) == 0 {
			return nil, io.EOF
		}
		n := min(len(data), mapreduce.PartSize)
		part := data[:n:n]
		data = data[n:]
		return part, nil
	})
	return err
}

// maxBatch bounds what is got of a batch, in bytes: its lines, which an orchestrator bounds as well.
const maxBatch = 256 << 20

func (d batchDesk) get(ctx context.Context, h mapreduce.Held, b mapreduce.Blob) ([]byte, error) {
	var data bytes.Buffer
	err := d.read(ctx, h, b, &data)
	return data.Bytes(), err
}

// read writes what is got of a batch.
func (d batchDesk) read(ctx context.Context, h mapreduce.Held, b mapreduce.Blob, to io.Writer) error {
	got := 0
	return d.session.transfers.GetBlob(ctx, &mapreduce.BlobRequest{Held: h, Blob: b}, func(part []byte) error {
		if got += len(part); got > maxBatch {
			return errs.New(errs.DataLoss, "more than %d bytes came of a batch", maxBatch)
		}
		_, err := to.Write(part)
		return err
	})
}
