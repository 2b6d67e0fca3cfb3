package prose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Word is a word or a number of a text.
type Word struct {
	Span
	Lower  string // in small letters
	Stem   string // see Stem; of a number its canonical form
	Number bool   // it is a number, in digits or in words
	Name   bool   // it is written like a name: with capitals where a common word has none
	First  bool   // of its sentence
	Common bool   // it says nothing by itself: an article, a pronoun, an auxiliary
}

// Words returns the words and numbers of a text, in order. Numbers keep their decimals, and
// a sign; "12,500" is one number, and so is "12%".
func Words(text string) []Word {
	var all []Word
	first := true
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRuneInString(text[at:])

		switch {
		case unicode.IsDigit(r):
			end := numberEnd(text, at)
			// A name such as 5G begins with a digit, and is longer than the number.
			if word := wordEnd(text, at); word > end && isCode(text[at:word]) {
				all = append(all, newWord(text, at, word, first))
				at, first = word, false
				continue
			}

			all = append(all, Word{Span: Span{at, end}, Lower: text[at:end], Stem: canonicalNumber(text[at:end]), Number: true, First: first})
			at, first = end, false
		case isWordRune(r):
			end := wordEnd(text, at)
			all = append(all, newWord(text, at, end, first))
			at, first = end, false

		// A mark between words ends a sentence, so that the capital behind it makes no
		// name.
		default:
			if r == '.' || r == '!' || r == '?' || r == '\n' && breaksBlock(text[at+n:]) {
				first = first || at+n >= len(text) || unicode.IsSpace(rune(text[at+n])) && !isAbbreviation(text[:at], 'A')
			}
			at += n
		}
	}
	return all
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || r == '_' }

// isIdeograph reports whether a character is a word by itself.
func isIdeograph(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// isCode reports whether a word with digits is a name, such as 5G or B-52, and no number
// with its unit.
func isCode(text string) bool {
	letters := strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsDigit(r) || r == '.' || r == ',' })
	first, _ := utf8.DecodeRuneInString(letters)
	return unicode.IsUpper(first) && len(letters) <= 4
}

func wordEnd(text string, at int) int {
	first, n := utf8.DecodeRuneInString(text[at:])
	if isIdeograph(first) {
		return at + n
	}

	end := at
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		// An apostrophe between letters belongs to the word.
		joined := (r == '\'' || r == '’') && end > at && end+n < len(text)
		if joined {
			next, _ := utf8.DecodeRuneInString(text[end+n:])
			joined = isWordRune(next)
		}

		if !isWordRune(r) && !unicode.IsDigit(r) && !joined || isIdeograph(r) {
			break
		}
		end += n
	}
	return end
}

// numberEnd returns the end of the number that begins at a digit.
func numberEnd(text string, at int) int {
	end := at

	for end < len(text) {
		c := text[end]
		switch {
		case c >= '0' && c <= '9':
			end++
		case (c == '.' || c == ',') && end+1 < len(text) && text[end+1] >= '0' && text[end+1] <= '9':
			end += 2
		case c == '%':
			return end + 1
		default:
			// Digits of other scripts belong to the number, too.
			r, n := utf8.DecodeRuneInString(text[end:])
			if !unicode.IsDigit(r) {
				return end
			}
			end += n
		}
	}
	return end
}

// canonicalNumber returns a number without separators of thousands and trailing zeros.
func canonicalNumber(text string) string {
	percent := strings.HasSuffix(text, "%")
	text = strings.TrimSuffix(text, "%")
	// One comma before three digits parts thousands; any other one is taken for a decimal
	// point.
	if i := strings.LastIndex(text, ","); i >= 0 && len(text)-i == 4 || strings.Count(text, ",") > 1 {
		text = strings.ReplaceAll(text, ",", "")
	} else {
		text = strings.ReplaceAll(text, ",", ".")
	}

	if strings.Contains(text, ".") && strings.Count(text, ".") == 1 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if trimmed := strings.TrimLeft(text, "0"); trimmed != "" && trimmed[0] != '.' {
		text = trimmed
	}

	if percent {
		text += "%"
	}
	return text
}

// newWord returns the word at [at, end) of a text.
func newWord(text string, at, end int, first bool) Word {
	raw := text[at:end]

	w := Word{Span: Span{at, end}, Lower: strings.ToLower(raw), First: first}
	w.Lower = strings.ReplaceAll(w.Lower, "’", "'")

	if number, ok := numberWords[w.Lower]; ok {
		w.Number, w.Stem = true, number
		return w
	}

	w.Common = IsCommon(w.Lower)
	w.Stem = Stem(strings.TrimSuffix(w.Lower, "'s"))

	upper := 0
	for _, r := range raw {
		if unicode.IsUpper(r) || unicode.IsDigit(r) {
			upper++
		}
	}

	r, _ := utf8.DecodeRuneInString(raw)

	// A capital at the beginning of a sentence makes no name, but several do.
	w.Name = upper > 1 || unicode.IsUpper(r) && !first && !w.Common
	return w
}

// numberWords are numbers that are written in words. One is none: it is a pronoun as well.
var numberWords = map[string]string{
	"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
	"eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15", "sixteen": "16", "seventeen": "17",
	"eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60",
	"seventy": "70", "eighty": "80", "ninety": "90", "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000",
	"dozen": "12",
}

// IsCommon reports whether a word, in small letters, says nothing by itself.
func IsCommon(word string) bool { return common[word] }

// common are the words that say nothing by themselves.
var common = func() map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(`a an the this that these those some any each every either such same other another own
		i me my we us our you your he him his she her it its they them their who whom whose which what where when why how there here
		and or but nor so yet if then than as because while although though since until unless whereas whether
		of in on at by for with about against between into through during before after above below to from up down out off over under
		upon within without along across among toward towards via per including regarding concerning due despite
		am is are was were be been being have has had having do does did doing done will would shall should can could may might must
		not no never neither none cannot isn't aren't wasn't weren't don't doesn't didn't won't wouldn't can't couldn't
		also just only very too more most much many less least few several both all again further once ever always often
		however therefore thus hence moreover furthermore additionally overall generally typically particularly especially
		one ones said says say according well even still rather quite like
		report reports reported study studies show shows showed shown find finds found suggest suggests suggested indicate indicates indicated`) {
		m[w] = true
	}
	return m
}()

// Stem returns what a word in small letters has in common with its other forms, about:
// "regulates", "regulated" and "regulation" have the same stem. It is made for comparing
// words, and not to be read.
func Stem(w string) string {
	if len(w) < 4 || strings.ContainsFunc(w, func(r rune) bool { return r > 127 }) {
		return w
	}

	if irregular, ok := irregularStems[w]; ok {
		return irregular
	}

	w = stripPlural(w)
	if root, ok := strings.CutSuffix(w, "ied"); ok && len(root) > 2 {
		w = root + "y"
	}

	for _, s := range suffixes {
		if root, ok := strings.CutSuffix(w, s); ok && len(root) >= 3 && hasVowel(root) {
			// A long ending on a short root is more likely a part of the word.
			if len(root) < 4 && len(s) > 3 {
				continue
			}
			w = root
			break
		}
	}

	// Of a doubled consonant, as in stopped, one stays.
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiouls", rune(w[n-1])) {
		w = w[:n-1]
	}

	w = strings.TrimSuffix(w, "e")
	if strings.HasSuffix(w, "i") && len(w) > 3 {
		w = w[:len(w)-1] + "y"
	}

	return w
}

func stripPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// suffixes are stripped, the longest first.
var suffixes = []string{
	"izations", "isations", "ization", "isation", "ational", "fulness", "iveness", "ations", "ation", "ators", "ator", "ating", "ated", "ates", "ative",
	"izing", "ising", "ized", "ised", "ize", "ise", "ments", "ment", "ally", "ately", "ably", "ibly", "ical", "ions", "ion", "ives", "ive",
	"ings", "ing", "edly", "ers", "ors", "ness", "ances", "ance", "ences", "ence", "able", "ible", "ities", "ity", "ate", "ous", "ful", "ed", "er", "or", "al", "ic", "ly",
}

func hasVowel(w string) bool { return strings.ContainsAny(w, "aeiouy") }

var irregularStems = map[string]string{
	"children": "child", "people": "person", "persons": "person", "men": "man", "women": "woman", "mice": "mous", "mouse": "mous", "data": "dat",
	"went": "go", "gone": "go", "goes": "go", "going": "go", "made": "mak", "making": "mak", "makes": "mak", "took": "tak", "taken": "tak", "taking": "tak",
	"gave": "giv", "given": "giv", "giving": "giv", "came": "com", "coming": "com", "became": "becom", "began": "begin", "begun": "begin", "beginning": "begin",
	"grew": "grow", "grown": "grow", "rose": "ris", "risen": "ris", "rising": "ris", "fell": "fall", "fallen": "fall", "led": "lead", "leading": "lead",
	"held": "hold", "kept": "keep", "left": "leav", "leaving": "leav", "lost": "los", "losing": "los", "met": "meet", "won": "win", "winning": "win",
	"sent": "send", "spent": "spend", "told": "tell", "thought": "think", "brought": "bring", "bought": "buy", "built": "build", "caught": "catch",
	"fought": "fight", "sought": "seek", "seen": "see", "saw": "see", "wrote": "writ", "written": "writ", "writing": "writ", "spoke": "speak", "spoken": "speak",
	"chose": "choos", "chosen": "choos", "choosing": "choos", "drove": "driv", "driven": "driv", "knew": "know", "known": "know", "better": "good", "best": "good",
	"worse": "bad", "worst": "bad", "analyses": "analys", "analysis": "analys", "analyzed": "analys", "analysed": "analys", "criteria": "criterion",
	"binding": "bind", "bound": "bind", "died": "di", "dies": "di", "dying": "di", "death": "di", "deaths": "di", "dead": "di",
}
