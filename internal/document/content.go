package document

import (
	"bytes"
	"context"
	"errors"
)

// Content returns what a file of a name holds, as a service takes it: its media type, and its
// bytes. Plain text is decoded to UTF-8. Every other format stays as it is: a worker parses
// it, so that a hostile page harms no more than its unit. A file that cannot be processed is
// refused: the text of the error is the reason.
func (r *Registry) Content(ctx context.Context, name string, data []byte) (mediaType string, content []byte, err error) {
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

	text, err := r.Parse(ctx, Input{Name: name, Content: bytes.NewReader(data)})
	if err != nil {
		return "", nil, plainReason(err)
	}
	return format.MediaTypes[0], []byte(text.Text), nil
}

// plainReason returns an error whose text is the reason of a refusal, for people.
func plainReason(err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return errors.New(refused.Reason)
	}
	return err
}
