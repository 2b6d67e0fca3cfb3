package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// A Part is a part of a field's value that may not stand, while the rest of it may.
type Part struct {
	Field  string
	At     []string // where it stood: names, and indexes in what is left of lists
	Value  any
	Breach Breach
}

// Path returns the path of a part: people[0].year.
func (p *Part) Path() string { return p.Field + pathWithin(p.At) }

// pathWithin writes a place in a value behind the path of its field.
func pathWithin(at []string) string {
	var b strings.Builder
	for _, step := range at {
		switch _, err := strconv.Atoi(step); {
		case err == nil:
			b.WriteString("[" + step + "]")
		case step == "" || strings.ContainsAny(step, `."[]`):
			b.WriteString("." + strconv.Quote(step))
		default:
			b.WriteString("." + step)
		}
	}

	return b.String()
}

// Sound returns v without the parts that are no values of their properties, if it can be
// without them: members of objects that are not required, entries of maps and elements of
// lists. It returns false if v as a whole is no value of p.
func Sound(p *schema.Property, v any) (sound any, parts []Part, ok bool) {
	if p.Fits(v) == nil {
		return v, nil, true
	}

	of := p.Option(v)
	if of == nil {
		return nil, nil, false
	}

	// Only objects, maps and lists can be without a part.
	switch v := v.(type) {
	case map[string]any:
		if of.Type == schema.Object || of.Type == schema.Map {
			return soundObject(of, v)
		}
	case []any:
		if of.Type == schema.Array {
			return soundList(of, v)
		}
	}

	return nil, nil, false
}

func soundObject(p *schema.Property, m map[string]any) (any, []Part, bool) {
	out := make(map[string]any, len(m))
	var all []Part

	for _, name := range slices.Sorted(maps.Keys(m)) {
		of := p.Member(name)
		if of == nil {
			continue // the schema has no such property
		}

		if m[name] == nil {
			if of.Nullable {
				out[name] = nil
			}
			continue
		}

		value, parts, ok := Sound(of, m[name])
		if !ok && of.Required {
			return nil, nil, false
		}

		if !ok {
			parts = []Part{{Value: m[name], Breach: *refusal(of, m[name])}}
		} else {
			out[name] = value
		}

		all = append(all, within(parts, name)...)
	}

	for i := range p.Properties {
		if one := &p.Properties[i]; one.Required && !one.Nullable && out[one.Name] == nil {
			return nil, nil, false
		}
	}

	return out, all, len(out) > 0
}

func soundList(p *schema.Property, list []any) (any, []Part, bool) {
	out := make([]any, 0, len(list))
	var all []Part
	for _, item := range list {
		value, parts, ok := Sound(p.Items, item)
		if !ok {
			all = append(all, Part{At: []string{strconv.Itoa(len(out))}, Value: item, Breach: *refusal(p.Items, item)})
			continue
		}

		// The places are those in the list that is kept, without the elements that are left
		// out.
		all = append(all, within(parts, strconv.Itoa(len(out)))...)
		out = append(out, value)
	}

	return out, all, len(out) > 0
}

// within returns parts as they stand in a value around them.
func within(parts []Part, step string) []Part {
	for i := range parts {
		parts[i].At = slices.Concat([]string{step}, parts[i].At)
	}
	return parts
}

// removableSteps returns how many steps of a place lead to the innermost part around it that a
// value of p can be without; 0 if there is none.
func removableSteps(p *schema.Property, v any, at []string) (steps int) {
	for i, step := range at {
		of := p.Option(v)
		if of == nil {
			return steps
		}

		switch inner := v.(type) {
		case map[string]any:
			// A member that is required takes what is around it along.
			if p = of.Member(step); p == nil {
				return steps
			}
			v = inner[step]
			if !p.Required {
				steps = i + 1
			}
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(inner) {
				return steps
			}
			if of.Type == schema.Array {
				steps = i + 1
			}
			p, v = of.ItemAt(n), inner[n]
		default:
			return steps
		}
	}

	return steps
}

// without returns a value without the part at a place, and that part. What is left of an
// object that had no other members is nil.
func without(v any, at []string) (rest, part any) {
	switch inner := v.(type) {
	case map[string]any:
		out := maps.Clone(inner)
		if len(at) == 1 {
			delete(out, at[0])
			return out, inner[at[0]]
		}

		out[at[0]], part = without(inner[at[0]], at[1:])
		return out, part
	case []any:
		n, err := strconv.Atoi(at[0])
		if err != nil || n >= len(inner) {
			return v, nil
		}

		out := slices.Clone(inner)
		if len(at) == 1 {
			return slices.Delete(out, n, n+1), inner[n]
		}

		out[n], part = without(inner[n], at[1:])
		return out, part
	}
	return v, nil
}

// takeOut takes the part with a breach out of a value that may stand without it, and
// reports whether that can be done.
func (j *Judgement) takeOut(p *schema.Property, b placed) bool {
	v := j.Kept[b.Field]
	steps := removableSteps(p, v, b.inside)
	if steps == 0 {
		return false
	}

	at := b.inside[:steps]
	rest, part := without(v, at)

	if isEmpty(rest) {
		return false // nothing else is left
	}

	j.Kept[b.Field] = rest
	j.shiftParts(b.Field, at)
	j.Parts = append(j.Parts, Part{Field: b.Field, At: slices.Clone(at), Value: part, Breach: b.Breach})

	return true
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

// shiftParts moves the places of parts that stand behind an element that is taken out of a
// list, and forgets those that stood in it.
func (j *Judgement) shiftParts(field string, at []string) {
	last := len(at) - 1
	n, err := strconv.Atoi(at[last])
	if err != nil {
		return
	}

	j.Parts = slices.DeleteFunc(j.Parts, func(p Part) bool {
		return p.Field == field && len(p.At) > len(at) && slices.Equal(p.At[:len(at)], at)
	})

	// The places of parts further back in the same list move by one.
	for i := range j.Parts {
		p := &j.Parts[i]
		if p.Field != field || len(p.At) <= len(at) || !slices.Equal(p.At[:last], at[:last]) {
			continue
		}

		if k, err := strconv.Atoi(p.At[last]); err == nil && k > n {
			p.At = slices.Clone(p.At)
			p.At[last] = fmt.Sprint(k - 1)
		}
	}
}
