package ground_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/ground"
)

// A document is one of the texts of re3d, with the spans that annotators marked.
type document struct {
	id, text string
	byteAt   []int // of each code point, and of the end
	mentions []mention
}

// A mention is a span that agrees with its text.
type mention struct {
	begin, end int // code points
	value      string
}

// re3d reads the documents, in order. Mentions are in the order of the text,
// longer ones first, each once. It returns how many spans disagree with their
// text: an error of the data.
func re3d(tb testing.TB) (documents []*document, wrong int) {
	tb.Helper()
	root := os.Getenv("CODITECT_TESTDATA")
	if root == "" {
		tb.Skip("CODITECT_TESTDATA is not set")
	}
	for _, folder := range []string{"centcom", "uk-government", "us-state-department"} {
		byID := map[string]*document{}
		readLines(tb, filepath.Join(root, "re3d", folder, "documents.json"), func(line []byte) {
			var d struct {
				ID   string `json:"_id"`
				Text string `json:"text"`
			}
			parseLine(tb, line, &d)
			byID[d.ID] = newDocument(d.ID, d.Text)
			documents = append(documents, byID[d.ID])
		})
		readLines(tb, filepath.Join(root, "re3d", folder, "entities.json"), func(line []byte) {
			var e struct {
				Begin, End int
				Value      string
				DocumentID string
			}
			parseLine(tb, line, &e)
			d := byID[e.DocumentID]
			if d.text[d.byteAt[e.Begin]:d.byteAt[e.End]] != e.Value {
				wrong++
				return
			}
			d.mentions = append(d.mentions, mention{e.Begin, e.End, e.Value})
		})
	}
	for _, d := range documents {
		slices.SortFunc(d.mentions, func(a, b mention) int {
			return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
		})
		d.mentions = slices.Compact(d.mentions)
	}
	return documents, wrong
}

func newDocument(id, text string) *document {
	d := &document{id: id, text: text}
	for i := range text {
		d.byteAt = append(d.byteAt, i)
	}
	d.byteAt = append(d.byteAt, len(text))
	return d
}

func readLines(tb testing.TB, path string, line func([]byte)) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
}

func parseLine(tb testing.TB, line []byte, v any) {
	tb.Helper()
	if err := json.Unmarshal(line, v); err != nil {
		tb.Fatalf("%s: %v", line, err)
	}
}

// TestRe3dClean finds the mentions of each document in its whole text, told
// nothing but their order. Those that cut a word are errors of the annotators,
// found all the same and marked.
func TestRe3dClean(t *testing.T) {
	documents, wrong := re3d(t)
	total, exact, right, cut := 0, 0, 0, 0
	for _, d := range documents {
		quotes := make([]string, 0, len(d.mentions))
		mentions := slices.DeleteFunc(d.mentions, func(m mention) bool { return strings.TrimSpace(m.value) == "" })
		for _, m := range mentions {
			quotes = append(quotes, m.value)
		}
		for i, s := range ground.New(d.text).FindAll(quotes) {
			m := mentions[i]
			total++
			exact += count(s.Grade == ground.Exact)
			cut += count(s.Cut)
			if s.Start == m.begin && s.End == m.end && s.ByteStart == d.byteAt[m.begin] {
				right++
				continue
			}
			t.Logf("%s: %q is at %d, was found at %d, one of %d places", d.id, m.value, m.begin, s.Start, s.Places)
		}
	}
	t.Logf("%d mentions: %d exact, %d at the right offset, %d cut a word; %d spans disagree with their text", total, exact, right, cut, wrong)
	if exact != total || float64(right) < 0.999*float64(total) {
		t.Errorf("%d exact and %d right of %d; want all and 99.9 %%", exact, right, total)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A window is some words of a document around a mention, found there once.
type window struct {
	document   *document
	start, end int // bytes
	quote      string
	noun       int    // offset in quote behind the last word of the mention
	lost       string // the word that was left out of quote, if any
}

// windows draws one window around each mention.
func windows(r *rand.Rand, documents []*document) []window {
	var all []window
	for _, d := range documents {
		for _, m := range d.mentions {
			start, end := d.byteAt[m.begin], d.byteAt[m.end]
			w := window{document: d, start: start, end: end, noun: end - start}
			for range 2 + r.IntN(5) {
				w.start = wordBefore(d.text, w.start)
				w.end = wordBehind(d.text, w.end)
			}
			w.noun += start - w.start
			w.quote = d.text[w.start:w.end]
			if strings.TrimSpace(w.quote) == w.quote && strings.Count(d.text, w.quote) == 1 && !cutsWord(d.text, start) && !cutsWord(d.text, end) {
				all = append(all, w)
			}
		}
	}
	return all
}

// is reports whether s is the window, but for punctuation at its ends. A window
// whose first or last word was left out is what is left of it.
func (w window) is(s ground.Span) bool {
	return w.start <= s.ByteStart && s.ByteEnd <= w.end && s.ByteStart < s.ByteEnd &&
		wordless(w.document.text[w.start:s.ByteStart]) && wordless(w.document.text[s.ByteEnd:w.end])
}

func wordless(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) < 0
}

func cutsWord(text string, p int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:p])
	behind, _ := utf8.DecodeRuneInString(text[p:])
	return unicode.IsLetter(before) && unicode.IsLetter(behind)
}

// wordBefore returns where the word before offset p begins, wordBehind where
// that behind it ends; a word is what white space parts.
func wordBefore(text string, p int) int {
	rest := strings.TrimRightFunc(text[:p], unicode.IsSpace)
	i := strings.LastIndexFunc(rest, unicode.IsSpace)
	switch {
	case rest == "":
		return p
	case i < 0:
		return 0
	}
	_, size := utf8.DecodeRuneInString(rest[i:])
	return i + size
}

func wordBehind(text string, p int) int {
	rest := strings.TrimLeftFunc(text[p:], unicode.IsSpace)
	at := len(text) - len(rest)
	if rest == "" {
		return p
	}
	if i := strings.IndexFunc(rest, unicode.IsSpace); i >= 0 {
		return at + i
	}
	return len(text)
}

// perturbations returns ways in which quotes differ from their text, though
// they say the same. They return "" for what they cannot be done to.
func perturbations() map[string]func(r *rand.Rand, w window) string {
	return map[string]func(r *rand.Rand, w window) string{
		"upper case": func(_ *rand.Rand, w window) string { return strings.ToUpper(w.quote) },
		"lower case": func(_ *rand.Rand, w window) string { return strings.ToLower(w.quote) },
		"plural":     func(_ *rand.Rand, w window) string { return otherNumber(w) },
		"punctuation": func(_ *rand.Rand, w window) string {
			return changed(w.quote, strings.NewReplacer(", ", " ", ";", "", "(", "", ")", "", "“", "", "”", "").Replace(w.quote))
		},
		"smart quotes": func(_ *rand.Rand, w window) string {
			return changed(w.quote, strings.NewReplacer("“", `"`, "”", `"`, "’", "'", "‘", "'", `"`, "”", "'", "’", "-", "–", "–", "-").Replace(w.quote))
		},
		"hyphenation": hyphenated,
		"white space": func(r *rand.Rand, w window) string {
			spaces := []string{"\n", "  ", "\u00a0", "\t", " \r\n ", "\u2009"}
			fields := strings.Fields(w.quote)
			out := fields[0]
			for _, f := range fields[1:] {
				out += spaces[r.IntN(len(spaces))] + f
			}
			return out
		},
	}
}

func changed(old, s string) string {
	if old == s {
		return ""
	}
	return s
}

// otherNumber puts the last noun of the mention into the other number.
func otherNumber(w window) string {
	head := w.quote[:w.noun]
	i := strings.LastIndexFunc(head, func(r rune) bool { return !('a' <= r && r <= 'z') }) + 1
	word := head[i:]
	if len(word) < 4 || i > 0 && head[i-1] != ' ' || strings.HasSuffix(word, "ss") || strings.HasPrefix(w.quote[w.noun:], "-") {
		return ""
	}
	if one, ok := strings.CutSuffix(word, "s"); ok {
		return head[:i] + one + w.quote[w.noun:]
	}
	return head + "s" + w.quote[w.noun:]
}

func isLight(word string) bool {
	return slices.Contains([]string{"a", "an", "the", "of", "that"}, word)
}

// isPlain holds for any word of small letters.
func isPlain(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return !('a' <= r && r <= 'z') }) < 0
}

// without leaves out one word of a kind, neither the first nor the last.
func without(r *rand.Rand, quote string, kind func(string) bool) string {
	fields := strings.Fields(quote)
	var at []int
	for i := 1; i < len(fields)-1; i++ {
		if kind(fields[i]) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return ""
	}
	i := at[r.IntN(len(at))]
	return strings.Join(slices.Delete(fields, i, i+1), " ")
}

// hyphenated parts a word at the end of a line.
func hyphenated(r *rand.Rand, w window) string {
	fields := strings.Fields(w.quote)
	for _, i := range r.Perm(len(fields)) {
		if f := fields[i]; len(f) >= 6 && isPlain(f) {
			fields[i] = f[:3] + "-\n" + f[3:]
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func prepared(documents []*document) map[*document]*ground.Text {
	texts := map[*document]*ground.Text{}
	for _, d := range documents {
		texts[d] = ground.New(d.text)
	}
	return texts
}
