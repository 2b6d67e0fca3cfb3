package redact

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// runLetters is how many letters of a key in a row are taken for a part of it: words of a
// message have as many in common with a key only by chance. A key that is shorter is no secret
// that could be told from a word by its letters alone.
const runLetters = 8

// hideForms replaces in a text what it has of a key: as it is, in other case, with blanks
// between the letters, escaped in part, reversed, and in Base64 or hexadecimal.
func hideForms(text, key string) string {
	if len(foldLetters(key)) < runLetters {
		return hideShort(text, key)
	}

	runs := make(map[string]struct{})
	for _, form := range keyForms(key) {
		for i := 0; i+runLetters <= len(form); i++ {
			runs[string(form[i:i+runLetters])] = struct{}{}
		}
	}
	return hideRuns(text, runs)
}

// keyForms returns the forms of a key as letters, folded as those of a text are.
func keyForms(key string) [][]rune {
	plain := runesOf(foldLetters(key))
	backwards := slices.Clone(plain)
	slices.Reverse(backwards)
	forms := [][]rune{plain, backwards, []rune(hex.EncodeToString([]byte(key)))}

	for shift := range 3 { // letters of Base64 depend on how many bytes stand before the key
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), key...))
		begin, end := (8*shift+5)/6, 8*(shift+len(key))/6
		forms = append(forms, runesOf(foldLetters(encoded[begin:end])))
	}
	return forms
}

// A letter is a character of a text, decoded and folded, and where it stands.
type letter struct {
	char       rune
	start, end int
}

func runesOf(letters []letter) []rune {
	out := make([]rune, len(letters))
	for i, l := range letters {
		out[i] = l.char
	}
	return out
}

// escape is how a character is written in URLs, JSON and HTML, also where it was escaped
// twice.
var escape = regexp.MustCompile(`^(?:%(?:25)*([0-9A-Fa-f]{2})|\\+u00([0-9A-Fa-f]{2})|\\+x([0-9A-Fa-f]{2})|&#[xX]([0-9A-Fa-f]{2});|&#([0-9]{2,3});)`)

// foldLetters returns the letters of a text without blanks and escapes. Case is folded, and so
// are the two alphabets of Base64.
func foldLetters(text string) []letter {
	out := make([]letter, 0, len(text))
	for start := 0; start < len(text); {
		char, size := decodeLetter(text[start:])
		if !isBlank(char) {
			out = append(out, letter{foldRune(char), start, start + size})
		}
		start += size
	}
	return out
}

// decodeLetter returns the first character of a text, and how many bytes it takes.
func decodeLetter(text string) (char rune, size int) {
	if strings.IndexByte(`%\&`, text[0]) >= 0 {
		if m := escape.FindStringSubmatch(text); m != nil {
			base := 16
			if m[5] != "" {
				base = 10
			}
			n, _ := strconv.ParseUint(strings.Join(m[1:], ""), base, 16) // of digits
			return rune(n), len(m[0])
		}

		if text[0] == '\\' && len(text) > 1 && strings.IndexByte(`"\/`, text[1]) >= 0 {
			return rune(text[1]), 2
		}
	}

	// A loop finds where the second character begins, also behind bytes that are no UTF-8.
	for i, r := range text { // the first, and where the second begins
		if i > 0 {
			return char, i
		}
		char = r
	}
	return char, len(text)
}

// isBlank reports whether a character shows as nothing.
func isBlank(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Mn)
}

func foldRune(r rune) rune {
	switch r {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return unicode.ToLower(r)
}

// padding is what ends Base64, with the letters that hold the last bits of a key.
var padding = regexp.MustCompile(`^[A-Za-z0-9+/_-]{0,2}={1,2}`)

// hideRuns replaces what of a text is among runs of letters, each as long as runLetters, with
// the blanks between them.
func hideRuns(text string, runs map[string]struct{}) string {
	letters := foldLetters(text)
	chars := runesOf(letters)
	var out strings.Builder
	written := 0 // bytes of text

	for i := 0; i+runLetters <= len(chars); i++ {
		if _, found := runs[string(chars[i:i+runLetters])]; !found {
			continue
		}
		last := i + runLetters - 1
		for next := i + 1; next <= last && next+runLetters <= len(chars); next++ { // runs that overlap, or touch
			if _, found := runs[string(chars[next:next+runLetters])]; found {
				last = next + runLetters - 1
			}
		}
		out.WriteString(text[written:letters[i].start] + stars)
		written = letters[last].end
		written += len(padding.FindString(text[written:]))
		i = last
	}
	return out.String() + text[written:]
}

// shortMark is what stands before a credential in the messages of servers.
const shortMark = `(?i:\bbearer\s+|(?:\b|_)(?:key|token|secret|credentials?|authorization|provided)["']?\s*[:=]\s*)["'` + "`" + `]?`

// hideShort replaces a short key where it stands as one: behind words that say so. A word of
// the message may well have the same letters, and one letter is no secret.
func hideShort(text, key string) string {
	if len(key) < 2 {
		return text
	}

	at := regexp.MustCompile(shortMark + `(` + regexp.QuoteMeta(key) + `)(?:[^\pL\pN_-]|$)`)
	var out strings.Builder
	written := 0
	// What was replaced already is not looked at again.
	for _, m := range at.FindAllStringSubmatchIndex(text, -1) {
		if m[2] < written {
			continue
		}

		out.WriteString(text[written:m[2]] + stars)
		written = m[3]
	}

	return out.String() + text[written:]
}
