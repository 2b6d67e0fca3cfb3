package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// A Decided is a conflict between values of the inputs that a reducer decided. The
// values stand here with what speaks for each, for those that were not chosen are
// candidates no more.
type Decided struct {
	Field      string         // path
	Unit       string         // the reduce
	Key        map[string]any // of the record
	Candidates []merge.Choice // the most certain first, each cited
	Chosen     any            // one of them, or what follows from them; nil for none
	Rationale  string
}

// openConflict is the conflict about a field as the schema would decide it: between the
// values that a reducer compares. It is nil if there is none.
func (d *decider) openConflict(e *Entry, path string) *merge.Conflict {
	r := merge.Resolve(d.schema, Derived(d.schema, e.Accumulator, d.out.Citations))
	i := slices.IndexFunc(r.Conflicts, func(c merge.Conflict) bool { return c.Field == path })
	if i < 0 {
		return nil
	}

	// Only values that cite something can have been compared.
	c := &r.Conflicts[i]
	c.Candidates = slices.DeleteFunc(c.Candidates, func(one merge.Choice) bool { return len(one.Citations) == 0 })

	if len(c.Candidates) < 2 {
		return nil
	}
	return c
}

// listDecided lists a conflict that a reducer has decided.
func (c *choice) listDecided(chosen any) {
	if c.open == nil {
		return
	}
	c.out.Decided = append(c.out.Decided, Decided{
		Field: c.field.Path, Unit: c.unit, Key: c.open.Key, Candidates: c.open.Candidates, Chosen: chosen,
		Rationale: c.addReason("a model chose"),
	})
}

func (e *encoder) encodeDecided(d *Decided) error {
	m := &storagev1.Decided{Field: d.Field, Unit: d.Unit, Rationale: d.Rationale}

	var err error
	if m.Key, err = json.Marshal(d.Key); err != nil {
		return fmt.Errorf("output: key: %w", err)
	}
	if m.Chosen, err = json.Marshal(d.Chosen); err != nil {
		return fmt.Errorf("output: chosen value: %w", err)
	}

	for _, one := range d.Candidates {
		c := &storagev1.Compared{Confidence: one.Confidence, Count: one.Count}
		if c.Value, err = json.Marshal(one.Value); err != nil {
			return fmt.Errorf("output: value: %w", err)
		}
		for _, id := range one.Citations {
			// The citations were numbered before, all that the output refers to.
			if _, ok := e.output.Citations[id]; !ok {
				return ErrUncited
			}
			c.Citations = append(c.Citations, e.at[id])
		}
		m.Candidates = append(m.Candidates, c)
	}

	e.m.Decided = append(e.m.Decided, m)
	return nil
}

func decodeDecided(m *storagev1.Decided, keys []merge.Citation) (Decided, error) {
	d := Decided{Field: m.Field, Unit: m.Unit, Rationale: m.Rationale}

	if err := decodeJSON(m.Key, &d.Key); err != nil {
		return d, err
	}
	if err := decodeJSON(m.Chosen, &d.Chosen); err != nil {
		return d, err
	}

	for _, stored := range m.Candidates {
		one := merge.Choice{Confidence: stored.Confidence, Count: stored.Count}
		if err := decodeJSON(stored.Value, &one.Value); err != nil {
			return d, err
		}
		for _, i := range stored.Citations {
			// A place beyond the citations is one of another output.
			if int(i) >= len(keys) {
				return d, ErrUncited
			}
			one.Citations = append(one.Citations, keys[i])
		}
		d.Candidates = append(d.Candidates, one)
	}

	return d, nil
}

// decodeJSON reads a value, with numbers as they were written.
func decodeJSON(raw []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("output: value: %w", err)
	}
	return nil
}
