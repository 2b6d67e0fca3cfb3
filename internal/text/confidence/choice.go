package confidence

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
)

// judgeChoice searches the quote for the phrases of a value, or for the value itself. A
// quote that has another choice, and not this one, speaks against it.
func (q *quotation) judgeChoice(p *schema.Property, want string, value any) Verdict {
	text := q.space()
	if hasChoice(p, want, text) {
		return Confirms
	}

	if !q.saysSomething() {
		return Contradicts
	}

	for _, other := range p.Enum {
		s, isText := other.(string)
		if !isText || p.Identity(other) == want || tellsLittle[format.Fold(s)] {
			continue
		}
		// The name of a choice may be a word of anything, if it is short.
		if utf8.RuneCountInString(s) >= 3 && hasPhrase(text, spaced(s)) && !isDenied(text, spaced(s)) && !strings.Contains(spaced(choiceText(value)), spaced(s)) {
			return Contradicts
		}
	}
	return Silent
}

// tellsLittle are choices that a quote may have whatever is chosen.
var tellsLittle = map[string]bool{"other": true, "none": true, "unknown": true, "yes": true, "not": true, "any": true, "all": true, "n/a": true}

// hasChoice reports whether a text has a choice, or a phrase that means it.
func hasChoice(p *schema.Property, want, text string) bool {
	for _, v := range p.Hints.Values {
		if p.Identity(v.Canonical) != want {
			continue
		}
		for _, phrase := range v.Phrases {
			if strings.Contains(text, spaced(phrase)) {
				return true
			}
		}
	}

	for _, choice := range p.Enum {
		if p.Identity(choice) == want && hasPhrase(text, spaced(choiceText(choice))) {
			return true
		}
	}

	// Without an enum any text may be the choice, and has to stand there itself.
	return p.Enum == nil && hasPhrase(text, spaced(want))
}

func choiceText(value any) string {
	s, _ := value.(string)
	return s
}

// spaced folds a text for comparison, with a space for a hyphen or an underscore: in_progress
// and In progress are the same choice.
func spaced(s string) string { return spacedOf(format.Fold(s)) }

// spacedOf is spaced for a text that is folded.
func spacedOf(folded string) string {
	return strings.Join(strings.FieldsFunc(folded, func(c rune) bool { return unicode.IsSpace(c) || c == '_' || c == '-' }), " ")
}

// hasPhrase reports whether a text has a phrase, as words of its own: art is none of party.
func hasPhrase(text, phrase string) bool { return phraseAt(text, phrase) >= 0 }

// phraseAt returns where a phrase stands in a text, as words of its own; -1 if it does not.
func phraseAt(text, phrase string) int {
	if phrase == "" {
		return -1
	}
	for from := 0; ; {
		at := strings.Index(text[from:], phrase)
		if at < 0 {
			return -1
		}
		// The phrase stands for itself only if no word goes on over one of its ends.
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		first, width := utf8.DecodeRuneInString(phrase)
		last, _ := utf8.DecodeLastRuneInString(phrase)
		after, _ := utf8.DecodeRuneInString(text[at+len(phrase):])

		if !joins(before, first) && !joins(last, after) {
			return at
		}
		from = at + width
	}
}

// joins reports whether two characters side by side belong to one word.
func joins(a, b rune) bool {
	switch {
	case unicode.In(a, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || unicode.In(b, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
		return false // these are written without spaces
	case unicode.IsDigit(a) || unicode.IsDigit(b):
		return unicode.IsDigit(a) && unicode.IsDigit(b)
	}
	return unicode.IsLetter(a) && unicode.IsLetter(b)
}

// hasWords reports whether a text has a letter or a digit, without which it says nothing.
func hasWords(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) })
}

// answerHead parts an answer from its question.
var answerHead = regexp.MustCompile(`^.*[:=?|\t\n]\s*`)

// judgeBoolean judges yes or no by an answer that the quote is or ends with, or by a
// negation beside the name of the property.
func (q *quotation) judgeBoolean(p *schema.Property, value bool) Verdict {
	text := q.fold()
	head := answerHead.FindString(text)
	if yes, ok := format.ParseAnswer(strings.Trim(strings.TrimPrefix(text, head), " .,;!()[]")); ok {
		// A question that is put the other way round has the other answer.
		if yes != isInverse(p.Name, head) == value {
			return Confirms
		}
		return Contradicts
	}

	if !q.saysSomething() {
		return Contradicts
	}

	for word := range strings.FieldsSeq(spaced(p.Name)) {
		if utf8.RuneCountInString(word) < 4 || !hasPhrase(q.space(), word) {
			continue
		}

		switch denied := isDenied(q.space(), word); {
		case denied && value:
			return Contradicts
		case denied:
			return Confirms
		}
	}
	return Silent
}

// inversePrefixes turn the meaning of a name into its opposite.
var inversePrefixes = []string{"un", "non", "not", "no", "in", "dis", "without"}

// isInverse reports whether the name of a property is the opposite of a word of the
// question that was answered: unpaid of paid.
func isInverse(name, question string) bool {
	if hasPhrase(spaced(question), spaced(name)) {
		return false // the question is the name, with all that denies in it: no_colour: true
	}
	for word := range strings.FieldsSeq(spaced(name)) {
		for _, prefix := range inversePrefixes {
			stem, cut := strings.CutPrefix(word, prefix)
			if cut && len(stem) >= 3 && hasPhrase(spaced(question), stem) {
				return true
			}
		}
	}

	first, rest, _ := strings.Cut(spaced(name), " ")
	return (first == "no" || first == "not" || first == "without") && rest != "" && hasPhrase(spaced(question), rest)
}

// denial matches words that deny what stands behind them.
var denial = regexp.MustCompile(`(?:^|[^\pL])(?:not|no|never|neither|nor|without|n't|isn’t|nicht|kein|keine|keinen|ohne|nie|pas|sans|jamais|sin|nunca|senza|non|não|sem|niet|geen|zonder)(?:[^\pL]+\pL+){0,2}[^\pL]*$`)

// isDenied reports whether a phrase of a text is denied by a word close in front of it.
func isDenied(text, phrase string) bool {
	at := phraseAt(text, phrase)
	if at < 0 {
		return false
	}

	before := text[:at]
	if i := strings.LastIndexAny(before, ".;!?\n"); i >= 0 {
		before = before[i+1:]
	}

	return denial.MatchString(strings.ReplaceAll(before, "n't ", " not "))
}
