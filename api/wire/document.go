package wire

import (
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeDocument encodes a document without its content, as the first of its pieces. One whose id cannot be
// sent is skipped, under an id that is like it.
func EncodeDocument(doc *mapreduce.Document) *pb.DocumentPiece {
	if !utf8.ValidString(string(doc.ID)) { // as a server would
		return &pb.DocumentPiece{
			DocumentId: validText(string(doc.ID)), SizeBytes: max(doc.Size, int64(len(doc.Content))), SkipReason: "its id is not UTF-8",
		}
	}

	return &pb.DocumentPiece{
		DocumentId: string(doc.ID),
		MediaType:  validText(doc.MediaType),
		Metadata:   textMap(doc.Metadata),
		SkipReason: validText(doc.Skip),
		SizeBytes:  doc.Size,
	}
}

// DecodeDocument decodes a document without its content from the first of its pieces.
func DecodeDocument(p *pb.DocumentPiece) (*mapreduce.Document, error) {
	var d decoder
	doc := decodePart(&d, "documents", p, decodeFirstPiece)
	return doc, d.firstError()
}

func decodeFirstPiece(d *decoder, p *pb.DocumentPiece) *mapreduce.Document {
	doc := &mapreduce.Document{
		ID:        mapreduce.DocumentID(d.decodeID("document_id", p.GetDocumentId(), MaxRequest)), // one that is too long skips this document alone
		MediaType: p.GetMediaType(),
		Metadata:  p.GetMetadata(),
		Skip:      p.GetSkipReason(),
		Size:      d.decodeCount64("size_bytes", p.GetSizeBytes()),
	}

	if doc.Skip != "" && (len(p.GetContent()) > 0 || p.GetMore()) {
		d.refuseField("skip_reason", "document %q has a reason to be skipped, so it must have no content", doc.ID)
	}
	return doc
}
