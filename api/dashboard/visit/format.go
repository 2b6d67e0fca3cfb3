package visit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/shorten"
)

// Count writes a number in full, in groups of three digits. Browsers round numbers above 2⁵³,
// so all are written here.
func Count[N ~int | ~int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}

	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteString("\u202f") // a narrow blank, at which no line breaks
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// CountAny is count for templates.
func CountAny(n any) (string, error) {
	switch n := n.(type) {
	case int:
		return Count(n), nil
	case int64:
		return Count(n), nil
	}
	return "", fmt.Errorf("%T is no number that is counted", n)
}

// Money writes millionths of a US dollar: cents, and what is less than ten cents exactly.
func Money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "−", -micros
	}
	if micros >= 100_000 || micros == 0 {
		cents := (micros + 5_000) / 10_000
		return fmt.Sprintf("%s$%s.%02d", sign, Count(cents/100), cents%100)
	}
	return sign + "$" + strings.TrimRight(fmt.Sprintf("0.%06d", micros), "0")
}

// Percent writes a part of a whole, and never 100 % of what is not whole.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return "–"
	}
	tenths := int64(float64(part) / float64(whole) * 1000)
	if tenths >= 1000 && part < whole {
		tenths = 999
	}
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}

// Duration writes a time with its two largest units.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// Moment writes a time for machines, in UTC; scripts show it in the time of the reader.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Age writes how long ago something was.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return Duration(max(0, now.Sub(t)).Truncate(time.Second))
}

// Visible returns a text of somebody else's as pages show it: control characters, which a
// page would swallow, are shown as signs, and very long texts are cut.
func Visible(text any) string {
	s := shorten.Text(strings.ToValidUTF8(fmt.Sprint(text), "\ufffd"), MaxShown)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f || (r >= 0x80 && r < 0xa0):
			return 0x2421
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // they turn the text around them
			return 0xfffd
		}
		return r
	}, s)
}

// MaxShown bounds a text within a page, in characters.
const MaxShown = 20_000

// Rate writes how many of something came in a time; nothing where that says nothing.
func Rate(n int64, in time.Duration) string {
	if n == 0 || in < time.Second {
		return ""
	}

	tenths := n * 10 / int64(in/time.Second)
	if tenths >= 100 {
		return Count(tenths/10) + "/s"
	}
	if tenths > 0 {
		return Count(tenths/10) + "." + string(rune('0'+tenths%10)) + "/s"
	}
	return Count(n*60/max(1, int64(in/time.Second))) + "/min"
}

// Btoi returns 1 of what is so, and 0 of what is not: for orders.
func Btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
