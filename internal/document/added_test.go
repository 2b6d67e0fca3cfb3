package document_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/internal/subtitles"
	"github.com/coditect/mapreduce/internal/document/plain"
)

const film = "1\r\n00:00:01,000 --> 00:00:04,000\r\nGrüß Gott!\r\n\r\n2\r\n00:00:05,000 --> 00:00:09,000\r\nTwo coffees,\r\nplease.\r\n"

// TestAddedFormat reads a document of a format that the program does not have. The
// format is a package and one more argument of NewRegistry.
func TestAddedFormat(t *testing.T) {
	r, err := document.NewRegistry(plain.TextFormat(), html.Format(), subtitles.Format())
	if err != nil {
		t.Fatal(err)
	}
	// The bytes decide, whatever name and media type say.
	for _, in := range []document.Input{{Name: "film.srt"}, {Name: "film.txt"}, {Name: "film.html", MediaType: "text/html"}, {}} {
		in.Content = strings.NewReader(film)
		d, err := r.Parse(t.Context(), in)
		if err != nil {
			t.Fatalf("%q: %v", in.Name, err)
		}
		if want := "Grüß Gott!\nTwo coffees,\nplease.\n"; d.Kind != subtitles.Kind || d.Text != want {
			t.Fatalf("%q: got %q of kind %s, want %q of kind %s", in.Name, d.Text, d.Kind, want, subtitles.Kind)
		}
		for quote, place := range map[string]string{"Gott": "at 00:00:01,000", "coffees": "at 00:00:05,000", "please": "at 00:00:05,000"} {
			at := strings.Index(d.Text, quote)
			if got := d.Layout.Locate(at, at+len(quote)); got == nil || got.Place != place {
				t.Errorf("%q is at %+v, want %q", quote, got, place)
			}
			if from, to := d.Source.Source(at, at+len(quote)); film[from:to] != quote {
				t.Errorf("%q comes from %q", quote, film[from:to])
			}
		}
	}
	// What its bytes exclude is not of the format, whatever its name.
	if kind, err := r.Detect("film.srt", []byte("a film"), ""); err != nil || kind != plain.TextKind {
		t.Errorf("got %s, %v for a text of such a name", kind, err)
	}
}
