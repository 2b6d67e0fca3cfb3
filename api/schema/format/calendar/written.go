package calendar

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// BeginsDate reports whether a date that is written out may begin with the word or
// the sign at s[i]: the name of a month, a day in words, an era, a numeral of East
// Asia.
func BeginsDate(s string, i int) bool {
	if before, _ := utf8.DecodeLastRuneInString(s[:i]); i > 0 && unicode.IsLetter(before) && !scan.IsEastAsian(before) {
		return false
	}

	p := &cursor{s: s, i: i}
	if _, ok := p.readMonth(); ok {
		return true
	}

	if s[i] < utf8.RuneSelf {
		_, ok := p.readDayWord()
		return ok
	}

	east := eastAsian{p}
	_, isEra := east.readEra()
	return isEra || east.readHanDigits() != ""
}

// skipSpace moves over white space, the end of one line included.
func (p *cursor) skipSpace() {
	p.i = scan.SkipSpace(p.s, p.i)
}

// readWord reads one of the words, in any case, and reports whether there was one.
func (p *cursor) readWord(words ...string) bool {
	word := strings.ToLower(scan.Word(p.s, p.i, maxMonth))
	if !slices.Contains(words, word) {
		return false
	}
	p.i += len(word)
	return true
}

// dayMonthName reads the rest of 25 Dec 2018.
func (p *cursor) dayMonthName(day int) (string, bool) {
	p.afterDay()
	month, ok := p.readMonth()
	if !ok {
		return "", false
	}

	begin := p.i
	year, ok := p.yearAfterMonth()
	// In "26 - April 10, 2019" two digits are the day of the month that they follow.
	if !ok || p.i-begin <= len(" 10,") && p.isFullYearNext() {
		return "", false
	}

	return isoDate(year, month.month, day)
}

// isFullYearNext reports whether a comma and a year of four digits follow.
func (p *cursor) isFullYearNext() bool {
	look := *p
	if look.i >= len(look.s) || look.s[look.i] != ',' {
		return false
	}

	look.skipChars(", ")
	_, digits, ok := look.readNumber(5)
	return ok && digits == 4
}

// isMonthNext reports whether the name of a month follows the day, perhaps after
// an ordinal ending and separators.
func (p *cursor) isMonthNext() bool {
	look := *p
	look.afterDay()
	_, ok := look.readMonth()
	return ok
}

// ordinalEndings may follow the digits of a day: 18th, 1er, 1º, 18-го.
var ordinalEndings = []string{"st", "nd", "rd", "th", "er", "º", "°", "ª", "-го", "-е", "го", ":e", ":a"}

// afterDay skips the text that may stand between a day and the name of its month.
func (p *cursor) afterDay() {
	ordinal := false
	for _, ending := range ordinalEndings {
		rest := p.s[p.i:]
		if len(rest) >= len(ending) && strings.EqualFold(rest[:len(ending)], ending) {
			p.i += len(ending)
			ordinal = true
			break
		}
	}

	p.skipChars(" -/.,")

	if ordinal || p.wrapsBeforeMonth() {
		p.skipSpace()
	}

	before := p.i

	if p.readWord("day", "dia", "día") {
		p.skipSpace()
		p.skipChars(",")
	}

	if p.readWord("of", "de", "di", "do", "del", "des") {
		p.skipSpace()
	} else {
		// Without "of", a word "day" was not of the date.
		p.i = before
	}
}

// wrapsBeforeMonth reports whether the line ends here, and the next begins with the
// whole name of a month and a year of four digits.
func (p *cursor) wrapsBeforeMonth() bool {
	look := *p
	if look.skipSpace(); look.i == p.i || !strings.Contains(p.s[p.i:look.i], "\n") {
		return false
	}

	start := look.i
	// A short name, such as "mar", may be another word at the beginning of a line.
	if _, ok := look.readMonth(); !ok || look.i-start <= len("sept") && !strings.EqualFold(look.s[start:look.i], "may") &&
		!strings.EqualFold(look.s[start:look.i], "june") && !strings.EqualFold(look.s[start:look.i], "july") {
		return false
	}

	look.skipChars(", ")
	_, digits, ok := look.readNumber(4)
	return ok && digits == 4
}

// wrapsBeforeYear reports whether the line ends here, and the next begins with a year
// from 1900 to 2099.
func (p *cursor) wrapsBeforeYear() bool {
	look := *p
	if look.skipSpace(); look.i == p.i || !strings.Contains(p.s[p.i:look.i], "\n") {
		return false
	}
	year, digits, ok := look.readNumber(4)
	return ok && digits == 4 && year >= 1900 && year < 2100
}

// yearAfterMonth reads what follows the name of a month in a date: ", 2001",
// " de 2001", " del 2001", "'01".
func (p *cursor) yearAfterMonth() (int, bool) {
	comma := p.i
	p.skipChars(" -/.,'’")
	if strings.ContainsRune(p.s[comma:p.i], ',') || p.wrapsBeforeYear() {
		p.skipSpace()
	}
	if p.readWord("de", "del", "do", "of") {
		p.skipSpace()
	}
	return p.readYear()
}

// monthFirst reads Dec 25, 2018.
func (p *cursor) monthFirst() (string, bool) {
	month, ok := p.readMonth()
	if !ok || !month.english {
		return "", false
	}

	p.skipChars(" -/.")

	p.skipSpace()

	day, _, ok := p.readNumber(2)
	if !ok {
		return "", false
	}

	before := p.i

	// Something has to part the day from the year.
	p.afterDay()
	if p.i == before {
		return "", false
	}

	p.skipSpace()
	p.skipChars("'")

	year, ok := p.readYear()
	if !ok {
		return "", false
	}

	return isoDate(year, month.month, day)
}

// yearMonthName reads the rest of 2001. április 18. and 2001 April 18.
func (p *cursor) yearMonthName(year int) (string, bool) {
	p.skipChars(" .,-/")

	month, ok := p.readMonth()
	if !ok {
		return "", false
	}

	p.skipChars(" .-/")

	day, _, ok := p.readNumber(2)
	if !ok {
		return "", false
	}

	return isoDate(year, month.month, day)
}

// dayWords are the days of a month in words. Those above twenty are put together
// of a ten and another.
var dayWords = func() map[string]int {
	days := map[string]int{"thirtieth": 30}
	for i, word := range strings.Fields("first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth " +
		"thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth") {
		days[word] = i + 1
	}
	return days
}()

var dayTens = map[string]int{"twenty": 20, "thirty": 30}

// readDayWord reads a day in words: eighteenth, twenty-first.
func (p *cursor) readDayWord() (int, bool) {
	word := scan.Word(p.s, p.i, maxMonth)
	tens := dayTens[strings.ToLower(word)]
	if tens > 0 {
		p.i += len(word)
		p.skipChars("- ")
		word = scan.Word(p.s, p.i, maxMonth)
	}

	day, ok := dayWords[strings.ToLower(word)]
	if !ok || tens > 0 && day > 9 {
		return 0, false
	}

	p.i += len(word)
	return tens + day, true
}

// dayInWords reads "eighteenth day of April, 2001".
func (p *cursor) dayInWords() (string, bool) {
	day, ok := p.readDayWord()
	if !ok {
		return "", false
	}
	return p.dayMonthName(day)
}

// eras are the years before the first ones of the eras of Japan.
var eras = map[string]int{"令和": 2018, "平成": 1988, "昭和": 1925, "大正": 1911, "明治": 1867}

// An eastAsian cursor reads dates as Chinese, Japanese and Korean have them.
type eastAsian struct{ *cursor }

func eastAsianDate(p *cursor) (string, bool) { return eastAsian{p}.readDate() }

// readEra reads the name of an era and returns the year before its first.
func (p eastAsian) readEra() (int, bool) {
	for name, before := range eras {
		if strings.HasPrefix(p.s[p.i:], name) {
			p.i += len(name)
			return before, true
		}
	}
	return 0, false
}

// hanDigits are the digits of Chinese numerals, by value.
const hanDigits = "〇一二三四五六七八九"

// readHanDigits reads a run of Chinese numerals and full-width digits, and returns
// its characters.
func (p eastAsian) readHanDigits() string {
	start := p.i
	for _, c := range p.s[p.i:] {
		if !strings.ContainsRune(hanDigits+"○零十元０１２３４５６７８９", c) || p.i-start > 24 {
			break
		}
		p.i += utf8.RuneLen(c)
	}
	return p.s[start:p.i]
}

// readEastNumber reads a number in ASCII or full-width digits or in Chinese
// numerals, of at most limit digits.
func (p eastAsian) readEastNumber(limit int) (int, bool) {
	if digitAt(p.s, p.i) {
		n, _, ok := p.readNumber(limit)
		return n, ok
	}
	return hanNumber(p.readHanDigits(), limit)
}

// hanNumber reads Chinese numerals below one hundred, years digit by digit, and
// 元, the first year of an era.
func hanNumber(s string, limit int) (int, bool) {
	if s == "元" {
		return 1, true
	}
	n, digits, open := 0, 0, 0
	for _, c := range s {
		digits++

		switch i := strings.IndexRune(hanDigits, c); {
		// Ten multiplies the digit before it, which had been added as a unit.
		case c == '十':
			n, open = n+max(open, 1)*10-open, 0
			continue
		case c >= '０' && c <= '９':
			n, open = n*10+int(c-'０'), int(c-'０')
		case c == '○' || c == '零':
			n, open = n*10, 0
		case i >= 0:
			value := i / len("〇")
			if n > 0 && n%10 == 0 && digits > 1 && strings.ContainsRune(s, '十') {
				n, open = n+value, value
			} else {
				n, open = n*10+value, value
			}
		default:
			return 0, false
		}
	}

	return n, digits > 0 && (digits <= limit || strings.ContainsRune(s, '十'))
}

// readDate reads 2001年4月18日, 平成13年4月18日, 二〇〇一年四月十八日 and
// 2001년 4월 18일.
func (p eastAsian) readDate() (string, bool) {
	start := *p.cursor

	before, _ := p.readEra()

	year, ok := p.readPart(4, "年", "년")
	if !ok {
		*p.cursor = start
		return "", false
	}

	month, okMonth := p.readPart(2, "月", "월")
	day, okDay := p.readPart(2, "日", "号", "號", "일")

	iso, ok := isoDate(before+year, month, day)
	if !okMonth || !okDay || !ok {
		*p.cursor = start
		return "", false
	}

	return iso, true
}

// readPart reads a number and the sign behind it.
func (p eastAsian) readPart(limit int, signs ...string) (int, bool) {
	p.skipChars(" ")
	n, ok := p.readEastNumber(limit)
	p.skipChars(" ")
	for _, sign := range signs {
		if ok && strings.HasPrefix(p.s[p.i:], sign) {
			p.i += len(sign)
			return n, true
		}
	}
	return 0, false
}
