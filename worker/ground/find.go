package ground

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A place is the range of bytes of the text where a quote may stand.
type place struct{ start, end int }

// Find implements Aligner.
func (t *Text) Find(quote string, near int) (Span, bool) {
	near = min(max(near, 0), len(t.text))
	if blank(quote) {
		return Span{}, false
	}
	if strings.HasPrefix(t.text[near:], quote) {
		return t.span(near, near+len(quote), Exact), true
	}
	if p, ok := t.choose(t.exact(quote), near); ok {
		return t.span(p.start, p.end, Exact), true
	}
	for f := range form(formCount) {
		if p, ok := t.choose(t.normalised(quote, f), near); ok {
			return t.span(p.start, p.end, Normalised), true
		}
	}
	return Span{}, false
}

func blank(quote string) bool { return strings.TrimSpace(quote) == "" }

// looks returns how many places of a quote to look at: enough to pass over many
// that are parts of words, few enough that a text of one letter, and a quote of
// half of it, are not compared at every offset.
func looks(quote string) int { return max(maxPlaces, 1<<22/len(quote)) }

// A search returns the places of a quote that begin at byte offset from of the
// text or behind it, in order.
type search func(from int) iter.Seq[place]

// choose returns the best place of a search: whole words first, then the first
// at or behind near, then the first.
func (t *Text) choose(s search, near int) (best place, ok bool) {
	for _, from := range [...]int{near, 0} {
		for p := range s(from) {
			if t.whole(p) {
				return p, true
			}
			if !ok {
				best, ok = p, true
			}
		}
		if near == 0 {
			break
		}
	}
	return best, ok
}

// exact searches for quote as it is.
func (t *Text) exact(quote string) search {
	return func(from int) iter.Seq[place] {
		return func(yield func(place) bool) {
			at := from
			for range looks(quote) {
				i := strings.Index(t.text[at:], quote)
				if i < 0 {
					return
				}
				at += i
				if !yield(place{at, at + len(quote)}) {
					return
				}
				at++
			}
		}
	}
}

// normalised searches for quote in a normal form of the text. Each place is
// checked alone, because the form of a character may depend on its neighbours.
func (t *Text) normalised(quote string, f form) search {
	q := normalise(quote, f)
	want := strings.Trim(q.text, " ")
	return func(from int) iter.Seq[place] {
		return func(yield func(place) bool) {
			if want == "" || f != joined && !q.hyphens && !t.form(joined).hyphens {
				return
			}
			l := t.form(f)
			at := l.back.Derived(from)
			for range looks(want) {
				i := strings.Index(l.text[at:], want)
				if i < 0 {
					return
				}
				at += i
				if p, ok := t.original(l, at, want, f); ok && !yield(p) {
					return
				}
				at++
			}
		}
	}
}

// original returns the place in the text of what stands at offset at of a normal
// form and is want, unless that begins or ends within what came from one
// character, or is not want when it stands alone.
func (t *Text) original(l *normal, at int, want string, f form) (p place, ok bool) {
	if l.back.Splits(at) || l.back.Splits(at+len(want)) {
		return p, false
	}
	p.start, p.end = l.back.Source(at, at+len(want))
	return p, normalQuote(t.text[p.start:p.end], f) == want
}

// whole reports whether p neither begins nor ends within a word.
func (t *Text) whole(p place) bool {
	before, _ := utf8.DecodeLastRuneInString(t.text[:p.start])
	first, _ := utf8.DecodeRuneInString(t.text[p.start:])
	last, _ := utf8.DecodeLastRuneInString(t.text[:p.end])
	behind, _ := utf8.DecodeRuneInString(t.text[p.end:])
	return !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(behind))
}

// inWord reports whether r belongs to a word of a script that parts its words.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
	}
	return (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
