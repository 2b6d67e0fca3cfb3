package payload_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// parsed returns a document with a layout.
func parsed(t testing.TB) *payload.Parsed {
	t.Helper()
	places, err := layout.Encode(layout.Layout{{Start: 0, End: 5, Location: &mapreduce.Location{Page: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return &payload.Parsed{Format: "pdf", Charset: "utf-8", Notes: []string{"page 2 has no text"}, Text: []byte("Größe 12"), Layout: places}
}

func TestParsedIsReadAsWritten(t *testing.T) {
	want := parsed(t)
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := payload.DecodeParsed(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if err := payload.CheckParsed(data); err != nil {
		t.Error(err)
	}
	if err := payload.CheckParsed(nil); err != nil {
		t.Errorf("a document without text: %v", err)
	}
}

// TestParsedIsNotBelieved checks what a worker may send in its place.
func TestParsedIsNotBelieved(t *testing.T) {
	good, err := parsed(t).Encode()
	if err != nil {
		t.Fatal(err)
	}
	encode := func(change func(*payload.Parsed)) []byte {
		p := parsed(t)
		change(p)
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, test := range []struct {
		name string
		data []byte
		want error
	}{
		{"text alone", []byte("a text"), payload.ErrParsed},
		{"cut short", good[:len(good)-1], payload.ErrParsed},
		{"more behind it", append([]byte(nil), append(good, 0)...), payload.ErrParsed},
		{"no text", encode(func(p *payload.Parsed) { p.Text = nil }), payload.ErrParsed},
		{"not UTF-8", encode(func(p *payload.Parsed) { p.Text[0] = 0xff }), payload.ErrParsed},
		{"a layout of a longer text", encode(func(p *payload.Parsed) { p.Text = p.Text[:2] }), layout.ErrInvalid},
		{"no layout", encode(func(p *payload.Parsed) { p.Layout = []byte("x") }), layout.ErrInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := payload.CheckParsed(test.data); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	p := parsed(t)
	p.Notes = []string{strings.Repeat("x", payload.MaxNote+1)}
	if _, err := p.Encode(); !errors.Is(err, payload.ErrParsed) {
		t.Errorf("a long note: got %v", err)
	}
}

func FuzzDecodeParsed(f *testing.F) {
	good, err := parsed(f).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0, 0, 0, 0, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := payload.DecodeParsed(data)
		if err != nil || len(data) == 0 {
			return
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := payload.DecodeParsed(again); err != nil || !cmp.Equal(p, got) {
			t.Errorf("what was read is not read again: %v", err)
		}
	})
}
