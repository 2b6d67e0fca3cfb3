package parts_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func TestDocumentsArriveWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		joiner := parts.Joiner{MaxBytes: 4 * wire.PartSize}
		for range rapid.IntRange(1, 3).Draw(t, "documents") {
			doc := drawnDocument(t)
			if rapid.Bool().Draw(t, "skipped") {
				doc.Content = nil
			} else {
				doc.Skip = ""
				size := rapid.SampledFrom([]int{0, 1, wire.PartSize, 2 * wire.PartSize}).Draw(t, "pieces")
				doc.Content = bytes.Repeat([]byte("x"), size+rapid.IntRange(0, 3).Draw(t, "more"))
			}
			if diff := cmp.Diff(doc, send(t, &joiner, doc), cmp.Comparer(bytes.Equal)); diff != "" {
				t.Fatalf("sent (-), arrived (+):\n%s", diff)
			}
		}
		if err := joiner.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// drawnDocument draws a document without content, with all that may be said of one.
func drawnDocument(t *rapid.T) *mapreduce.Document {
	word := rapid.StringMatching(`[a-zä]{1,20}`)
	return &mapreduce.Document{
		ID: mapreduce.DocumentID(word.Draw(t, "id")), MediaType: word.Draw(t, "media type"), Skip: word.Draw(t, "reason"),
		Metadata: rapid.MapOfN(word, word, 1, 3).Draw(t, "metadata"), Size: rapid.Int64Range(1, 1<<40).Draw(t, "size"),
	}
}

// send takes doc over in pieces, and checks their size.
func send(t *rapid.T, joiner *parts.Joiner, doc *mapreduce.Document) *mapreduce.Document {
	pieces := parts.CutDocument(doc)
	for i, p := range pieces {
		if len(p.GetContent()) > wire.PartSize {
			t.Fatalf("piece %d has %d bytes", i, len(p.GetContent()))
		}
		got, err := joiner.Add(p)
		if err != nil {
			t.Fatal(err)
		}
		if (got != nil) != (i == len(pieces)-1) {
			t.Fatalf("piece %d of %d gave document %v", i, len(pieces), got)
		}
		if got != nil {
			return got
		}
	}
	return nil
}

func TestJoinerRefuses(t *testing.T) {
	open := &pb.DocumentPiece{DocumentId: "a", Content: []byte("12345"), More: true}
	tests := []struct {
		name   string
		field  string
		pieces []*pb.DocumentPiece
	}{
		{"id missing", "documents.document_id", []*pb.DocumentPiece{{}}},
		{"id giant", "documents.document_id", []*pb.DocumentPiece{{DocumentId: strings.Repeat("a", wire.MaxRequest+1)}}},
		{"size negative", "documents.size_bytes", []*pb.DocumentPiece{{DocumentId: "a", SizeBytes: -1}}},
		{"skipped with content", "documents.skip_reason", []*pb.DocumentPiece{{DocumentId: "a", SkipReason: "binary", Content: []byte("x")}}},
		{"skipped with more", "documents.skip_reason", []*pb.DocumentPiece{{DocumentId: "a", SkipReason: "binary", More: true}}},
		{"another document between", "documents.document_id", []*pb.DocumentPiece{open, {DocumentId: "b"}}},
		{"described twice", "documents.more", []*pb.DocumentPiece{open, {DocumentId: "a", MediaType: "text/html"}}},
		{"empty pieces for ever", "documents.content", []*pb.DocumentPiece{open, {DocumentId: "a", More: true}}},
		{"last piece missing", "documents.more", []*pb.DocumentPiece{open}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			joiner := parts.Joiner{MaxBytes: 10}
			var err error
			for _, p := range tt.pieces {
				if _, err = joiner.Add(p); err != nil {
					break
				}
			}
			if err == nil {
				err = joiner.Close()
			}
			refused(t, err, tt.field)
		})
	}
}

func TestADocumentWhoseIDIsNotUTF8IsSkipped(t *testing.T) {
	pieces := parts.CutDocument(&mapreduce.Document{ID: "a\xff", Content: []byte("text")})
	if len(pieces) != 1 || pieces[0].GetDocumentId() != "a\uFFFD" || pieces[0].GetSkipReason() == "" || len(pieces[0].GetContent()) > 0 {
		t.Errorf("cut into %v; want one piece, which skips it", pieces)
	}
}

// A document that is too large refuses no other: it is skipped, and what comes of it is
// not kept.
func TestADocumentThatIsTooLargeIsSkipped(t *testing.T) {
	joiner := parts.Joiner{MaxBytes: 10}
	add := func(id string, bytes int, more bool) *mapreduce.Document {
		t.Helper()
		doc, err := joiner.Add(&pb.DocumentPiece{DocumentId: id, Content: make([]byte, bytes), More: more})
		if err != nil || (doc == nil) != more {
			t.Fatalf("a piece of %q gave %v, %v", id, doc, err)
		}
		return doc
	}
	add("large", 10, true)
	if joiner.Dropping() {
		t.Error("what fits is dropped")
	}
	add("large", 6, true)
	if !joiner.Dropping() {
		t.Error("what does not fit is kept")
	}
	add("large", 100, true)
	skipped := add("large", 1, false)
	if skipped.Skip != "it has 117 bytes, more than the 10 that are taken; split it" || skipped.Size != 117 || len(skipped.Content) > 0 {
		t.Errorf("a document of 117 bytes gave %+v", skipped)
	}
	if once := add("at once", 11, false); once.Skip == "" || once.Size != 11 || len(once.Content) > 0 {
		t.Errorf("a document of 11 bytes gave %+v", once)
	}
	if fits := add("fits", 10, false); fits.Skip != "" || len(fits.Content) != 10 {
		t.Errorf("a document of 10 bytes gave %+v", fits)
	}
	if err := joiner.Close(); err != nil {
		t.Error(err)
	}
}
