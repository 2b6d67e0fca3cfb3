package merge

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// resolveSeen decides a field among values that no citation supports, if a model saw some of them in
// pictures, and reports whether one did. A value that was seen is none of the record's: it is refused,
// with the places where to look. One that nobody even saw does not compete with it.
func (r *Result) resolveSeen(sf schema.Field, all []option) bool {
	seen := slices.DeleteFunc(slices.Clone(all), func(o option) bool { return o.seen == nil })
	if len(seen) == 0 {
		return false
	}

	chosen := chooser{sf.Property, seen}.runStrategy().value
	refusal := Refusal{Value: chosen.display, Constraint: mapreduce.SeenOnly, Citations: []Citation{}}
	for _, o := range seen {
		if hasParts(sf.Property) || o.Key == chosen.key {
			refusal.Seen = append(refusal.Seen, *o.seen)
		}
	}
	if len(refusal.Seen) == 0 { // a list that is one value
		refusal.Seen = append(refusal.Seen, *seen[0].seen)
	}
	slices.SortFunc(refusal.Seen, func(a, b Sighting) int { return compareSightings(&a, &b) })
	refusal.Message = seenMessage(&refusal.Seen[0])
	r.addRefusal(sf.Path, refusal)
	return true
}

// seenMessage says where a value was seen, and what recognition has there.
func seenMessage(s *Sighting) string {
	text := fmt.Sprintf("a model read %q in the picture of page %d, and recognition did not", s.Quote, s.Page)
	if s.Read != "" {
		text += fmt.Sprintf(": next to it, it has %q", s.Read)
	}
	return text
}
