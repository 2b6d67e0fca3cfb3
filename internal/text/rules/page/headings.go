package page

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A heading is a line, or the beginning of one, that names what follows.
type heading struct {
	at    int // where its line begins
	body  int // where what it heads begins
	level int // 1 is the highest
	title string
}

// Levels of headings that do not tell theirs.
const (
	capitalsLevel = 1
	articleLevel  = 1
	numberLevel   = 2 // 7. and Section 7; one more for each further number
	titleLevel    = 9 // a short line of capitalised words
	maxHeading    = 90
)

// Headings are those of a text, in order.
type Headings []heading

// Below returns what stands below the headings that hold one of the phrases, up to the next heading of
// the same level or a higher one, in a text of some length.
func (l Headings) Below(phrases []string, length int) []form.Span {
	var parts []form.Span
	for i, h := range l {
		if !holdsPhrase(h.title, phrases) || len(parts) > 0 && h.at < parts[len(parts)-1].End {
			continue
		}

		end := length
		for _, next := range l[i+1:] {
			// A section ends at the next heading of its level or of one above it.
			if next.level <= h.level {
				end = next.at
				break
			}
		}

		parts = append(parts, form.NewSpan(h.body, max(end, h.body)))
	}

	return parts
}

// holdsPhrase reports whether one of the phrases stands in title as whole words.
func holdsPhrase(title string, phrases []string) bool {
	title = " " + spacedWords(title) + " "
	for _, phrase := range phrases {
		if strings.Contains(title, " "+spacedWords(phrase)+" ") {
			return true
		}
	}
	return false
}

// spacedWords returns the words of s in lower case, with single spaces between.
func spacedWords(s string) string {
	return strings.Join(strings.FieldsFunc(format.Fold(s), NotWord), " ")
}

// ReadHeadings finds the headings of the text.
func (p *Page) ReadHeadings() Headings {
	var list Headings
	for i := range p.Lines {
		if h, ok := (outline{p}).headingAt(i); ok {
			list = append(list, h)
		}
	}
	return list
}

// An outline is a page whose headings are looked for.
type outline struct{ *Page }

// headingAt reads the heading that line i is or begins with.
func (t outline) headingAt(i int) (heading, bool) {
	line := form.Trim(t.Text, t.Lines[i])
	text := t.Text[line.Start:line.End]

	h := heading{at: t.Lines[i].Start, body: t.Lines[i].End, title: text}
	if text == "" || !strings.ContainsFunc(text, unicode.IsLetter) {
		return h, false
	}

	// Headings of Markdown come first, then numbers, then what only looks like a heading.
	if marks := len(text) - len(strings.TrimLeft(text, "#")); marks > 0 && marks <= 6 && strings.HasPrefix(text[marks:], " ") {
		h.level, h.title = marks, strings.Trim(text, "# ")
		return h, true
	}

	if rest, level, ok := cutHeadingNumber(text); ok {
		return t.numberedHeading(h, i, rest, level)
	}

	if len(text) > maxHeading || strings.ContainsAny(text[len(text)-1:], ".,;") || !t.setApart(i) {
		return h, false
	}

	switch {
	case !strings.ContainsFunc(text, unicode.IsLower) && strings.ContainsFunc(text, unicode.IsUpper):
		h.level = capitalsLevel
	case isTitle(text):
		h.level = titleLevel
	default:
		return h, false
	}

	return h, true
}

// setApart reports whether line i has a blank line above it, or is the first one.
func (t outline) setApart(i int) bool {
	return i == 0 || strings.TrimSpace(t.Text[t.Lines[i-1].Start:t.Lines[i-1].End]) == ""
}

// isTitle reports whether the words of s are capitalised, but for short ones.
func isTitle(s string) bool {
	words := strings.FieldsFunc(s, NotWord)
	for i, w := range words {
		c, _ := utf8.DecodeRuneInString(w)
		if !unicode.IsUpper(c) && !unicode.IsDigit(c) && (i == 0 || len(w) > 3) {
			return false
		}
	}
	return len(words) > 0 && len(words) <= 10 && !strings.Contains(s, ":")
}

// cutHeadingNumber removes the number of a heading: "7.", "7.1", "ARTICLE IV",
// "Section 12:", "§ 3", "第7条".
func cutHeadingNumber(text string) (rest string, level int, ok bool) {
	if inner, found := strings.CutPrefix(text, "第"); found {
		digits := strings.IndexAny(inner, "条章節节")
		if digits > 0 && digits <= 9 {
			_, width := utf8.DecodeRuneInString(inner[digits:])
			return strings.TrimLeft(inner[digits+width:], " 　"), numberLevel, true
		}
		return "", 0, false
	}

	word, after, _ := strings.Cut(text, " ")
	level = 0
	switch strings.ToLower(strings.TrimSuffix(word, ".")) {
	case "article", "artikel", "artículo", "articolo", "artigo", "part", "chapter", "kapitel", "chapitre", "schedule", "exhibit", "annex", "appendix":
		level = articleLevel
	case "section", "sec", "clause", "§", "item", "abschnitt":
		level = numberLevel
	}

	if level > 0 {
		text = after
	}

	end := strings.IndexFunc(text, func(c rune) bool { return !unicode.IsDigit(c) && c != '.' && !strings.ContainsRune("IVXLC", c) })
	if end < 0 {
		end = len(text)
	}

	number := strings.TrimRight(text[:end], ".")
	switch {
	case number == "" || len(number) > 12 || end < len(text) && strings.IndexByte(" .:)\t-", text[end]) < 0 && !strings.HasPrefix(text[end:], "—") && !strings.HasPrefix(text[end:], "–"):
		return "", 0, false
	case level == 0 && (!form.IsDigit(number[0]) || end == len(number) && end < len(text) && text[end] == ' ' && !strings.Contains(number, ".")):
		// A plain number before a word may be anything: 12 months.
		return "", 0, false
	case level == 0:
		level = numberLevel + strings.Count(strings.TrimSuffix(number, ".0"), ".")
	}

	return strings.TrimLeft(text[end:], " .:)\t-—–"), level, true
}

// titleBelow adds the title to a heading whose number stands on line i alone: the next line,
// if it looks like one.
func (t outline) titleBelow(h heading, i int) heading {
	if i+1 >= len(t.Lines) {
		return h
	}
	line := form.Trim(t.Text, t.Lines[i+1])
	text := t.Text[line.Start:line.End]
	capitals := text != "" && strings.ToUpper(text) == text && strings.ContainsFunc(text, unicode.IsUpper)
	if len(text) <= maxHeading && text != "" && !strings.HasSuffix(text, ".") && (capitals || isTitle(text)) {
		h.title, h.body = text, t.Lines[i+1].End
	}
	return h
}

// numberedHeading reads the title behind the number of a heading. If more than a title
// stands on the line, the title ends with its sentence: "7. Governing Law. This
// Agreement …".
func (t outline) numberedHeading(h heading, i int, rest string, level int) (heading, bool) {
	h.level, h.title = level, rest

	line := form.Trim(t.Text, t.Lines[i])
	first, _ := utf8.DecodeRuneInString(rest)

	if rest == "" {
		return t.titleBelow(h, i), true
	}

	if !unicode.IsUpper(first) && !unicode.Is(unicode.Lo, first) {
		return h, false
	}

	if end := strings.IndexAny(rest, ".:"); end > 0 && end <= maxHeading && end+1 < len(rest) {
		h.title = rest[:end]
		h.body = line.End - len(rest) + end + 1
		return h, isTitle(h.title) || strings.ToUpper(h.title) == h.title
	}
	// A line of text that goes on below is no heading.
	alone := i+1 >= len(t.Lines) || strings.TrimSpace(t.LineText(i+1)) == ""
	return h, len(rest) <= maxHeading && !strings.ContainsAny(rest[len(rest)-1:], ",;") && (alone || isTitle(rest) || strings.ToUpper(rest) == rest)
}
