package rules

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/form"
)

// A bond is how a label of the schema goes with the words around it. A total of charges is
// not the total, and the date of an order is not the date.
type bond int

const (
	firm    bond = iota // nothing stands by it that changes what it means
	loose               // words of a sentence stand by it, which may change it: its value is a guess
	foreign             // it is a part of another label
)

// Bounds on the words of another label.
const (
	foreignBefore = 3 // words in front; more are a sentence
	sentenceWords = 5 // between a label and its value
)

// bondBefore tells how a label goes with the words in front of it in its cell.
func (s *search) bondBefore(m mark) bond {
	if !s.followsWord(m) {
		return firm
	}

	phrase := s.text[s.beginOfCell(m.Start):m.Start]
	words := strings.FieldsFunc(phrase, notWord)
	if allIn(words, wordsBefore) {
		return firm
	}

	if !s.labelsGiven || s.mayGuess() || len(words) > foreignBefore || s.labelDelimiter(m) == 0 && !s.inBars(m) {
		return loose
	}
	return foreign
}

// inBars reports whether a label stands in a row of a table between bars.
func (t *linedText) inBars(m mark) bool {
	return strings.HasPrefix(strings.TrimSpace(t.lineText(t.lineAt(m.Start))), "|")
}

// passOver notes that a label is a part of another one.
func (s *search) passOver(m mark) {
	if s.passed != "" {
		return
	}
	line := s.lines[s.lineAt(m.Start)]
	text := clip(s.text[s.beginOfCell(m.Start):min(line.End, m.End+nearBytes)])
	s.passed = fmt.Sprintf("the label is a part of another one, %q; name that too if it is meant", text)
}

// beginOfCell returns where the cell begins that byte at stands in: behind a tab, a bar, a
// gap or the beginning of the line.
func (t *linedText) beginOfCell(at int) int {
	line := t.lines[t.lineAt(at)]
	start := max(line.Start, at-nearBytes)
	before := t.text[start:at]
	cut := max(strings.LastIndexAny(before, "\t|"), strings.LastIndex(before, "  ")+1)
	return start + max(cut, 0)
}

// bondAfter tells how a label goes with the words between it and a value.
func (s *search) bondAfter(m mark, value form.Span) bond {
	between := form.NewSpan(m.End, value.Start)
	if isGap(between.Of(s.text)) || s.addsNothing(between) {
		return firm
	}
	if !s.labelsGiven || s.mayGuess() || len(s.patterns)+len(s.values) > 0 || s.inSentence(m, value) {
		return loose
	}
	return foreign
}

// inSentence reports whether a label and a value stand in a sentence rather than in a form:
// other words stand in front of the label, many stand between, or the text goes on behind
// the value. What follows a colon, and scripts without spaces, are read as sentences, too.
func (s *search) inSentence(m mark, value form.Span) bool {
	between := strings.TrimLeft(s.text[m.End:value.Start], leaders+")")
	first, _ := utf8.DecodeRuneInString(between)

	if strings.ContainsAny(between, "|\t") {
		return false // the value has a cell of its own
	}

	if strings.HasPrefix(between, ":") || strings.HasPrefix(between, wideColon) || unicode.IsLetter(first) && !isWord(first) {
		return true
	}

	if strings.ContainsFunc(s.text[s.beginOfCell(m.Start):m.Start], unicode.IsLetter) {
		return true
	}

	if len(strings.FieldsFunc(s.text[m.End:value.Start], notWord)) >= sentenceWords {
		return true
	}

	rest := s.text[value.End:max(value.End, s.lines[s.lineAt(value.End)].End)]
	rest = strings.TrimLeft(rest, " ,")
	first, _ = utf8.DecodeRuneInString(rest)
	return strings.TrimSpace(rest) == "." || unicode.IsLower(first)
}

// addsNothing reports whether the words between a label and a value leave what the label
// means: such as those of "Total for this invoice", "Total incl. 19% VAT" and "Total on 3
// August".
func (s *search) addsNothing(between form.Span) bool {
	text := between.Of(s.text)
	for i, date := range dateScanner(s.text, between.Start, between.End, s.style) {
		if i == 0 && s.element.Numeric() { // a date may stand between a label and an amount
			text = s.text[between.Start:date.Start] + " " + s.text[date.End:between.End]
		}
	}

	included := false // what follows tells what a sum includes
	for _, w := range form.Words(text, 0, len(text)) {
		word := format.Fold(text[w.Start:w.End])
		switch {
		case strings.TrimFunc(text[w.Start:w.End], notWord) == "": // a dash, or the mark of a note
		case included, wordsAfter[word], format.EndsWithCurrency(text, w.End), isPercent(text, w):
		case s.element.Numeric() && inclusionWords[word]:
			included = true
		case s.element.Numeric() && amountWords[word]:
		default:
			return false
		}
	}
	return true
}

// isPercent reports whether a word is the number of a percentage, such as a rate of tax.
func isPercent(text string, w form.Span) bool {
	rest := text[w.End:]
	if fraction := strings.TrimLeft(rest, ".,"); len(rest)-len(fraction) == 1 {
		rest = strings.TrimLeft(fraction, "0123456789")
	}
	return form.IsDigit(text[w.Start]) && strings.HasPrefix(strings.TrimLeft(rest, " \u00a0"), "%")
}

// dateScanner finds dates.
var dateScanner = form.Of(&schema.Property{Type: schema.String, Format: schema.Date})

func allIn(words []string, set map[string]bool) bool {
	for _, w := range words {
		if !set[format.Fold(w)] {
			return false
		}
	}
	return true
}

// Words by a label that leave what it means: articles, prepositions and words for the
// document itself, in front of it and behind it.
var (
	wordsBefore = wordSet("the a an your our this its his her my final overall total grand invoice inv bill receipt doc document " +
		"der die das den dem ihr ihre ihrer unser unsere diese dieser rechnung le la les votre notre cette ce el los las su " +
		"il lo i gli de het uw onze deze and or & on at in by und et y e en")
	wordsAfter = wordSet("on as of at in by for to from is are be this the today now our your invoice bill receipt " +
		"rechnung dieser diese der den am zum bis per ist facture cette le la au du est factura fattura questa il al el " +
		"esta del factuur deze op faktura tej")
	amountWords    = wordSet("due payable pay payer ttc brutto gross")
	inclusionWords = wordSet("incl inkl including inclusive einschl einschließlich inc compris comprise inclus " +
		"incluido incluidos incluso inclusief zawiera")
)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[format.Fold(w)] = true
	}
	return set
}
