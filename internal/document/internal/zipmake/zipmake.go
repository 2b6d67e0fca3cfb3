// Package zipmake makes zip files for tests.
package zipmake

import (
	"archive/zip"
	"bytes"
	"context"
	"testing"

	"github.com/coditect/mapreduce/internal/document"
)

// A File is an entry.
type File struct {
	Name, Content string
	Stored        bool // not packed
}

// Zip returns a zip file of entries.
func Zip(t testing.TB, files ...File) []byte {
	t.Helper()
	var b bytes.Buffer

	w := zip.NewWriter(&b)

	for _, f := range files {
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate}
		if f.Stored {
			h.Method = zip.Store
		}

		e, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write([]byte(f.Content)); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}

// Parse parses a document of one format.
func Parse(t testing.TB, f document.Format, name string, data []byte) (*document.Document, error) {
	t.Helper()

	r, err := document.NewRegistry(f)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return r.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data)})
}
