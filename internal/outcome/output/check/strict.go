package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// ErrSchema is what the output of a map unit is refused with in a strict job if one of
// its records breaks the schema.
var ErrSchema = errors.New("a record breaks the schema")

// maxBroken bounds the constraints that one error names.
const maxBroken = 10

// Strict checks the records of a map unit as a strict job does: the schema must
// refuse no value of theirs, and they must have what it requires. A value that is not
// chosen, as the schema allows another, does no harm. chunks is how many units read the
// document.
//
// What several units make together is none of theirs alone. So nothing is required of a
// chunk's part of a record, nor of records that merge with those of other documents.
func Strict(s *schema.Schema, chunks int64, o *output.Output) error {
	whole := s.Entities() == schema.PerDocument && (chunks <= 1 || s.Kind == schema.KindRecords)

	var broken []string
	for i := range o.Entries {
		r := merge.Resolve(s, output.Derived(s, o.Entries[i].Accumulator, o.Citations))

		name := ""
		if s.Kind == schema.KindRecords {
			name = fmt.Sprintf("record %d: ", i+1)
		}

		for _, path := range slices.Sorted(maps.Keys(r.Refused)) {
			f := r.Refused[path]
			if breaksNothing(&f) {
				continue
			}
			broken = append(broken, fmt.Sprintf("%s%s: %s breaks %s: %s", name, path, schema.Shown(f.Value), f.Constraint, f.Message))
		}

		if !whole {
			continue
		}

		// A field whose value was refused is not reported as missing as well.
		for j := range r.Lacking {
			lacking := &r.Lacking[j]
			if f, refused := r.Refused[lacking.Field]; !refused || breaksNothing(&f) {
				broken = append(broken, name+r.Warning(lacking))
			}
		}
	}

	if len(broken) == 0 {
		return nil
	}

	if n := len(broken) - maxBroken; n > 0 {
		broken = append(broken[:maxBroken], fmt.Sprintf("and %d more", n))
	}

	return fmt.Errorf("%w: %s", ErrSchema, strings.Join(broken, "; "))
}

// breaksNothing reports whether a value was refused, and breaks no rule of the schema: a guess, and what
// a model saw in a picture, are none of the record's, which lacks a value.
func breaksNothing(f *merge.Refusal) bool {
	return f.Constraint == mapreduce.LeastConfidence || f.Constraint == mapreduce.SeenOnly
}
