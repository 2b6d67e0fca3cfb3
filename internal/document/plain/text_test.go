package plain_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
)

// TestTitles: a file of reStructuredText has a title, and other texts have none.
func TestTitles(t *testing.T) {
	for _, tt := range []struct{ name, file, text, want string }{
		{"below a target", "how-it-works.rst", ".. _how_it_works:\n\nHow It Works\n============\n\nIt works.\n", "How It Works"},
		{"between lines", "a.rst", "###########\nCAP Theorem\n###########\n\nA database.\n", "CAP Theorem"},
		{"below substitutions and directives", "a.rst", ".. |x| replace:: Sizes\n\n.. toctree::\n   :hidden:\n\n   tls\n\n:orphan:\n\nThe ``tls`` of :doc:`clusters <c>`\n==========================================\n", "The tls of clusters"},
		{"windows", "a.rst", "Head\r\n====\r\n\r\nText.", "Head"},
		{"text first", "a.rst", "Some text.\n\nHead\n====\n", ""},
		{"marks that are too short", "a.rst", "Some text that goes on\n---\n", ""},
		{"no text", "a.rst", ".. comment\n", ""},
		{"another file", "a.txt", "Head\n====\n\nText.", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := plain.TextFormat().Parse(t.Context(), document.Input{Name: tt.file, Content: strings.NewReader(tt.text)})
			if err != nil {
				t.Fatal(err)
			}
			if d.Title != tt.want {
				t.Errorf("title %q, want %q", d.Title, tt.want)
			}
		})
	}
}
