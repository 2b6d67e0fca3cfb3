package ground

import (
	"iter"
	"strings"
)

// A place is the range of bytes of the text where a quote may stand.
type place struct {
	start, end int
	score      *score // of a fuzzy place; else nil
}

// A score rates a fuzzy place.
type score struct{ coverage, density float64 }

// maxPlaces bounds the places of one quote.
const maxPlaces = 1000

// Find implements Aligner.
func (t *Text) Find(quote string, near int) (Span, bool) {
	if isBlankText(quote) {
		return Span{}, false
	}

	if 0 <= near && near < len(t.text) && strings.HasPrefix(t.text[near:], quote) {
		return t.spanAt(place{start: near, end: near + len(quote)}, Exact), true
	}
	return t.findFrom(quote, near)
}

// findFrom is Find for a quote that does not stand at near.
func (t *Text) findFrom(quote string, near int) (Span, bool) {
	h := t.findPlaces(quote)
	if len(h.places) == 0 {
		return Span{}, false
	}
	return h.spanOf(t, t.choosePlace(h, near)), true
}

func isBlankText(quote string) bool { return strings.TrimSpace(quote) == "" }

// choosePlace returns the first place at or behind near, or else the first.
func (t *Text) choosePlace(h hits, near int) place {
	for _, p := range h.places {
		if p.start >= near {
			return p
		}
	}

	// Only the first places were kept. The search goes on from near, where no kept place
	// is.
	if len(h.places) == maxPlaces && h.more != nil && near < len(t.text) {
		if late := h.more(near, 1); len(late) > 0 {
			return late[0]
		}
	}
	return h.places[0]
}

// hits are the places of a quote, all of one grade, in order.
type hits struct {
	places []place
	count  int // of all places, if more than those held here
	grade  Grade
	cut    bool                          // the places cut words
	more   func(from, limit int) []place // searches on from an offset; nil if nothing more can be found
}

// spanOf returns one of the places as a Span.
func (h hits) spanOf(t *Text, p place) Span {
	s := t.spanAt(p, h.grade)
	s.Places, s.Cut = max(h.count, len(h.places)), h.cut
	return s
}

// findPlaces returns up to maxPlaces places of the best grade that quote has.
func (t *Text) findPlaces(quote string) hits {
	if isBlankText(quote) {
		return hits{}
	}

	// The order is that of trust: what stands word for word, then the words of the quote
	// with small changes, then cut words, then what is only near.
	if h := t.findVerbatim(quote, whole); len(h.places) > 0 {
		return h
	}
	if t.gates.Off {
		return t.findVerbatim(quote, cut)
	}

	if h := t.findWithEllipses(quote); len(h.places) > 0 {
		return h
	}

	readings := t.prepareReadings(quote)
	if h := findFuzzy(readings); len(h.places) > 0 {
		return h
	}

	if h := t.findVerbatim(quote, cut); len(h.places) > 0 {
		return h
	}
	return findNear(readings)
}

// findVerbatim returns the places where quote stands word for word.
func (t *Text) findVerbatim(quote string, tier tier) hits {
	search := func(want string, f form, g Grade) hits {
		more := func(from, limit int) []place { return t.searchForm(want, f, tier, from, limit) }
		return hits{places: more(0, maxPlaces), grade: g, cut: tier == cut, more: more}
	}

	if h := search(quote, asIs, Exact); len(h.places) > 0 {
		return h
	}

	// The second form differs from the first only where the quote or the text has white
	// space behind a hyphen.
	for f := range form(formCount) {
		q := normaliseText(quote, f)
		want := strings.Trim(q.text, " ")
		if want == "" || !t.isDistinctForm(f, &q) {
			continue
		}
		if h := search(want, f, Normalised); len(h.places) > 0 {
			return h
		}
	}
	return hits{}
}

// maxChecked bounds the bytes that one search reads again to check its finds.
const maxChecked = 1 << 22

// searchForm searches a form of the text for want. It returns up to limit places,
// in order, that begin at or behind byte offset from of the text. A place where a
// letter meets a digit, as in "RM9", counts only if there is no other.
func (t *Text) searchForm(want string, f form, tier tier, from, limit int) []place {
	l := t.normalForm(f)
	looks := max(16, min(4*maxPlaces, maxChecked/len(want)))
	starts := t.wordIndex(f).findStarts(want, tier, l.back.Derived(from))

	var apart, touching []place
	for at := range takeFirst(starts, looks) {
		// A find in a form counts only if it is one in the text, with or without cut words
		// as asked.
		p, ok := t.sourcePlace(l, at, want, f)
		switch {
		case !ok || t.cutsWord(p.start, p.end) != (tier == cut):
		case letterMeetsDigit(t.text, p.start) || letterMeetsDigit(t.text, p.end):
			touching = append(touching, p)
		default:
			apart = append(apart, p)
		}
		if len(apart) == limit {
			break
		}
	}

	if len(apart) > 0 {
		return apart
	}
	return touching[:min(len(touching), limit)]
}

// takeFirst returns the first n of seq.
func takeFirst(seq iter.Seq[int], n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if n <= 0 {
			return
		}
		left := n
		for x := range seq {
			left--
			if !yield(x) || left == 0 {
				return
			}
		}
	}
}

// sourcePlace returns the place in the text that want, at offset at of a form,
// came from. It reports false if want begins or ends within the form of one
// character, or if the place has another form when it stands alone: the form of a
// character may depend on its neighbours.
func (t *Text) sourcePlace(l *normal, at int, want string, f form) (p place, ok bool) {
	if f == asIs {
		return place{start: at, end: at + len(want)}, true
	}
	if l.back.Splits(at) || l.back.Splits(at+len(want)) {
		return p, false
	}
	p.start, p.end = l.back.Source(at, at+len(want))
	return p, normalQuote(t.text[p.start:p.end], f) == want
}
