package richtext

import (
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// HeadGoesOn reports whether a row belongs to the head that the row above it ends, as a cell covers
// both. If nothing says that there is a head, another cell has to name several columns that the row
// names one by one, and the rows below need numbers there: otherwise it may be the second line of a
// form, or a row of values the first of which holds for the next rows as well.
func HeadGoesOn(above, row []Cell, below iter.Seq[[]Cell], said bool) bool {
	if !slices.ContainsFunc(row, func(c Cell) bool { return c.Tall }) {
		return false
	}
	if said {
		return true
	}

	for _, c := range slices.Concat(above, row) {
		if !namePattern.MatchString(strings.TrimSpace(c.Text)) {
			return false
		}
	}

	columns, ok := dividedColumns(above, row)
	return ok && haveNumbers(below, columns)
}

// DividesNames reports whether a row names one by one the columns that cells of the row above name
// together, beside a cell that covers both.
func DividesNames(above, row []Cell) bool {
	_, ok := dividedColumns(above, row)
	return ok && slices.ContainsFunc(row, func(c Cell) bool { return c.Tall })
}

// namePattern finds what may name columns by themselves: no number but a year or a day of one, or one such
// as Q1, and not the label of a form.
var namePattern = regexp.MustCompile(`^(?:[^\d:]*|(?:[^:]*[^\d:])?(?:19|20)\d\d|(?:19|20)\d\d-\d\d-\d\d|\pL\d\d?)$`)

// dividedColumns returns the columns of the cells of a row that are divided below: where each column has
// a cell that says something. ok is false if there are none, or if one is not divided.
func dividedColumns(above, row []Cell) (columns []int, ok bool) {
	below := map[int]Cell{}
	column := 0
	for _, c := range row {
		below[column] = c
		column += c.width()
	}

	column = 0
	for _, c := range above {
		if c.Span > 1 && !c.Tall {
			for i := column; i < column+c.Span; i++ {
				part, found := below[i]
				if !found || part.Tall || part.width() > 1 || strings.TrimSpace(part.Text) == "" {
					return nil, false
				}
				columns = append(columns, i)
			}
		}
		column += c.width()
	}

	return columns, len(columns) > 0
}

// haveNumbers reports whether rows have numbers in some columns, which are sorted, and no other texts. A
// cell of several columns says nothing of one: it may be the label of a sum.
func haveNumbers(rows iter.Seq[[]Cell], columns []int) bool {
	found := false
	for row := range rows {
		column := 0
		for _, c := range row {
			at := column
			column += c.width()

			// Tables may have many thousands of columns.
			if _, among := slices.BinarySearch(columns, at); !among || c.width() > 1 {
				continue
			}

			number, empty := readsAsNumber(c.Text)
			if !number && !empty {
				return false
			}
			found = found || number
		}
	}

	return found
}

// maxUnit is the letters that a number may have, those of a unit or a currency, and that what stands for
// none may have, such as n/a.
const maxUnit = 3

// readsAsNumber reports whether a text is a number, maybe with its unit, or neither that nor words, as a
// dash is, or n/a.
func readsAsNumber(text string) (number, empty bool) {
	digits, letters := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	return digits > 0 && letters <= maxUnit, digits == 0 && letters <= maxUnit
}
