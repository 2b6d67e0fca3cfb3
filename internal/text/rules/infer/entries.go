package infer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
)

// An entry is a label with its value, as forms have them.
type entry struct {
	label, value string
	sure         bool // a colon, an equals sign or the edge of a cell stands between
}

// gap is what sets two cells of a line apart: tabs, blanks, points that lead to the value.
var gap = regexp.MustCompile(`\t+| {3,}| *\.{4,} *`)

// labelForm is a label, a colon or an equals sign, and perhaps a value.
var labelForm = regexp.MustCompile(`^[ \t]*(?:[-*•] +)?\**(\pL[^:=：|\t]{0,48}?)\**[ \t]*(?:[:：]|=)\**[ \t]*(.*?)[ \t\r]*$`)

// clock is a time of day in front of which there is no label with a colon.
var clock = regexp.MustCompile(`^[^:]*\d:\d`)

// codeForm is a label, perhaps with the code of a kind of document in it, with the number of a thing, a date or an amount behind a blank, and
// perhaps words in small letters behind that.
var codeForm = regexp.MustCompile(`^[ \t]*(\p{Lu}[\pL'’. -]{1,39}?(?: ?\(\d{1,6}\) \pL{1,8}\.?)?) *(?:#|n°|nº|№)? +((?:[\p{Lu}\p{Sc}]+[ /-]?)?\d[^:|\t ]*(?: ?[\d\p{Lu}\p{Sc}][^:|\t ]*)*)(?: +\p{Ll}[^:|\t]*)?[ \t\r]*$`)

// entriesOf returns the entries of a line that is no row of a table; next is the line below.
func entriesOf(line, next string) []entry {
	cells := gap.Split(strings.TrimSpace(line), -1)
	below := gap.Split(strings.TrimSpace(next), -1)

	if entries := stackedEntries(cells, below); entries != nil {
		return entries
	}

	var entries []entry
	for i := 0; i < len(cells); i++ {
		cell := cells[i]

		following := ""
		if i+1 < len(cells) {
			following = cells[i+1]
		}

		switch m := labelForm.FindStringSubmatch(cell); {
		case m != nil && isLabel(m[1]) && !strings.HasPrefix(m[2], "//") && !clock.MatchString(cell):
			// A label alone in the last cell has its value on the line below, unless
			// that has labels of its own.
			value := m[2]
			if value == "" && following != "" && !labelForm.MatchString(following) {
				value = following
				i++
			} else if value == "" && i+1 == len(cells) && !labelForm.MatchString(next) && len(entriesOf(next, "")) == 0 {
				value = strings.TrimSpace(next)
			}
			if value != "" {
				entries = append(entries, entry{m[1], value, true})
			}
		case isPlainLabel(cell) && isValue(following):
			entries = append(entries, entry{cell, following, true})
			i++
		default:
			if m := codeForm.FindStringSubmatch(cell); m != nil && isPlainLabel(kindCode.ReplaceAllString(m[1], " ")) && isTelling(m[1], m[2]) {
				entries = append(entries, entry{m[1], m[2], false})
			}
		}
	}

	return entries
}

// stackedEntries returns the entries of a line of labels above a line of values; nil if the
// lines are others.
func stackedEntries(labels, values []string) []entry {
	if len(labels) != len(values) {
		return nil
	}

	entries := make([]entry, len(labels))
	for i, label := range labels {
		if !isPlainLabel(strings.TrimRight(label, " :")) || !isValue(values[i]) || isValue(label) {
			return nil
		}
		entries[i] = entry{strings.TrimRight(label, " :"), values[i], len(labels) > 1 || strings.HasSuffix(label, ":")}
	}

	return entries
}

// rowEntries returns the entries of a row of a table that is no list: a cell with a label and
// the next one that is not empty with its value.
func rowEntries(cells []string) []entry {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c string) bool { return c == "" || c == ":" })
	var entries []entry
	for i, cell := range cells {
		label := strings.TrimRight(cell, " :：")
		switch m := labelForm.FindStringSubmatch(cell); {
		case m != nil && m[2] != "" && isLabel(m[1]):
			entries = append(entries, entry{m[1], m[2], true})
		case i+1 < len(cells) && isLabel(label) && (isPlainLabel(label) && isValue(cells[i+1]) || label != cell):
			entries = append(entries, entry{label, cells[i+1], true})
		}
	}

	return entries
}

// isLabel reports whether a text may be a label: a few words without digits.
func isLabel(s string) bool {
	s = strings.TrimSpace(s)
	first, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(first) && len(s) <= 50 && len(strings.Fields(s)) <= maxWords && !strings.ContainsAny(strings.TrimRight(s, "."), ";,")
}

// isPlainLabel reports whether a text may be a label without a colon: it begins with a
// capital or has no letters in two cases, and has no digit and is no currency.
func isPlainLabel(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	_, isCurrency := format.ParseCurrency(s)
	return isLabel(s) && !unicode.IsLower(first) && !strings.ContainsFunc(s, unicode.IsDigit) && !isCurrency
}

// isTelling reports whether a value behind a blank is one of a form, and not such as the
// number of a house: a date, an amount, a long number or one with signs and letters, or any
// that the label says to be a number.
func isTelling(label, value string) bool {
	if !isValue(value) {
		return false
	}
	const fewest = 4 // digits of the number of a thing that has no other sign
	digits := strings.Trim(value, "0123456789") == ""
	if digits && len(value) >= fewest && namesThing(label) {
		return true
	}
	return isDate(value) || namesCode(label) || !digits && (isNumber(value) && strings.ContainsAny(value, ".,") || isCode(value) && len(value) > 4)
}

// isValue reports whether a text has the form of a value: a number, a date, an address, or
// the number of a thing.
func isValue(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (isNumber(s) || isDate(s) || isEmail(s) || isCode(s))
}

var (
	isDate  = isWhole("date")
	isEmail = isWhole("email")
)

// isCode reports whether a text is the number of a thing: words in capitals or with digits, of
// which one has a digit.
func isCode(s string) bool {
	words := strings.Fields(s)
	if len(words) == 0 || len(words) > 8 || !strings.ContainsFunc(s, unicode.IsDigit) {
		return false
	}

	for _, w := range words {
		hasDigit := strings.ContainsFunc(w, unicode.IsDigit)
		if strings.ToUpper(w) != w && !hasDigit || strings.ContainsAny(w, ":@€$£%(),") {
			return false
		}
	}

	return true
}

// codeWords end the labels of numbers of things, which are texts: one does not add them up.
var codeWords = []string{"number", "no", "nr", "num", "nummer", "numero", "número", "numéro", "id", "code", "iban", "bic", "phone", "tel", "fax", "zip", "plz"}

// namesCode reports whether a label is that of numbers of things.
func namesCode(label string) bool {
	words := strings.FieldsFunc(format.Fold(label), notWord)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	return slices.Contains(codeWords, last) || slices.Contains(codeWords, words[0]) || strings.HasSuffix(last, "nummer") || strings.HasSuffix(last, "nr")
}
