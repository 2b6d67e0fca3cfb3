// Package calendar reads dates, times of day and durations as people write them, in the languages of
// Europe and East Asia, and gives them the form of ISO 8601, in which they are compared and stored. It
// counts in which order a document writes its dates. Everything in it is pure. Of the project it imports
// package format, which reads the numbers in them, and must not import what knows of schemas.
package calendar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// DateAt reads the date that begins at s[start]. It returns the date in ISO 8601 and
// the index where it ends. It knows 2018-12-25, 20181225, 25/12/2018, 25-12-18, 25.12.18,
// and dates written out in the languages of Europe and East Asia: 25 Dec 2018,
// 25th day of December, 2018, DEC 25, 2018, 25. Dezember 2018, 25 de diciembre de 2018,
// 2018年12月25日, 平成30年12月25日, 2018년 12월 25일. If a number can be both day and
// month, the day comes first. Years of two digits are 1970 to 2069. DateAt ignores
// the text before start.
func DateAt(s string, start int) (iso string, end int, ok bool) {
	p := &cursor{s: s, i: start}
	if p.i >= len(s) {
		return "", 0, false
	}

	switch c := s[p.i]; {
	case c >= '0' && c <= '9':
		if iso, ok = eastAsianDate(p); !ok {
			iso, ok = p.numericDate()
		}
	case c >= utf8.RuneSelf:
		if iso, ok = eastAsianDate(p); !ok {
			iso, ok = p.monthFirst()
		}
	default:
		if iso, ok = p.monthFirst(); !ok {
			iso, ok = p.dayInWords()
		}
	}

	return iso, p.i, ok
}

// A cursor reads tokens of a string.
type cursor struct {
	s string
	i int
}

// readNumber reads a run of digits, at most limit of them; a longer run is none.
func (p *cursor) readNumber(limit int) (value, digits int, ok bool) {
	start := p.i
	for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		p.i++
		if p.i-start > limit {
			p.i = start
			return 0, 0, false
		}
	}
	value, err := strconv.Atoi(p.s[start:p.i])
	return value, p.i - start, err == nil
}

// skipChars moves over characters of set.
func (p *cursor) skipChars(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

// readSeparator reads one of - / . with at most one space on either side.
func (p *cursor) readSeparator() (byte, bool) {
	j := p.i
	if j < len(p.s) && p.s[j] == ' ' {
		j++
	}

	if j >= len(p.s) || strings.IndexByte("-/.", p.s[j]) < 0 {
		return 0, false
	}

	sep := p.s[j]

	if j++; j < len(p.s) && p.s[j] == ' ' {
		j++
	}

	p.i = j
	return sep, true
}

// numericDate reads a date that begins with a digit.
func (p *cursor) numericDate() (string, bool) {
	first, digits, ok := p.readNumber(8)
	if !ok {
		return "", false
	}

	switch digits {
	case 8:
		return isoDate(first/10000, first/100%100, first%100)
	case 4:
		return p.yearFirst(first)
	case 1, 2:
		if p.isMonthNext() {
			return p.dayMonthName(first)
		}
		return p.dayFirst(first)
	default:
		return "", false
	}
}

// yearFirst reads the rest of 2018-12-25 and 2018 Dec 25.
func (p *cursor) yearFirst(year int) (string, bool) {
	start := *p

	sep, ok := p.readSeparator()
	if !ok {
		return p.yearMonthName(year)
	}

	month, _, ok := p.readNumber(2)
	// The separator may belong to what is said of the year, as in 2018-Dec-25.
	if !ok {
		*p = start
		return p.yearMonthName(year)
	}

	again, ok := p.readSeparator()
	if !ok || again != sep {
		return "", false
	}

	day, _, ok := p.readNumber(2)
	if !ok {
		return "", false
	}

	return isoDate(year, month, day)
}

// dayFirst reads the rest of 25/12/2018, or of 12/25/2018 when only that can be
// meant.
func (p *cursor) dayFirst(first int) (string, bool) {
	sep, ok := p.readSeparator()
	if !ok {
		return "", false
	}

	second, _, ok := p.readNumber(2)
	if !ok {
		return "", false
	}

	again, ok := p.readSeparator()
	if !ok || again != sep {
		return "", false
	}

	year, ok := p.readYear()
	if !ok || p.continuesNumber(sep) {
		return "", false
	}

	// The day comes first, unless only the other order is a date.
	if iso, ok := isoDate(year, second, first); ok {
		return iso, true
	}

	return isoDate(year, first, second)
}

// continuesNumber reports whether another number follows after sep: then it was no
// date but something like an address or a version.
func (p *cursor) continuesNumber(sep byte) bool {
	return p.i+1 < len(p.s) && p.s[p.i] == sep && p.s[p.i+1] >= '0' && p.s[p.i+1] <= '9'
}

// readYear reads a year of two or four digits. Scanned text may run it into the time
// that follows, as in 201815:46.
func (p *cursor) readYear() (int, bool) {
	start := p.i

	year, digits, ok := p.readNumber(6)
	switch {
	case !ok:
		return 0, false
	case digits == 4:
		return year, true
	case digits == 2:
		return completeCentury(year), true
	// Of six digits before a colon, the last two are the hour of the time.
	case digits == 6 && p.i < len(p.s) && p.s[p.i] == ':':
		p.i = start + 4
		return year / 100, true
	default:
		return 0, false
	}
}

// completeCentury completes a year of two digits.
func completeCentury(year int) int {
	if year < 70 {
		return 2000 + year
	}
	return 1900 + year
}

// isoDate formats a date that exists.
func isoDate(year, month, day int) (string, bool) {
	if year < 1000 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return "", false
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day), true
}

func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	default:
		return 31
	}
}

// ParseDate reads the first date in s, whatever stands around it, such as a time
// or the name of a weekday.
func ParseDate(s string) (string, bool) {
	iso, _, ok := findDate(s)
	return iso, ok
}

// findDate returns the first date of s and the index where it ends.
func findDate(s string) (iso string, end int, ok bool) {
	for i := 0; i < len(s); i++ {
		if !dateStart(s, i) {
			continue
		}
		if iso, end, ok := DateAt(s, i); ok {
			return iso, end, true
		}
	}
	return "", 0, false
}

// dateStart reports whether a date may begin at i: not within a number or word.
func dateStart(s string, i int) bool {
	switch {
	case digitAt(s, i):
		return i == 0 || !digitAt(s, i-1)
	case s[i] >= utf8.RuneSelf:
		return utf8.RuneStart(s[i]) && BeginsDate(s, i)
	default:
		return letterAt(s, i) && (i == 0 || !letterAt(s, i-1))
	}
}

func digitAt(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

func letterAt(s string, i int) bool {
	return i < len(s) && (s[i]|0x20) >= 'a' && (s[i]|0x20) <= 'z'
}

// ParseTime reads 15:46, 15:46:09, 3:46 PM with an optional zone.
func ParseTime(s string) (string, bool) {
	s = strings.TrimSpace(s)
	iso, end, ok := timeAt(s, 0)
	if !ok || strings.TrimSpace(s[end:]) != "" {
		return "", false
	}
	return iso, true
}

// timeAt reads the time of day that begins at s[start].
func timeAt(s string, start int) (iso string, end int, ok bool) {
	p := &cursor{s: s, i: start}
	hour, _, ok := p.readNumber(2)
	if !ok || p.i >= len(s) || s[p.i] != ':' {
		return "", 0, false
	}

	p.i++

	minute, digits, ok := p.readNumber(2)
	if !ok || digits != 2 {
		return "", 0, false
	}

	second, fraction := 0, ""
	if p.i < len(s) && s[p.i] == ':' {
		p.i++
		if second, digits, ok = p.readNumber(2); !ok || digits != 2 {
			return "", 0, false
		}
		fraction = p.readFraction()
	}

	hour, ok = p.halfDay(hour)
	// A leap second has the number 60.
	if !ok || hour > 23 || minute > 59 || second > 60 {
		return "", 0, false
	}

	return fmt.Sprintf("%02d:%02d:%02d", hour, minute, second) + fraction + p.readZone(), p.i, true
}

// readFraction reads a fraction of a second, without the zeros at its end.
func (p *cursor) readFraction() string {
	if p.i+1 >= len(p.s) || p.s[p.i] != '.' || !digitAt(p.s, p.i+1) {
		return ""
	}
	start := p.i
	for p.i++; digitAt(p.s, p.i); p.i++ {
	}
	return strings.TrimRight(strings.TrimRight(p.s[start:p.i], "0"), ".")
}

// halfDay applies a following AM or PM.
func (p *cursor) halfDay(hour int) (int, bool) {
	rest := strings.TrimLeft(p.s[p.i:], " ")
	if len(rest) < 2 || (rest[1]|0x20) != 'm' || letterAt(rest, 2) {
		return hour, true
	}

	at := rest[0] | 0x20
	if at != 'a' && at != 'p' {
		return hour, true
	}

	p.i = len(p.s) - len(rest) + 2
	if hour < 1 || hour > 12 {
		return hour, hour <= 23 // "15:46 PM" is written too
	}

	hour %= 12
	if at == 'p' {
		hour += 12
	}

	return hour, true
}

// readZone reads Z or an offset such as +08:00; "" when there is none.
func (p *cursor) readZone() string {
	rest := p.s[p.i:]
	if rest != "" && (rest[0] == 'Z' || rest[0] == 'z') && !letterAt(rest, 1) {
		p.i++
		return "Z"
	}

	if len(rest) < 5 || rest[0] != '+' && rest[0] != '-' {
		return ""
	}

	hours, minutes := rest[1:3], strings.TrimPrefix(rest[3:], ":")
	if len(minutes) < 2 {
		return ""
	}
	minutes, behind := minutes[:2], minutes[2:]
	if strings.Trim(hours+minutes, "0123456789") != "" || hours > "14" || minutes > "59" {
		return ""
	}

	p.i = len(p.s) - len(behind)
	return rest[:1] + hours + ":" + minutes
}

// ParseDateTime reads a date and the time that follows it.
func ParseDateTime(s string) (string, bool) {
	date, end, ok := findDate(s)
	if !ok {
		return "", false
	}
	i := end + len(s[end:]) - len(strings.TrimLeft(s[end:], " ,Tt-"))
	clock, _, ok := timeAt(s, i)
	if !ok {
		return "", false
	}
	return date + "T" + clock, true
}
