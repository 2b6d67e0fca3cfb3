package judge

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Null stands for what was not found. Whether an object has to say so depends on the
// alternative that it is of: a member that may be null, and that only this alternative
// requires, is null in the objects that lack it.

// maxNullRounds bounds how often a record is validated again with more nulls: once for each
// level of alternatives within alternatives.
const maxNullRounds = 8

// validate validates values by field path. Fields that may be null and that the schema
// requires under a condition are null if they have no value. The error is a
// *jsonschema.ValidationError, a *numberError, or says why the values cannot be checked.
func (c *checker) validate(values map[string]any) error {
	nulls := map[string]bool{}
	for round := 1; ; round++ {
		instance, err := c.instanceOf(values, nulls)
		if err != nil {
			return err
		}

		err = c.of.Validate(instance)
		var invalid *jsonschema.ValidationError

		// Each round may require more fields under a condition, so the number of rounds is
		// bounded.
		if !errors.As(err, &invalid) || round == maxNullRounds || !c.noteNulls(c.faultsOf(invalid), nulls) {
			return err
		}
	}
}

// noteNulls notes the paths of fields that faults say are lacking and that may be null. It
// reports whether there was a new one.
func (c *checker) noteNulls(faults []fault, nulls map[string]bool) (found bool) {
	for _, f := range faults {
		if field, _ := c.fieldAt(f.at); field != "" {
			continue // an object within the value of a field, see addNulls
		}

		for _, name := range f.nulls {
			path := c.pathAt(f.at) + c.propertyAt(append(slices.Clip(f.at), name)).PathStep()
			found = found || !nulls[path]
			nulls[path] = true
		}
	}

	return found
}

// nullsAt returns the names that an object lacks at a place that the validator names, if all
// of them may be null.
func (c *checker) nullsAt(at, lacking []string) []string {
	if c.wrap {
		at = at[min(1, len(at)):]
	}
	for _, name := range lacking {
		if p := c.propertyAt(append(slices.Clip(at), name)); p == nil || !p.Nullable {
			return nil
		}
	}
	return lacking
}

// propertyAt returns the property at a place of a record, nil if the schema has none there.
func (c *checker) propertyAt(at []string) *schema.Property {
	p := &schema.Property{Type: schema.Object, Properties: c.Properties}
	if c.Rest != nil {
		p.Rest = c.Rest.Items
	}
	if c.Bare() {
		p = &c.Properties[0]
	}

	for _, step := range at {
		if p = partAt(p, step); p == nil {
			return nil
		}
	}
	return p
}

// partAt returns the property of a member or of an item of values of p, nil if they have none
// of that name.
func partAt(p *schema.Property, step string) *schema.Property {
	if p.Type == schema.Union {
		for i := range p.Options {
			if inner := partAt(&p.Options[i], step); inner != nil {
				return inner
			}
		}
		return nil
	}

	switch p.Type {
	case schema.Object, schema.Map:
		return p.Member(step)
	case schema.Array, schema.Tuple:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 {
			return p.ItemAt(i)
		}
	}
	return nil
}

// addNulls gives objects within kept values null for the names that breaches say they lack,
// each once, and reports whether it did.
func (j *Judgement) addNulls(breaches []placed, added map[string]bool) (some bool) {
	for _, b := range breaches {
		for _, name := range b.nulls {
			at := append(slices.Clip(b.inside), name)
			place := b.Field + pathWithin(at)

			if !j.holds(b.Breach) || added[place] {
				continue
			}

			added[place], some = true, true
			j.Kept[b.Field] = withNull(j.Kept[b.Field], at)
		}
	}

	return some
}

// withNull returns a value with null at a place inside it, which it lacks.
func withNull(v any, at []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		if len(at) == 1 {
			out[at[0]] = nil
		} else {
			out[at[0]] = withNull(v[at[0]], at[1:])
		}
		return out
	case []any:
		if i, err := strconv.Atoi(at[0]); err == nil && i < len(v) && len(at) > 1 {
			out := slices.Clone(v)
			out[i] = withNull(v[i], at[1:])
			return out
		}
	}
	return v
}
