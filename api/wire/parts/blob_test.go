package parts_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

const job = "mr_20260704_abc123"

// refused checks that err names field as what is invalid; any field if it is "".
func refused(t *testing.T, err error, field string) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field == "" || field != "" && e.Field != field {
		t.Fatalf("got %v, want field %q to be refused as invalid", err, field)
	}
}

// What is cut into parts, in whatever pieces it came, is put together again.
func TestPartsOfABlob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, wire.PartSize - 1, wire.PartSize, wire.PartSize + 1, 3 * wire.PartSize}), 0, 4).Draw(t, "pieces")
		var sent, got []byte
		checker := parts.NewChecker(start)
		cutter := parts.NewCutter(start, func(p *pb.BlobPart) error {
			if n := len(p.GetData()); n == 0 || n > wire.PartSize {
				t.Fatalf("a part of %d bytes", n)
			}
			data, err := checker.Add(p)
			got = append(got, data...)
			return err
		})
		for i, n := range sizes {
			piece := bytes.Repeat([]byte{byte(i)}, n)
			sent = append(sent, piece...)
			if err := cutter.Add(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := checker.Close(cutter.Sum()); err != nil || !bytes.Equal(sent, got) {
			t.Errorf("%d bytes became %d, with %v", len(sent), len(got), err)
		}
	})
}

func TestPartsThatAreRefused(t *testing.T) {
	part := func(at int64, data string) *pb.BlobPart { return &pb.BlobPart{StartByte: at, Data: []byte(data)} }
	for name, tt := range map[string]struct {
		parts []*pb.BlobPart
		field string
	}{
		"not from the start": {[]*pb.BlobPart{part(0, "abc")}, "part.start_byte"},
		"a gap":              {[]*pb.BlobPart{part(5, "abc"), part(9, "d")}, "part.start_byte"},
		"twice":              {[]*pb.BlobPart{part(5, "abc"), part(5, "abc")}, "part.start_byte"},
		"empty":              {[]*pb.BlobPart{part(5, "")}, "part.data"},
		"too large":          {[]*pb.BlobPart{{StartByte: 5, Data: make([]byte, wire.PartSize+1)}}, "part.data"},
	} {
		t.Run(name, func(t *testing.T) {
			checker := parts.NewChecker(5)
			var err error
			for _, p := range tt.parts {
				_, err = checker.Add(p)
			}
			refused(t, err, tt.field)
		})
	}
	checker := parts.NewChecker(5)
	if _, err := checker.Add(part(5, "abc")); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("abd"))
	if err := checker.Close(sum[:]); !errors.Is(err, errs.Aborted) {
		t.Errorf("bytes with another hash: %v", err)
	}
}

// FuzzParts takes any bytes for a stream of parts: what the checker lets through is
// in order, whole, and never more than was sent.
func FuzzParts(f *testing.F) {
	for _, parts := range [][]*pb.PutBlobRequest{
		{{Part: &pb.BlobPart{Data: []byte("abc")}}, {Part: &pb.BlobPart{StartByte: 3, Data: []byte("d")}}},
		{{SessionId: "s", Held: &pb.Held{JobId: job, UnitId: "a"}, Blob: &pb.Blob{Kind: 6, SizeBytes: 3}, Part: &pb.BlobPart{Data: []byte("abc")}}},
	} {
		var all []byte
		for _, p := range parts {
			data, err := proto.Marshal(p)
			if err != nil {
				f.Fatal(err)
			}
			all = append(append(all, byte(len(data))), data...)
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checker, at := parts.NewChecker(0), int64(0)
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			p := new(pb.PutBlobRequest)
			err := proto.Unmarshal(data[1:1+n], p)
			data = data[1+n:]
			if err != nil {
				continue
			}
			if _, err := wire.DecodePutBlob(p); err != nil {
				refused(t, err, "")
			}
			got, err := checker.Add(p.GetPart())
			if err != nil {
				refused(t, err, "")
				return
			}
			if len(got) > 0 && p.GetPart().GetStartByte() != at {
				t.Fatalf("a part of byte %d came behind byte %d", p.GetPart().GetStartByte(), at)
			}
			at += int64(len(got))
		}
	})
}
