package token_test

import (
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/orchestrator/token"
)

func TestCount(t *testing.T) {
	for _, test := range []struct {
		name string
		text string
		want int
	}{
		{"empty", "", 0},
		{"one word", "hello", 1},
		{"sentence", "The supplier shall deliver the goods.", 7},
		{"accents", "Café à la crème", 5},
		{"line breaks", "one\n\ntwo\r\nthree", 5},
		{"not UTF-8", "\xff\xfe", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := token.New().Count(test.text); got != test.want {
				t.Errorf("Count(%q) = %d, want %d", test.text, got, test.want)
			}
		})
	}
}

// TestSegmentsDoNotShow compares texts longer than a segment with what the
// tokenizer says of them whole.
func TestSegmentsDoNotShow(t *testing.T) {
	whole, counter := codec.NewO200kBase(), token.New()
	texts := rapid.StringMatching(`([A-Z]?[a-zéß]{1,12}('s|'LL|n't)?[,.;!)"/]{0,2}[ \n\t]{1,4}[0-9]{0,5}){1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		unit := texts.Draw(t, "text")
		text := strings.Repeat(unit, 40_000/len(unit)+1)
		want, err := whole.Count(text)
		if err != nil {
			t.Fatalf("tokenizer: %v", err)
		}
		if got := counter.Count(text); got != want {
			t.Errorf("got %d tokens, want %d", got, want)
		}
	})
}

func TestNeverMoreTokensThanBytes(t *testing.T) {
	counter := token.New()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		if got := counter.Count(text); got > len(text) {
			t.Errorf("%d tokens in the %d bytes of %q", got, len(text), text)
		}
	})
}

// hostile texts have no place at which to stop, or make the tokenizer's regular
// expression go back and forth.
var hostile = []struct{ name, unit string }{
	{"prose", "The supplier shall deliver the goods to the buyer.\n"},
	{"one letter", "x"},
	{"spaces", " "},
	{"empty lines", " \n"},
	{"mixed white space", "\t\r"},
	{"wide spaces", "\u00a0\n"},
	{"NUL", "\x00"},
	{"wide characters", "漢"},
	{"combining marks", "\u0301"},
	{"punctuation", "!\n"},
	{"not UTF-8", "\xff"},
}

// TestHostileTexts counts texts for which the tokenizer alone would need hours.
func TestHostileTexts(t *testing.T) {
	counter := token.New()
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Repeat(test.unit, 1<<20/len(test.unit))
			if n := counter.Count(text); n == 0 || n > len(text) {
				t.Errorf("%d tokens in %d bytes", n, len(text))
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	counter := token.New()
	counter.Count("load the vocabulary")
	for _, bench := range hostile {
		b.Run(bench.name, func(b *testing.B) {
			text := strings.Repeat(bench.unit, 128<<10/len(bench.unit))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				counter.Count(text)
			}
		})
	}
}
