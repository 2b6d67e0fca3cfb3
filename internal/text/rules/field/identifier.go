package field

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// identifierEnds end the names of fields and labels whose values are numbers of things, such
// as that of an invoice.
var identifierEnds = []string{"number", "no", "nr", "num", "nummer", "numero", "número", "numéro", "n°", "nº", "iban", "id", "#"}

// isIdentifier reports whether the values of a field are numbers of things: its name or one
// of its labels says so.
func (f *Field) isIdentifier() bool {
	if !f.IsText() || f.Element.Type != schema.String || f.Element.Format != "" {
		return false
	}

	name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
	return slices.ContainsFunc(append([]string{identifierWords(name)}, f.Labels...), func(label string) bool {
		words := strings.Fields(strings.ToLower(strings.TrimRight(label, ". :")))
		if len(words) == 0 {
			return false
		}

		last := words[len(words)-1]
		return slices.Contains(identifierEnds, last) || strings.HasSuffix(last, "nummer") || strings.HasSuffix(last, "nr")
	})
}

// CodeOf returns the words with which a text begins that may be the number of a thing, ""
// if they are none.
func CodeOf(text string) string {
	end := 0
	for end < len(text) {
		word := text[end:]
		if i := strings.IndexAny(word, " \t"); i >= 0 {
			word = word[:i]
		}

		if !isCode(word) {
			break
		}

		end += len(word)
		// A comma ends what is the number; the words behind it are a remark.
		if strings.HasSuffix(word, ",") || strings.HasSuffix(word, ";") {
			break
		}
		end += len(text[end:]) - len(strings.TrimLeft(text[end:], " \t"))
	}

	code := strings.TrimRight(text[:end], " \t,;")
	if !strings.ContainsFunc(code, unicode.IsDigit) {
		return ""
	}

	return code
}

// isCode reports whether a word may be a part of the number of a thing: it has a digit, or is
// in capitals.
func isCode(word string) bool {
	return strings.ContainsFunc(word, unicode.IsDigit) && !startsDate(word) || strings.ToUpper(word) == word && strings.ContainsFunc(word, unicode.IsLetter)
}

func startsDate(word string) bool {
	_, to, ok := calendar.DateAt(word, 0)
	return ok && to >= len(strings.TrimRight(word, ".,;)"))
}

// IsRemark reports whether what follows the number of a thing is a remark: it is set off by a
// sign, is a date, or begins with words in small letters and holds a date or no digits.
func IsRemark(rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	dates := DateScanner(rest, 0, len(rest), format.NumberStyle{})

	switch {
	case strings.ContainsRune(",;(", first), strings.HasPrefix(rest, "- "), strings.HasPrefix(rest, "– "):
		return true
	case len(dates) > 0 && dates[0].Start == 0:
		return true
	case !unicode.IsLower(first):
		return false
	}

	return len(dates) > 0 || !strings.ContainsFunc(rest, unicode.IsDigit)
}

// DateScanner finds dates.
var DateScanner = form.Of(&schema.Property{Type: schema.String, Format: schema.Date})
