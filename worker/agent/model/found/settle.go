package found

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker/agent/model/form"
)

// An Open is a value of an answer whose place in the text is not clear.
type Open struct {
	Record  int // of the answer
	Field   form.Field
	Finding int // of the field
	Value   any
}

// A Text is a text in which values are looked for. It is read once, for all of them.
type Text struct{ *places }

// NewText reads a text.
func NewText(text *ground.Text) Text { return Text{newPlaces(text)} }

// Settle gives the findings of an answer that came without quotes those that show them, where the text
// leaves no doubt, and returns the others: values that do not stand in it, that stand in it more than
// once and not with the same meaning, or that are so short that they stand anywhere.
//
// Of several places, one counts that alone has words of the field beside it, and no others: before it in
// its line, above it, or at the head of its column. A subtotal is no total. Of many records, one counts
// that alone stands in a line with another value of its record. Places in lines that are the same mean the
// same. A wrong place that looks right is worse than to ask.
func (x Text) Settle(f *form.Form, answers []form.Record) []Open {
	var open []Open
	for i, a := range answers {
		open = append(open, x.settleRecord(f, a, i)...)
	}
	return open
}

// A leaf is a value, or a part of one, with the places at which it stands.
type leaf struct {
	words []string // of its field
	weak  bool     // it stands anywhere: words beside it have to say that it is meant
	spots []span
}

// A pending is a finding under way: its leaves, in their order.
type pending struct {
	open   Open
	leaves []leaf
	chosen []choice
}

// A choice is the place that is meant. If others mean the same, its passage may be theirs too.
type choice struct {
	span
	same bool
}

// settleRecord settles the findings of one record. Those whose place is clear by themselves come first:
// the others of the record are likely beside them.
func (x *places) settleRecord(f *form.Form, a form.Record, n int) (open []Open) {
	var waiting []*pending
	beside := make(map[int]bool) // lines in which values of the record stand
	for _, field := range f.Fields {
		for i, one := range a.Fields[field.Key] {
			if len(one.Quotes) > 0 || field.Property.Hints.Derived || one.Value == nil || one.Value == "" {
				continue
			}

			p := &pending{open: Open{n, field, i, one.Value}}
			if !x.addLeaves(p, elementOf(field.Property), one.Value, fieldWords(field)) {
				open = append(open, p.open)
				continue
			}
			if !x.choose(p, nil) || !x.quote(a, p) {
				waiting = append(waiting, p)
				continue
			}
			for _, s := range p.chosen {
				beside[x.lineOf(s.start)] = true
			}
		}
	}

	// A document that is one record has all its values beside each other.
	if !f.Many() {
		beside = nil
	}
	for _, p := range waiting {
		if !x.choose(p, beside) || !x.quote(a, p) {
			open = append(open, p.open)
		}
	}
	return open
}

// addLeaves adds the parts of a value. It is false if one of them can stand nowhere.
func (x *places) addLeaves(p *pending, of *schema.Property, v any, words []string) bool {
	if m, ok := v.(map[string]any); ok {
		if of.Type != schema.Object {
			return false
		}
		for i := range of.Properties {
			inner := &of.Properties[i]
			one := m[inner.Name]
			if one == nil || one == "" {
				continue
			}
			if !x.addLeaves(p, elementOf(inner), one, append(wordsOf(inner.Name+" "+inner.Title), words...)) {
				return false
			}
		}
		return len(p.leaves) > 0
	}

	l := leaf{words: words}
	l.spots, l.weak = x.spotsOf(of, v)
	if len(l.spots) == 0 {
		return false
	}
	p.leaves = append(p.leaves, l)
	return true
}

// choose chooses a place for each leaf. Lines beside which the record's other values stand help.
func (x *places) choose(p *pending, beside map[int]bool) bool {
	p.chosen = p.chosen[:0]
	for _, l := range p.leaves {
		c, ok := x.chooseSpot(l, beside)
		if !ok {
			return false
		}
		p.chosen = append(p.chosen, c)
	}
	return true
}

// chooseSpot returns the one place that is meant.
func (x *places) chooseSpot(l leaf, beside map[int]bool) (choice, bool) {
	if len(l.spots) == 1 && !l.weak {
		return choice{l.spots[0], false}, true
	}
	if s, ok := x.labelled(l); ok {
		return choice{s, false}, true
	}
	if !l.weak && x.sameMeaning(l.spots) {
		return choice{l.spots[0], true}, true
	}

	var near []span
	for _, s := range l.spots {
		if beside[x.lineOf(s.start)] {
			near = append(near, s)
		}
	}
	if len(near) == 1 && !l.weak {
		return choice{near[0], false}, true
	}
	return choice{}, false
}

// labelled returns the place that alone has words of its field beside it, and no others.
func (x *places) labelled(l leaf) (span, bool) {
	best, at, ties := 0, span{}, 0
	for _, s := range l.spots {
		n := 0
		for _, label := range x.labelsOf(s) {
			words := wordsOf(label)
			if shared := countShared(l.words, words); shared == len(words) { // it says nothing else besides
				n = max(n, shared)
			}
		}
		switch {
		case n > best:
			best, at, ties = n, s, 0
		case n == best:
			ties++
		}
	}
	return at, best > 0 && ties == 0
}

// tellingWords is how many words a line has beside a value that says what it means.
const tellingWords = 2

// sameMeaning reports whether all places are in lines with the same words, as what heads each page is.
func (x *places) sameMeaning(spots []span) bool {
	first, last := "", -1
	for i, s := range spots {
		n := x.lineOf(s.start)
		if n == last {
			return false
		}
		last = n

		l := x.line(n)
		line := strings.ToLower(strings.Join(strings.Fields(x.text[l.start:l.end]), " "))
		if i == 0 {
			first = line
		}
		if line != first || s.end > l.end || len(wordsOf(x.text[l.start:s.start]+" "+x.text[s.end:l.end])) < tellingWords {
			return false
		}
	}
	return len(spots) > 0
}

// quote gives a finding the passages at its places, each so long that no other has the same words. It is
// false if there is none.
func (x *places) quote(a form.Record, p *pending) bool {
	var quotes []string
	for _, c := range p.chosen {
		q := x.passageAt(c.span)
		if q == "" && c.same {
			q = x.text[c.start:c.end]
		}
		if q == "" {
			return false
		}
		quotes = append(quotes, q)
	}
	a.Fields[p.open.Field.Key][p.open.Finding].Quotes = quotes
	return true
}

// generic are words of fields that say nothing of what stands beside a value.
var generic = map[string]bool{"the": true, "and": true, "for": true, "value": true, "field": true, "name": true, "list": true, "all": true}

// fieldWords returns the words by which a document may call a field.
func fieldWords(f form.Field) []string {
	return wordsOf(f.Path + " " + f.Property.Title)
}

// wordsOf returns the words of a text in lower case, and of names those that they are made of.
func wordsOf(text string) []string {
	var all []string
	begin, last := -1, rune(0)
	end := func(at int) {
		if begin >= 0 {
			word := strings.TrimSuffix(strings.ToLower(text[begin:at]), "s")
			if utf8.RuneCountInString(word) >= 3 && !generic[word] {
				all = append(all, word)
			}
		}
		begin = -1
	}

	for i, r := range text {
		switch {
		case !unicode.IsLetter(r):
			end(i)
		case begin >= 0 && unicode.IsUpper(r) && unicode.IsLower(last):
			end(i)
			begin = i
		case begin < 0:
			begin = i
		}
		last = r
	}
	end(len(text))
	return all
}

// countShared counts the words of a list that stand in another.
func countShared(words, among []string) (n int) {
	had := make(map[string]bool, len(among))
	for _, w := range among {
		had[w] = true
	}
	for _, w := range words {
		if had[w] {
			n++
			had[w] = false
		}
	}
	return n
}

// Bounds of passages that are given by their ends.
const longestPassage = 4000 // bytes

// Between returns the passage of the text that begins and ends with some words, as it stands there; begin
// alone is all of a short one. It is "" if there is none, or if there are several that differ.
func (x Text) Between(begin, end string) string {
	begin, end = strings.TrimSpace(begin), strings.TrimSpace(end)
	if begin == "" || end == "" || strings.HasSuffix(begin, end) && strings.Contains(x.text, begin) {
		return begin
	}

	best, ties := span{}, 0
	for _, b := range x.find(begin) {
		for _, e := range x.find(end) {
			if e.end < b.end || e.start < b.start || e.end-b.start > longestPassage {
				continue
			}
			if size := e.end - b.start; best.end == 0 || size < best.end-best.start {
				best, ties = span{b.start, e.end}, 0
			} else if size == best.end-best.start && x.text[b.start:e.end] != x.text[best.start:best.end] {
				ties++
			}
			break // the nearest
		}
	}

	if best.end == 0 || ties > 0 {
		return ""
	}
	return x.text[best.start:best.end]
}
