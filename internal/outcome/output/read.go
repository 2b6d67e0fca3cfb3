package output

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// Read returns what a stage that reads the output is given of it, as canonical
// JSON with references in full: the value itself, or an object with the list
// records, of the records that the output holds. A record is an object with its
// values as the schema nests them, null where there is none; in _sources the
// documents that it is of; in _citations, by the path of a field, what its value
// rests on; and in _derived how derived values follow from what they cite.
//
// Of schemas there are those of the stages that the output may be of. For a value
// there may be none.
func (o *Output) Read(schemas ...*schema.Schema) ([]byte, error) {
	if len(o.Value) > 0 {
		return o.Value, nil
	}

	list := make([]any, 0, len(o.Entries))
	for i := range o.Entries {
		record, err := o.readEntry(&o.Entries[i], schemas)
		if err != nil {
			return nil, err
		}
		list = append(list, record)
	}

	return jsonvalue.Encode(map[string]any{"records": list})
}

func (o *Output) readEntry(e *Entry, schemas []*schema.Schema) (map[string]any, error) {
	i := slices.IndexFunc(schemas, func(s *schema.Schema) bool {
		return !slices.ContainsFunc(e.Fields, func(f merge.Field) bool { return s.Field(f.Path) == nil })
	})
	if i < 0 {
		return nil, fmt.Errorf("output: record %s is not of the schema of a stage that is read", e.Entity)
	}

	r := merge.Resolve(schemas[i], Derived(schemas[i], e.Accumulator, o.Citations))
	record := schemas[i].Nest(r.Values)

	citations, derived := CitedOf(schemas[i], &r, refs.ID.Full)
	record["_sources"], record["_citations"] = r.Sources, citations
	if len(derived) > 0 {
		record["_derived"] = derived
	}

	return record, nil
}

// Complete returns an output that holds all records of a tree of reduces, whose
// last output this is: those that reduces merged, and of parts, the outputs of the
// units below the tree in order of the input, those that passed on as they were.
func (o *Output) Complete(parts []*Output) *Output {
	all := &Output{Dropped: o.Dropped, Removed: o.Removed, Decided: o.Decided, Reason: o.Reason}
	first, within := make(map[Member]*Shared), make(map[Member]bool)
	for _, s := range o.Shared() {
		first[s.Members[0]] = s
		for _, m := range s.Members {
			within[m] = true
		}
	}

	// An entity of several records stands at the place of its first one, and nowhere else.
	for _, p := range parts {
		for i := range p.Entries {
			e, from := p.Entries[i], p
			if s := first[e.Members[0]]; s != nil {
				from = s.mergeParts(o, parts)
				e = from.Entries[0]
			} else if within[e.Members[0]] {
				continue
			}
			all.Entries = append(all.Entries, e)
			all.citeEntry(&e, from)
		}
	}

	all.citeFrom([]*Output{o})
	return all
}

// mergeParts merges an entity, of whose records some may stand in parts alone.
func (s *Shared) mergeParts(last *Output, parts []*Output) *Output {
	if len(s.Open) == 0 {
		return s.Together(last, nil)
	}

	var rest []*Output
	for _, p := range parts {
		if only := p.Only(s.Open); len(only.Entries) > 0 {
			rest = append(rest, only)
		}
	}

	return s.Together(last, rest)
}

// citeEntry takes the citations of an entry from the output that it is of.
func (o *Output) citeEntry(e *Entry, from *Output) {
	for _, m := range e.Mentions() {
		for _, id := range m.Citations {
			if c, ok := from.Citations[id]; ok {
				o.Cite(c)
			}
		}
	}
}
