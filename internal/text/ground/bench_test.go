package ground_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// TestHostile finds quotes that match at very many places, or nearly do. What
// would be quadratic does not end before the test is given up.
func TestHostile(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	again := func(s string, size int) string { return strings.Repeat(s, size/len(s)) }
	const size = 1 << 18
	for _, test := range []struct {
		name        string
		text, quote string
		want        ground.Grade
	}{
		{"one letter, half of it", again("a", size), again("a", size/2), ground.Exact},
		{"one letter, other case", again("a", size), again("A", size/16), ground.Normalised},
		{"one letter, nearly everywhere", again("a", size), again("a", size/16) + "b", ""},
		{"one word", again("a ", size), "a a", ground.Exact},
		{"one word, half of it", again("a ", size), again("a ", size/2) + "a", ground.Exact},
		{"one word, other case, half of it", again("a ", size), again("A ", size/2) + "a", ground.Normalised},
		{"one word, nearly everywhere", again("of ", size), again("of ", size/2) + "ox", ground.Near},
		{"one word, nearly, its last", again("ox ", size), again("ox ", size/4) + "of of of 1 ox", ""},
		{"two words", again("ox an ", size), again("ox an ox ", size/4), ""},
		{"plurals", again("bird birds ", size), again("birds birds ", 1<<11), ground.Near},
		{"articles", again("bird the of a ", size), again("bird of ", 1<<11), ""},
		{"many articles", again("bird the of a the an of ", size), again("bird of a of an a of ", 1<<14), ""},
		{"far parts", again("bird cat "+again("eel ", 900), size), again("bird cat ... ", 100) + "dog ... cat bird", ""},
		{"few articles", again("bird the of a ", size), "a bird of the of the bird of birds birds", ground.Fuzzy},
		{"paragraph", again("The birds of the air fly over the old town. ", size), "birds of the air flew over the old town", ground.Near},
		{"ellipses", again("bird cat ", size), again("bird cat ... ", 1<<11), ground.Fuzzy},
		{"some ellipses", again("bird cat ", size), again("bird cat ... ", 200), ground.Fuzzy},
		{"only ellipses", again(". ", size), again("... ", size), ""},
		{"marks", again("\u0301", size), again("\u0300", 1<<11), ""},
		{"marks of one letter", "a" + again("\u0301", size), "a" + again("\u0301", 1<<11), ground.Exact},
		{"ignored", again("\u200b", size) + "a", "A", ground.Normalised},
		{"ligatures", again("ﷺ ", size), again("ﷺ ", size/4) + "ﷺ", ground.Exact},
		{"hyphens", again("a-\nb ", size), again("ab ", size/4) + "ab", ground.Normalised},
		{"hyphens, nearly", again("a-\nb ", size), again("a-b ", size/4) + "ox", ground.Near},
		{"one character", again("漢", size), again("漢", size/4) + "字", ground.Near},
		{"digits", again("1", size), again("1", size/4) + "2", ""},
		{"no words", again("-", size), again("-", size/4) + "+", ""},
		{"no words, found", again(".", size), again(".", size/4), ground.Exact},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := ground.New(test.text)
			begin := time.Now()
			got, _ := g.Find(test.quote, -1)
			if got.Grade != test.want {
				t.Errorf("Find: grade %q, want %q", got.Grade, test.want)
			}
			for _, s := range g.FindAll([]string{test.quote, test.quote}) {
				if s.Grade != test.want {
					t.Errorf("FindAll: grade %q, want %q", s.Grade, test.want)
				}
			}
			t.Logf("%v", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// A writer makes texts of words that are about as rare as those of a language.
type writer struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newWriter(seed uint64) *writer {
	r := rand.New(rand.NewPCG(seed, seed))
	return &writer{r, rand.NewZipf(r, 1.1, 4, 30_000)}
}

// word returns a word that n stands for; few stand for the most frequent ones.
func word(n uint64) string {
	if few := []string{"the", "of", "and", "to", "in", "a", "is", "that"}; n < uint64(len(few)) {
		return few[n]
	}
	var b strings.Builder
	for n += 20; n > 0; n /= 20 {
		b.WriteByte("bcdfghjklmnprstvwxyz"[n%20])
		b.WriteByte("aeiou"[n%5])
	}
	return b.String()
}

// text returns a text of so many bytes, about.
func (w *writer) text(size int) string {
	var b strings.Builder
	b.Grow(size + 100)
	for b.Len() < size {
		n := 5 + w.r.IntN(20)
		for i := range n {
			s := word(w.zipf.Uint64())
			switch {
			case i == 0:
				s = strings.ToUpper(s[:1]) + s[1:]
			case w.r.IntN(30) == 0:
				s = fmt.Sprint(w.r.IntN(2000))
			}
			b.WriteString(s)
			b.WriteString([]string{" ", " ", " ", " ", " ", " ", ", ", "\n"}[w.r.IntN(8)])
		}
		b.WriteString(". ")
	}
	return b.String()
}

// quotes returns quotes as models give them: of twenty, twelve stand in the
// text, three differ in case, two in a word, and three are invented.
func (w *writer) quotes(text string, n int) []string {
	quotes := make([]string, n)
	for i := range quotes {
		start := wordBefore(text, w.r.IntN(len(text)-400))
		end := start
		for range 3 + w.r.IntN(25) {
			end = wordBehind(text, end)
		}
		quote := text[start:end]
		switch i % 20 {
		case 12, 13, 14:
			quote = strings.ToUpper(quote)
		case 15, 16:
			if other := without(w.r, quote, isPlain); other != "" {
				quote = other
			}
		case 17, 18:
			fields := strings.Fields(quote)
			w.r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			quote = strings.Join(fields, " ")
		case 19:
			quote += " " + word(w.zipf.Uint64()) + " not " + word(w.zipf.Uint64())
		}
		quotes[i] = quote
	}
	return quotes
}

// TestLongQuotes finds long quotes that lack an article and have a plural more:
// the bounds for texts that repeat themselves do not hit others.
func TestLongQuotes(t *testing.T) {
	w := newWriter(3)
	text := w.text(1 << 18)
	g := ground.New(text)
	for _, words := range []int{10, 100, 1000, 5000} {
		start := wordBefore(text, w.r.IntN(len(text)/4))
		end := start
		for range words {
			end = wordBehind(text, end)
		}
		quote := without(w.r, text[start:end], func(s string) bool { return s == "the" || s == "of" })
		if s, _ := g.Find(quote, -1); s.Grade != ground.Fuzzy || s.ByteStart < start || s.ByteStart > start+1 || end-s.ByteEnd > 2 {
			t.Errorf("%d words at [%d, %d): found %+v", words, start, end, s)
		}
	}
}

// BenchmarkDocument finds many quotes in one document.
func BenchmarkDocument(b *testing.B) {
	for _, size := range []int{1 << 16, 1 << 18, 1 << 20, 1 << 22} {
		for _, n := range []int{1000, 10_000} {
			w := newWriter(1)
			text := w.text(size)
			quotes := w.quotes(text, n)
			b.Run(fmt.Sprintf("kB=%d/quotes=%d", size>>10, n), func(b *testing.B) {
				found := 0
				for b.Loop() {
					found = 0
					for _, s := range ground.New(text).FindAll(quotes) {
						found += count(s.Verified())
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "quotes/s")
				b.ReportMetric(float64(found)/float64(n), "found")
			})
		}
	}
}

// BenchmarkHostile finds many quotes in documents that repeat themselves.
func BenchmarkHostile(b *testing.B) {
	for name, unit := range map[string]string{
		"letter": "a ", "sentence": "The birds of the air fly over the old town. ", "numbers": "1 2 1 1 ", "articles": "bird the of a ",
	} {
		text := strings.Repeat(unit, (1<<20)/len(unit))
		quotes := make([]string, 10_000)
		for i := range quotes {
			start := i % len(unit) * 7
			quotes[i] = text[start:start+20+i%50] + []string{"", " of", " ox", " THE", " birds"}[i%5]
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ground.New(text).FindAll(quotes)
			}
			b.ReportMetric(float64(len(quotes))*float64(b.N)/b.Elapsed().Seconds(), "quotes/s")
		})
	}
}

// BenchmarkDocuments finds a hundred quotes in each of many documents.
func BenchmarkDocuments(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("documents=%d", n), func(b *testing.B) {
			texts, quotes := make([]string, 100), make([][]string, 100)
			for i := range texts {
				w := newWriter(uint64(i))
				texts[i] = w.text(8 << 10)
				quotes[i] = w.quotes(texts[i], 100)
			}
			for b.Loop() {
				var wg sync.WaitGroup
				for k := range runtime.GOMAXPROCS(0) {
					wg.Go(func() {
						for i := k; i < n; i += runtime.GOMAXPROCS(0) {
							ground.New(texts[i%100]).FindAll(quotes[i%100])
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(n*100)*float64(b.N)/b.Elapsed().Seconds(), "quotes/s")
		})
	}
}

// BenchmarkCeiling does the least that finding quotes could do: it reads each
// character of a text once, and each byte for one quote that is not there.
func BenchmarkCeiling(b *testing.B) {
	text := newWriter(1).text(1 << 20)
	for _, bench := range []struct {
		name string
		scan func() int
	}{
		{"characters", func() int {
			n := 0
			for _, r := range text {
				n += int(r & 1)
			}
			return n
		}},
		{"one quote", func() int { return strings.Index(text, "no such words are there") }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			sum := 0
			for b.Loop() {
				sum += bench.scan()
			}
			if sum == 0 {
				b.Error("nothing was read")
			}
		})
	}
}

// BenchmarkNew prepares a document for each way of looking.
func BenchmarkNew(b *testing.B) {
	text := newWriter(1).text(1 << 20)
	quote := text[wordBefore(text, 500):wordBehind(text, 600)]
	for _, bench := range []struct{ name, quote string }{
		{"exact", quote},
		{"normalised", strings.ToUpper(quote)},
		{"absent", "no such words are there"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				ground.New(text).Find(bench.quote, -1)
			}
		})
	}
}
