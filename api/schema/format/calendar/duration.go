package calendar

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// A durationUnit is one of the parts of a duration, in the order of ISO 8601.
type durationUnit int

const (
	noUnit durationUnit = iota - 1
	yearUnit
	monthUnit
	weekUnit
	dayUnit
	hourUnit
	minuteUnit
	secondUnit
)

// durationUnits are the words for units of time, in lower case.
var durationUnits = func() map[string]durationUnit {
	units := map[string]durationUnit{}
	for unit, forms := range map[durationUnit]string{
		yearUnit:   "year years yr yrs annum jahr jahre jahren jahres an ans année années año años ano anos anno anni jaar jaren år rok roku lata lat roky let год года лет годов év yıl vuotta",
		monthUnit:  "month months mo mos monat monate monaten monats mois mes meses mês mese mesi maand maanden månad månader måned måneder miesiąc miesiące miesięcy měsíc měsíce měsíců месяц месяца месяцев hónap ay kuukautta",
		weekUnit:   "week weeks wk wks woche wochen semaine semaines semana semanas settimana settimane weken vecka veckor uge uger uke uker tydzień tygodnie tygodni týden týdny týdnů неделя недели недель hét hafta viikkoa",
		dayUnit:    "day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen dagar dage dager dzień dni den dny dnů день дня дней nap gün päivää",
		hourUnit:   "hour hours hr hrs stunde stunden heure heures hora horas ora ore uur timme timmar time timer godzina godziny godzin hodina hodiny hodin час часа часов óra saat tuntia",
		minuteUnit: "minute minutes min mins minuten minuto minutos minuti minuut minuter minutter minuta minuty minut минута минуты минут perc dakika minuuttia",
		secondUnit: "second seconds sec secs sekunde sekunden seconde secondes segundo segundos secondo secondi seconden sekund sekunder sekunda sekundy секунда секунды секунд",
	} {
		for form := range strings.FieldsSeq(forms) {
			units[form] = unit
		}
	}
	return units
}()

// longestUnit bounds a word for a unit of time, in bytes.
const longestUnit = 32

// eastAsianUnits are the signs for units of time, the longer before the shorter.
var eastAsianUnits = []struct {
	sign string
	unit durationUnit
}{
	{"年間", yearUnit},
	{"年间", yearUnit},
	{"年", yearUnit},
	{"년간", yearUnit},
	{"년", yearUnit},
	{"ヶ月間", monthUnit},
	{"か月間", monthUnit},
	{"ヶ月", monthUnit},
	{"か月", monthUnit},
	{"カ月", monthUnit},
	{"箇月", monthUnit},
	{"个月", monthUnit},
	{"個月", monthUnit},
	{"개월", monthUnit},
	{"週間", weekUnit},
	{"周", weekUnit},
	{"週", weekUnit},
	{"주", weekUnit},
	{"日間", dayUnit},
	{"日", dayUnit},
	{"天", dayUnit},
	{"일", dayUnit},
	{"時間", hourUnit},
	{"小时", hourUnit},
	{"小時", hourUnit},
	{"시간", hourUnit},
	{"分钟", minuteUnit},
	{"分", minuteUnit},
	{"분", minuteUnit},
	{"秒", secondUnit},
	{"초", secondUnit},
}

// isoDuration is the form in which durations are kept.
var isoDuration = regexp.MustCompile(`^P(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+W)?(?:[0-9]+D)?(?:T(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+S)?)?$`)

// DurationAt reads the duration that begins at s[start]: "two (2) years", "30 days",
// "1 year and 6 months", "zwölf Monate", "3年間", P2Y. It returns it in ISO 8601 and
// the index where it ends. A number in words and the one in parentheses behind it
// must agree.
func DurationAt(s string, start int) (iso string, end int, ok bool) {
	if strings.HasPrefix(s[start:], "P") {
		end := start + 1
		for end < len(s) && end-start < 30 && (digitAt(s, end) || strings.IndexByte("YMWDTHS", s[end]) >= 0) {
			end++
		}
		iso = s[start:end]
		return iso, end, len(iso) > 2 && isoDuration.MatchString(iso) && !strings.HasSuffix(iso, "T")
	}

	var parts [secondUnit + 1]int64

	last := noUnit
	for at := start; at >= 0; {
		n, half, unit, next, found := durationPart(s, at)
		// Units get smaller from part to part, and half of one is exact only for years and
		// hours.
		if !found || unit <= last || half && unit != yearUnit && unit != hourUnit {
			break
		}

		parts[unit], last, end, ok = n, unit, next, true
		if half && unit == yearUnit {
			parts[monthUnit], last = 6, monthUnit
		} else if half {
			parts[minuteUnit], last = 30, minuteUnit
		}

		at = nextPart(s, next)
	}

	if !ok {
		return "", 0, false
	}

	return formatDuration(parts), end, true
}

// nextPart returns where a further part of a duration may begin: behind spaces, a
// comma, "and".
func nextPart(s string, i int) int {
	p := &cursor{s: s, i: i}
	p.skipChars(",")
	p.skipSpace()
	if p.readWord("and", "und", "et", "y", "e", "en", "och", "og") {
		p.skipSpace()
	}
	if p.i >= len(s) {
		return -1
	}
	return p.i
}

// durationPart reads a number and a unit of time. Half says that half a unit is to
// be added.
func durationPart(s string, at int) (n int64, half bool, unit durationUnit, end int, ok bool) {
	p := &cursor{s: s, i: at}
	if n, half, ok = p.readCount(); !ok {
		return 0, false, noUnit, 0, false
	}

	p.skipSpace()
	p.skipChars("-")

	for _, east := range eastAsianUnits {
		if strings.HasPrefix(p.s[p.i:], east.sign) {
			return n, half, east.unit, p.i + len(east.sign), true
		}
	}

	for _, adjective := range []string{"calendar", "business", "consecutive", "full", "working"} {
		if p.readWord(adjective) {
			p.skipSpace()
			break
		}
	}

	word := scan.Word(s, p.i, longestUnit)
	unit, ok = durationUnits[strings.ToLower(word)]
	return n, half, unit, p.i + len(word), ok
}

// readCount reads 2, 1.5, two, two (2) or 2 (two).
func (p *cursor) readCount() (n int64, half, ok bool) {
	if n, half, ok = p.readPlainCount(); !ok {
		return 0, false, false
	}

	again := *p
	again.skipSpace()

	if again.i < len(p.s) && p.s[again.i] == '(' {
		// The number in parentheses counts only if it ends there; then both must agree.
		again.i++
		other, _, isNumber := again.readPlainCount()
		if isNumber && again.i < len(p.s) && p.s[again.i] == ')' {
			again.i++
			*p = again
			return n, half, n == other
		}
	}

	return n, half, true
}

// readPlainCount reads 2, 1.5 or two.
func (p *cursor) readPlainCount() (n int64, half, ok bool) {
	if digitAt(p.s, p.i) {
		value, _, isNumber := p.readNumber(5)
		n, ok = int64(value), isNumber
		if rest := p.s[p.i:]; strings.HasPrefix(rest, ".5") || strings.HasPrefix(rest, ",5") || strings.HasPrefix(rest, "½") {
			p.i += 2
			half = true
		}
	} else {
		words, end, isNumber := format.WordsAt(p.s, p.i)
		if n, ok = words, isNumber && words < 1e5; ok {
			p.i = end
		}
	}

	return n, half, ok
}

// formatDuration writes a duration in ISO 8601. Weeks beside other parts become days.
func formatDuration(parts [secondUnit + 1]int64) string {
	alone := true
	for unit, n := range parts {
		alone = alone && (n == 0 || durationUnit(unit) == weekUnit)
	}

	if !alone {
		parts[dayUnit] += 7 * parts[weekUnit]
		parts[weekUnit] = 0
	}

	var b strings.Builder
	b.WriteByte('P')

	for unit, sign := range "YMWDHMS" {
		// The T stands in front of hours, minutes and seconds, and only if there are some.
		if durationUnit(unit) == hourUnit && parts[hourUnit]+parts[minuteUnit]+parts[secondUnit] > 0 {
			b.WriteByte('T')
		}
		if parts[unit] > 0 {
			b.WriteString(strconv.FormatInt(parts[unit], 10))
			b.WriteRune(sign)
		}
	}

	if b.Len() == 1 {
		return "P0D"
	}

	return b.String()
}

// ParseDuration reads the first duration in s, whatever stands around it.
func ParseDuration(s string) (string, bool) {
	for i := range s {
		if !BeginsDuration(s, i) {
			continue
		}
		if iso, _, ok := DurationAt(s, i); ok {
			return iso, true
		}
	}
	return "", false
}

// BeginsDuration reports whether a duration may begin at s[i]: at a number or a word
// for one that is not part of another, or at a P before digits.
func BeginsDuration(s string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	if i > 0 && (unicode.IsDigit(before) || unicode.IsLetter(before) && !scan.IsEastAsian(before)) {
		return false
	}

	switch {
	case digitAt(s, i):
		return i < 2 || strings.IndexByte(".,", s[i-1]) < 0 || !digitAt(s, i-2)
	case s[i] == 'P' && (digitAt(s, i+1) || strings.HasPrefix(s[i:], "PT")):
		return true
	default:
		return format.BeginsWords(s, i)
	}
}

// DurationIdentity returns a string that is equal for durations of the same
// length, as far as that does not depend on the calendar: P12M and P1Y, P2W and
// P14D.
func DurationIdentity(iso string) string {
	var calendar, exact, n int64 // months, and seconds
	inTime := false
	for _, c := range iso {
		switch {
		case c >= '0' && c <= '9' && n < 1e12:
			n = n*10 + int64(c-'0')
			continue
		case c == 'T':
			inTime = true
		case c == 'Y':
			calendar += 12 * n
		case c == 'M' && !inTime:
			calendar += n
		case c == 'W':
			exact += 7 * 24 * 3600 * n
		case c == 'D':
			exact += 24 * 3600 * n
		case c == 'H':
			exact += 3600 * n
		case c == 'M':
			exact += 60 * n
		case c == 'S':
			exact += n
		}

		// A unit has used up its number, so the next one begins.
		n = 0
	}

	return strconv.FormatInt(calendar, 10) + "M" + strconv.FormatInt(exact, 10) + "S"
}
