package client_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/coditect/mapreduce/internal/document"
)

// A registry says what files are by the formats of documents, as the command line does: plain
// text is decoded, and every other format stays as it is, for a worker to parse.
type registry struct{ *document.Registry }

// Content implements files.Formats.
func (r registry) Content(ctx context.Context, name string, data []byte) (mediaType string, content []byte, err error) {
	kind, err := r.Detect(name, data, "")
	if err != nil {
		return "", nil, plainReason(err)
	}

	format, _ := r.Format(kind)
	if format.Parse == nil {
		return "", nil, errors.New("a file of several documents: submit each of them")
	}
	if !format.Plain {
		return format.MediaTypes[0], data, nil
	}

	text, err := r.Parse(ctx, document.Input{Name: name, Content: bytes.NewReader(data)})
	if err != nil {
		return "", nil, plainReason(err)
	}
	return format.MediaTypes[0], []byte(text.Text), nil
}

// plainReason returns an error whose text is the reason of a refusal, for people.
func plainReason(err error) error {
	if refused, ok := errors.AsType[*document.RefusedError](err); ok {
		return errors.New(refused.Reason)
	}
	return err
}
