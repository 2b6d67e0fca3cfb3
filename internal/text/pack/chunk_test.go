package pack_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/text/pack"
	"github.com/coditect/mapreduce/internal/text/token"
)

// counter makes a chunk.Counter of a function.
type counter func(string) int

func (c counter) Count(text string) int { return c(text) }

// words counts words, runs of punctuation and of white space apart, and long
// words as several tokens: near enough to what models do, and quick.
func words(text string) int {
	n, run, last := 0, 0, -1
	for _, r := range text {
		class := 0
		switch {
		case r == ' ' || r == '\n':
			class = 1
		case r < 'A':
			class = 2
		}
		if run++; class != last || run == 6 {
			n, run, last = n+1, 0, class
		}
	}
	return n
}

func halves(text string) int { return (len(text) + 1) / 2 }

func cut(t testing.TB, text string, o pack.Options) []pack.Piece {
	t.Helper()
	pieces, err := pack.Cut(text, o)
	if err != nil {
		t.Fatalf("Cut: %v", err)
	}
	return pieces
}

// A counter that rounds down finds nothing in any short stretch of these texts, and
// many tokens in the whole.
func TestTextsOfAtomsWithoutTokens(t *testing.T) {
	for _, unit := range []string{"😀", "漢字", "a\n", "\n\n", "word word.\n\n"} {
		text := strings.Repeat(unit, 20_000/len(unit))
		for _, each := range []float64{4, 4.9, 16} {
			for _, o := range []pack.Options{{MaxTokens: 16}, {MaxTokens: 16, Overlap: 4}, {MaxTokens: 100}, {MaxTokens: 100, Overlap: 25}} {
				o.Counter = characters(each)
				pieces := cut(t, text, o)
				check(t, text, o, pieces)
				least := o.Counter.Count(text)/o.MaxTokens + 1
				if len(pieces) > 8*least {
					t.Errorf("%q with %g characters a token, %d tokens a piece, %d of them shared: %d pieces, %d could do",
						unit, each, o.MaxTokens, o.Overlap, len(pieces), least)
				}
			}
		}
	}
}

func cores(text string, pieces []pack.Piece) []string {
	var out []string
	for _, p := range pieces {
		out = append(out, text[p.CoreStart:p.CoreEnd])
	}
	return out
}

func TestLimit(t *testing.T) {
	spaces := counter(func(s string) int { return strings.Count(s, " ") })
	for _, test := range []struct {
		name    string
		text    string
		options pack.Options
		want    int // pieces
	}{
		{"empty", "", pack.Options{}, 0},
		{"one character", "x", pack.Options{}, 1},
		{"exactly the default", strings.Repeat("word ", 50_000), pack.Options{Overlap: 500, Counter: spaces}, 1},
		{"one more than the default", strings.Repeat("word ", 50_001), pack.Options{Overlap: 500, Counter: spaces}, 2},
		{"exactly, in bytes", strings.Repeat("x", 100), pack.Options{MaxTokens: 100}, 1},
		{"one more, in bytes", strings.Repeat("x", 101), pack.Options{MaxTokens: 100}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			pieces := cut(t, test.text, test.options)
			if len(pieces) != test.want {
				t.Errorf("got %d pieces, want %d", len(pieces), test.want)
			}
		})
	}
}

func TestLimitExactTokens(t *testing.T) {
	tokens := token.New()
	text := strings.Repeat("The supplier shall deliver the goods to the buyer. ", 5000)
	n := tokens.Count(text)
	for _, test := range []struct {
		name string
		max  int
		want int
	}{
		{"as many as allowed", n, 1},
		{"one more than allowed", n - 1, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			pieces := cut(t, text, pack.Options{MaxTokens: test.max, Overlap: 500, Counter: tokens})
			if len(pieces) != test.want {
				t.Errorf("%d tokens with max %d: got %d pieces, want %d", n, test.max, len(pieces), test.want)
			}
		})
	}
}

func TestShortTextIsNotCounted(t *testing.T) {
	never := counter(func(string) int { t.Error("counted"); return 0 })
	got := cut(t, "twelve bytes", pack.Options{MaxTokens: 12, Counter: never})
	want := []pack.Piece{{End: 12, CoreEnd: 12, Tokens: 12}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
}

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name    string
		options pack.Options
		want    string
	}{
		{"negative max", pack.Options{MaxTokens: -1}, "chunk: max tokens is -1, must be at least 4"},
		{"no room for a character", pack.Options{MaxTokens: 3}, "chunk: max tokens is 3, must be at least 4"},
		{"negative overlap", pack.Options{Overlap: -1}, "chunk: overlap is -1, must not be negative"},
		{"overlap as large as max", pack.Options{MaxTokens: 100, Overlap: 100}, "chunk: overlap is 100, must be at most 96 with max tokens 100"},
		{"overlap above the default max", pack.Options{Overlap: 60_000}, "chunk: overlap is 60000, must be at most 49996 with max tokens 50000"},
		{"least room", pack.Options{MaxTokens: 100, Overlap: 96}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := pack.Cut("text", test.options)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got error %q, want %q", got, test.want)
			}
		})
	}
}

func TestCounterThatLies(t *testing.T) {
	_, err := pack.Cut(strings.Repeat("x", 100), pack.Options{MaxTokens: 10, Counter: counter(func(s string) int { return 20 * len(s) })})
	if err == nil || !strings.Contains(err.Error(), "more tokens than bytes") {
		t.Errorf("got error %v, want one that names the breach", err)
	}
}

// TestPlace shows where cuts fall: bytes are tokens, and the text must be cut
// in two about its middle.
func TestPlace(t *testing.T) {
	left, right := strings.Repeat("a", 1990), strings.Repeat("b", 1990)
	for _, test := range []struct {
		name   string
		middle string
		want   string // how much of middle is in the first core
	}{
		{"paragraph before line", "one\ntwo\n\nthree\nfour", "one\ntwo\n\n"},
		{"blank line with spaces", "one\ntwo\n \nthree\nfour", "one\ntwo\n \n"},
		{"carriage returns", "one two\r\rthree four", "one two\r\r"},
		{"line before sentence", "One. Two\nthree. Four", "One. Two\n"},
		{"line break of two characters", "one two\r\nthree four", "one two\r\n"},
		{"indented line", "one two\n    three four", "one two\n"},
		{"sentence before word", "one two. Three four", "one two. "},
		{"sentence in quotes", "one “two.” Three four", "one “two.” "},
		{"sentence without space", "一二三。四五六", "一二三。"},
		{"no sentence in a number", "one2.3two three", "one2.3two "},
		{"word", "one two", "one "},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := left + test.middle + right
			got := cores(text, cut(t, text, pack.Options{MaxTokens: 3000}))
			want := []string{left + test.want, strings.TrimPrefix(test.middle, test.want) + right}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("cores (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCharactersStayWhole(t *testing.T) {
	for _, test := range []struct{ name, unit string }{
		{"wide characters", "漢"},
		{"emoji joined", "👩\u200d🔬"},
		{"combining mark", "e\u0301"},
		{"line break of two characters", "\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Repeat(test.unit, 500)
			for _, core := range cores(text, cut(t, text, pack.Options{MaxTokens: 200})) {
				if strings.TrimPrefix(strings.Repeat(test.unit, 100), core) != strings.Repeat(test.unit, 100-len(core)/len(test.unit)) {
					t.Errorf("core %q is not made of whole %q", core, test.unit)
				}
			}
		})
	}
}

func TestContext(t *testing.T) {
	text := strings.Repeat("0123456789abcde ", 1000)
	pieces := cut(t, text, pack.Options{MaxTokens: 2000, Overlap: 200})
	for i, p := range pieces {
		before, behind := p.CoreStart-p.Start, p.End-p.CoreEnd
		wantBefore, wantBehind := 80, 80
		if i == 0 {
			wantBefore = 0
		}
		if i == len(pieces)-1 {
			wantBehind = 0
		}
		if before < wantBefore || before > 100 || behind < wantBehind || behind > 100 {
			t.Errorf("piece %d has %d bytes of context before and %d behind, want about 100", i, before, behind)
		}
	}
}

func TestPiecesAreOfSimilarSize(t *testing.T) {
	text := strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 2000)
	pieces := cut(t, text, pack.Options{MaxTokens: 10_000})
	if want := 10; len(pieces) != want {
		t.Errorf("got %d pieces, want %d", len(pieces), want)
	}
	for i, p := range pieces {
		if n := p.CoreEnd - p.CoreStart; n < 8000 {
			t.Errorf("core %d has %d bytes of %d", i, n, len(text))
		}
	}
}

// check fails unless pieces are a sound cut of text.
func check(t interface{ Fatalf(string, ...any) }, text string, o pack.Options, pieces []pack.Piece) {
	at := 0
	for i, p := range pieces {
		if p.CoreStart != at || p.CoreEnd <= p.CoreStart || p.Start > p.CoreStart || p.End < p.CoreEnd {
			t.Fatalf("piece %d does not continue at %d: %+v", i, at, p)
		}
		at = p.CoreEnd
		if n := o.Counter.Count(text[p.Start:p.End]); n > o.MaxTokens || n > p.Tokens || p.Exact && n != p.Tokens {
			t.Fatalf("piece %d has %d tokens, says %d, max %d", i, n, p.Tokens, o.MaxTokens)
		}
		for _, at := range []int{p.Start, p.CoreStart, p.CoreEnd, p.End} {
			if utf8.ValidString(text) && at < len(text) && !utf8.RuneStart(text[at]) {
				t.Fatalf("piece %d is cut inside a character at %d", i, at)
			}
		}
	}
	if at != len(text) {
		t.Fatalf("cores end at %d of %d", at, len(text))
	}
	if one := o.Counter.Count(text) <= o.MaxTokens; text != "" && one != (len(pieces) == 1) {
		t.Fatalf("%d pieces for %d tokens with max %d", len(pieces), o.Counter.Count(text), o.MaxTokens)
	}
}

// characters counts one token for so many characters, rounded down: most atoms of a
// text that is cut small have none.
func characters(each float64) counter {
	return func(s string) int { return int(float64(utf8.RuneCountInString(s)) / each) }
}

func TestCutProperties(t *testing.T) {
	counters := map[string]counter{
		"bytes": func(s string) int { return len(s) },
		"runes": utf8.RuneCountInString, "words": words, "halves": halves,
		"quarters": characters(4), "fifths": characters(4.9), "sixteenths": characters(16),
		"tokens": token.New().Count,
	}
	names := slices.Sorted(maps.Keys(counters))
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`([a-z]{1,9}[ .]? ?\n?){0,60}`),
		rapid.StringMatching(`[a\x00 \r\n.é漢\x{301}]{0,200}`),
		rapid.StringMatching(`([漢字😀a]{0,6}\n?){0,60}`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(texts.Draw(t, "text"), rapid.IntRange(1, 20).Draw(t, "times"))
		o := pack.Options{MaxTokens: rapid.IntRange(4, 400).Draw(t, "max")}
		o.Overlap = rapid.IntRange(0, o.MaxTokens-4).Draw(t, "overlap")
		o.Counter = counters[rapid.SampledFrom(names).Draw(t, "counter")]
		pieces, err := pack.Cut(text, o)
		if err != nil {
			t.Fatalf("Cut: %v", err)
		}
		check(t, text, o, pieces)
	})
}

func FuzzCut(f *testing.F) {
	f.Add("One. Two.\n\nThree\r\nfour\x00\xff", 8, 2)
	f.Add(strings.Repeat("e\u0301", 40), 20, 10)
	f.Fuzz(func(t *testing.T, text string, limit, overlap int) {
		o := pack.Options{MaxTokens: limit, Overlap: overlap, Counter: counter(words)}
		if limit < 4 || overlap < 0 || overlap > limit-4 {
			t.Skip("options that Cut refuses")
		}
		check(t, text, o, cut(t, text, o))
	})
}

func BenchmarkCut(b *testing.B) {
	for _, bench := range []struct {
		name    string
		unit    string
		counter pack.Counter
	}{
		{"prose by tokens", "The supplier shall deliver the goods to the buyer.\n", token.New()},
		{"prose by bytes", "The supplier shall deliver the goods to the buyer.\n", counter(halves)},
		{"one line without spaces", "x", token.New()},
		{"NULs", "\x00", token.New()},
		{"white space", " \n", token.New()},
		{"combining marks", "\u0301", token.New()},
		{"wide characters", "漢字", token.New()},
	} {
		for _, size := range []int{1 << 20, 4 << 20} {
			b.Run(bench.name+"/"+map[int]string{1 << 20: "1MiB", 4 << 20: "4MiB"}[size], func(b *testing.B) {
				text := strings.Repeat(bench.unit, size/len(bench.unit))
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					cut(b, text, pack.Options{Overlap: 500, Counter: bench.counter})
				}
			})
		}
	}
}
