package pattern

import (
	"errors"
	"fmt"
	"strings"
)

// ValueGroups returns the numbers of the groups that hold values; 0 is the whole
// match. Names are those of Groups. One value is held by the group "value", or by
// the whole match. A list may also have the groups "value1", "value2" and so on,
// an element each; if none of its groups has such a name, all that have no name
// are elements.
func ValueGroups(names []string, list bool) ([]int, error) {
	var single, numbered, unnamed []int
	for i, name := range names {
		switch digits, isValue := strings.CutPrefix(name, "value"); {
		case name == "":
			unnamed = append(unnamed, i+1)
		case name == "value":
			single = append(single, i+1)
		case isValue && strings.Trim(digits, "0123456789") == "":
			numbered = append(numbered, i+1)
		}
	}

	switch {
	case len(single) > 1:
		return nil, errors.New("there are several groups named value; give a list of patterns, or in a property of type array name them value1, value2 and so on")
	case len(numbered) > 0 && !list:
		return nil, fmt.Errorf("the groups value1, value2 and so on are elements of a list; the property has one value, so name its group value")
	case len(numbered) > 0 && len(single) > 0:
		return nil, errors.New("there are both a group named value and groups named value1, value2 and so on")
	case len(numbered) > 0:
		return numbered, nil
	case len(single) > 0:
		return single, nil
	case list && len(unnamed) > 0:
		return unnamed, nil
	default:
		return []int{0}, nil
	}
}

// ErrTooLong says that a replacement would make a text longer than it may be.
var ErrTooLong = errors.New("the text would become too long")

// Replace replaces all matches in text, of which with may hold $1 or ${name} for
// groups. The result has at most limit bytes.
func (p *Pattern) Replace(text, with string, limit int, stop func() error) (string, error) {
	var b []byte
	end := 0
	tooLong := false
	err := p.FindAll(text, stop, func(place []int) bool {
		// Matching ends once the result is too long, so the memory is bounded by the limit
		// and one replacement.
		b = append(b, text[end:place[0]]...)
		b = p.first.ExpandString(b, with, text, place)
		end = place[1]
		tooLong = len(b) > limit
		return !tooLong
	})

	b = append(b, text[end:]...)
	if err == nil && (tooLong || len(b) > limit) {
		err = ErrTooLong
	}

	return string(b), err
}
