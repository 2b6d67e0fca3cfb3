package payload

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// A Document is one of the documents that a unit works on which has several.
type Document struct {
	Document string
	Number   int64 // which of the job's documents
	Metadata map[string]string
	Text     []byte
}

// EncodeDocuments returns the stored form of documents, the same for equal ones.
func EncodeDocuments(docs []Document) ([]byte, error) {
	m := &storagev1.Bundle{}
	for _, d := range docs {
		m.Documents = append(m.Documents, &storagev1.Bundled{
			DocumentId: d.Document, Number: d.Number, Metadata: d.Metadata, Text: d.Text,
		})
	}

	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("payload: documents: %w", err)
	}
	return b, nil
}

// errDocuments is what is refused as documents of a unit.
var errDocuments = errors.New("payload: these are no documents of a unit")

// DecodeDocuments returns documents from their stored form: with different ids and
// numbers, and with texts that are UTF-8.
func DecodeDocuments(data []byte) ([]Document, error) {
	m := new(storagev1.Bundle)
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%w: %w", errDocuments, err)
	}

	docs := make([]Document, len(m.Documents))
	seen, numbers := make(map[string]bool, len(docs)), make(map[int64]bool, len(docs))
	for i, d := range m.Documents {
		docs[i] = Document{Document: d.DocumentId, Number: d.Number, Metadata: d.Metadata, Text: d.Text}

		// Documents are told apart by both, so neither may stand twice.
		switch {
		case d.DocumentId == "" || seen[d.DocumentId]:
			return nil, fmt.Errorf("%w: document %d has no id of its own", errDocuments, i)
		case numbers[d.Number]:
			return nil, fmt.Errorf("%w: document %d has the number of another", errDocuments, i)
		case !utf8.Valid(d.Text):
			return nil, fmt.Errorf("%w: document %d is not text", errDocuments, i)
		}
		seen[d.DocumentId], numbers[d.Number] = true, true
	}

	return docs, nil
}
