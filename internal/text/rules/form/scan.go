// Package form finds values by their form alone: dates, times, numbers in digits and
// words, amounts, durations, addresses, and the cells of tables in lines of text,
// however these are set apart. It is pure.
package form

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/hint"
)

// A Scanner finds all texts of some form in text[start:end], in order and
// without overlap. The style is that of the numbers of the text.
type Scanner func(text string, start, end int, style format.NumberStyle) []Span

// ofAnyStyle makes a Scanner of a function that finds what has no numbers in groups.
func ofAnyStyle(scan func(text string, start, end int) []Span) Scanner {
	return func(text string, start, end int, _ format.NumberStyle) []Span { return scan(text, start, end) }
}

// Of returns the Scanner for values of p, nil when they have no form of
// their own.
func Of(p *schema.Property) Scanner {
	switch {
	case p.Enum != nil:
		return nil
	case p.Numeric():
		return numberScanner(p)
	case p.Type == schema.Boolean:
		return ofAnyStyle(scanBooleans)
	case p.Type != schema.String:
		return nil
	}

	switch p.Format {
	case schema.Date:
		return ofAnyStyle(scanDates)
	case schema.DateTime:
		return ofAnyStyle(scanDateTimes)
	case schema.Time:
		return ofAnyStyle(Times)
	case schema.Email:
		return ofAnyStyle(scanEmails)
	case schema.URI:
		return ofAnyStyle(scanURIs)
	case schema.Duration:
		return ofAnyStyle(scanDurations)
	case schema.Currency:
		return ofAnyStyle(scanCurrencies)
	default:
		return nil
	}
}

// numberScanner returns the Scanner for numbers of p: in words too, or only those
// beside one of some units, if the hints say so.
func numberScanner(p *schema.Property) Scanner {
	scan := Amounts // elsewhere a percentage only stands beside the number that is meant, as in TOTAL INCL 6% TAX 9.00
	if p.MentionsPercent() || slices.ContainsFunc(p.Hints.Units, func(u hint.Unit) bool { return strings.Contains(u.Name, "%") }) {
		scan = scanNumbers
	}

	if p.Fraction {
		scan = withPercent
	}

	if p.Hints.NumberWords {
		scan = withWords(scan)
	}
	if p.Hints.Units != nil {
		scan = withUnits(p, scan)
	}

	return scan
}

// RecognisedAnywhere reports whether values of p are recognised without a label:
// a date is a date, while a number may be anything, unless it has a unit.
func RecognisedAnywhere(p *schema.Property) bool {
	if p.Numeric() {
		return p.Hints.Units != nil
	}
	return Of(p) != nil && p.Type != schema.Boolean
}

// scanDates finds dates.
func scanDates(text string, start, end int) []Span {
	var found []Span
	text = text[:end]

	for i := start; i < end; i++ {
		if !mayBeginDate(text, start, i) {
			continue
		}

		if _, to, ok := calendar.DateAt(text, i); ok {
			date := NewSpan(i, to)
			if stored, ok := storedDate(text, i, to); ok {
				date, to = stored, stored.End
			}
			found = append(found, date)
			i = to - 1
		}
	}

	return found
}

// storedForm is what a spreadsheet's text has behind a date: the time that is shown with
// it, and in brackets the date as it is stored.
var storedForm = regexp.MustCompile(`^(?: \d{1,2}:\d\d(?::\d\d)?(?: ?[APap][Mm])?)? \((\d{4}-\d\d-\d\d)[T)]`)

// storedDate returns the stored form of the date text[start:end], such as that of
// "04.03.2024 (2024-03-04)", which tells the month from the day. It must be a reading of
// what is shown.
func storedDate(text string, start, end int) (stored Span, ok bool) {
	at := storedForm.FindStringSubmatchIndex(text[end:min(len(text), end+40)])
	if at == nil {
		return Span{}, false
	}

	stored = NewSpan(end+at[2], end+at[3])
	iso := text[stored.Start:stored.End]
	for d := range calendar.NumericDates(text[start:end]) {
		if iso == d.DayFirst || iso == d.MonthFirst || iso == d.YearFirst {
			return stored, true
		}
	}

	return Span{}, false
}

// mayBeginDate reports whether i is the first digit of a run, or begins a word with
// which a date may begin.
func mayBeginDate(text string, start, i int) bool {
	c := text[i]
	switch {
	case IsDigit(c):
		if i == start {
			return true
		}
		before := text[i-1]
		// A digit behind such a sign goes on with what the digits in front of it began.
		inNumber := strings.IndexByte("-/.", before) >= 0 && i-1 > start && IsDigit(text[i-2])
		return !IsDigit(before) && !inNumber
	case c >= utf8.RuneSelf:
		return utf8.RuneStart(c) && calendar.BeginsDate(text, i)
	case i > start && IsLetter(text[i-1]) || !IsLetter(c):
		return false
	default:
		return calendar.BeginsDate(text, i)
	}
}

// scanDateTimes finds dates with the time that follows them.
func scanDateTimes(text string, start, end int) []Span {
	const reach = 40 // bytes after the date in which its time is looked for
	p := &schema.Property{Type: schema.String, Format: schema.DateTime}
	var found []Span

	for _, date := range scanDates(text, start, end) {
		times := Times(text, date.End, min(date.End+reach, end))
		if len(times) == 0 {
			continue
		}

		whole := NewSpan(date.Start, times[0].End)
		if _, err := p.Normalize(text[whole.Start:whole.End]); err == nil {
			found = append(found, whole)
		}
	}

	return found
}

// Times finds times of day, with seconds, AM or PM and zone if they are
// there.
func Times(text string, start, end int) []Span {
	const reach = 24 // bytes of the longest time
	p := &schema.Property{Type: schema.String, Format: schema.Time}
	var found []Span

	for i := start; i < end; i++ {
		if !IsDigit(text[i]) || i > start && (IsDigit(text[i-1]) || text[i-1] == ':') {
			continue
		}

		colon := i + 1
		if colon < end && IsDigit(text[colon]) {
			colon++
		}
		if colon >= end || text[colon] != ':' {
			continue
		}

		for to := min(i+reach, end); to > colon+2; to-- {
			// The longest form comes first, with seconds and zone.
			if to < end && IsWordByte(text[to]) && IsWordByte(text[to-1]) || unicode.IsSpace(rune(text[to-1])) {
				continue
			}
			if _, err := p.Normalize(text[i:to]); err == nil {
				found = append(found, NewSpan(i, to))
				i = to - 1
				break
			}
		}
	}

	return found
}

// scanBooleans finds yes and no as words.
func scanBooleans(text string, start, end int) []Span {
	var found []Span
	for _, w := range Words(text, start, end) {
		switch strings.ToLower(text[w.Start:w.End]) {
		case "true", "false", "yes", "no", "y", "n":
			found = append(found, w)
		}
	}
	return found
}

// Words returns the runs of letters and digits.
func Words(text string, start, end int) []Span {
	var found []Span
	for i := start; i < end; i++ {
		if !IsWordByte(text[i]) {
			continue
		}

		w := NewSpan(i, i)
		for i < end && IsWordByte(text[i]) {
			i++
		}
		w.End = i

		found = append(found, w)
	}

	return found
}

// MaxAddress bounds the length of an email address or URI, in bytes.
const MaxAddress = 2048

// scanEmails finds email addresses.
func scanEmails(text string, start, end int) []Span {
	p := &schema.Property{Type: schema.String, Format: schema.Email}
	var found []Span
	for at := start; at < end; at++ {
		if text[at] != '@' {
			continue
		}

		s := NewSpan(at, at+1)
		for s.Start > start && at-s.Start < MaxAddress && inAddress(text[s.Start-1], "._%+'-") {
			s.Start--
		}
		for s.End < end && s.End-at < MaxAddress && inAddress(text[s.End], ".-") {
			s.End++
		}

		found = appendAddress(found, text, s, p, ".-'")
	}

	return found
}

func inAddress(c byte, symbols string) bool {
	return IsDigit(c) || IsLetter(c) || strings.IndexByte(symbols, c) >= 0
}

// scanURIs finds absolute URIs, and hosts that begin with www.
func scanURIs(text string, start, end int) []Span {
	p := &schema.Property{Type: schema.String, Format: schema.URI}
	var found []Span
	for i := start; i < end; i++ {
		s := NewSpan(i, i)
		switch {
		case text[i] == ':' && strings.HasPrefix(text[i:end], "://"):
			for s.Start > start && i-s.Start < 20 && inAddress(text[s.Start-1], "+.-") {
				s.Start--
			}
		case (text[i]|0x20) == 'w' && i+4 < end && strings.EqualFold(text[i:i+4], "www.") && (i == start || !IsWordByte(text[i-1]) && text[i-1] != '/'):
		default:
			continue
		}

		s.End = endOfURI(text, i, end)
		found = appendAddress(found, text, s, p, ".,;:!?'*")

		// Within the address, "www." or "://" does not begin another one.
		i = max(i, s.End-1)
	}

	return found
}

// endOfURI returns where white space or a closing mark ends the URI. A closing
// parenthesis belongs to it when the opening one does.
func endOfURI(text string, i, end int) int {
	open := 0
	for from := i; i < end && i-from < MaxAddress; {
		c, size := utf8.DecodeRuneInString(text[i:end])
		switch {
		case unicode.IsSpace(c) || strings.ContainsRune("<>\"`{}|\\^", c):
			return i
		case c == '(' || c == '[':
			open++
		case c == ')' || c == ']':
			if open--; open < 0 {
				return i
			}
		}

		i += size
	}

	return i
}

// appendAddress appends s without the punctuation at its end, if it is one.
func appendAddress(found []Span, text string, s Span, p *schema.Property, punctuation string) []Span {
	s.End = s.Start + len(strings.TrimRight(text[s.Start:s.End], punctuation))
	if len(found) > 0 && s.Start < found[len(found)-1].End {
		return found
	}
	if _, err := p.Normalize(text[s.Start:s.End]); err != nil {
		return found
	}
	return append(found, s)
}
