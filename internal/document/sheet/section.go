package sheet

import (
	"slices"
	"strconv"
	"strings"
)

// A section is a part of a format: for positive numbers, negative ones, zero, and texts, or for
// numbers that meet a condition, as in [>=100]0.0;[Red]0.00.
type section struct {
	code    string // without the condition
	compare string // an operator; "" without a condition
	limit   float64
}

// chosen returns the section of a format by which a number is shown, as a format of its own. The
// format itself is returned if it has no conditions. ok is false if programs differ in what they
// choose, or if no section is for the number.
func chosen(code string, number float64) (of string, ok bool) {
	if !strings.ContainsAny(code, "<>=") || !strings.Contains(code, "[") {
		return code, true
	}

	sections := numberSections(code)
	if !slices.ContainsFunc(sections, func(s section) bool { return s.compare != "" }) {
		return code, true
	}

	// Programs agree only where the first section has a condition.
	first := sections[0]
	switch n := len(sections); {
	case first.compare == "":
		return "", false
	case first.takesNumber(number):
		return first.code, true
	case n == 1:
		return "", false
	case sections[1].compare != "" && sections[1].takesNumber(number), sections[1].compare == "" && (n == 2 || number < 0):
		return sections[1].code, true
	case n == 3 && sections[1].compare != "":
		return sections[2].code, true
	}
	return "", false
}

// takesNumber reports whether a number meets the condition of the section.
func (s *section) takesNumber(number float64) bool {
	switch s.compare {
	case "<":
		return number < s.limit
	case "<=":
		return number <= s.limit
	case ">":
		return number > s.limit
	case ">=":
		return number >= s.limit
	case "<>":
		return number != s.limit
	}
	return number == s.limit
}

// numberSections returns the sections of a format that are for numbers, at most three.
func numberSections(code string) (sections []section) {
	for _, part := range splitSections(code) {
		if s, text := readSection(part); !text && len(sections) < 3 {
			sections = append(sections, s)
		}
	}
	return sections
}

// splitSections splits a format at the semicolons that are no part of a text.
func splitSections(code string) (parts []string) {
	from := 0
	for i := 0; i < len(code); i++ {
		switch i = skipLiteral(code, i); {
		case i < len(code) && code[i] == ';':
			parts, from = append(parts, code[from:i]), i+1
		}
	}
	return append(parts, code[from:])
}

// skipLiteral returns the last byte of a text, an escaped character or a bracket that begins at
// i; or i if none begins there.
func skipLiteral(code string, i int) int {
	closing := map[byte]string{'"': `"`, '[': "]"}[code[i]]
	switch {
	case strings.IndexByte(`\_*`, code[i]) >= 0:
		return i + 1
	case closing == "":
		return i
	}

	if end := strings.Index(code[i+1:], closing); end >= 0 {
		return i + 1 + end
	}
	return len(code)
}

// readSection returns a section, and whether it is for texts.
func readSection(part string) (s section, text bool) {
	var rest strings.Builder
	for i := 0; i < len(part); i++ {
		end := min(skipLiteral(part, i), len(part)-1)
		if part[i] == '[' && s.compare == "" && s.setCondition(strings.Trim(part[i:end+1], "[]")) {
			i = end
			continue
		}
		text = text || end == i && part[i] == '@'
		rest.WriteString(part[i : end+1])
		i = end
	}

	s.code = rest.String()
	return s, text
}

// setCondition sets the condition that stands in brackets, and reports whether it is one.
func (s *section) setCondition(in string) bool {
	limit := strings.TrimLeft(in, "<>=")
	op := in[:len(in)-len(limit)]
	x, err := strconv.ParseFloat(strings.TrimSpace(limit), 64)
	if err != nil || !slices.Contains([]string{"<", "<=", ">", ">=", "<>", "="}, op) {
		return false
	}

	s.compare, s.limit = op, x
	return true
}
