package ground_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// A tally counts quotes by what became of them.
type tally struct {
	all      int
	found    int // at the right place
	verified int // there
	passed   int // verified, about there, at a place that has the word that was left out
	missed   []string
}

// add looks for what was made of a window in its text.
func (c *tally) add(text *ground.Text, w window) {
	s, _ := text.Find(w.quote, -1)
	right := w.is(s)
	c.all++
	c.found += count(right)
	c.verified += count(right && s.Verified())
	c.passed += count(s.Verified() && s.ByteStart < w.end && w.start < s.ByteEnd &&
		times(w.lost, w.document.text[s.ByteStart:s.ByteEnd]) > times(w.lost, w.quote))
	if !right {
		c.missed = append(c.missed, fmt.Sprintf("%q of %q", w.quote, w.document.text[w.start:w.end]))
	}
}

func (c *tally) plus(d *tally) *tally {
	return &tally{all: c.all + d.all, found: c.found + d.found, verified: c.verified + d.verified, passed: c.passed + d.passed}
}

// String tells the counts, and some of the quotes that were not found.
func (c *tally) String() string {
	s := fmt.Sprintf("%d quotes, %d found at the right place (%.2f %%), %d of them verified (%.1f %%)",
		c.all, c.found, share(c.found, c.all), c.verified, share(c.verified, c.all))
	if c.passed > 0 {
		s += fmt.Sprintf("; %d verified with the missing word", c.passed)
	}
	for i := 0; i < len(c.missed); i += max(1, len(c.missed)/5) {
		s += "\n\t" + c.missed[i]
	}
	return s
}

// times returns how often a word, bare and in small letters, is in s.
func times(word, s string) int {
	n := 0
	for f := range strings.FieldsSeq(s) {
		n += count(word != "" && bare(f) == word)
	}
	return n
}

// bare returns a word without the punctuation around it, in small letters.
func bare(s string) string {
	return strings.ToLower(strings.TrimFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }))
}

func share(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

// leftOut returns the window without its word number i. If that is the first or
// the last, the window ends where what is left does.
func leftOut(w window, i int) window {
	fields := strings.Fields(w.quote)
	w.lost = bare(fields[i])
	switch i {
	case 0:
		w.start += strings.Index(w.quote[len(fields[0]):], fields[1]) + len(fields[0])
	case len(fields) - 1:
		w.end -= len(w.quote) - len(strings.TrimRightFunc(strings.TrimSuffix(w.quote, fields[i]), unicode.IsSpace))
	}
	w.quote = strings.Join(slices.Delete(fields, i, i+1), " ")
	return w
}

// kindOfWord says what word number i of a quote is to what the quote says. It
// knows nothing of package ground.
func kindOfWord(fields []string, i int) string {
	word := bare(fields[i])
	before := fields[max(0, i-3):i]
	end := func(s string) bool { return strings.ContainsAny(s, ".;:!?") }
	switch {
	case strings.ContainsFunc(word, unicode.IsNumber):
		return "number"
	case isNegation(word) || slices.Contains(tellingWords(), word):
		return "telling word"
	case isLight(word):
		return "article"
	case strings.ContainsFunc(fields[i], unicode.IsUpper):
		return "name"
	case !isPlain(word) || word == "":
		return "compound or mark"
	case slices.ContainsFunc(before, func(s string) bool { return isNegation(bare(s)) }) &&
		!slices.ContainsFunc(before, end) && word != "and":
		return "word under a negation"
	}
	return "plain word"
}

// tellingWords are some without which a sentence says more, or less, or another
// thing: hedges, counts, units and conditions.
func tellingWords() []string {
	return strings.Fields(`may might could would should can must will alleged allegedly reportedly claimed claims claim
		said says accused suspected possible possibly probably likely unlikely perhaps nearly almost former formerly
		deputy acting attempted attempt attempts planned proposed expected if whether but or against by from before after
		since until refused denied failed rejected banned unable impossible illegal except
		zero one two three four five six seven eight nine ten eleven twelve twenty hundred hundreds thousand thousands million
		millions billion dozen dozens half first second third last few fewer less least more most many some any all every each
		both only just under over about around approximately up down than other another percent
		dollars pounds euros miles kilometers kilometres square hours days weeks months years`)
}

// TestRe3dPerturbed finds quotes that differ from the text as those of models do:
// in case, in number, without a word, whichever, in quotation marks, hyphenation
// and white space. All must be found at the right place; those that say the same
// must be verified, and those that lack what tells must not be.
func TestRe3dPerturbed(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	documents, _ := re3d(t)
	r := rand.New(rand.NewPCG(1, 1))
	all, texts := windows(r, documents), prepared(documents)
	kinds := perturbed(r, all, texts)
	alike, total := sum(kinds), sum(kinds)
	within, ends := dropped(all, texts)
	for kind, c := range within {
		kinds["dropped "+kind] = c
	}
	drops := sum(within).plus(ends)
	alike, total = alike.plus(within["article"]), total.plus(drops)
	kinds["dropped first or last word"], kinds["dropped word, any"] = ends, drops
	kinds["all"], kinds["all that say the same"] = total, alike
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %v", kind, kinds[kind])
	}
	for _, kind := range []string{
		"upper case", "lower case", "plural", "dropped word, any", "dropped plain word", "smart quotes", "hyphenation", "white space", "all",
	} {
		if c := kinds[kind]; c == nil || share(c.found, c.all) < 98 {
			t.Errorf("%s: %v; want 98 %% found at the right place", kind, c)
		}
	}
	if share(alike.verified, alike.all) < 98 || alike.all < 10_000 {
		t.Errorf("%d of %d quotes that say the same are verified, want 98 %% of 10,000 or more", alike.verified, alike.all)
	}
	for _, kind := range []string{"telling word", "number", "name", "word under a negation"} {
		if c := within[kind]; c == nil || c.verified+c.passed > 0 {
			t.Errorf("dropped %s: %v; want none verified there", kind, c)
		}
	}
}

// perturbed does to each window what changes nothing of what it says.
func perturbed(r *rand.Rand, all []window, texts map[*document]*ground.Text) map[string]*tally {
	ways, kinds := perturbations(), map[string]*tally{}
	for _, kind := range slices.Sorted(maps.Keys(ways)) {
		kinds[kind] = &tally{}
		for _, w := range all {
			if quote := ways[kind](r, w); quote != "" {
				w.quote = quote
				kinds[kind].add(texts[w.document], w)
			}
		}
	}
	return kinds
}

func sum(kinds map[string]*tally) *tally {
	total := &tally{}
	for _, c := range kinds {
		total = total.plus(c)
	}
	return total
}

// dropped leaves out each word of each window in turn, by its kind if it is
// within.
func dropped(all []window, texts map[*document]*ground.Text) (within map[string]*tally, ends *tally) {
	within, ends = map[string]*tally{}, &tally{}
	for _, w := range all {
		fields := strings.Fields(w.quote)
		for i := range fields {
			c := ends
			if i > 0 && i < len(fields)-1 {
				kind := kindOfWord(fields, i)
				if within[kind] == nil {
					within[kind] = &tally{}
				}
				c = within[kind]
			}
			c.add(texts[w.document], leftOut(w, i))
		}
	}
	return within, ends
}
