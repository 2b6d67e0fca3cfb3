package picture_test

import (
	"bytes"
	"context"
	"errors"
	"image/color"
	"image/png"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
)

// TestRecognise: what is recognised in a picture within a document, and what is not read.
func TestRecognise(t *testing.T) {
	data := must(t, func(b *bytes.Buffer) error { return png.Encode(b, drawn(color.White)) })
	empty := must(t, func(b *bytes.Buffer) error { return png.Encode(b, drawn(color.Black)) })[:40]

	for _, test := range []struct {
		name    string
		engine  *spotter
		data    []byte
		want    *document.Recognised
		refused bool
	}{
		{"text", &spotter{}, data, &document.Recognised{Lines: []document.RecognisedLine{{Text: "at5x3", Sure: 0.8}}, Sure: 0.8}, false},
		{"made up", &spotter{sure: 0.2}, data, &document.Recognised{Sure: 0.2}, false},
		{"no engine", &spotter{missing: "it is not there"}, data, nil, true},
		{"an engine that fails", &spotter{err: errors.New("no")}, data, nil, true},
		{"cut off", &spotter{}, empty, nil, true},
		{"no picture", &spotter{}, []byte("<svg/>"), nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := picture.New(picture.Config{Engine: test.engine}).Recognise(context.Background(), test.data, nil)
			if diff := cmp.Diff(test.want, found); diff != "" || errors.As(err, new(*document.RefusedError)) != test.refused {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
