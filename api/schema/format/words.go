package format

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// A numberWord is what a word adds to a number: a value, or a factor for what
// stands before it.
type numberWord struct {
	value  int64
	factor bool
}

// numberWords are words for numbers, in lower case and without accents, from
// English and, below a hundred, from other languages.
var numberWords = func() map[string]numberWord {
	words := map[string]numberWord{}
	add := func(value int64, forms string) {
		for form := range strings.FieldsSeq(forms) {
			if _, known := words[form]; !known {
				words[form] = numberWord{value: value}
			}
		}
	}
	for i, forms := range strings.Split("zero null|one ein eine einen einem einer eins un une uno una um uma een|"+
		"two zwei deux dos due dois duas twee|three drei trois tres tre drie|four vier quatre cuatro quattro quatro|"+
		"five funf fuenf cinq cinco cinque vijf|six sechs seis sei zes|seven sieben sept siete sette sete zeven|"+
		"eight acht huit ocho otto oito|nine neun neuf nueve nove negen|ten zehn dix diez dieci dez tien|"+
		"eleven elf onze once undici|twelve zwolf zwoelf douze doce dodici doze twaalf|thirteen dreizehn treize trece tredici treze dertien|"+
		"fourteen vierzehn quatorze catorce quattordici veertien|fifteen funfzehn fuenfzehn quinze quince quindici vijftien|"+
		"sixteen sechzehn seize dieciseis sedici dezesseis zestien|seventeen siebzehn diciassette zeventien|"+
		"eighteen achtzehn dieciocho diciotto dezoito achttien|nineteen neunzehn diecinueve diciannove dezenove negentien", "|") {
		add(int64(i), forms)
	}
	for i, forms := range strings.Split("twenty zwanzig vingt veinte venti vinte twintig|thirty dreissig dreißig trente treinta trenta trinta dertig|"+
		"forty fourty vierzig quarante cuarenta quaranta quarenta veertig|fifty funfzig fuenfzig cinquante cincuenta cinquanta cinquenta vijftig|"+
		"sixty sechzig soixante sesenta sessanta sessenta zestig|seventy siebzig setenta settanta zeventig|"+
		"eighty achtzig ochenta ottanta oitenta tachtig|ninety neunzig noventa novanta negentig", "|") {
		add(int64(i+2)*10, forms)
	}
	for factor, forms := range map[int64]string{
		100: "hundred hundert cent cien ciento honderd", 1000: "thousand tausend mille mil duizend",
		1e6: "million millions", 1e9: "billion billions", 1e12: "trillion trillions",
	} {
		for form := range strings.FieldsSeq(forms) {
			words[form] = numberWord{factor, true}
		}
	}
	return words
}()

// plainLetters removes the accents that occur in number words.
var plainLetters = strings.NewReplacer("ü", "u", "ö", "o", "é", "e", "ê", "e", "ó", "o", "ë", "e")

// longestWord bounds a word of a number, in bytes.
const longestWord = 16

// BeginsWords reports whether a word for a number, or a part of such, is at s[i].
func BeginsWords(s string, i int) bool {
	_, known := numberWords[plainLetters.Replace(strings.ToLower(scan.Word(s, i, longestWord)))]
	return known
}

// WordsAt reads the number in words that begins at s[start], such as "two hundred
// and fifty" or "twenty-one", and returns it and the index where it ends.
func WordsAt(s string, start int) (n int64, end int, ok bool) {
	total, group := int64(0), int64(0) // below the last thousand, and since
	last := int64(1 << 62)             // the least value yet in the group
	for at := start; ; {
		word := scan.Word(s, at, longestWord)
		w, known := numberWords[plainLetters.Replace(strings.ToLower(word))]

		switch {
		// "And" goes on with the number only behind a hundred or a larger step, and with
		// less than that.
		case !known && ok && (strings.EqualFold(word, "and") || strings.EqualFold(word, "und")):
			if at = nextWord(s, at+len(word)); at < 0 {
				return total + group, end, true
			}
			if next, known := numberWords[strings.ToLower(scan.Word(s, at, longestWord))]; !known || next.factor || next.value >= last || last < 100 {
				return total + group, end, true
			}
			continue
		case !known || total+group > 1e15:
			return total + group, end, ok
		case w.factor && w.value == 100:
			if group >= 100 {
				return total + group, end, ok
			}
			group, last = max(group, 1)*100, 100
		case w.factor:
			if !ok && w.value > 1000 || total > 0 && total < w.value*1000 && total%(w.value*1000) != 0 {
				return total + group, end, ok
			}
			total, group, last = total+max(group, 1)*w.value, 0, w.value
		case ok && (w.value == 0 || w.value >= last || last < 20):
			return total + group, end, ok
		default:
			group, last = group+w.value, w.value
		}

		ok, end = true, at+len(word)
		if at = nextWord(s, end); at < 0 {
			return total + group, end, true
		}
	}
}

// nextWord returns where the word behind a gap of spaces, a hyphen or one end of a
// line begins; -1 if something else follows.
func nextWord(s string, i int) int {
	at := scan.SkipSpace(s, i)
	if at == i && at < len(s) && s[at] == '-' {
		at++
	}
	c, _ := utf8.DecodeRuneInString(s[min(at, len(s)):])
	if at == i || !unicode.IsLetter(c) {
		return -1
	}
	return at
}

// ParseNumberWords reads a number as ParseNumber does, or in words: "two hundred and
// fifty", "thirty (30)". If a number stands in parentheses behind the words, the
// two must agree.
func ParseNumberWords(s string) (string, bool) {
	s = strings.TrimSpace(s)
	n, end, ok := WordsAt(s, 0)
	if !ok {
		return ParseNumber(s)
	}

	rest := strings.TrimSpace(s[end:])
	if rest == "" {
		return CanonicalNumber(decimal(n))
	}

	if inner, ok := strings.CutPrefix(rest, "("); ok {
		// The number in parentheses must say the same, and nothing but a unit may follow.
		inner, tail, closed := strings.Cut(inner, ")")
		digits, isNumber := ParseNumber(inner)
		return digits, closed && isNumber && digits == decimal(n) && trimUnits("1"+tail) == "1"
	}

	return CanonicalNumber(decimal(n))
}
