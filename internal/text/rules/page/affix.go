package page

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// NumberWords may stand between a label and its value: they say that a number follows, and
// are no part of it.
var NumberWords = []string{
	"no", "nos", "nr", "num", "number", "numero", "número", "numéro", "nummer", "n°", "nº", "n", "№", "id", "ref", "code",
}

// Leaders are the signs that lead from a label to its value: blanks, points, lines.
const Leaders = " \t.#…·_°º\u00a0"

// SkipSeparators moves over what stands between a label and its value: the rest of the
// label, such as a number sign, a unit in parentheses before a colon, points that lead to
// the value, one colon or the like.
func SkipSeparators(text string, r form.Span) form.Span {
	rest := strings.TrimLeft(text[r.Start:r.End], Leaders)
	for _, emphasis := range []string{"**", "__"} { // of Markdown, around a label
		if after, ok := strings.CutPrefix(rest, emphasis); ok && strings.HasPrefix(after, ":") {
			rest = after
		}
	}

	rest = cutNumberWord(rest)

	// A unit in parentheses is passed only with a colon behind it: without one, the
	// parentheses may be of the value.
	if strings.HasPrefix(rest, "(") {
		if i := strings.IndexByte(rest, ')'); i > 0 && strings.HasPrefix(strings.TrimLeft(rest[i+1:], " "), ":") {
			rest = strings.TrimLeft(rest[i+1:], " ")
		}
	}

	bar := strings.HasPrefix(rest, "|")
	switch {
	case rest == "":
	// Of what may set a label off, one is passed; emphasis that ends behind it began with
	// the label.
	case strings.IndexByte(":=|", rest[0]) >= 0:
		rest = rest[1:]
		for _, emphasis := range []string{"**", "__"} {
			if after, ok := strings.CutPrefix(rest, emphasis); ok && !strings.Contains(after, emphasis) {
				rest = after
			}
		}
	case strings.HasPrefix(rest, WideColon):
		rest = rest[len(WideColon):]
	case strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "-\t"):
		rest = rest[2:]
	}

	switch after := strings.TrimLeft(rest, " \t"); {
	case strings.HasPrefix(after, ": |"):
		rest = after[len(": |"):] // the colon has a cell of its own
	case bar && strings.HasPrefix(after, ":"):
		rest = after[1:] // the colon leads the cell of the value
	case strings.HasPrefix(after, "#"):
		rest = after[1:]
	}

	r.Start = r.End - len(rest)
	return r
}

// cutNumberWord removes a word such as "No." that announces a number, if one follows.
func cutNumberWord(s string) string {
	end := strings.IndexFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && c != '°' && c != 'º' && c != '№' })
	if end <= 0 || strings.IndexByte("-/", s[end]) >= 0 || !slices.Contains(NumberWords, strings.ToLower(s[:end])) {
		return s
	}

	rest := strings.TrimLeft(s[end:], Leaders)
	value := strings.TrimLeft(strings.TrimPrefix(rest, ":"), " \t#")

	word := value
	if i := strings.IndexFunc(value, unicode.IsSpace); i >= 0 {
		word = value[:i]
	}

	// Without a digit or a colon behind it, such a word is the value itself.
	if !strings.ContainsFunc(word, unicode.IsDigit) && !strings.HasPrefix(rest, ":") {
		return s
	}

	return rest
}

// wideGap is how many blanks set one cell of a line apart from the next.
const wideGap = 3

// EndOfCell returns where the value of a text ends that begins at v.Start: at a tab or a
// wide gap, and before the next label, be it of the schema or not.
func EndOfCell(text string, v form.Span) int {
	for i := v.Start; i < v.End; i++ {
		switch c := text[i]; {
		case c == '\t':
			return i
		case c != ' ':
		case isWideGap(text[i:v.End]):
			return i
		case beginsLabel(strings.TrimLeft(text[i:v.End], " "), strings.HasPrefix(text[i:v.End], "  ")):
			return i
		}
	}
	return v.End
}

// isWideGap reports whether a text begins with a gap between two cells. A sentence that goes
// on in small letters has only more blanks than it needs.
func isWideGap(s string) bool {
	rest := strings.TrimLeft(s, " ")
	first, _ := utf8.DecodeRuneInString(rest)
	return len(s)-len(rest) >= wideGap && !unicode.IsLower(first)
}

// maxLabel bounds the bytes of a label that the schema does not have.
const maxLabel = 30

// beginsLabel reports whether a text begins with what looks like a label and a colon. Behind
// a single blank it has to be one of the words with which people head their forms.
func beginsLabel(s string, gap bool) bool {
	colon := strings.IndexByte(s[:min(len(s), maxLabel)], ':')
	if colon <= 0 || strings.HasPrefix(s[colon:], "://") || strings.HasPrefix(s[colon:], "::") {
		return false // an address, or a name such as Data::Phrasebook
	}
	if colon+1 < len(s) && unicode.IsDigit(rune(s[colon+1])) {
		return false
	}

	name := strings.TrimRight(s[:colon], " .#")
	first, _ := utf8.DecodeRuneInString(name)
	if name == "" || !unicode.IsLetter(first) || strings.Contains(name, "  ") || strings.ContainsFunc(name, unicode.IsDigit) {
		return false
	}

	if gap {
		return true
	}

	words := strings.FieldsFunc(strings.ToLower(name), NotWord)
	return unicode.IsUpper(first) && len(words) > 0 && len(words) <= 3 && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(headWords, w) })
}

// headWords are words with which people head the entries of forms.
var headWords = strings.Fields("date datum fecha data tel telefon telephone phone mobile fax email mail web website " +
	"page seite pagina invoice rechnung facture factura fattura order vat tax gst ust mwst tva iva btw total amount " +
	"betrag montant importe importo due fällig currency terms iban bic swift account konto customer client kunde " +
	"number nummer no nr ref reference qty quantity menge price preis time uhrzeit cashier terminal")

// ClampRune returns the end of r, at most limit bytes after its start and not
// inside a character.
func ClampRune(text string, r form.Span, limit int) int {
	if r.End-r.Start <= limit {
		return r.End
	}
	end := r.Start + limit
	for end > r.Start && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// ClampWord returns the end of r, at most limit bytes after its start but for the
// rest of a word that would be cut.
func ClampWord(text string, r form.Span, limit int) int {
	end := ClampRune(text, r, limit)
	for far := min(r.End, end+form.MaxAddress); end < far && !isSpace(text[end]); {
		end++
	}
	return end
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// WideColon is the colon of East Asian texts.
const WideColon = "\uff1a"

// IsGap reports whether s holds nothing but separators, currencies and remarks
// in parentheses.
func IsGap(s string) bool {
	for {
		// Remarks in parentheses go first, as they may hold any words.
		open := strings.IndexByte(s, '(')
		if open < 0 {
			break
		}
		shut := strings.IndexByte(s[open:], ')')
		if shut < 0 {
			break
		}
		s = s[:open] + " " + s[open+shut+1:]
	}

	s = strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Sc, c) && c != '$' || unicode.IsSpace(c) { // R$ is one sign
			return ' '
		}
		return c
	}, s)

	for _, w := range form.Words(s, 0, len(s)) {
		attached := w.End == len(s) && s[w.Start:] == "R" // in front of an amount in rand
		if !attached && !format.EndsWithCurrency(s, w.End) {
			return false
		}
	}

	return true
}

// NotWord reports whether a character is neither a letter nor a digit.
func NotWord(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
