package batchdesk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/batchdesk"
)

// An orchestrator keeps what it is asked and told.
type orchestrator struct {
	gives [][]byte // in parts, of whatever is asked for
	fails error    // after those
	asked []protocol.BlobRequest
	told  []byte
	parts int
}

// GetBlob implements protocol.Blobs.
func (o *orchestrator) GetBlob(_ context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	o.asked = append(o.asked, *q)
	for _, part := range o.gives {
		if err := take(part); err != nil {
			return err
		}
	}
	return o.fails
}

// PutBlob implements protocol.Blobs.
func (o *orchestrator) PutBlob(_ context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	o.asked = append(o.asked, *q)
	for {
		part, err := next()
		if errors.Is(err, io.EOF) {
			return &protocol.BlobStored{Length: int64(len(o.told))}, nil
		}
		if err != nil {
			return nil, err
		}
		o.told = append(o.told, part...)
		o.parts++
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestOrders(t *testing.T) {
	want := []protocol.BatchOrder{{Batch: protocol.Batch{Job: "j", Number: 3, Mark: "m"}, Cancel: true}, {Wait: "no room"}}
	data := encode(t, want)
	got, err := batchdesk.New(&orchestrator{gives: [][]byte{data[:10], data[10:]}}).Orders(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Lines come as they are read, wherever they are cut; what is no line is said by its place, and of lines that
// did not all come the reason counts.
func TestLines(t *testing.T) {
	want := []protocol.BatchLine{{Number: 0, Request: json.RawMessage(`{"a":1}`)}, {Number: 4, Request: json.RawMessage(`[]`)}}
	var data []byte
	for _, one := range want {
		data = append(data, encode(t, one)...)
	}

	o := &orchestrator{gives: [][]byte{data[:3], data[3:20], data[20:]}}
	got, err := batchdesk.New(o).Lines(t.Context(), "j", 7)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if q := o.asked[0]; q.Held.Job != "j" || q.Blob.Kind != protocol.BlobBatchLines || q.Blob.FirstEntry != 7 {
		t.Errorf("asked for %+v", q)
	}

	gone := errors.New("the stream has ended")
	if _, err := batchdesk.New(&orchestrator{gives: [][]byte{data[:5]}, fails: gone}).Lines(t.Context(), "j", 7); !errors.Is(err, gone) {
		t.Errorf("lines that broke off: %v, want %v", err, gone)
	}
	if _, err := batchdesk.New(&orchestrator{gives: [][]byte{data, []byte("x")}}).Lines(t.Context(), "j", 7); !errors.Is(err, errs.DataLoss) {
		t.Errorf("what is no line: %v, want data loss", err)
	}
}

// A report goes in parts that one message takes, with its hash and its length.
func TestReport(t *testing.T) {
	want := &protocol.BatchReport{Mark: "m", Replies: []protocol.LineReply{{Number: 1, Error: string(bytes.Repeat([]byte("x"), 2*protocol.PartSize))}}}
	o := new(orchestrator)
	if err := batchdesk.New(o).Report(t.Context(), "j", 7, want); err != nil {
		t.Fatal(err)
	}

	var got protocol.BatchReport
	if err := json.Unmarshal(o.told, &got); err != nil || o.parts != 3 {
		t.Fatalf("told in %d parts: %v", o.parts, err)
	}
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b := o.asked[0].Blob; b.Kind != protocol.BlobBatchReport || b.FirstEntry != 7 || b.Length != int64(len(o.told)) || len(b.SHA256) != 32 {
		t.Errorf("told with %+v", b)
	}
}
