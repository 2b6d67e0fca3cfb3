package find

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/internal/text/rules/field"
	"github.com/coditect/mapreduce/internal/text/rules/form"
	"github.com/coditect/mapreduce/internal/text/rules/page"
	"github.com/coditect/mapreduce/internal/text/rules/phrase"
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
func (s *scope) bondBefore(m phrase.Mark) bond {
	if !s.FollowsWord(m) {
		return firm
	}

	before := s.Text[s.BeginOfCell(m.Start):m.Start]
	words := strings.FieldsFunc(before, page.NotWord)
	if allIn(words, wordsBefore) {
		return firm
	}

	if !s.LabelsGiven || s.MayGuess() || len(words) > foreignBefore || s.LabelDelimiter(m) == 0 && !s.InBars(m) {
		return loose
	}
	return foreign
}

// passOver notes that a label is a part of another one.
func (s *search) passOver(m phrase.Mark) {
	if s.passed != "" {
		return
	}
	line := s.Lines[s.LineAt(m.Start)]
	text := field.Clip(s.Text[s.BeginOfCell(m.Start):min(line.End, m.End+page.NearBytes)])
	s.passed = fmt.Sprintf("the label is a part of another one, %q; name that too if it is meant", text)
}

// bondAfter tells how a label goes with the words between it and a value.
func (s *scope) bondAfter(m phrase.Mark, value form.Span) bond {
	between := form.NewSpan(m.End, value.Start)
	if page.IsGap(between.Of(s.Text)) || s.addsNothing(between) {
		return firm
	}
	if !s.LabelsGiven || s.MayGuess() || len(s.Patterns)+len(s.Values) > 0 || s.inSentence(m, value) {
		return loose
	}
	return foreign
}

// inSentence reports whether a label and a value stand in a sentence rather than in a form:
// other words stand in front of the label, many stand between, or the text goes on behind
// the value. What follows a colon, and scripts without spaces, are read as sentences, too.
func (s *scope) inSentence(m phrase.Mark, value form.Span) bool {
	between := strings.TrimLeft(s.Text[m.End:value.Start], page.Leaders+")")
	first, _ := utf8.DecodeRuneInString(between)

	if strings.ContainsAny(between, "|\t") {
		return false // the value has a cell of its own
	}

	if strings.HasPrefix(between, ":") || strings.HasPrefix(between, page.WideColon) || unicode.IsLetter(first) && !phrase.IsWord(first) {
		return true
	}

	if strings.ContainsFunc(s.Text[s.BeginOfCell(m.Start):m.Start], unicode.IsLetter) {
		return true
	}

	if len(strings.FieldsFunc(s.Text[m.End:value.Start], page.NotWord)) >= sentenceWords {
		return true
	}

	rest := s.Text[value.End:max(value.End, s.Lines[s.LineAt(value.End)].End)]
	rest = strings.TrimLeft(rest, " ,")
	first, _ = utf8.DecodeRuneInString(rest)
	return strings.TrimSpace(rest) == "." || unicode.IsLower(first)
}

// addsNothing reports whether the words between a label and a value leave what the label
// means: such as those of "Total for this invoice", "Total incl. 19% VAT" and "Total on 3
// August".
func (s *scope) addsNothing(between form.Span) bool {
	text := between.Of(s.Text)
	for i, date := range field.DateScanner(s.Text, between.Start, between.End, s.Style) {
		if i == 0 && s.Element.Numeric() { // a date may stand between a label and an amount
			text = s.Text[between.Start:date.Start] + " " + s.Text[date.End:between.End]
		}
	}

	included := false // what follows tells what a sum includes
	for _, w := range form.Words(text, 0, len(text)) {
		word := format.Fold(text[w.Start:w.End])
		switch {
		case strings.TrimFunc(text[w.Start:w.End], page.NotWord) == "": // a dash, or the mark of a note
		case included, wordsAfter[word], format.EndsWithCurrency(text, w.End), isPercent(text, w):
		case s.Element.Numeric() && inclusionWords[word]:
			included = true
		case s.Element.Numeric() && amountWords[word]:
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
