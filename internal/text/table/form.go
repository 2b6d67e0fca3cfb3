package table

import (
	"encoding/json"
	"strings"
	"time"
)

// A cell of a spreadsheet is one value in two forms: as it is shown, and as it is stored.
// Where the shown form does not say the stored one by itself, both stand in the text.

// storedMark stands between the two forms of a cell, and a bracket behind the stored one.
const storedMark = " (="

// maxStored bounds the bytes of a stored form.
const maxStored = 64

// WithStored returns the text of a cell with its stored form behind what is shown. Stored
// forms are those of machines: numbers as in JSON, dates and times as in ISO 8601, TRUE and FALSE.
func WithStored(shown, stored string) string {
	if shown == "" {
		return stored
	}
	return shown + storedMark + stored + ")"
}

// Forms returns the form in which the value of a cell is shown, and the one in which it is
// stored; "" if there is one form only.
func Forms(cell string) (shown, stored string) {
	at := strings.LastIndex(cell, storedMark)
	if at <= 0 || !strings.HasSuffix(cell, ")") {
		return cell, ""
	}
	stored = cell[at+len(storedMark) : len(cell)-1]
	if !isStored(stored) {
		return cell, ""
	}
	return cell[:at], stored
}

// isStored reports whether a text is a stored form.
func isStored(s string) bool {
	if s == "" || len(s) > maxStored {
		return false
	}

	if s == "TRUE" || s == "FALSE" {
		return true
	}

	// Numbers are stored as JSON has them, dates and times as ISO 8601 has them; a sign may
	// also begin a duration.
	if c := s[0]; c == '-' || '0' <= c && c <= '9' {
		if json.Valid([]byte(s)) {
			return true
		}
		for _, layout := range []string{time.DateOnly, "2006-01-02T15:04:05", time.TimeOnly} {
			if _, err := time.Parse(layout, s); err == nil {
				return true
			}
		}
		if s[0] != '-' {
			return false
		}
	}

	return isDuration(s)
}

// isDuration reports whether a text is a duration of hours, minutes and seconds as in
// ISO 8601, such as PT36H30M.
func isDuration(s string) bool {
	units, ok := strings.CutPrefix(strings.TrimPrefix(s, "-"), "PT")
	if !ok || units == "" {
		return false
	}
	digits := 0
	order := "HMS"

	for i := range len(units) {
		// Each unit stands once at most, in the order of hours, minutes and seconds.
		switch c := units[i]; {
		case '0' <= c && c <= '9' || c == '.' && digits > 0:
			digits++
		case digits > 0 && strings.IndexByte(order, c) >= 0:
			order, digits = order[strings.IndexByte(order, c)+1:], 0
		default:
			return false
		}
	}

	return digits == 0
}

// IsError reports whether a cell shows that a spreadsheet could not compute its value.
func IsError(cell string) bool {
	switch cell {
	case "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "Err:502", "Err:504", "Err:508", "Err:522":
		return true
	}
	return false
}

// IsFormula reports whether a cell shows a formula, whose result is not known.
func IsFormula(cell string) bool {
	return len(cell) > 1 && cell[0] == '=' && cell[1] != '=' && cell[1] != ' '
}
