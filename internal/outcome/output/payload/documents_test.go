package payload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/outcome/output/payload"
)

var bundled = []payload.Document{
	{Document: "a.txt", Number: 0, Text: []byte("Größe: 1\n"), Metadata: map[string]string{"dish": "soup", "cuisine": "French"}},
	{Document: "b.txt", Number: 3, Text: []byte("Höhe: 2\n")},
}

func TestDocumentsAreReadAsWritten(t *testing.T) {
	first, err := payload.EncodeDocuments(bundled)
	if err != nil {
		t.Fatal(err)
	}
	got, err := payload.DecodeDocuments(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bundled, got); diff != "" {
		t.Errorf("documents (-written +read):\n%s", diff)
	}
	for name, docs := range map[string][]payload.Document{
		"twice":      {bundled[0], {Document: "a.txt", Number: 9}},
		"one number": {bundled[0], {Document: "b", Number: bundled[0].Number}},
		"without id": {{Text: []byte("x")}},
		"not text":   {{Document: "a", Text: []byte("\xff")}},
	} {
		data, err := payload.EncodeDocuments(docs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := payload.DecodeDocuments(data); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func FuzzDecodeDocuments(f *testing.F) {
	good, err := payload.EncodeDocuments(bundled)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("\x0a\x02\x08\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := payload.DecodeDocuments(data)
		if err != nil {
			return
		}
		again, err := payload.EncodeDocuments(docs)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := payload.DecodeDocuments(again); err != nil || len(got) != len(docs) {
			t.Errorf("what was read is not read again: %v", err)
		}
	})
}
