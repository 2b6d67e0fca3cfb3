package wire_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func TestDecodeBlobRequestRefuses(t *testing.T) {
	good := func(change func(*pb.GetBlobRequest)) *pb.GetBlobRequest {
		q := &pb.GetBlobRequest{
			SessionId: "s", Held: &pb.Held{JobId: job, UnitId: "a", Attempt: 1},
			Blob: &pb.Blob{Kind: pb.BlobKind_BLOB_KIND_TEXT, SizeBytes: 10},
		}
		change(q)
		return q
	}
	for name, tt := range map[string]struct {
		field string
		in    *pb.GetBlobRequest
	}{
		"no session":        {"session_id", good(func(q *pb.GetBlobRequest) { q.SessionId = "" })},
		"no unit":           {"held.job_id", good(func(q *pb.GetBlobRequest) { q.Held = nil })},
		"no blob":           {"blob.kind", good(func(q *pb.GetBlobRequest) { q.Blob = nil })},
		"of a newer kind":   {"blob.kind", good(func(q *pb.GetBlobRequest) { q.Blob.Kind = 99 })},
		"before its start":  {"blob.start_byte", good(func(q *pb.GetBlobRequest) { q.Blob.StartByte = -1 })},
		"behind its end":    {"blob.end_byte", good(func(q *pb.GetBlobRequest) { q.Blob.StartByte = 11 })},
		"a range backwards": {"blob.end_byte", good(func(q *pb.GetBlobRequest) { q.Blob.StartByte, q.Blob.EndByte = 5, 4 })},
		"half a key":        {"blob.key", good(func(q *pb.GetBlobRequest) { q.Blob.Key = make([]byte, 31) })},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.DecodeGetBlob(tt.in)
			refused(t, err, tt.field)
		})
	}
}
