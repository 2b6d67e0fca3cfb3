package richtext

import (
	"strconv"
	"strings"
)

// A NumberFormat is a way to write the number of an item.
type NumberFormat int8

// How numbers are written.
const (
	Bullet NumberFormat = iota
	NoNumber
	Decimal     // 1, 2, 3
	DecimalZero // 01, 02, 03
	LowerLetter // a, b, c
	UpperLetter
	LowerRoman // i, ii, iii
	UpperRoman
)

// BulletMark is the mark of items that have no number.
const BulletMark = "-"

// A ListLevel says how the items of one level of a list are marked.
type ListLevel struct {
	Format NumberFormat
	Start  int    // number of the first item
	Text   string // with %1 to %9 for the numbers of levels, such as "%1.%2."
}

// maxListLevels is how many levels lists have.
const maxListLevels = 10

// A ListCounter counts the items of a list. The zero ListCounter has counted none.
type ListCounter struct {
	counts  [maxListLevels]int
	counted [maxListLevels]bool
}

// Restart makes the next item of a level have a number.
func (c *ListCounter) Restart(level, number int) {
	if 0 <= level && level < maxListLevels {
		c.counts[level], c.counted[level] = number-1, true
	}
}

// Next counts an item of a level from 0, and returns its mark, as Levels have it. Those
// of deeper levels begin anew.
func (c *ListCounter) Next(levels []ListLevel, level int) string {
	// A level above that has no item yet counts as having its first one.
	level = min(max(level, 0), len(levels)-1, maxListLevels-1)
	for i := range level + 1 {
		if !c.counted[i] {
			c.counts[i], c.counted[i] = levels[i].Start, true
			if i == level {
				c.counts[i]--
			}
		}
	}

	c.counts[level]++

	for i := level + 1; i < maxListLevels; i++ {
		c.counted[i] = false
	}

	l := levels[level]
	switch l.Format {
	case Bullet:
		return BulletMark
	case NoNumber:
		return ""
	}

	var mark strings.Builder
	for i := 0; i < len(l.Text); i++ {
		if l.Text[i] != '%' || i+1 == len(l.Text) || l.Text[i+1] < '1' || l.Text[i+1] > '9' {
			mark.WriteByte(l.Text[i])
			continue
		}
		i++
		if at := int(l.Text[i] - '1'); at < len(levels) && at < maxListLevels {
			mark.WriteString(FormatNumber(levels[at].Format, c.counts[at]))
		}
	}

	return mark.String()
}

// FormatNumber writes a number of an item.
func FormatNumber(f NumberFormat, n int) string {
	switch f {
	case Bullet, NoNumber:
		return ""
	case DecimalZero:
		if 0 <= n && n < 10 {
			return "0" + strconv.Itoa(n)
		}
	case LowerLetter, UpperLetter:
		if 0 < n && n <= 26*9 {
			return letterCase(strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1), f == UpperLetter)
		}
	case LowerRoman, UpperRoman:
		if 0 < n && n < 4000 {
			return letterCase(roman(n), f == UpperRoman)
		}
	}
	return strconv.Itoa(n)
}

func letterCase(s string, upper bool) string {
	if upper {
		return strings.ToUpper(s)
	}
	return s
}

func roman(n int) string {
	var b strings.Builder
	// Pairs such as "cm" stand before the smaller letters, as those would be repeated else.
	for _, d := range []struct {
		value  int
		digits string
	}{
		{1000, "m"},
		{900, "cm"},
		{500, "d"},
		{400, "cd"},
		{100, "c"},
		{90, "xc"},
		{50, "l"},
		{40, "xl"},
		{10, "x"},
		{9, "ix"},
		{5, "v"},
		{4, "iv"},
		{1, "i"},
	} {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.digits)
		}
	}

	return b.String()
}
