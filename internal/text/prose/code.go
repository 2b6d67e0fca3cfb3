package prose

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// directive is a line of reStructuredText that begins a block; its first group is the kind.
var directive = regexp.MustCompile(`^\s*\.\. +(?:\|[^|]*\| +)?([a-z][a-z:-]*)::`)

// isProseDirective reports whether the content of a block of this kind is prose.
func isProseDirective(kind string) bool {
	switch kind {
	case "note", "warning", "tip", "important", "caution", "hint", "seealso", "admonition", "danger", "attention", "error", "topic", "versionadded", "versionchanged":
		return true
	}
	return false
}

// CodeBlocks returns the parts of a text that are code or markup and no prose, in order: blocks
// within fences, blocks that reStructuredText marks as literal or has for pictures, tables and code,
// and the lines of marks below headings. An indented block without a mark is none, as plain texts
// are indented too.
func CodeBlocks(text string) []Span {
	var all []Span
	fence, literal := "", -1 // the fence that is open; the indentation of the line that opened a literal block, or -1
	// A literal block ends with the first line that stands no deeper than the line that
	// opened it.
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		line := text[at:end]
		bare := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))

		code := false
		switch {
		case fence != "":
			code = true
			if strings.HasPrefix(bare, fence) {
				fence = ""
			}
		case literal >= 0 && (bare == "" || indent > literal):
			code = true
		case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
			fence, code, literal = bare[:3], true, -1
		default:
			code, literal = opensLiteral(line, bare, indent)
		}

		switch n := markerLength(line); {
		case code || isRuleLine(bare):
			all = append(all, Span{at, min(end+1, len(text))})
		case n > 0: // what stands behind it is prose
			all = append(all, Span{at, at + n})
		}
		at = end + 1
	}
	return joinSpans(all)
}

// opensLiteral reports whether a line is no prose, and returns its indentation if a literal block
// begins below it, or else -1.
func opensLiteral(line, bare string, indent int) (code bool, literal int) {
	if m := directive.FindStringSubmatch(line); m != nil {
		if isProseDirective(m[1]) {
			return strings.HasSuffix(bare, "::"), -1
		}
		return true, indent
	}

	if strings.HasPrefix(bare, ".. ") { // a comment, or the target of a link
		return true, indent
	}

	if strings.HasSuffix(bare, "::") {
		return false, indent
	}
	return false, -1
}

// joinSpans joins spans that touch.
func joinSpans(all []Span) []Span {
	var joined []Span
	for _, s := range all {
		if n := len(joined); n > 0 && joined[n-1].End >= s.Start {
			joined[n-1].End = s.End
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// isRuleLine reports whether a line consists of one mark, three times or more, as below headings.
func isRuleLine(line string) bool {
	line = strings.TrimSpace(line)
	if len(line) < 3 || !strings.ContainsRune("=-~^\"'#*+_", rune(line[0])) {
		return false
	}
	return strings.Trim(line, line[:1]) == ""
}

// leastWords is how many words a sentence has that says something by itself.
const leastWords = 5

// codeMark matches what prose does not have: calls, assignments, arrows, and the prompt of a shell.
var codeMark = regexp.MustCompile(`[{};]\s*$|[A-Za-z_]\(\)\s*[.;{]|\s(?:=|==|!=|:=|=>|->|&&|\|\|)\s|::|</|^[$>%#] |\bdef [a-z_]+\(|\breturn [a-z_]+[(;]`)

// IsSentence reports whether a text is one whole sentence that can stand among others: it reads as
// prose, begins as a sentence does, ends with a full stop or another such mark, has five words or
// more, and is no command, no line of a menu or of contents, no list of numbers or tags, no caption, and
// no address. Of writing without capitals it asks no more than that it reads as prose.
func IsSentence(text string) bool {
	text = strings.TrimSpace(text)
	if !IsReadable(text) || codeMark.MatchString(text) || IsTags(text) || IsCaption(text) {
		return false
	}

	cased, letters := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if unicode.IsLower(r) || unicode.IsUpper(r) {
				cased++
			}
		}
	}

	// Writing without capitals gives no sign of where a sentence begins.
	if cased*2 < letters {
		return true
	}
	return beginsSentence(text) && endsSentence(text) && hasWords(text)
}

// beginsSentence reports whether a text begins with a capital or a digit, behind quotes and marks of
// emphasis, or with a name in code style.
func beginsSentence(text string) bool {
	bare := strings.TrimLeft(text, "\"'“‘«(*_[ ")
	first, _ := utf8.DecodeRuneInString(bare)
	return first == '`' || unicode.IsUpper(first) || unicode.IsDigit(first)
}

// endsSentence reports whether a text ends with a mark that ends sentences, before quotes, marks of
// emphasis and references.
func endsSentence(text string) bool {
	bare := strings.TrimRight(text, "\"'”’»)*_` ")

	if at := strings.LastIndexByte(bare, '['); at > 0 && strings.HasSuffix(bare, "]") {
		bare = strings.TrimRight(bare[:at], " ")
		return bare != ""
	}

	last, _ := utf8.DecodeLastRuneInString(bare)
	return strings.ContainsRune(".!?…", last)
}

// hasWords reports whether a text has enough words, and more words than addresses, numbers and
// dashes.
func hasWords(text string) bool {
	words, others := 0, 0
	for field := range strings.FieldsSeq(text) {
		switch {
		case strings.Contains(field, "://"):
			others += 3
		case strings.ContainsFunc(field, unicode.IsLetter):
			words++
		default:
			others++
		}
	}

	return words >= leastWords && words > 2*others
}
