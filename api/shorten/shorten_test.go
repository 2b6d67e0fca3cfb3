package shorten_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/shorten"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"äöü", 3, "äöü"},
		{"äöüß", 3, "äöü…"},
		{"a", 0, "…"},
	} {
		if got := shorten.Text(c.text, c.most); got != c.want {
			t.Errorf("Text(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	if got, want := shorten.Line(" a\n\tb\xff  c d", 5), "a b c…"; got != want {
		t.Errorf("Line = %q, want %q", got, want)
	}
}

func TestVisible(t *testing.T) {
	if got, want := shorten.Visible("\u200b a\u00a0\tb\xff\x00c "), "a bc"; got != want {
		t.Errorf("Visible = %q, want %q", got, want)
	}
}

// A text that is valid stays so, is a beginning of what it was, and is as long as may be.
func TestBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, most := rapid.String().Draw(t, "text"), rapid.IntRange(0, 40).Draw(t, "most")

		short := shorten.Bytes(text, most)
		switch {
		case !strings.HasPrefix(text, short) || len(short) > most || !utf8.ValidString(short):
			t.Fatalf("Bytes(%q, %d) = %q", text, most, short)
		case len(text) > most && most-len(short) >= utf8.UTFMax:
			t.Fatalf("Bytes(%q, %d) = %q leaves out too much", text, most, short)
		}
	})
}

func TestMarkedBytes(t *testing.T) {
	if got, want := shorten.MarkedBytes("äöüß", 7), "äö…"; got != want {
		t.Errorf("MarkedBytes = %q, want %q", got, want)
	}
	if got, want := shorten.MarkedBytes("äöüß", 8), "äöüß"; got != want {
		t.Errorf("MarkedBytes = %q, want %q", got, want)
	}
}

// What is no UTF-8 does not send the search for a boundary to the beginning of a long text.
func TestBoundary(t *testing.T) {
	if got := shorten.Boundary(strings.Repeat("\x80", 100), 50); got != 50 {
		t.Errorf("Boundary among bytes that are no UTF-8 = %d, want 50", got)
	}
	if got := shorten.Boundary("aä", 2); got != 1 {
		t.Errorf("Boundary within a character = %d, want 1", got)
	}
}
