package prose_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// TestPlain: marks of Markdown and reStructuredText go, and what they mark stays.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"See [this *page*](a.md#b) and [`Tool`][a.Tool].":        "See this page and `Tool`.",
		"A :class:`TableList` of :ref:`the lines <lines>` ends.": "A TableList of the lines ends.",
		"A `site <https://example.org>`_ has it.":                "A site has it.",
		"It is **very** *old*, and ``a = 1`` too.":               "It is very old, and `a = 1` too.",
		"One line\n   goes on\tbelow.":                           "One line goes on below.",
		"Before <!-- not\nshown --> behind.":                     "Before behind.",
		"[![Build](b.svg)](https://example.org) It builds.":      "It builds.",
		"2 * 3 * 4 is a_b_c, and [1] stays.":                     "2 * 3 * 4 is a_b_c, and [1] stays.",
		"":                                                       "",
	} {
		if got := prose.Plain(text); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}
