package token_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/token"
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

// alphabet has characters of every class that the tokenizer's expression tells
// apart, and what it treats in its own way.
var alphabet = []string{
	"a", "b", "s", "S", "t", "re", "VE", "m", "ll", "LL", "d", "A", "B", "É", "é", "ǅ", "ʰ", "ª", "漢", "\u0301", "𝐀", "𝒂", "𠀀",
	"1", "23", "½", "٣", "𝟙", "'", "'s", "'ſ", ".", "!", "/", "//", "-", "€", "😀", "\x00", "\u200d", "\ufeff", "\ufffd",
	" ", "  ", "\n", "\r", "\t", "\u00a0", "\u0085", "\u2028", "\u3000", "\v", "ſ", "K",
}

// TestAgreesWithTheTokenizer compares the count with the tokenizer's.
func TestAgreesWithTheTokenizer(t *testing.T) {
	whole, counter := codec.NewO200kBase(), token.New()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 40).Draw(t, "text"), "")
		agree(t, whole, counter, text)
	})
}

// TestTokensOneAfterAnother is the same for texts of tokens drawn from all there are.
func TestTokensOneAfterAnother(t *testing.T) {
	whole, counter := codec.NewO200kBase(), token.New()
	rapid.Check(t, func(t *rapid.T) {
		text, err := whole.Decode(rapid.SliceOfN(rapid.UintMax(199_997), 1, 25).Draw(t, "tokens"))
		if err != nil {
			t.Fatal(err)
		}
		agree(t, whole, counter, strings.ToValidUTF8(text, "\ufffd"))
	})
}

// TestPublicTexts compares the counts of public texts with the tokenizer's, a few lines at a time.
func TestPublicTexts(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder of public texts")
	}

	whole, counter, parts := codec.NewO200kBase(), token.New(), 0
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil || len(text) > 1<<20 || !utf8.Valid(text) {
			return err
		}
		for part := range slices.Chunk(text, 250) {
			parts += agree(t, whole, counter, strings.ToValidUTF8(string(part), ""))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d parts of texts", parts)
}

// agree compares the count of a text with the tokenizer's and returns 1, or 0 if it does not
// compare: what is long is counted in parts, and the tokenizer passes over U+007F, which is a token.
func agree(t rapid.TB, whole *codec.Codec, counter *token.Counter, text string) int {
	t.Helper()

	if len(text) > 250 || strings.Contains(text, "\x7f") {
		return 0
	}
	want, err := whole.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := counter.Count(text); got != want {
		t.Fatalf("got %d tokens in %q, want %d", got, text, want)
	}
	return 1
}

// FuzzAgreesWithTheTokenizer is the same for any text.
func FuzzAgreesWithTheTokenizer(f *testing.F) {
	whole, counter := codec.NewO200kBase(), token.New()
	for _, text := range []string{"It'ſ 12345 km/h.\r\n\r\n  NO'LL ", "e\u0301A", "\u0301AB'S"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || agree(t, whole, counter, text) == 0 {
			t.Skip("counted otherwise")
		}
	})
}

// TestLongText compares texts of many words with what the tokenizer says of
// them whole.
func TestLongText(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	whole, counter := codec.NewO200kBase(), token.New()
	texts := rapid.StringMatching(`([A-Z]?[a-zéß]{1,12}('s|'LL|n't)?[,.;!)"/]{0,2}[ \n\t]{1,4}[0-9]{0,5}){1,40}`)
	rapid.Check(t, func(t *rapid.T) {
		unit := texts.Draw(t, "text")
		text := strings.Repeat(unit, 10_000/len(unit)+1)
		want, err := whole.Count(text)
		if err != nil {
			t.Fatalf("tokenizer: %v", err)
		}
		if got := counter.Count(text); got != want {
			t.Errorf("got %d tokens, want %d", got, want)
		}
	})
}

// TestConcurrentCounts counts the same words from several goroutines at once.
func TestConcurrentCounts(t *testing.T) {
	testenv.Raced(t)

	counter := token.New()
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "word%d ", i)
	}
	want, err := codec.NewO200kBase().Count(text.String())
	if err != nil {
		t.Fatalf("tokenizer: %v", err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got := counter.Count(text.String()); got != want {
				t.Errorf("got %d tokens, want %d", got, want)
			}
		})
	}
	group.Wait()
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
	testenv.Unraced(t, testenv.Sizes)

	counter := token.New()
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Repeat(test.unit, 1<<18/len(test.unit))
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

// TestKnownWordsAreNotCountedAgain checks that a vocabulary of usual size stays in the cache:
// a word that is not there is copied and given to the tokenizer.
func TestKnownWordsAreNotCountedAgain(t *testing.T) {
	const words = 5000
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, " %c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i%7)
	}
	c := token.New()
	want := c.Count(text.String())
	allocs := testing.AllocsPerRun(3, func() {
		if got := c.Count(text.String()); got != want {
			t.Errorf("%d tokens, and %d before", got, want)
		}
	})
	if allocs > words/10 {
		t.Errorf("%.0f allocations to count %d known words again", allocs, words)
	}
}

// BenchmarkNewWords counts words and long pieces that no cache has.
func BenchmarkNewWords(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		var s strings.Builder
		for s.Len() < 64<<10 {
			s.WriteByte(' ')
			for range most/2 + random.IntN(most/2) {
				s.WriteByte(byte('a' + random.IntN(26)))
			}
		}
		return s.String()
	}
	for _, bench := range []struct {
		name string
		text string
	}{{"words", text(12)}, {"long pieces", text(500)}} {
		b.Run(bench.name, func(b *testing.B) {
			token.New().Count("load the vocabulary")
			b.SetBytes(int64(len(bench.text)))
			for b.Loop() {
				token.New().Count(bench.text)
			}
		})
	}
}
