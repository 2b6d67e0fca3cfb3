package ground

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// A reading holds what the search for one quote, word by word, in one form of the
// text needs.
type reading struct {
	text  *Text
	form  form
	index *index
	words []word

	slack     int          // how many words may differ, by the coverage gate
	steps     int          // steps left of maxSteps
	lowercase map[int]bool // cache of occursLowercase, by vocabulary number
}

// A word is a word of a quote.
type word struct {
	text  string
	light bool  // it may be missing from the text
	ids   []int // vocabulary numbers it may match; the first is the word itself, or -1
}

// maxSteps bounds the comparisons of words for one short quote, so that repetitive
// texts cost no more than others.
const maxSteps = 1 << 16

// prepareReadings returns a reading of a quote for each distinct form of the text,
// or none if the quote is too short.
func (t *Text) prepareReadings(quote string) []*reading {
	var all []*reading
	for f := range form(formCount) {
		q := normaliseText(quote, f)
		if !t.isDistinctForm(f, &q) {
			continue
		}

		r := t.newReading(quote, &q, f)
		if !r.longEnough(t.gates) {
			return nil
		}
		all = append(all, r)
	}
	return all
}

// findFuzzy returns the places where the words of a quote stand with the least
// change, none of which affects the meaning.
func findFuzzy(readings []*reading) hits {
	for _, r := range readings {
		if places := r.fuzzyPlaces(); len(places) > 0 {
			return hits{places: places, grade: Fuzzy}
		}
	}
	return hits{}
}

// newReading prepares a quote, whose normal form is q.
func (t *Text) newReading(quote string, q *normal, f form) *reading {
	r := &reading{text: t, form: f, index: t.wordIndex(f), lowercase: map[int]bool{}}
	groups := t.nounGroups(f)

	for i, k := range splitTokens(q.text) {
		w := word{text: q.text[k.start:k.end]}
		at, _ := q.back.Source(k.start, k.end)

		// A light word may be missing from the text; the spelling in the quote, before
		// normalisation, tells a name from an article.
		w.light = prose.IsLightWord(w.text) && (i == 0 && w.text == "a" || isSpareWord(quote, at, w.text))
		w.ids = []int{-1}
		if id, ok := r.index.ids[w.text]; ok {
			w.ids[0] = id
		}

		if k.kind == letter && !w.light {
			for _, id := range groups[prose.NounStem(w.text)] {
				if id != w.ids[0] && prose.SameNoun(w.text, r.vocabularyWord(id)) {
					w.ids = append(w.ids, id)
				}
			}
		}

		r.words = append(r.words, w)
		if i > 0 && prose.ArticleQuantifies(r.words[i-1].text, w.text) {
			r.words[i-1].light = false
		}
	}

	// The small term keeps an error of the product from being rounded up to a whole word.
	r.steps = maxSteps + 16*len(r.words)
	r.slack = len(r.words) - int(math.Ceil(float64(len(r.words))*t.gates.Coverage-1e-9))
	return r
}

// isSpareWord reports whether w, a light word at offset at of s, is light in this
// place: an "a" must not be a name, an "s" must be an ending.
func isSpareWord(s string, at int, w string) bool {
	switch w {
	case "a":
		return s[at] == 'a'
	case "s":
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		return s[at] == 's' && plainRune(before) == '\''
	}
	return true
}

func (r *reading) longEnough(c Config) bool {
	n := 0
	for _, w := range r.words {
		n += utf8.RuneCountInString(w.text)
	}
	return len(r.words) >= c.MinWords || n >= c.MinCharacters
}

// vocabularyWord returns word number id of the vocabulary.
func (r *reading) vocabularyWord(id int) string {
	k := r.index.tokens[r.index.tokensOf(id)[0]]
	return r.index.text[k.start:k.end]
}

// fuzzyPlaces aligns the quote around each occurrence of its rarest required word,
// and returns the places with the least change.
func (r *reading) fuzzyPlaces() []place {
	anchor, at := r.rarestWord()
	least := math.MaxInt

	var best []alignment
	for _, i := range at {
		if r.steps--; r.steps < 0 {
			break
		}

		a, ok := r.alignAt(anchor, i)
		if !ok || a.editCost() > least || r.cutsAlignment(a) {
			continue
		}

		// A better place throws away all that were found before.
		if a.editCost() < least {
			least, best = a.editCost(), nil
		}
		if n := len(best); n == 0 || best[n-1].first != a.first || best[n-1].last != a.last {
			best = append(best, a)
		}

		if len(best) == maxPlaces && least == 0 {
			break
		}
	}

	best = best[:min(len(best), maxPlaces)]
	places := make([]place, len(best))
	for i, a := range best {
		places[i] = r.placeOf(a)
	}
	return places
}

// rarestWord returns the rarest word of the quote that must be in the text, and
// the numbers of the tokens that match it.
func (r *reading) rarestWord() (rarest int, at []int) {
	rarest, least := -1, math.MaxInt
	for i, w := range r.words {
		if n := r.countTokens(w); !w.light && n < least {
			rarest, least = i, n
		}
	}

	if rarest < 0 {
		return -1, nil
	}

	for _, id := range r.words[rarest].ids {
		if id >= 0 {
			at = append(at, r.index.tokensOf(id)...)
		}
	}

	// The tokens of several forms of the word are brought into the order of the text.
	slices.Sort(at)
	return rarest, at
}

// countTokens returns how many tokens of the text match w.
func (r *reading) countTokens(w word) int {
	n := 0
	for _, id := range w.ids {
		if id >= 0 {
			n += len(r.index.tokensOf(id))
		}
	}
	return n
}

// An alignment assigns tokens of the text to words of the quote, in order.
type alignment struct {
	first, last int // tokens of the text, inclusive
	matched     int // words of the quote that have a token
	words       int // of the quote
}

func (a alignment) tokenCount() int { return a.last - a.first + 1 }

// editCost returns how many words to delete or insert to turn the text into the
// quote.
func (a alignment) editCost() int { return a.words - a.matched + a.tokenCount() - a.matched }

// A path is an alignment of the words from the anchor to one end of the quote.
type path struct {
	at           int // token of the last word that is in the text
	missing      int // words of the quote that are not in the text; all are light
	missingAtEnd int // how many of them follow the last word found
	dropped      int // words of the text that are not in the quote, without light ones
}

// slackUsed returns how many of the reading's slack words p uses up. A word of the
// text that is left out counts like a word of the quote that is missing.
func (p path) slackUsed() int { return p.missing + p.dropped }

// alignAt returns the best alignment that matches word anchor of the quote with
// token i of the text and passes both gates.
func (r *reading) alignAt(anchor, i int) (best alignment, ok bool) {
	if !r.tokenIs(r.words[anchor], i) {
		return best, false
	}

	right := r.extendPaths(anchor, i, +1)
	if len(right) == 0 {
		return best, false
	}

	left := r.extendPaths(anchor, i, -1)
	// Both halves are few, as extendPaths keeps one path to each token.
	for _, a := range left {
		for _, b := range right {
			c := alignment{first: a.at, last: b.at, words: len(r.words), matched: len(r.words) - a.missing - b.missing}
			if r.steps--; r.steps < 0 {
				return best, ok
			}
			if a.slackUsed()+b.slackUsed() > r.slack || r.isSparse(c) {
				continue
			}
			if !ok || c.editCost() < best.editCost() {
				best, ok = c, true
			}
		}
	}
	return best, ok
}

// isSparse reports whether a fails the density gate.
func (r *reading) isSparse(a alignment) bool {
	return float64(a.matched) < r.text.gates.Density*float64(a.tokenCount())-1e-9
}

// extendPaths returns the paths from word anchor at token i to the end of the
// quote in the direction step. There are few, because a path may only leave out
// words that do not matter.
func (r *reading) extendPaths(anchor, i, step int) []path {
	paths := []path{{at: i}}
	// Each round takes one word of the quote, and gives the paths on which it was found,
	// and, if it is light, those on which it is missing.
	for w := anchor + step; w >= 0 && w < len(r.words) && len(paths) > 0; w += step {
		var next []path
		for _, p := range paths {
			next = r.followPath(next, p, r.words[w], step)
			if r.words[w].light && p.slackUsed() < r.slack {
				p.missing, p.missingAtEnd = p.missing+1, p.missingAtEnd+1
				next = r.insertPath(next, p)
			}
		}
		paths = next
	}

	return slices.DeleteFunc(paths, func(p path) bool { return p.missingAtEnd > 0 && r.tokenChangesMeaning(p.at+step) })
}

// tokenChangesMeaning reports whether token i of the text changes the meaning of
// the words beside it. A quote must not have an article at its end in its place.
func (r *reading) tokenChangesMeaning(i int) bool {
	return r.hasToken(i) && (prose.IsEssential(r.wordAt(i)) || r.index.nearNegation(i))
}

// followPath appends to paths the continuations of p by word w. A plain word that
// is left out on the way is checked only where a continuation is found.
func (r *reading) followPath(paths []path, p path, w word, step int) []path {
	left := -1 // the token that is left out, -1 if none
	for i, far := p.at+step, r.maxSpan(); r.hasToken(i) && far > 0; i, far = i+step, far-1 {
		if r.steps--; r.steps < 0 {
			return nil
		}

		if r.tokenIs(w, i) {
			if left < 0 {
				paths = r.insertPath(paths, path{at: i, missing: p.missing, dropped: p.dropped})
			} else if r.maySkipPlain(left) {
				paths = r.insertPath(paths, path{at: i, missing: p.missing, dropped: p.dropped + 1})
			}
		}

		// What stands between two words of the quote may be left out: light words that may
		// be skipped, and one plain word.
		switch s := r.index.senseAt(i); {
		case s&isLight != 0:
			if !r.maySkipLight(i) {
				return paths
			}
		case s&isKept != 0, left >= 0, p.slackUsed() >= r.slack:
			return paths
		default:
			left = i
		}
	}

	return paths
}

// maxSpan returns how many tokens of the text an alignment may span.
func (r *reading) maxSpan() int { return int(float64(len(r.words))/r.text.gates.Density) + 1 }

// insertPath adds p to paths. Of two paths to the same token it keeps the better.
func (r *reading) insertPath(paths []path, p path) []path {
	r.steps -= len(paths)
	for i, q := range paths {
		if q.at == p.at {
			if p.slackUsed() < q.slackUsed() || p.slackUsed() == q.slackUsed() && p.missing < q.missing {
				paths[i] = p
			}
			return paths
		}
	}
	return append(paths, p)
}

// tokenIs reports whether token i of the text matches w: the same word, or the
// same noun in singular or plural. Names have no plural, so a capitalised word
// counts as a noun only if the text also has it in small letters.
func (r *reading) tokenIs(w word, i int) bool {
	id := r.index.tokenIDs[i]
	if id == w.ids[0] {
		return true
	}

	if !slices.Contains(w.ids[1:], id) {
		return false
	}
	return r.isLowercase(i) || r.occursLowercase(id) || w.ids[0] >= 0 && r.occursLowercase(w.ids[0])
}

// occursLowercase reports whether the text has word number id of the vocabulary in
// small letters.
func (r *reading) occursLowercase(id int) bool {
	small, known := r.lowercase[id]
	if !known {
		list := r.index.tokensOf(id)
		small = slices.ContainsFunc(list[:min(len(list), maxPlaces)], r.isLowercase)
		r.lowercase[id] = small
	}
	return small
}

// isLowercase reports whether token i of the text begins with a small letter.
func (r *reading) isLowercase(i int) bool {
	first, _ := utf8.DecodeRuneInString(r.text.text[r.sourceOffset(i):])
	return unicode.IsLower(first)
}

// sourceOffset returns the byte offset in the text of token i.
func (r *reading) sourceOffset(i int) int {
	k := r.index.tokens[i]
	at, _ := r.text.normalForm(r.form).back.Source(k.start, k.end)
	return at
}

// maySkipLight reports whether token i of the text, a light word, may be left out.
func (r *reading) maySkipLight(i int) bool {
	word := r.wordAt(i)
	return !prose.ArticleQuantifies(word, r.wordAt(i+1)) && isSpareWord(r.text.text, r.sourceOffset(i), word)
}

// maySkipPlain reports whether token i of the text, which is neither light nor
// kept, may be left out. It may not if it has a capital letter, is joined by a
// hyphen, or belongs to a number or a negation.
func (r *reading) maySkipPlain(i int) bool {
	switch {
	case !r.isLowercase(i), r.isHyphenJoined(r.index.tokens[i]):
		return false
	case r.index.senseAt(i)&isLinking != 0:
		return !r.besideNumber(i, -1) || !r.besideNumber(i, +1)
	}
	return !r.besideNumber(i, -1) && !r.besideNumber(i, +1) && !r.index.nearNegation(i)
}

// wordAt returns token i of the text in normal form, or nothing if there is none.
func (r *reading) wordAt(i int) string {
	if !r.hasToken(i) {
		return ""
	}
	k := r.index.tokens[i]
	return r.index.text[k.start:k.end]
}

// hasToken reports whether the text has a token number i.
func (r *reading) hasToken(i int) bool { return i >= 0 && i < len(r.index.tokens) }

// isHyphenJoined reports whether a hyphen joins k to a word beside it.
func (r *reading) isHyphenJoined(k token) bool {
	text := r.index.text
	return strings.HasSuffix(text[:k.start], "-") || strings.HasPrefix(text[k.end:], "-")
}

// besideNumber reports whether the next word from token i in the direction step,
// without light ones, is a number or a quantity.
func (r *reading) besideNumber(i, step int) bool {
	i += step
	// Light words are passed over, as many as a place may leave out.
	for range maxLeft {
		if r.index.senseAt(i)&isLight == 0 {
			break
		}
		i += step
	}
	return r.index.senseAt(i)&isCounted != 0
}

// cutsAlignment reports whether a leaves off a part of its first or last word.
func (r *reading) cutsAlignment(a alignment) bool {
	p := r.placeOf(a)
	back := r.text.normalForm(r.form).back
	return back.Splits(r.index.tokens[a.first].start) || back.Splits(r.index.tokens[a.last].end) ||
		r.text.cutsWord(p.start, p.end)
}

// placeOf returns the place of a in the text.
func (r *reading) placeOf(a alignment) place {
	p := place{score: &score{
		coverage: float64(a.matched) / float64(a.words),
		density:  float64(a.matched) / float64(a.tokenCount()),
	}}
	first, last := r.index.tokens[a.first], r.index.tokens[a.last]
	p.start, p.end = r.text.normalForm(r.form).back.Source(first.start, last.end)
	return p
}
