package digest

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/text/prose"
)

// bracketed matches the references of a text of somebody else's, which would be taken for
// the report's own: numbers, footnotes, and the labels of specifications, such as [RFC7234].
var bracketed = regexp.MustCompile(`\s?\[\s*[0-9?]{1,4}(?:\s*[,;–-]\s*[0-9]{1,4})*\s*\]|\bREF_[0-9A-Za-z]+` +
	`|\s?\[\^[^\[\]\s]{1,40}\]|\s?\[#[^\[\]\s]{0,40}\]_|\s?\[(?:RFC|I-D|BCP|STD|ISO|FIPS|NIST)[^\[\]\s]{1,40}\]`)

// leadingMark matches marks of lists and headings.
var leadingMark = regexp.MustCompile(`^(?:[-*+•#>]+|[0-9]{1,3}[.)])\s+`)

// anchor matches an aside that refers to a place, by a name of its author, as kramdown does, or by any
// other: (per {{name}}), (see Tables).
var anchor = regexp.MustCompile(`\s*\([^(){}]*\{\{[^{}]*\}\}[^(){}]*\)|\s*\((?:[Ss]ee|cf\.?)(?: also)? [^()]*\)`)

// source matches the name of a document in such marks, which is read as it stands: {{Section 4 of RFC9110}};
// label matches another label, which stands for a reference: {{HTTP-CACHING}}.
var (
	source = regexp.MustCompile(`\{\{[!?]?((?:Sections? [0-9][\w.]*(?:,? and [\w.]+)? of )?RFC ?[0-9]+)\}\}`)
	label  = regexp.MustCompile(`\s?\{\{[!?]?[A-Z][A-Z0-9.-]*\}\}`)
)

// tidySentence returns a sentence on one line, without references, links, pictures and marks of its own text, and
// without the label of an element of a list if a whole sentence is behind it.
func tidySentence(sentence string) string {
	sentence = prose.Plain(sentence)
	sentence = label.ReplaceAllString(source.ReplaceAllString(anchor.ReplaceAllString(sentence, ""), "$1"), "")
	sentence = bracketed.ReplaceAllString(sentence, "")
	sentence = strings.Join(strings.Fields(sentence), " ")
	sentence = strings.TrimSpace(leadingMark.ReplaceAllString(sentence, ""))
	return withoutLabel(sentence)
}

// maxLabel is how many words the label of an element of a list has at most.
const maxLabel = 4

// notes are words in front of a sentence that say nothing.
var notes = regexp.MustCompile(`^(?:(?:Please )?[Nn]ote(?: also)? that|Note(?: also)?:|NOTE:|N\.B\.:?) +`)

// withoutLabel returns a sentence without the label in front of it, as in "Quality: Tables survive.", and
// without "Note that": what stands behind begins with a capital then.
func withoutLabel(sentence string) string {
	if bare := notes.ReplaceAllString(sentence, ""); bare != sentence {
		return capitalised(bare)
	}
	label, rest, ok := strings.Cut(sentence, ": ")
	first, _ := utf8.DecodeRuneInString(rest)
	if !ok || len(strings.Fields(label)) > maxLabel || !unicode.IsUpper(first) || !hasVerb(rest) || strings.ContainsAny(label, ".,;()\"“") {
		return sentence
	}
	return rest
}
