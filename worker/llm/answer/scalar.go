package answer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/coditect/mapreduce/api/schema/format"
)

// alignScalar brings a value into the shape of a text, a number or a word.
func (a *aligner) alignScalar(schema Object, t string, v any, path string, depth int) any {
	if list, ok := v.([]any); ok && len(list) == 1 {
		a.note(Single, path)
		return a.align(schema, list[0], path, depth+1)
	}

	if a.shape.hints.Shares != nil && a.shape.hints.Shares.MatchString(path) {
		return a.alignShare(v, path)
	}

	if values, ok := valuesOf(schema); ok {
		return a.alignEnum(values, v, path)
	}
	if _, scalar := scalarText(v); !scalar {
		return v
	}

	got := v
	switch t {
	case "string":
		got = asText(v)
	case "number", "integer":
		got = asNumber(v)
	case "boolean":
		got = asBoolean(v)
	}

	if got != v {
		a.note(Type, path)
	}
	return got
}

// asText returns a number or a word as a text, as it was written.
func asText(v any) any {
	if text, ok := scalarText(v); ok {
		return text
	}
	return v
}

// scalarText returns a text, number or word as a text.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// asNumber returns a text that is a number of JSON as that number. Of any other, such as one
// with commas, whoever knows the field has to say what it means.
func asNumber(v any) any {
	if text, ok := v.(string); ok {
		if text = strings.TrimSpace(text); isNumber(text) {
			return json.Number(text)
		}
	}
	return v
}

// asBoolean returns a word that says yes or no as that.
func asBoolean(v any) any {
	text, ok := scalarText(v)
	if !ok {
		return v
	}
	if yes, ok := format.ParseBoolean(text); ok {
		return yes
	}
	return v
}

// alignShare returns a share, from 0 to 1, that was written as a percentage or as a word. What
// says nothing is 0.
func (a *aligner) alignShare(v any, path string) any {
	// A number that is a share already, or cannot be a percentage, stays as it is.
	if n, ok := v.(json.Number); ok {
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil || f <= 1 || f > 100 {
			return v
		}
		a.note(Share, path)
		return shareOf(f / 100)
	}

	a.note(Share, path)
	text, _ := v.(string)
	text = strings.ToLower(strings.TrimSpace(text))

	number, percent := strings.CutSuffix(text, "%")
	if f, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil && f >= 0 && f <= 100 {
		if percent || f > 1 {
			f /= 100
		}
		return shareOf(f)
	}

	switch text {
	case "certain", "very high":
		return shareOf(0.95)
	case "high":
		return shareOf(0.9)
	case "medium", "moderate":
		return shareOf(0.6)
	case "low":
		return shareOf(0.3)
	}
	return shareOf(0)
}

func shareOf(f float64) json.Number { return json.Number(strconv.FormatFloat(f, 'g', 6, 64)) }

// alignEnum returns the value of an enumeration that another spelling can only mean.
func (a *aligner) alignEnum(values []any, v any, path string) any {
	if slices.ContainsFunc(values, func(w any) bool { return sameScalar(w, v) }) {
		return v
	}
	text, ok := scalarText(v)
	if !ok {
		return v
	}

	// The strictest reading comes first, and the first that finds anything decides.
	for _, means := range []func(value, word string) bool{spellsAlike, begins, nearlySpells} {
		var found []any
		for _, w := range values {
			if word, ok := scalarText(w); ok && word != "" && means(word, text) {
				found = append(found, w)
			}
		}
		if len(found) == 1 && !namesOthers(values, found[0], text) {
			a.note(Enum, path)
			return found[0]
		}
		if len(found) > 0 {
			return v
		}
	}
	return v
}

// namesOthers reports whether a text names values besides one, as "paid, not open" does.
func namesOthers(values []any, one any, text string) bool {
	_, tail, ok := cutExplanation(text)
	if !ok {
		return false
	}
	return slices.ContainsFunc(values, func(w any) bool {
		word, _ := scalarText(w)
		return !sameScalar(w, one) && foldKey(word) != "" && strings.Contains(foldKey(tail), foldKey(word))
	})
}

// spellsAlike reports whether two words differ by nothing but case, spaces and signs.
func spellsAlike(value, word string) bool {
	return foldKey(value) != "" && foldKey(value) == foldKey(word) && signOf(value) == signOf(word)
}

// signOf tells -1 from 1, and C++ from C: signs that mean something.
func signOf(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("+#%<>=", r) {
			return r
		}
		return -1
	}, s) + minus(s)
}

func minus(s string) string {
	if s = strings.TrimSpace(s); strings.HasPrefix(s, "-") {
		return "-"
	}
	return ""
}

// begins reports whether a text is a value with an explanation behind it, as "paid: in full".
// An explanation that denies, or names others, explains nothing.
func begins(value, text string) bool {
	head, tail, ok := cutExplanation(text)
	return ok && spellsAlike(value, head) && !saysNo(tail)
}

func cutExplanation(text string) (head, tail string, ok bool) {
	for _, mark := range []string{": ", " - ", " – ", " — ", " ("} {
		if head, tail, ok = strings.Cut(text, mark); ok {
			return head, tail, true
		}
	}
	return "", "", false
}

func saysNo(text string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		switch word {
		case "not", "no", "or", "never", "isn't", "neither", "unless", "but":
			return true
		}
	}
	return false
}

// Bounds of words that are compared by their letters.
const (
	leastLetters = 6
	mostLetters  = 64
)

// nearlySpells reports whether a word is a value with one letter too many, too few or wrong:
// not the first, which makes the opposite of many words, and no digit.
func nearlySpells(value, word string) bool {
	a, b := []rune(foldKey(value)), []rune(foldKey(word))
	if len(a) < leastLetters || len(b) < leastLetters || len(a) > mostLetters || len(b) > mostLetters || a[0] != b[0] {
		return false
	}
	if slices.ContainsFunc(a, unicode.IsDigit) || slices.ContainsFunc(b, unicode.IsDigit) || signOf(value) != signOf(word) {
		return false
	}

	// Behind the letters that are the same from the start, one letter may differ.
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	x, y := a[i:], b[i:]

	switch len(a) - len(b) {
	case 0:
		return len(x) > 0 && slices.Equal(x[1:], y[1:])
	case 1:
		return slices.Equal(x[1:], y)
	case -1:
		return slices.Equal(x, y[1:])
	}
	return false
}
