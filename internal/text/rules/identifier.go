package rules

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// identifierEnds end the names of fields and labels whose values are numbers of things, such
// as that of an invoice.
var identifierEnds = []string{"number", "no", "nr", "num", "nummer", "numero", "número", "numéro", "n°", "nº", "iban", "id", "#"}

// isIdentifier reports whether the values of a field are numbers of things: its name or one
// of its labels says so.
func (f *field) isIdentifier() bool {
	if !f.isText() || f.element.Type != schema.String || f.element.Format != "" {
		return false
	}

	name := f.path[strings.LastIndexByte(f.path, '.')+1:]
	return slices.ContainsFunc(append([]string{identifierWords(name)}, f.labels...), func(label string) bool {
		words := strings.Fields(strings.ToLower(strings.TrimRight(label, ". :")))
		if len(words) == 0 {
			return false
		}

		last := words[len(words)-1]
		return slices.Contains(identifierEnds, last) || strings.HasSuffix(last, "nummer") || strings.HasSuffix(last, "nr")
	})
}

// cutIdentifier returns the part of v that is the number of a thing, if v is that of a field
// of such numbers: what follows behind a comma, or as words in small letters with a date, is
// none of it.
func (s *search) cutIdentifier(v form.Span) form.Span {
	if !s.identifier {
		return v
	}
	text := v.Of(s.text)
	code := codeOf(text)
	rest := strings.TrimLeft(text[len(code):], " \t")
	if code == "" || rest == "" || !isRemark(rest) {
		return v
	}
	return form.NewSpan(v.Start, v.Start+len(code))
}

// codeOf returns the words with which a text begins that may be the number of a thing, ""
// if they are none.
func codeOf(text string) string {
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
	_, to, ok := format.DateAt(word, 0)
	return ok && to >= len(strings.TrimRight(word, ".,;)"))
}

// isRemark reports whether what follows the number of a thing is a remark: it is set off by a
// sign, is a date, or begins with words in small letters and holds a date or no digits.
func isRemark(rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	dates := dateScanner(rest, 0, len(rest), format.NumberStyle{})

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

// isNoCode reports whether v cannot be the number of a thing that is looked for: no colon
// stands between its label and it, and it does not begin with such a number.
func (s *search) isNoCode(m mark, v form.Span) bool {
	if !s.identifier || codeOf(v.Of(s.text)) != "" {
		return false
	}
	between := s.text[m.End:max(m.End, v.Start)]
	return !strings.ContainsAny(between, ":=") && !strings.Contains(between, wideColon)
}

// isSplit reports whether v is a cell of a row in which a cell with nothing but a colon stands
// in front of it, and more cells with words behind it: then v is but a part of the value.
func (s *search) isSplit(v form.Span) bool {
	line := s.lines[s.lineAt(v.Start)]
	if !strings.HasPrefix(strings.TrimSpace(line.Of(s.text)), "|") {
		return false
	}
	before := strings.TrimRight(s.text[line.Start:v.Start], " ")
	rest := s.text[v.End:line.End]
	colon := strings.HasSuffix(strings.TrimRight(strings.TrimSuffix(before, "|"), " "), "| :")
	return colon && strings.ContainsFunc(rest, func(c rune) bool { return !notWord(c) })
}
