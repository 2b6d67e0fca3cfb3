package document_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// boxes is a format of files that begin with BOX, and of no others.
func boxes(parse func(context.Context, document.Input) (*document.Document, error)) document.Format {
	return document.Format{
		Kind: "box", MediaTypes: []string{"application/x-box"}, Extensions: []string{".box"}, Parse: parse,
		Sniff: func(begin []byte) document.Match {
			if bytes.HasPrefix(begin, []byte("BOX")) {
				return document.Certain
			}
			return document.Excluded
		},
	}
}

func TestBytesDecide(t *testing.T) {
	r, err := document.NewRegistry(plain.TextFormat(), boxes(plain.ParseText))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file, data, mediaType string
		want                        document.Kind
		refused                     string
	}{
		{"certain", "", "BOX", "", "box", ""},
		{"certain of another name", "a.txt", "BOX", "", "box", ""},
		{"certain of another type", "", "BOX", "image/png", "box", ""},
		{"excluded by name", "a.box", "x", "", plain.TextKind, ""},
		{"excluded and declared", "", "x", "application/x-box", "", "declared as application/x-box, but its first bytes are not of that format"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := r.Detect(test.file, []byte(test.data), test.mediaType)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkRefused(t, err, test.refused)
		})
	}
	only, err := document.NewRegistry(boxes(plain.ParseText))
	if err != nil {
		t.Fatal(err)
	}
	_, err = only.Detect("a", []byte("x"), "")
	checkRefused(t, err, "of no format that is known")
}

func TestRegistryRefuses(t *testing.T) {
	for name, formats := range map[string][]document.Format{
		"twice":         {plain.TextFormat(), plain.TextFormat()},
		"no kind":       {{MediaTypes: []string{"a/b"}}},
		"no media type": {{Kind: "a"}},
	} {
		if _, err := document.NewRegistry(formats...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if diff := cmp.Diff([]string{"html", "markdown", "text"}, formats().Parsers()); diff != "" {
		t.Errorf("parsers (-want +got):\n%s", diff)
	}
}

// TestParsersAreChecked runs parsers that return what is no document.
func TestParsersAreChecked(t *testing.T) {
	for _, test := range []struct {
		name, text string
		layout     layout.Layout
		want       string // a part of the error
	}{
		{"fits", "abc", layout.Layout{{Start: 0, End: 1, Location: &mapreduce.Location{Place: "a"}}, {Start: 1, End: 3, Location: &mapreduce.Location{Place: "b"}}}, ""},
		{"not UTF-8", "a\xff", nil, "not UTF-8"},
		{"overlaps", "abc", layout.Layout{{Start: 0, End: 2, Location: &mapreduce.Location{Place: "a"}}, {Start: 1, End: 3, Location: &mapreduce.Location{Place: "b"}}}, "behind 2"},
		{"beyond the text", "abc", layout.Layout{{Start: 0, End: 4, Location: &mapreduce.Location{Place: "a"}}}, "of 3 bytes"},
		{"empty", "abc", layout.Layout{{Start: 1, End: 1, Location: &mapreduce.Location{Place: "a"}}}, "[1, 1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := document.NewRegistry(boxes(func(context.Context, document.Input) (*document.Document, error) {
				return &document.Document{Text: test.text, Layout: test.layout}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			d, err := r.Parse(t.Context(), document.Input{Content: strings.NewReader("BOX")})
			switch {
			case test.want == "" && (err != nil || d.Kind != "box"):
				t.Errorf("got %+v, %v", d, err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// TestParsersGetAllOfTheInput reads an input that is longer than its beginning, byte
// by byte, and one that breaks off.
func TestParsersGetAllOfTheInput(t *testing.T) {
	long := strings.Repeat("0123456789", document.SniffBytes)
	d, err := formats().Parse(t.Context(), document.Input{Content: iotest.OneByteReader(strings.NewReader(long))})
	if err != nil || d.Text != long {
		t.Errorf("got %d bytes and error %v, want %d", len(d.Text), err, len(long))
	}
	broken := errors.New("broken")
	for _, from := range []int{10, len(long)} {
		in := io.MultiReader(strings.NewReader(long[:from]), iotest.ErrReader(broken))
		if _, err := formats().Parse(t.Context(), document.Input{Content: in}); !errors.Is(err, broken) {
			t.Errorf("got %v behind %d bytes, want the error of the reader", err, from)
		}
	}
}

// TestSignatures: what begins with the signature of another format is not text, whatever its
// name says.
func TestSignatures(t *testing.T) {
	r, err := document.NewRegistry(plain.TextFormat(), boxes(plain.ParseText))
	if err != nil {
		t.Fatal(err)
	}
	for data, refused := range map[string]string{
		"\x89PNG\r\n\x1a\n\x00\x00":                "a PNG picture, not text",
		"\xff\xd8\xff\xe0":                         "a JPEG picture, not text",
		"PK\x03\x04\x14\x00":                       "a zip file, not text",
		"\x1f\x8b\x08\x00":                         "a file packed by gzip, not text",
		"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":         "an Office file of before 2007, not text",
		"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00": "a video, or a picture of a camera, not text",
		"MZ\x90\x00":                               "a program, not text",
		"PAR1\x15\x00":                             "a Parquet file, not text",
		"BM\x9a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28": "a BMP picture, not text",
		"PAR1 is a name":  "",
		"RIFF or raff":    "",
		"BMW built a car": "",
		"MZ is no number": "",
		"GIF89a, he said": "",
	} {
		for _, name := range []string{"a.txt", "a.csv", "a", "a.box"} {
			_, err := r.Detect(name, []byte(data), "")
			checkRefused(t, err, refused)
		}
	}
}

func TestTitles(t *testing.T) {
	for title, want := range map[string]string{
		"  Annual\nreport\x00 2024 ":  "Annual report 2024",
		"Microsoft Word - letter.doc": "",
		"PowerPoint Presentation":     "",
		"Untitled":                    "",
		"Document1":                   "",
		"report.PDF":                  "",
		"Documents of the council":    "Documents of the council",
		strings.Repeat("größe ", 200): strings.Repeat("größe ", 74) + "größe…",
	} {
		r, err := document.NewRegistry(boxes(func(context.Context, document.Input) (*document.Document, error) {
			return &document.Document{Text: "x", Title: title}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Parse(t.Context(), document.Input{Content: strings.NewReader("BOX")})
		if err != nil || d.Title != want && (len(want) < 100 || len(d.Title) > document.MaxTitle) {
			t.Errorf("%.40q: %+v, %v; want %q", title, d, err, want)
		}
	}
}
