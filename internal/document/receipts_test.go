package document_test

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/folder"
)

// TestReceipts reads real files: all are text, and decode to themselves.
func TestReceipts(t *testing.T) {
	data := os.Getenv("CODITECT_TESTDATA")
	if data == "" {
		t.Skip("CODITECT_TESTDATA is not set")
	}
	n := 0
	for e, err := range folder.Walk(t.Context(), []string{filepath.Join(data, "receipts")}, folder.Options{Include: []string{"*.txt"}}) {
		if err != nil {
			t.Fatalf("Walk: %v", err)
		}
		raw, err := os.ReadFile(e.Path)
		if err != nil {
			t.Fatal(err)
		}
		d, err := read(e.Name, raw, "")
		if err != nil {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		if d.Text != string(raw) || !utf8.ValidString(d.Text) {
			t.Errorf("%s: the text is not the file", e.Name)
		}
		n++
	}
	if n == 0 {
		t.Error("no receipts were found")
	}
}
