// Package readable turns documents that tools bring into texts, by the parsers of the
// registry. A text has at most the bytes that a piece of evidence may have.
//
// The package imports worker/tool and the registry of internal/document.
package readable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
)

// A Text is the text of a document. It does not change.
type Text struct {
	Text  string
	Title string // what the document calls itself; "" if it does not say
	Cut   int64  // bytes at the end that were left out
	Media string
	Notes []string // what readers should know, such as that pages have no text
}

// Read returns the text of a document. A file that holds many documents is read as the text
// that it is; an archive is not opened. The error tells a model why there is no text.
func Read(ctx context.Context, formats *document.Registry, in document.Input) (*Text, error) {
	begin := make([]byte, document.SniffBytes)
	n, err := io.ReadFull(in.Content, begin)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, errors.New("is empty")
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, CauseOf(err)
	}

	kind, err := formats.Detect(in.Name, begin[:n], in.MediaType)
	if err != nil {
		return nil, reasonOf(err)
	}

	in.Content = io.MultiReader(bytes.NewReader(begin[:n]), in.Content)
	format, _ := formats.Format(kind)
	t := &Text{Media: format.MediaTypes[0]}

	if format.Parse != nil {
		d, err := formats.Parse(ctx, in)
		if err != nil {
			return nil, reasonOf(err)
		}
		t.Text, t.Title, t.Notes = d.Text, d.Title, d.Notes
	} else if t.Text, err = manyDocuments(in.Content, format); err != nil {
		return nil, err
	}

	if t.Text, t.Cut = tool.CutText(t.Text, tool.MaxEvidence); t.Cut > 0 {
		t.Text = strings.Clone(t.Text) // so that no more of it is held
	}
	return t, nil
}

// manyDocuments returns a file of many documents as it is.
func manyDocuments(from io.Reader, format document.Format) (string, error) {
	if format.Archive {
		return "", errors.New("is an archive, which is not opened")
	}

	data, err := io.ReadAll(from)
	switch {
	case err != nil:
		return "", CauseOf(err)
	case !utf8.Valid(data):
		return "", errors.New("is not UTF-8")
	}
	return string(data), nil
}

// reasonOf returns why bytes are no document, as it goes behind the name of one.
func reasonOf(err error) error {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return fmt.Errorf("cannot be read: %s", refused.Reason)
	}
	return CauseOf(err)
}

// CauseOf returns what is wrong with a file, without its path and the call.
func CauseOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
