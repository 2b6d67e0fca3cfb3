package runners_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/document"
)

// TestOCR: the flags say what reads pictures. What cannot is refused at once if it was asked for, and
// otherwise for each picture, with what to do.
func TestOCR(t *testing.T) {
	var white bytes.Buffer
	if err := png.Encode(&white, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	// A folder of programs that has this one alone.
	tools := t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = --list-langs ]; then printf 'List (2):\\neng\\nosd\\n'; else echo Total 12.50; fi\n"
	if err := os.WriteFile(filepath.Join(tools, "tesseract"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		name, path string
		args       []string
		refused    string // what the flags are refused for
		want       string // the text, or why there is none
	}{
		{"found by itself", tools, nil, "", "Total 12.50\n"},
		{"by name", tools, []string{"--ocr", "tesseract"}, "", "Total 12.50\n"},
		{"a command", tools, []string{"--ocr", "tesseract - -"}, "", "Total 12.50\n"},
		{"in a language", tools, []string{"--ocr-lang", "eng"}, "", "Total 12.50\n"},
		{"never", tools, []string{"--ocr", "never"}, "", "a PNG picture, whose text is not to be recognised (--ocr never)"},
		{"not installed", t.TempDir(), nil, "", "a PNG picture, whose text is to be recognised, but there is no Tesseract where documents are read: install it ("},
		{"by name, not installed", t.TempDir(), []string{"--ocr", "tesseract"}, "--ocr: there is no Tesseract where documents are read: install it (", ""},
		{"a command, not installed", t.TempDir(), []string{"--ocr", "nosuchprogram -"}, `--ocr: "nosuchprogram" is no program that can be run here`, ""},
		{"a language without data", tools, []string{"--ocr-lang", "eng+deu"}, `--ocr-lang: Tesseract has no data of the language "deu", but of eng: install it (`, ""},
		{"a language of a command", tools, []string{"--ocr", "tesseract - -", "--ocr-lang", "deu"}, "--ocr-lang: is for Tesseract", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			var r runners.Runners
			parseFlags(t, r.Documents.AddFlags, test.args...)
			formats, err := r.DocumentFormats()
			if test.refused != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.refused) {
					t.Errorf("got %v, want %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}

			got := ""
			d, err := formats.Parse(t.Context(), document.Input{Name: "a.txt", Content: bytes.NewReader(white.Bytes())})
			switch refused := new(document.RefusedError); {
			case err == nil:
				got = d.Text
			case errors.As(err, &refused):
				got = refused.Reason
			default:
				t.Fatal(err)
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
