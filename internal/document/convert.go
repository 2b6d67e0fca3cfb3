package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// A Conversion is what makes a document readable that no parser of the program reads.
type Conversion struct {
	What string // the document is, such as "a PowerPoint presentation of before 2007"
	From string // extension of files of its format, such as ".ppt"
	To   string // extension of a format that has all that its text needs, such as ".pptx"
}

// A Converter converts documents, by a program that others wrote.
type Converter interface {
	// Name is that of the program.
	Name() string
	// Convert returns a document in the format c.To. The error is a RefusedError if there is no
	// such program, or if it fails, takes too long, or makes more than limits allow.
	Convert(ctx context.Context, c Conversion, data []byte, limits Limits) ([]byte, error)
}

// RefuseUnread returns a RefusedError for a document that the program does not read, and a
// Converter may convert.
func RefuseUnread(c Conversion) error {
	return &RefusedError{
		Reason:     fmt.Sprintf("%s, which is not read; save it as %s, or have LibreOffice convert it (--convert auto)", c.What, c.To),
		Conversion: &c,
	}
}

// Converting returns a registry that has a converter convert what its parsers do not read. Nil
// converts nothing.
func (r *Registry) Converting(by Converter) *Registry {
	converting := *r
	converting.converter = by
	return &converting
}

// convertFirst returns a document that is converted first. Its kind, places and limits are those of
// the format that it is converted to. again returns the content of the input from its first byte.
func (r *Registry) convertFirst(ctx context.Context, c Conversion, in Input, again func() (io.Reader, error)) (*Document, error) {
	i := r.formatOfName("a" + c.To)
	if i < 0 || r.formats[i].Parse == nil {
		return nil, fmt.Errorf("document: %s is to be converted to %s, which no format reads", in.Name, c.To)
	}
	content, err := again()
	if err != nil {
		return nil, err
	}
	most := in.Limits.WithDefaults().Bytes
	data, err := io.ReadAll(io.LimitReader(content, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("document: read %s: %w", in.Name, err)
	case int64(len(data)) > most:
		return nil, Refuse("too large: more than %d bytes (--document-bytes)", most)
	}

	made, err := r.converter.Convert(ctx, c, data, in.Limits)
	if err != nil {
		return nil, err
	}
	in.Name, in.MediaType, in.Content = in.Name+c.To, "", bytes.NewReader(made)
	d, err := r.formats[i].Parse(ctx, in)
	if err != nil {
		return nil, r.explain(c, err)
	}
	if d.Kind == "" {
		d.Kind = r.formats[i].Kind
	}
	d.Source = nil // its bytes are those of another file
	d.Notes = append(d.Notes, fmt.Sprintf("%s, converted to %s by %s before it was read", c.What, c.To, r.converter.Name()))
	return d, nil
}

// explain says of an error of a converted document that it is one.
func (r *Registry) explain(c Conversion, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok && !errors.Is(err, ErrNoText) {
		return Refuse("%s, which %s converted to %s: %s", c.What, r.converter.Name(), c.To, refused.Reason)
	}
	return err
}
