package parts

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// CutDocument encodes a document as one piece, or several if it is large. The
// pieces share its bytes.
func CutDocument(doc *mapreduce.Document) []*pb.DocumentPiece {
	piece := wire.EncodeDocument(doc)
	if piece.GetDocumentId() != string(doc.ID) { // it is not UTF-8, so the document is skipped
		return []*pb.DocumentPiece{piece}
	}

	pieces := make([]*pb.DocumentPiece, 0, 1+len(doc.Content)/wire.PartSize)
	for part := range split(doc.Content) {
		if piece.Content != nil {
			// The piece has its content: the part goes into the next one.
			piece.More = true
			pieces = append(pieces, piece)
			piece = &pb.DocumentPiece{DocumentId: string(doc.ID)}
		}
		piece.Content = part
	}
	return append(pieces, piece)
}

// GroupPieces yields pieces in groups of about PartSize bytes, each for one message, and
// cuts those that hold more. It yields at least one group, which may be empty.
func GroupPieces(pieces []*pb.DocumentPiece) iter.Seq[[]*pb.DocumentPiece] {
	return func(yield func([]*pb.DocumentPiece) bool) {
		var group []*pb.DocumentPiece
		size := 0
		for p := range cutPieces(pieces) {
			n := proto.Size(p)
			if size > 0 && size+n > wire.PartSize {
				if !yield(group) {
					return
				}
				group, size = nil, 0
			}
			group, size = append(group, p), size+n
		}

		yield(group)
	}
}

// cutPieces yields pieces whose content is at most PartSize bytes.
func cutPieces(pieces []*pb.DocumentPiece) iter.Seq[*pb.DocumentPiece] {
	return func(yield func(*pb.DocumentPiece) bool) {
		for _, p := range pieces {
			rest, more := p.GetContent(), p.GetMore()

			// Only the last of the parts says whether more follows in the next piece.
			for len(rest) > wire.PartSize {
				p.Content, p.More = rest[:wire.PartSize], true
				if !yield(p) {
					return
				}
				rest = rest[wire.PartSize:]
				p = &pb.DocumentPiece{DocumentId: p.GetDocumentId()}
			}

			if len(rest) > 0 {
				p.Content, p.More = rest, more
			}
			if !yield(p) {
				return
			}
		}
	}
}

// A Joiner puts documents together from their pieces, one at a time. A document with more
// content than it keeps becomes one that is skipped, with the reason.
type Joiner struct {
	MaxBytes int // of a document's content

	open *mapreduce.Document // has more pieces to come
	size int64               // of the content that has come of the document
}

// Midway reports whether a document has begun to come, and not ended.
func (j *Joiner) Midway() bool { return j.open != nil }

// Dropping reports whether what comes next of the document that has begun is not kept.
func (j *Joiner) Dropping() bool { return j.open != nil && j.size > int64(j.MaxBytes) }

// Add takes the next piece. It returns the document that the piece ends, or nil
// if more is to come.
func (j *Joiner) Add(p *pb.DocumentPiece) (*mapreduce.Document, error) {
	doc, err := j.beginDocument(p)
	if err != nil {
		return nil, err
	}

	j.size += int64(len(p.GetContent()))
	switch {
	case j.size > int64(j.MaxBytes):
		// Nothing more is kept of a document that is too large.
		doc.Content = nil
	case doc.Content == nil:
		doc.Content = p.GetContent()
	default:
		doc.Content = append(doc.Content, p.GetContent()...)
	}

	if j.open = nil; p.GetMore() {
		j.open = doc
		return nil, nil
	}

	if j.size > int64(j.MaxBytes) {
		doc.Skip, doc.Size = fmt.Sprintf("it has %d bytes, more than the %d that are taken; split it", j.size, j.MaxBytes), j.size
	}
	return doc, nil
}

// beginDocument returns the document that p belongs to.
func (j *Joiner) beginDocument(p *pb.DocumentPiece) (*mapreduce.Document, error) {
	if j.open != nil {
		return j.open, j.checkContinues(p)
	}
	doc, err := wire.DecodeDocument(p)
	j.size = 0
	return doc, err
}

func (j *Joiner) checkContinues(p *pb.DocumentPiece) error {
	switch {
	case p.GetDocumentId() != string(j.open.ID):
		return errs.Field("documents.document_id", "%.100q comes before the last piece of %q", p.GetDocumentId(), j.open.ID)
	case p.GetMediaType() != "" || len(p.GetMetadata()) > 0 || p.GetSkipReason() != "" || p.GetSizeBytes() != 0:
		return errs.Field("documents.more", "only the first piece of %q may have its media type, metadata, size and reason to be skipped", j.open.ID)
	case len(p.GetContent()) == 0 && p.GetMore():
		return errs.Field("documents.content", "a piece of %q is empty", j.open.ID)
	}
	return nil
}

// Close refuses a document whose last piece never came.
func (j *Joiner) Close() error {
	if j.open == nil {
		return nil
	}
	return errs.Field("documents.more", "the last piece of %q is missing", j.open.ID)
}
