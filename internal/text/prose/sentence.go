// Package prose takes texts of people apart: into sentences, and these into words with
// their stems, numbers and names; and says which words turn or carry the meaning of a sentence,
// and which may be missing. It knows English, and of other languages no more than
// where sentences end.
//
// It is pure and imports nothing of the project.
package prose

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Span is the bytes [Start, End) of a text.
type Span struct{ Start, End int }

// In returns the text of the span.
func (s Span) In(text string) string { return text[s.Start:s.End] }

// Sentences returns the sentences of a text, in order, without the space around them. An
// empty line, and the beginning of a heading or of an element of a list, ends a sentence.
// References in brackets behind the end of a sentence belong to it.
func Sentences(text string) []Span {
	var all []Span
	start := 0
	add := func(end int) {
		from, to := start, end
		for from < to {
			r, n := utf8.DecodeRuneInString(text[from:to])
			if !unicode.IsSpace(r) {
				break
			}
			from += n
		}

		for to > from {
			r, n := utf8.DecodeLastRuneInString(text[from:to])
			if !unicode.IsSpace(r) {
				break
			}
			to -= n
		}

		if from < to {
			all = append(all, Span{from, to})
		}
		start = end
	}

	whole := 0 // the end of the last link or name in code style, within which no sentence ends
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])
		if at >= whole && (r == '[' || r == '`') {
			whole = at + linkLength(text[at:])
		}

		// The mark of a note is no part of what the note says.
		if r == '.' && (at == 0 || text[at-1] == '\n') {
			if marker := markerLength(text[at:min(len(text), at+maxRule)]); marker > 0 {
				add(at)
				add(at + marker)
				at = start
				continue
			}
		}

		at += n
		switch {
		case r == '\n' && (breaksBlock(text[at:]) || at-start < maxRule && isRuleLine(text[start:at])):
			add(at)
		case isFullStop(r):
			add(afterReferences(text, at))
			at = start
		case at < whole:
		case (r == '.' || r == '!' || r == '?') && endsHere(text, at-n, at):
			// Quotes and brackets behind the mark belong to the sentence.
			end := at
			for end < len(text) && strings.ContainsRune(".!?\"'”’)»", rune(text[end])) || strings.HasPrefix(text[end:], "”") || strings.HasPrefix(text[end:], "’") {
				_, m := utf8.DecodeRuneInString(text[end:])
				end += m
			}

			add(afterReferences(text, end))
			at = start
		}
	}

	add(len(text))
	return all
}

// isFullStop reports whether a character ends a sentence whatever follows.
func isFullStop(r rune) bool { return r == '。' || r == '！' || r == '？' || r == '।' }

// breaksBlock reports whether a new block begins with the line behind a line's end.
func breaksBlock(rest string) bool {
	line := strings.TrimLeft(rest, " \t\r")
	if end := strings.IndexByte(line, '\n'); end >= 3 && end < maxRule && isRuleLine(line[:end]) {
		return true
	}

	if line == "" || line[0] == '\n' || line[0] == '#' || line[0] == '>' || line[0] == '|' || strings.HasPrefix(line, "```") || strings.HasPrefix(line, ".. ") {
		return true
	}

	return listMark.MatchString(line)
}

// maxRule bounds the lines of marks below headings, in bytes.
const maxRule = 256

var listMark = regexp.MustCompile(`^(?:[-*+•]|[0-9]{1,3}[.)])\s`)

// references are marks in brackets behind a sentence, such as [1, 2] or [REF_0badcafe].
var references = regexp.MustCompile(`^(?:\s?\[(?:[0-9?]{1,4}|REF_[0-9A-Za-z]+)(?:\s*[,;–-]\s*(?:[0-9?]{1,4}|REF_[0-9A-Za-z]+))*\])+[.]?`)

// afterReferences returns where the references behind the end of a sentence end, or who took the picture
// of which the sentence is the caption.
func afterReferences(text string, at int) int {
	if n := len(references.FindString(text[at:min(len(text), at+4096)])); n > 0 {
		return at + n
	}
	return at + len(creditBehind.FindString(text[at:min(len(text), at+maxCredit)]))
}

// maxCredit bounds who took a picture, in bytes.
const maxCredit = 256

// endsHere reports whether the mark at [at, end) ends a sentence: a space follows and what
// comes then may begin one, and what stands before is no abbreviation.
func endsHere(text string, at, end int) bool {
	rest := text[end:min(len(text), end+lookAhead)]

	after := strings.TrimLeft(rest, ".!?\"'”’)»")
	if m := references.FindString(after); m != "" {
		after = after[len(m):]
	}

	if after == "" {
		return true
	}

	// A mark within a word or a number ends nothing, but for a space that was forgotten.
	r, n := utf8.DecodeRuneInString(after)
	if !unicode.IsSpace(r) {
		return lacksSpace(text[:at], after)
	}

	next := strings.TrimLeftFunc(after[n:], unicode.IsSpace)
	if next == "" {
		return true
	}

	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(next, "\"'“‘([«*_"))
	if text[at] != '.' {
		return true
	}

	return !unicode.IsLower(first) && !isAbbreviation(text[:at], first) && !(isState(text[:at]) && !IsCommon(firstWord(next)))
}

// maxLink bounds a link or a name in code style, in bytes.
const maxLink = 512

// linkLength returns how long the link of Markdown is that a text begins with, or the text between
// backquotes; 0 if it begins with neither.
func linkLength(text string) int {
	text = text[:min(len(text), maxLink)]
	if blank := strings.Index(text, "\n\n"); blank >= 0 {
		text = text[:blank]
	}

	// Text between backquotes is behind as many of them as stand before it, on one line.
	if bare := strings.TrimLeft(text, "`"); bare != text {
		line, _, _ := strings.Cut(bare, "\n")
		marks := len(text) - len(bare)
		if end := strings.Index(line, text[:marks]); end > 0 {
			return marks + end + marks
		}
		return 0
	}

	end := strings.IndexByte(text, ']')
	if end < 0 || strings.Contains(text[1:end], "[") {
		return 0
	}

	// The target is behind it, without a space between.
	for _, marks := range []string{"()", "[]"} {
		rest, opened := strings.CutPrefix(text[end+1:], marks[:1])
		if n := strings.Index(rest, marks[1:]); opened && n >= 0 {
			return end + 1 + 1 + n + 1
		}
	}
	return 0
}

// firstWord returns the word that a text begins with, behind quotes and marks, in small letters.
func firstWord(text string) string {
	text = strings.TrimLeft(text, "\"'“‘([«*_")
	if at := strings.IndexFunc(text, func(r rune) bool { return !isWordRune(r) }); at >= 0 {
		text = text[:at]
	}
	return strings.ToLower(text)
}

// lookAhead is how many bytes behind a mark are looked at: of a text that consists of marks,
// each would be looked at from each other one.
const lookAhead = 1024

// lacksSpace reports whether a space was forgotten between two sentences: a word of small
// letters stands before the full stop, and one with a capital behind it. A name of several parts,
// such as asyncio.tasks.TaskGroup or log.NewLogger, is none.
func lacksSpace(before, after string) bool {
	small := len(before) - len(strings.TrimRightFunc(before, unicode.IsLower))
	if isNamePart(before[:len(before)-small], after) {
		return false
	}

	first, n := utf8.DecodeRuneInString(after)
	second, _ := utf8.DecodeRuneInString(after[n:])
	return small >= 3 && unicode.IsUpper(first) && (unicode.IsLower(second) || unicode.IsSpace(second))
}

// isNamePart reports whether a word is a part of a name, as programs have them: a mark of such names
// stands right before it, or the word behind has a capital or a mark of names within.
func isNamePart(before, after string) bool {
	if last, _ := utf8.DecodeLastRuneInString(before); strings.ContainsRune("._/:@#`~$\\", last) {
		return true
	}

	end := strings.IndexFunc(after, func(r rune) bool { return !isWordRune(r) && !unicode.IsDigit(r) })
	if end < 0 {
		end = len(after)
	}
	small := strings.IndexFunc(after[:end], unicode.IsLower)
	return small >= 0 && strings.ContainsFunc(after[small:end], func(r rune) bool { return unicode.IsUpper(r) || r == '_' }) ||
		strings.HasPrefix(after[end:], "()") || strings.HasPrefix(after[end:], "`")
}

// isState reports whether the word that a text ends with is how newspapers write a state of the
// United States: Hershey, Penn. A word of a sentence begins a new one instead.
func isState(before string) bool {
	at := strings.LastIndexFunc(before, func(r rune) bool { return !unicode.IsLetter(r) })
	switch before[at+1:] {
	case "Ala", "Ariz", "Ark", "Calif", "Colo", "Conn", "Del", "Fla", "Ga", "Ill", "Ind", "Kan", "Ky", "La", "Md", "Mass", "Mich",
		"Minn", "Miss", "Mo", "Mont", "Neb", "Nev", "Okla", "Ore", "Pa", "Penn", "Penna", "Tenn", "Tex", "Va", "Vt", "Wash", "Wis", "Wyo":
		return true
	}
	return false
}

// isAbbreviation reports whether the word that a text ends with is written with a full
// stop: an initial, a title, or a Latin shorthand.
func isAbbreviation(before string, next rune) bool {
	at := strings.LastIndexFunc(before, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("([\"'“‘", r) })

	word := before[at+1:]
	if word == "" {
		return false
	}

	if n := utf8.RuneCountInString(word); n == 1 && unicode.IsUpper([]rune(word)[0]) {
		return true
	}

	if strings.Contains(word, ".") && len(word) <= 6 { // e.g, U.S
		return strings.ToLower(word) == word || !unicode.IsUpper(next) || len(word) <= 3 && strings.ToUpper(word) == word
	}

	switch strings.ToLower(word) {
	case "mr", "mrs", "ms", "dr", "prof", "st", "sgt", "gen", "col", "lt", "cpt", "capt", "maj", "gov", "sen", "rep", "hon", "rev",
		"fig", "figs", "eq", "eqs", "no", "nos", "vs", "al", "cf", "ca", "approx", "ref", "refs", "vol", "pp", "ed", "eds", "inc", "ltd", "co", "corp",
		"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec":
		return word != "no" && word != "co" || unicode.IsDigit(next)
	}
	return false
}

// IsReadable reports whether a text reads as prose does: at most one of eight of its
// characters is a mark or a symbol, and it is no row of a table, no markup and no code.
func IsReadable(text string) bool {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "```") || strings.HasPrefix(text, "|") || strings.Count(text, "|") > 1 || markup.MatchString(text) {
		return false
	}

	marks, all := 0, 0
	for _, r := range text {
		all++
		if unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsControl(r) && !unicode.IsSpace(r) {
			marks++
		}
	}

	return all > 0 && marks*8 <= all
}

// markup is a tag of HTML or XML, or a picture of Markdown.
var markup = regexp.MustCompile(`</?[A-Za-z][^<>]*>|!\[[^\]]*\]\(`)
