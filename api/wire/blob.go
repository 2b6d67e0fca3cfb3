package wire

import (
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

const lastBlobKind = protocol.BlobWakeAnswer

func fillBlob(p *pb.Blob, b *protocol.Blob) {
	p.Kind, p.Key, p.Sha256 = pb.BlobKind(b.Kind), b.Key, b.SHA256
	p.SizeBytes, p.StartByte, p.EndByte, p.FirstEntry = b.Length, b.Start, b.End, int64(b.FirstEntry)
	p.Evidence = encodeEvidence(b.Evidence)
}

func encodeBlob(b *protocol.Blob) *pb.Blob {
	p := new(pb.Blob)
	fillBlob(p, b)
	return p
}

// decodeBlob refuses ranges that are none. A kind that is newer than the reader
// becomes the unknown one, which nothing can be asked of.
func decodeBlob(d *decoder, p *pb.Blob) protocol.Blob {
	b := protocol.Blob{
		Kind:   knownOrZero(p.GetKind(), lastBlobKind),
		Key:    d.decodeHash("key", p.GetKey()),
		SHA256: d.decodeHash("sha256", p.GetSha256()),
		Length: d.decodeCount64("size_bytes", p.GetSizeBytes()),
		Start:  d.decodeCount64("start_byte", p.GetStartByte()),
		End:    d.decodeCount64("end_byte", p.GetEndByte()),

		FirstEntry: int(d.decodeCount64("first_entry", p.GetFirstEntry())),
		Evidence:   decodeOptional(d, "evidence", p.GetEvidence(), decodeEvidence),
	}

	switch {
	case b.End > 0 && b.Start > b.End:
		d.refuseField("end_byte", "the range [%d, %d) ends before it begins", b.Start, b.End)
	case b.Length > 0 && max(b.Start, b.End) > b.Length:
		d.refuseField("end_byte", "the range [%d, %d) is not within the %d bytes of the blob", b.Start, b.End, b.Length)
	}

	return b
}

// decodeHash takes a SHA-256, or nothing.
func (d *decoder) decodeHash(field string, sum []byte) []byte {
	if len(sum) != 0 && len(sum) != sha256.Size {
		d.refuseField(field, "has %d bytes; a SHA-256 has %d", len(sum), sha256.Size)
		return nil
	}
	return sum
}

// EncodeGetBlob encodes a request for a blob.
func EncodeGetBlob(q *protocol.BlobRequest) *pb.GetBlobRequest {
	return &pb.GetBlobRequest{SessionId: string(q.Session), Held: encodeHeld(q.Held), Blob: encodeBlob(&q.Blob)}
}

// DecodeGetBlob decodes a request for a blob.
func DecodeGetBlob(p *pb.GetBlobRequest) (*protocol.BlobRequest, error) {
	return decodeBlobRequest(p)
}

// EncodePutBlob encodes the first message of a blob that is put.
func EncodePutBlob(q *protocol.BlobRequest) *pb.PutBlobRequest {
	return &pb.PutBlobRequest{SessionId: string(q.Session), Held: encodeHeld(q.Held), Blob: encodeBlob(&q.Blob)}
}

// DecodePutBlob decodes the request from the first message of a put.
func DecodePutBlob(p *pb.PutBlobRequest) (*protocol.BlobRequest, error) {
	return decodeBlobRequest(p)
}

func decodeBlobRequest(p interface {
	GetSessionId() string
	GetHeld() *pb.Held
	GetBlob() *pb.Blob
},
) (*protocol.BlobRequest, error) {
	d := new(decoder)
	q := &protocol.BlobRequest{
		Session: mapreduce.SessionID(d.decodeID("session_id", p.GetSessionId(), MaxNames)),
		Blob:    decodePart(d, "blob", p.GetBlob(), decodeBlob),
	}

	// No attempt is held for batches: all but the list of them are of a job.
	switch kind := q.Blob.Kind; {
	case !kind.OfBatch():
		q.Held = decodePart(d, "held", p.GetHeld(), decodeHeld)
	case kind != protocol.BlobBatches:
		q.Job = d.jobID("held.job_id", p.GetHeld().GetJobId())
	}

	if d.err == nil && q.Blob.Kind == protocol.BlobUnknown {
		d.refuseField("blob.kind", "has no value %d", p.GetBlob().GetKind())
	}

	if d.err != nil {
		return nil, d.err
	}
	return q, nil
}

// EncodeBlobStored encodes what became of a blob that was put.
func EncodeBlobStored(s *protocol.BlobStored) *pb.PutBlobResponse {
	return &pb.PutBlobResponse{StoredBytes: s.Length, Sha256: s.SHA256}
}

// DecodeBlobStored decodes the BlobStored of a reply.
func DecodeBlobStored(p *pb.PutBlobResponse) *protocol.BlobStored {
	return &protocol.BlobStored{Length: p.GetStoredBytes(), SHA256: p.GetSha256()}
}
