package sheet

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

// BuiltinFormat returns the format of numbers with an id that workbooks do not list; "" if there is
// none.
func BuiltinFormat(id string) string {
	n, err := strconv.Atoi(id)
	if err != nil || n <= 0 || n > maxBuiltin {
		return ""
	}
	return builtinMark + id
}

// builtinMark begins the name of a format that is known by its number.
const (
	builtinMark = "\x00"
	maxBuiltin  = 81
)

// maxFormat is more than the bytes of any format that Excel keeps.
const maxFormat = 300

// A Formatter writes numbers as a sheet shows them. The zero Formatter is ready. It has a
// workbook of its own with a cell for each format, as the library formats the values of
// cells alone. No part of a user's file but its formats and numbers ever reaches the
// library.
type Formatter struct {
	file  *excelize.File
	cells map[string]string // by format; empty for formats that cannot be used
}

const formatterSheet = "Sheet1"

// daysUntil1904 is the number of 1904-01-01 where days are counted from 1900.
const daysUntil1904 = 1462

// Value returns a number as a format shows it, and as it is stored if that says more.
func (f *Formatter) Value(number float64, code string, from1904 bool) string {
	exact := strconv.FormatFloat(number, 'f', -1, 64)
	if math.Abs(number) >= 1e15 || number != 0 && math.Abs(number) < 1e-9 {
		exact = strconv.FormatFloat(number, 'g', -1, 64)
	} else if rounded := strconv.FormatFloat(number, 'g', 15, 64); !strings.Contains(rounded, "e") {
		exact = rounded // as Excel keeps no more digits
	}

	if code == "" || code == "General" || code == "@" || len(code) > maxFormat {
		return exact
	}

	shown, digits := exact, 0
	if section, ok := chosen(code, number); ok {
		code = section
		if number >= 0 && IsDateFormat(code) {
			code, digits = markFraction(code)
		}
		if s, ok := f.shownPart(number, code, digits, from1904); ok {
			shown = s
		}
	}

	// What is shown may leave out a part of a date, such as the year. A number beyond all days is none,
	// and programs show it as ####. Of one below zero what is shown may be a text, or nothing.
	switch {
	case number >= endOfDays(from1904) && IsDateFormat(code) && !isElapsed(code):
		return exact
	case isElapsed(code):
		return Date(shown, cmp.Or(elapsed(number, digits), exact))
	case IsDateFormat(code):
		return Date(shown, cmp.Or(isoDate(number, from1904, showsDay(code), digits), exact))
	}
	return Number(shown, number)
}

// elapsed returns a number of days as a duration in ISO 8601, with its part of a second if so many digits of
// it show.
func elapsed(number float64, digits int) string {
	days, part := storedPart(number, digits)
	text := Duration(days * 24 * 3600)
	if part == "" || text == "" {
		return text
	}

	if whole, ok := strings.CutSuffix(text, "S"); ok {
		return whole + part + "S"
	}
	return text + "0" + part + "S"
}

// shownPart is shown for a format in which fractionMark stands for so many digits of a part of a second.
func (f *Formatter) shownPart(number float64, code string, digits int, from1904 bool) (shown string, ok bool) {
	if digits == 0 {
		return f.shown(number, code, from1904)
	}

	seconds, part := splitSecond(number, digits)
	shown, ok = f.shown(seconds/(24*3600), code, from1904)
	return strings.ReplaceAll(shown, fractionMark, "."+part), ok
}

// shown returns a number as a format shows it.
func (f *Formatter) shown(number float64, code string, from1904 bool) (shown string, ok bool) {
	defer func() {
		if recover() != nil { // the library indexes some formats out of range
			shown, ok = "", false
		}
	}()

	if f.file == nil {
		f.file, f.cells = excelize.NewFile(), map[string]string{}
	}

	// The library takes a day off early dates that are counted from 1904, as if they were before the
	// leap day of 1900 that never was. It takes no section for zero, which is a day as others are.
	if from1904 && number >= 0 && IsDateFormat(code) && !isElapsed(code) {
		number += daysUntil1904
	}

	cell, known := f.cells[code]
	if !known {
		cell = f.newCell(code)
		f.cells[code] = cell
	}

	if cell == "" || f.file.SetCellValue(formatterSheet, cell, number) != nil {
		return "", false
	}

	shown, err := f.file.GetCellValue(formatterSheet, cell)
	return shown, err == nil
}

// newCell returns a cell that has a format; "" if the library does not take it.
func (f *Formatter) newCell(code string) string {
	style := &excelize.Style{CustomNumFmt: &code}
	if id, builtin := strings.CutPrefix(code, builtinMark); builtin {
		n, err := strconv.Atoi(id)
		if err != nil {
			return ""
		}
		style = &excelize.Style{NumFmt: n}
	}

	id, err := f.file.NewStyle(style)
	if err != nil {
		return ""
	}

	// Each format has a cell of its own, in one column.
	cell := "A" + strconv.Itoa(len(f.cells)+1)
	if err := f.file.SetCellStyle(formatterSheet, cell, cell, id); err != nil {
		return ""
	}

	return cell
}

// IsDateFormat reports whether a format shows dates or times.
func IsDateFormat(code string) bool {
	if id, builtin := strings.CutPrefix(code, builtinMark); builtin {
		n, err := strconv.Atoi(id)
		return err == nil && (14 <= n && n <= 22 || 27 <= n && n <= 36 || 45 <= n && n <= 47 || 50 <= n && n <= 58)
	}

	quoted := false

	// Letters of dates count outside of texts in quotes, escaped characters and brackets.
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\\' || c == '_' || c == '*':
			i++
		case c == '[':
			end := strings.IndexByte(code[i:], ']')
			if end < 0 {
				return false
			}
			if strings.Trim(strings.ToLower(code[i+1:i+end]), "hms") == "" { // hours beyond a day
				return true
			}
			i += end
		case strings.IndexByte("yYmMdDhHsS", c) >= 0:
			return true
		}
	}

	return false
}

// isElapsed reports whether a format shows how long something takes, in hours, minutes or
// seconds beyond a day, an hour or a minute.
func isElapsed(code string) bool {
	if id, builtin := strings.CutPrefix(code, builtinMark); builtin {
		return id == "46"
	}

	code = strings.ToLower(code)
	for {
		begin := strings.IndexByte(code, '[')
		end := begin + 1 + strings.IndexByte(code[begin+1:], ']')
		if begin < 0 || end <= begin {
			return false
		}
		if unit := code[begin+1 : end]; unit != "" && (strings.Trim(unit, "h") == "" || strings.Trim(unit, "m") == "" || strings.Trim(unit, "s") == "") {
			return true
		}
		code = code[end+1:]
	}
}

// endOfDays returns the number behind those of the last day that Excel knows, in the year 9999.
func endOfDays(from1904 bool) float64 {
	if from1904 {
		return 2_958_466 - daysUntil1904
	}
	return 2_958_466
}

// showsDay reports whether a format of dates shows more than a time of the day.
func showsDay(code string) bool {
	if id, builtin := strings.CutPrefix(code, builtinMark); builtin {
		n, err := strconv.Atoi(id)
		return err == nil && (14 <= n && n <= 17 || n == 22 || 27 <= n && n <= 31 || n == 36 || 50 <= n && n <= 54 || 57 <= n && n <= 58)
	}

	day, month, time := false, false, false

	// The first section is that of dates, and others may be texts.
	section := splitSections(code)[0]
	for i := 0; i < len(section); i++ {
		switch i = skipLiteral(section, i); {
		case i >= len(section):
		case strings.IndexByte("yYdD", section[i]) >= 0:
			day = true
		case strings.IndexByte("mM", section[i]) >= 0: // of months, or of minutes beside hours or seconds
			month = true
		case strings.IndexByte("hHsS", section[i]) >= 0:
			time = true
		}
	}

	return day || month && !time
}

// isoDate returns the date and time of a number in ISO 8601; of times of no day the time
// alone, and "" if it is none. A number below 1 is a time, or one of the first day: there is one only
// where days are counted from 1904, and the format shows which it is. The part of a second stands there if
// the format shows so many digits of it.
func isoDate(number float64, from1904, ofDay bool, digits int) string {
	if number < 0 || number >= endOfDays(from1904) || math.IsNaN(number) {
		return ""
	}

	days, part := storedPart(number, digits)
	t, err := excelize.ExcelDateToTime(days, from1904)
	if err != nil {
		return ""
	}

	// Days are floats, which are off by some milliseconds.
	t = t.Round(time.Second)

	switch {
	case number < 1 && !(from1904 && ofDay):
		return t.Format("15:04:05") + part
	case t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0 && part == "":
		return t.Format("2006-01-02")
	}
	return t.Format("2006-01-02T15:04:05") + part
}
