package outputs

import (
	"cmp"
	"slices"
)

// A span is the map units with indexes in [first, end).
type span struct{ first, end int64 }

// Spans are numbers in ascending order, with the runs of them joined. A nil one has all
// numbers.
type Spans struct{ list []span }

// AddNumber adds a number that is above all others.
func (s *Spans) AddNumber(n int64) {
	if last := len(s.list) - 1; last >= 0 && s.list[last].end == n {
		s.list[last].end++
		return
	}
	s.list = append(s.list, span{n, n + 1})
}

// sortAndJoin brings spans in order that were added in any, and may overlap.
func (s *Spans) sortAndJoin() {
	slices.SortFunc(s.list, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	joined := s.list[:0]
	for _, one := range s.list {
		if n := len(joined) - 1; n >= 0 && one.first <= joined[n].end {
			joined[n].end = max(joined[n].end, one.end)
			continue
		}
		joined = append(joined, one)
	}
	s.list = joined
}

// ContainsNumber reports whether a number is in one of the spans.
func (s *Spans) ContainsNumber(n int64) bool {
	if s == nil {
		return true
	}
	_, found := slices.BinarySearchFunc(s.list, n, span.compareTo)
	return found
}

// compareTo says on which side of a number the span lies, or 0 if it has it.
func (s span) compareTo(at int64) int {
	switch {
	case s.end <= at:
		return -1
	case s.first > at:
		return 1
	}
	return 0
}
