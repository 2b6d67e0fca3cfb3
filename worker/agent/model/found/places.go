package found

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/ground"
)

// A span is a stretch of a text, [start,end) in bytes.
type span struct{ start, end int }

// A reading of a text: values that stand in it, in one canonical form.
type canonical struct {
	span
	value string
}

// places are those of a text at which values can stand.
type places struct {
	text    string
	ground  *ground.Text
	lines   []int // where they begin
	folded  string
	offsets []int // in text of each byte of folded, and of its end
	dates   []canonical
	numbers []canonical
	parts   map[string]bool // numbers that stand within more, such as a date, a code, or 1 234 567
}

func newPlaces(of *ground.Text) *places {
	text := of.String()
	x := &places{text: text, ground: of, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			x.lines = append(x.lines, i+1)
		}
	}

	x.fold()
	x.dates = datesIn(text)
	x.readNumbers()
	return x
}

// fold writes the text in lower case, with one space in place of any white space.
func (x *places) fold() {
	var b strings.Builder
	space := false
	for i, r := range x.text {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteByte(' ')
				x.offsets = append(x.offsets, i)
			}
			space = true
			continue
		}

		space = false
		n := b.Len()
		b.WriteRune(unicode.ToLower(r))
		for range b.Len() - n {
			x.offsets = append(x.offsets, i)
		}
	}
	x.folded = b.String()
	x.offsets = append(x.offsets, len(x.text))
}

// find returns where words stand by themselves, whatever their case and the white space between them.
func (x *places) find(words string) (all []span) {
	want := strings.ToLower(strings.Join(strings.Fields(words), " "))
	if want == "" {
		return nil
	}

	for _, at := range placesOfWord(want, x.folded) {
		start := x.offsets[at]
		_, size := utf8.DecodeRuneInString(x.text[x.offsets[at+len(want)-1]:])
		all = append(all, span{start, x.offsets[at+len(want)-1] + size})
	}
	return all
}

// datesIn returns the dates of a text, as calendar.DateAt reads them.
func datesIn(text string) (all []canonical) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		if isWordRune(r) && !isWordRune(before) {
			if iso, end, ok := calendar.DateAt(text, i); ok && end > i {
				all = append(all, canonical{span{i, end}, iso})
				i = end
				continue
			}
		}
		i += size
	}
	return all
}

// isNumberRune reports whether a character can be part of a number.
func isNumberRune(r rune) bool { return unicode.IsDigit(r) || strings.ContainsRune(".,'", r) }

// readNumbers finds the numbers of the text that stand by themselves, and those that are parts of more.
func (x *places) readNumbers() {
	x.parts = make(map[string]bool)
	for i := 0; i < len(x.text); {
		r, size := utf8.DecodeRuneInString(x.text[i:])
		if !unicode.IsDigit(r) {
			i += size
			continue
		}

		end := i
		for end < len(x.text) {
			r, size := utf8.DecodeRuneInString(x.text[end:])
			if !isNumberRune(r) {
				break
			}
			end += size
		}

		word := strings.TrimRight(x.text[i:end], ".,'")
		s := span{i, i + len(word)}
		n, ok := format.ParseNumber(word)
		switch {
		case ok && !overlaps(x.dates, s) && !isPart(x.text, s):
			x.numbers = append(x.numbers, canonical{s, n})
		case ok:
			x.parts[n] = true
		}
		for _, part := range strings.FieldsFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) {
			if part != word && overlaps(x.dates, s) { // as the year is of a date
				n, _ := format.ParseNumber(part)
				x.parts[n] = true
			}
		}
		i = end
	}
}

// isPart reports whether a number is below zero, or part of a code, of a share or of a larger number:
// whoever means such a place has to say so.
func isPart(text string, s span) bool {
	before, size := utf8.DecodeLastRuneInString(text[:s.start])
	after, width := utf8.DecodeRuneInString(text[s.end:])
	switch {
	case strings.ContainsRune("-−–/#", before) || before == '(' && after == ')' || strings.ContainsRune("-/%²³½¼¾", after) && after != utf8.RuneError:
		return true
	case unicode.IsLetter(before) && !format.EndsWithCurrency(text, s.start) || unicode.IsLetter(after) && !startsWithCurrency(text[s.end:]):
		return true
	case format.MagnitudeEnd(text, s.end, true) > s.end:
		return true
	}

	// 300:12 is a time, and 1 234 567 or 555 300 1234 is one number.
	if before != ':' && after != ':' && !isBlank(before) && !isBlank(after) || strings.Trim(text[s.start:s.end], "0123456789") != "" {
		return false
	}
	left, _ := utf8.DecodeLastRuneInString(text[:s.start-size])
	right, _ := utf8.DecodeRuneInString(text[s.end+width:])
	return (before == ':' || isBlank(before)) && unicode.IsDigit(left) || (after == ':' || isBlank(after)) && unicode.IsDigit(right)
}

// isBlank reports whether a character is a space as it stands within numbers.
func isBlank(r rune) bool { return r == ' ' || r == '\u00a0' || r == '\u2009' || r == '\u202f' }

// startsWithCurrency reports whether the first word of a text is the name of a currency.
func startsWithCurrency(text string) bool {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	_, ok := format.ParseCurrency(text[:end])
	return ok
}

// overlaps reports whether a span is within one of a list in their order.
func overlaps(all []canonical, s span) bool {
	i := sort.Search(len(all), func(i int) bool { return all[i].end > s.start })
	return i < len(all) && all[i].start < s.end
}

// leastStrong is how many letters and digits a value has that does not stand anywhere.
const leastStrong = 4

// spotsOf returns where a value stands, and whether it is so short, or so common, that it stands
// anywhere.
func (x *places) spotsOf(p *schema.Property, v any) (spots []span, weak bool) {
	switch {
	case p.Numeric():
		return x.numberSpots(v)
	case p.Format == schema.Date:
		word, _ := v.(string)
		for _, d := range x.dates {
			if d.value == word {
				spots = append(spots, d.span)
			}
		}
		return spots, false
	case p.Type != schema.String:
		return nil, false
	}

	word, _ := v.(string)
	strong := 0
	for _, r := range word {
		if isWordRune(r) {
			strong++
		}
	}
	if len(word) > longestPassage {
		return nil, false
	}
	spots = x.find(word)
	all := len(spots)
	spots = slices.DeleteFunc(spots, x.isWithin)
	if all == 0 && p.Enum == nil {
		spots = x.align(word)
	}
	return spots, strong < leastStrong || p.Enum != nil || len(spots) < all
}

// isWithin reports whether a word is part of a longer code or number, as 10115 is of 030-10115-22.
func (x *places) isWithin(s span) bool {
	glued := func(inner, mark, outer rune) bool {
		return unicode.IsDigit(inner) && strings.ContainsRune(".,:/-'+", mark) && unicode.IsDigit(outer)
	}
	before, size := utf8.DecodeLastRuneInString(x.text[:s.start])
	after, width := utf8.DecodeRuneInString(x.text[s.end:])
	left, _ := utf8.DecodeLastRuneInString(x.text[:s.start-size])
	right, _ := utf8.DecodeRuneInString(x.text[s.end+width:])
	first, _ := utf8.DecodeRuneInString(x.text[s.start:])
	last, _ := utf8.DecodeLastRuneInString(x.text[:s.end])
	return glued(first, before, left) || glued(last, after, right)
}

// leastAligned is how many words a text has that is found although it differs in marks, or a little.
const leastAligned = 4

// align returns the place of a text that stands there as a quote of a model may, if there is one alone.
func (x *places) align(word string) []span {
	if len(strings.Fields(word)) < leastAligned {
		return nil
	}
	s, ok := x.ground.Find(word, 0)
	if !ok || !s.Verified() || s.Places != 1 {
		return nil
	}
	return []span{{s.ByteStart, s.ByteEnd}}
}

// numberSpots returns where a number stands. One of one or two digits stands anywhere.
func (x *places) numberSpots(v any) (spots []span, weak bool) {
	var want string
	switch v := v.(type) {
	case json.Number:
		want, _ = format.CanonicalNumber(v.String())
	case string:
		want, _ = format.ParseNumber(v)
	}
	if want == "" || strings.HasPrefix(want, "-") {
		return nil, false
	}

	for _, n := range x.numbers {
		if n.value == want {
			spots = append(spots, n.span)
		}
	}
	digits := 0
	for _, r := range want {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return spots, digits < 3 || x.parts[want]
}

// lineOf returns the number of the line of an offset.
func (x *places) lineOf(at int) int {
	i, has := slices.BinarySearch(x.lines, at)
	if !has {
		i--
	}
	return i
}

// line returns a line, without its end.
func (x *places) line(n int) span {
	end := len(x.text)
	if n+1 < len(x.lines) {
		end = x.lines[n+1] - 1
	}
	return span{x.lines[n], end}
}

// maxAbove bounds how many lines above a place are looked at for what heads it.
const maxAbove = 60

// labelOf returns what may say what a place means: the words before it in its line, or the line above if
// the value is alone in its own; in a table, the head of its column, and what stands in its row before it.
func (x *places) labelOf(s span) (label, row string) {
	n := x.lineOf(s.start)
	l := x.line(n)
	if mark := x.markOf(n); mark != "" {
		return x.cellLabels(s, n, mark)
	}

	if before := x.text[l.start:s.start]; hasLetters(before) {
		return before, ""
	}
	// With others in its line, it need not be the one that is meant by what stands above.
	if n == 0 || strings.ContainsFunc(x.text[l.start:s.start], unicode.IsDigit) || len(wordsOf(x.text[min(s.end, l.end):l.end])) > 0 {
		return "", ""
	}
	above := x.line(n - 1)
	return x.text[above.start:above.end], ""
}

// markOf returns what stands between the cells of a line; "" if it is no row of a table.
func (x *places) markOf(n int) string {
	l := x.line(n)
	for _, mark := range []string{"|", "\t"} {
		if strings.Contains(x.text[l.start:l.end], mark) {
			return mark
		}
	}
	return ""
}

// cellLabels returns the head of the column and the first cell of the row of a place in a table. Without a
// head the cell says what the place means.
func (x *places) cellLabels(s span, n int, mark string) (label, row string) {
	l := x.line(n)
	column := strings.Count(x.text[l.start:s.start], mark)
	first, _, _ := strings.Cut(strings.Trim(x.text[l.start:s.start], mark), mark)

	head := ""
	for above := n - 1; above >= 0; above-- {
		one := x.line(above)
		cells := strings.Split(x.text[one.start:one.end], mark)
		if len(cells) < 2 {
			break
		}
		if above < n-maxAbove { // what heads the table is too far away to say
			return "", first
		}
		if column < len(cells) && hasLetters(cells[column]) {
			head = cells[column]
		}
	}
	if head == "" {
		return first, ""
	}
	return head, first
}

func hasLetters(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) }

// passageAt returns the shortest passage around a place that stands in the text once: the value, with
// what stands before it in its line, with all of that, with the line above. It is "" if there is none.
func (x *places) passageAt(s span) string {
	n := x.lineOf(s.start)
	first, last := x.line(n), x.line(x.lineOf(s.end-1))
	tries := []span{s, {first.start, s.end}, {first.start, last.end}}
	if n > 0 {
		tries = append(tries, span{x.line(n - 1).start, last.end})
	}

	for _, t := range tries {
		passage := strings.TrimSpace(x.text[t.start:t.end])
		if len(passage) <= longestPassage && len(x.find(passage)) == 1 && strings.Count(x.text, passage) == 1 {
			return passage
		}
	}
	return ""
}
