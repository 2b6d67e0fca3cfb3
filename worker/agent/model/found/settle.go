package found

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
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
// Of several places, one counts that alone has the name of the field beside it, and no other words: before
// it in its line, above it, or at the head of its column. A subtotal is no total, and a date no due date. Of
// many records, one counts that alone stands in a line with another value of its record, and none that
// stands alone in the line of another record. Places in lines that are the same mean the same. A wrong place
// that looks right is worse than to ask.
func (x Text) Settle(f *form.Form, answers []form.Record) []Open {
	var open []Open
	var settled []*pending
	for i, a := range answers {
		asked, clear := x.settleRecord(f, a, i)
		open, settled = append(open, asked...), append(settled, clear...)
	}

	if f.Many() {
		for _, p := range x.strangers(settled) {
			answers[p.open.Record].Fields[p.open.Field.Key][p.open.Finding].Quotes = nil
			open = append(open, p.open)
		}
	}
	return open
}

// strangers returns the findings in lines where more of another record stand than of their own: they are
// of its row, and whether theirs has them too is not clear.
func (x *places) strangers(settled []*pending) (all []*pending) {
	type row struct{ line, record int }
	values := make(map[row]int)
	busiest := make(map[int]int) // by line, how many values of one record
	for _, p := range settled {
		for line := range x.linesOf(p) {
			at := row{line, p.open.Record}
			values[at]++
			busiest[line] = max(busiest[line], values[at])
		}
	}

	for _, p := range settled {
		for line := range x.linesOf(p) {
			if values[row{line, p.open.Record}] < busiest[line] {
				all = append(all, p)
				break
			}
		}
	}
	return all
}

// linesOf returns the lines in which the chosen places of a finding stand.
func (x *places) linesOf(p *pending) map[int]bool {
	lines := make(map[int]bool)
	for _, c := range p.chosen {
		lines[x.lineOf(c.start)] = true
	}
	return lines
}

// A leaf is a value, or a part of one, with the places at which it stands.
type leaf struct {
	words []string // of its field, and of what that is part of
	name  []string // of its field alone
	title []string
	weak  bool // it stands anywhere: words beside it have to say that it is meant
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
func (x *places) settleRecord(f *form.Form, a form.Record, n int) (open []Open, settled []*pending) {
	var waiting []*pending
	// The lines in which values of the record stand. A document that is one record has all its values
	// beside each other.
	var beside map[int]bool
	if f.Many() {
		beside = make(map[int]bool)
	}
	for _, field := range f.Fields {
		for i, one := range a.Fields[field.Key] {
			if len(one.Quotes) > 0 || field.Property.Hints.Derived || one.Value == nil || one.Value == "" {
				continue
			}

			p := &pending{open: Open{n, field, i, one.Value}}
			name := field.Path[strings.LastIndex(field.Path, ".")+1:]
			if !x.addLeaves(p, elementOf(field.Property), one.Value, leaf{words: fieldWords(field), name: wordsOf(name), title: wordsOf(field.Property.Title)}) {
				open = append(open, p.open)
				continue
			}
			if !x.choose(p, beside) || !x.quote(a, p) {
				waiting = append(waiting, p)
				continue
			}
			settled = append(settled, p)
			if f.Many() {
				maps.Copy(beside, x.linesOf(p))
			}
		}
	}

	for _, p := range waiting {
		if x.choose(p, beside) && x.quote(a, p) {
			settled = append(settled, p)
			continue
		}
		open = append(open, p.open)
	}
	return open, settled
}

// addLeaves adds the parts of a value. It is false if one of them can stand nowhere.
func (x *places) addLeaves(p *pending, of *schema.Property, v any, l leaf) bool {
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
			part := leaf{words: append(wordsOf(inner.Name+" "+inner.Title), l.words...), name: wordsOf(inner.Name), title: wordsOf(inner.Title)}
			if !x.addLeaves(p, elementOf(inner), one, part) {
				return false
			}
		}
		return len(p.leaves) > 0
	}

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
	if s, ok := x.labelled(l, beside); ok {
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

// labelled returns the place that alone has the name of its field beside it, and no other words. In a table
// of many records it stands in the row of its own, and in that of one record no other word heads the row.
func (x *places) labelled(l leaf, beside map[int]bool) (span, bool) {
	best, at, ties := 0, span{}, 0
	for _, s := range l.spots {
		if line := x.lineOf(s.start); beside != nil && !beside[line] && x.markOf(line) != "" {
			continue
		}

		label, row := x.labelOf(s)
		n := l.namedBy(label)
		if beside == nil && countShared(l.words, wordsOf(row)) < len(wordsOf(row)) {
			n = 0
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

// namedBy returns how many words a label has that are of the field; 0 if it has others, or not all of the
// field's name or title.
func (l leaf) namedBy(label string) int {
	words := wordsOf(label)
	isAll := func(name []string) bool { return len(name) > 0 && countShared(name, words) == len(name) }
	if countShared(l.words, words) < len(words) || !isAll(l.name) && !isAll(l.title) || hasShort(label) {
		return 0
	}
	return len(words)
}

// hasShort reports whether a label has words too short to be told by, such as ex or b/f, that are not
// currencies.
func hasShort(label string) bool {
	for _, w := range strings.FieldsFunc(label, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if _, ok := format.ParseCurrency(w); utf8.RuneCountInString(w) < 3 && !ok {
			return true
		}
	}
	return false
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

	// From each beginning to the nearest end. Of those with one end, the shortest is meant.
	var all []span
	ends := x.find(end)
	for _, b := range x.find(begin) {
		// Both are in their order, so that an end before this beginning is before all that follow.
		for len(ends) > 0 && (ends[0].end < b.end || ends[0].start < b.start) {
			ends = ends[1:]
		}
		if len(ends) == 0 || ends[0].end-b.start > longestPassage {
			continue
		}
		if n := len(all); n > 0 && all[n-1].end == ends[0].end {
			all = all[:n-1]
		}
		all = append(all, span{b.start, ends[0].end})
	}

	if len(all) == 0 || slices.ContainsFunc(all, func(s span) bool { return x.text[s.start:s.end] != x.text[all[0].start:all[0].end] }) {
		return ""
	}
	return x.text[all[0].start:all[0].end]
}
