package ground_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// An inventor makes quotes of at least four words that no document has.
type inventor struct {
	r     *rand.Rand
	all   []window
	names []string // of one word
	words []string // in small letters
}

// inventions returns ways to make a quote that w's document does not have.
// They return "" for what they cannot be done to.
func (v *inventor) inventions() map[string]func(w window) string {
	return map[string]func(w window) string{
		"shuffled":       v.shuffled,
		"of another":     func(window) string { return v.any().quote },
		"same beginning": v.sameBeginning,
		"same end":       v.sameEnd,
		"spliced":        v.spliced,
		"digit":          v.digit,
		"number left out": func(w window) string {
			return without(v.r, w.quote, func(s string) bool { return strings.ContainsAny(s, "0123456789") })
		},
		"number word":       func(w window) string { return v.swap(w.quote, numbers()) },
		"name":              v.name,
		"names exchanged":   v.exchanged,
		"name left out":     func(w window) string { return without(v.r, w.quote, isName) },
		"negated":           v.negated,
		"negation left out": func(w window) string { return without(v.r, w.quote, isNegation) },
		"opposite":          func(w window) string { return v.swap(w.quote, opposites()) },
		"other word":        v.otherWord,
		"word put in":       v.wordPutIn,
	}
}

func (v *inventor) any() window { return v.all[v.r.IntN(len(v.all))] }

func (v *inventor) shuffled(w window) string {
	fields := strings.Fields(w.quote)
	v.r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return strings.Join(fields, " ")
}

func (v *inventor) sameBeginning(w window) string {
	a, b := strings.Fields(w.quote), strings.Fields(v.any().quote)
	return strings.Join(append(slices.Clip(a[:len(a)*3/4]), b[len(b)/2:]...), " ")
}

func (v *inventor) sameEnd(w window) string {
	a, b := strings.Fields(w.quote), strings.Fields(v.any().quote)
	return strings.Join(append(slices.Clip(b[:len(b)/2]), a[len(a)/4:]...), " ")
}

// spliced leaves out words of the middle that hold a word to be kept.
func (v *inventor) spliced(w window) string {
	fields := strings.Fields(w.quote)
	if len(fields) < 8 {
		return ""
	}
	from := 2 + v.r.IntN(2)
	return strings.Join(slices.Delete(fields, from, len(fields)-2), " ")
}

func (v *inventor) digit(w window) string {
	var at []int
	for i := range len(w.quote) {
		if '0' <= w.quote[i] && w.quote[i] <= '9' {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return ""
	}
	i := at[v.r.IntN(len(at))]
	d := '0' + (w.quote[i]-'0'+1+byte(v.r.IntN(9)))%10
	return w.quote[:i] + string(d) + w.quote[i+1:]
}

func numbers() map[string]string {
	return map[string]string{
		"one": "two", "two": "three", "three": "two", "four": "five", "five": "fifteen", "six": "seven", "seven": "six",
		"eight": "nine", "nine": "ten", "ten": "nine", "million": "billion", "billion": "million", "hundred": "thousand",
		"thousand": "hundred", "first": "second", "second": "third", "half": "third", "hundreds": "thousands",
	}
}

func opposites() map[string]string {
	return map[string]string{
		"in": "outside", "with": "without", "to": "from", "from": "to", "for": "against", "against": "for", "before": "after",
		"after": "before", "more": "less", "all": "some", "is": "was", "are": "were", "was": "will", "will": "may",
		"support": "oppose", "destroyed": "damaged", "and": "or", "can": "cannot", "killed": "wounded", "increase": "decrease",
		"northern": "southern", "eastern": "western", "against ": "for", "by": "to", "under": "over", "has": "had",
		"legal": "illegal", "stability": "instability", "able": "unable", "said": "denied", "new": "old",
	}
}

// swap replaces one of the words that are keys of others.
func (v *inventor) swap(quote string, others map[string]string) string {
	fields := strings.Fields(quote)
	for _, i := range v.r.Perm(len(fields)) {
		if other := others[fields[i]]; other != "" {
			fields[i] = other
			return strings.Join(fields, " ")
		}
	}
	return ""
}

// isName holds for a word with a capital that is followed by no punctuation.
func isName(word string) bool {
	return len(word) > 1 && unicode.IsUpper(rune(word[0])) && isPlain(strings.ToLower(word)) && !isLight(strings.ToLower(word))
}

func isNegation(word string) bool {
	return slices.Contains([]string{"not", "no", "never", "without", "nor", "cannot", "neither"}, word) || strings.HasSuffix(word, "n’t")
}

func (v *inventor) name(w window) string {
	fields := strings.Fields(w.quote)
	for _, i := range v.r.Perm(len(fields)) {
		if isName(fields[i]) {
			fields[i] = v.names[v.r.IntN(len(v.names))]
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func (v *inventor) exchanged(w window) string {
	fields := strings.Fields(w.quote)
	var at []int
	for i, f := range fields {
		if isName(f) {
			at = append(at, i)
		}
	}
	if len(at) < 2 {
		return ""
	}
	i, j := at[0], at[len(at)-1]
	fields[i], fields[j] = fields[j], fields[i]
	return strings.Join(fields, " ")
}

func (v *inventor) negated(w window) string { return v.insert(w, "not") }

func (v *inventor) wordPutIn(w window) string { return v.insert(w, v.words[v.r.IntN(len(v.words))]) }

func (v *inventor) insert(w window, word string) string {
	fields := strings.Fields(w.quote)
	return strings.Join(slices.Insert(fields, 1+v.r.IntN(len(fields)-1), word), " ")
}

func (v *inventor) otherWord(w window) string {
	fields := strings.Fields(w.quote)
	for _, i := range v.r.Perm(len(fields)) {
		if isPlain(fields[i]) && !isLight(fields[i]) {
			fields[i] = v.words[v.r.IntN(len(v.words))]
			return strings.Join(fields, " ")
		}
	}
	return ""
}

func newInventor(r *rand.Rand, documents []*document) *inventor {
	v := &inventor{r: r, all: windows(r, documents)}
	seen := map[string]bool{}
	for _, d := range documents {
		for f := range strings.FieldsSeq(d.text) {
			switch {
			case seen[f] || isLight(f):
			case isName(f):
				v.names = append(v.names, f)
			case isPlain(f):
				v.words = append(v.words, f)
			}
			seen[f] = true
		}
	}
	return v
}

// saysSame reports whether a text, given as its words, has those of a quote in
// their order, side by side but for one plain word: an invention that is none,
// because another sentence says the same. It knows nothing of package ground.
func saysSame(words []string, quote string) bool {
	q := plainWords(quote)
	for at := range words {
		n := same(words[at:], q)
		if n == len(q) || n > 0 && at+n < len(words) && isPlain(words[at+n]) && !isNegation(words[at+n]) &&
			same(words[at+n+1:], q[n:]) == len(q)-n {
			return true
		}
	}
	return false
}

// same returns how many words a and b begin with in common.
func same(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && strings.EqualFold(a[n], b[n]) {
		n++
	}
	return n
}

// plainWords returns the words of s but for articles and the like, "and", and
// the endings of plurals, in which sentences differ that say the same.
func plainWords(s string) []string {
	var words []string
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		if l := strings.ToLower(f); !isLight(l) && l != "and" {
			words = append(words, strings.TrimSuffix(f, "s"))
		}
	}
	return words
}

// TestRe3dInvented makes up quotes of each kind; none may pass for verified.
func TestRe3dInvented(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	documents, _ := re3d(t)
	v := newInventor(rand.New(rand.NewPCG(2, 2)), documents)
	texts, words := prepared(documents), map[*document][]string{}
	for _, d := range documents {
		words[d] = plainWords(d.text)
	}
	ways := v.inventions()
	total, verified := 0, 0
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		n, passed, near, tries := 0, 0, 0, 0
		for ; n < 1000 && tries < 50_000; tries++ {
			w := v.any()
			quote := ways[name](w)
			if len(strings.Fields(quote)) < 4 || saysSame(words[w.document], quote) {
				continue
			}
			n++
			s, _ := texts[w.document].Find(quote, -1)
			near += count(s.Grade == ground.Near)
			if s.Verified() {
				passed++
				if passed < 6 {
					t.Logf("%s: %q passed as %q, %s", name, quote, w.document.text[s.ByteStart:s.ByteEnd], s.Grade)
				}
			}
		}
		t.Logf("%s: %d of %d verified, %d near", name, passed, n, near)
		total, verified = total+n, verified+passed
	}
	t.Logf("%d of %d inventions verified", verified, total)
	if verified > 0 || total < 10_000 {
		t.Errorf("%d of %d inventions verified, want none of 10,000 or more", verified, total)
	}
}
