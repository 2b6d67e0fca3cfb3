package output

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// IssueAll spells the citations that the outputs hold, as short as they can be
// told apart.
func IssueAll(outputs []*Output) *Issued {
	return issueNames(func(yield func(refs.ID) bool) {
		for _, o := range outputs {
			for id := range o.Citations {
				if !yield(refs.ID([]byte(id))) {
					return
				}
			}
		}
	})
}

// NewValue makes the output of a unit of the JSON that somebody wrote who had read
// others' outputs. Its references may be spelled as they were issued to the
// writer, or in full. Any other is removed and reported:
//   - of a list of references the element is left out;
//   - elsewhere a question mark stands in its place.
//
// The error wraps jsonvalue.ErrForm if the value does not fit the form, with what was
// removed or at all, and so is worth another try by the writer.
func NewValue(unit string, raw []byte, f *jsonvalue.Form, issued *Issued, inputs []*Output) (*Output, error) {
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", jsonvalue.ErrForm, err)
	}

	var broken error
	// The first round leaves references that were never issued out of lists. If the value
	// does not fit then, the second round puts a mark in their place.
	for _, drop := range []bool{true, false} {
		c := &citer{unit: unit, issued: issued, drop: drop}

		cited, _ := c.citeValue("", v)
		f.Fill(cited)
		if broken = f.CheckFit(cited); broken != nil {
			if len(c.removed) > 0 {
				continue // the list may be too short now
			}
			return nil, broken
		}

		o := &Output{Removed: c.removed}
		if o.Value, err = jsonvalue.Encode(cited); err != nil {
			return nil, err
		}

		if len(o.Value) > jsonvalue.MaxValue {
			return nil, fmt.Errorf("%w: it has %d bytes; at most %d are kept", jsonvalue.ErrForm, len(o.Value), jsonvalue.MaxValue)
		}

		o.citeFrom(inputs)
		if broken = f.CheckQuoted(cited, o.QuoteOf); broken != nil {
			return nil, broken
		}

		return o, nil
	}
	return nil, broken
}

// citeFrom takes the citations to which the value refers, and those that
// decisions compare, from others' outputs.
func (o *Output) citeFrom(inputs []*Output) {
	for id := range o.UsedCitations() {
		for _, in := range inputs {
			if c, ok := in.Citations[id]; ok {
				o.Cite(c)
			}
		}
	}
}

// A citer spells the references in a value in full.
type citer struct {
	unit    string
	issued  *Issued
	drop    bool // references that were not issued are left out of lists
	removed []Removed
}

// citeValue returns a value with its references in full; ok is false if it is itself a
// reference that was not issued.
func (c *citer) citeValue(path string, v any) (_ any, ok bool) {
	switch v := v.(type) {
	case string:
		return c.citeText(path, v)

	case []any:
		list := make([]any, 0, len(v))
		for _, item := range v {
			if one, ok := c.citeValue(path, item); ok || !c.drop {
				list = append(list, one)
			}
		}
		return list, true

	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			// A key may hold a reference as well.
			name, _ := c.citeText(path, key)
			at := strings.TrimPrefix(path+"."+key, ".")
			object[name], _ = c.citeValue(at, v[key])
		}
		return object, true
	}

	return v, true
}

// citeText returns a text with its references in full. One that is a reference and
// nothing else stays so.
func (c *citer) citeText(path, text string) (_ string, ok bool) {
	if !strings.Contains(strings.ToUpper(text), refs.Mark) {
		return text, true
	}

	bare := strings.TrimSpace(text)
	if id, known := c.issuedID(bare); known {
		return id.Full(), true
	}

	if names := refs.Mentioned(bare, c.issued.wasIssued); len(names) == 1 && names[0] == refs.Canonical(bare) {
		c.noteRemoved(path, bare)
		return refs.Unknown, false
	}
	// What is in full is checked wherever it stands, in code and addresses too.
	text = refs.RespellFull(text, func(id refs.ID) string {
		name := id.Full()
		if _, known := c.issuedID(name); known {
			return name
		}
		c.noteRemoved(path, name)
		return refs.Unknown
	})

	r := refs.Respell(text, func(name string) (string, bool) {
		id, known := c.issuedID(name)
		return id.Full(), known
	})
	for _, m := range r.Removed {
		c.noteRemoved(path, m.Name)
	}

	return r.Text, true
}

// issuedID returns the id that a name stands for, spelled short or in full.
func (c *citer) issuedID(name string) (refs.ID, bool) {
	if id, ok := c.issued.ids[refs.Canonical(name)]; ok {
		return refs.ID([]byte(id)), true
	}
	id, ok := refs.Parse(name)
	return id, ok && c.issued.names[merge.Citation(id[:])] != ""
}

func (c *citer) noteRemoved(path, name string) {
	if path == "" {
		path = wholeValue
	}
	r := Removed{Name: clipText(name), Field: path, Reason: "the reference was never issued", Unit: c.unit}
	if !slices.Contains(c.removed, r) {
		c.removed = append(c.removed, r)
	}
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// wholeValue is the path of a value that is not inside another.
const wholeValue = "value"

// citesOf visits the citations to which a value refers.
func citesOf(value []byte, visit func(merge.Citation)) {
	if len(value) == 0 {
		return
	}
	for _, id := range refs.FullIDs(string(value)) {
		visit(merge.Citation(id[:]))
	}
}

// Respelled returns JSON that holds references in full with each as spell says.
func Respelled(value []byte, spell func(refs.ID) string) []byte {
	return []byte(refs.RespellFull(string(value), spell))
}

// QuoteOf returns the quote of a citation of the output.
func (o *Output) QuoteOf(id refs.ID) (string, bool) {
	c, ok := o.Citations[merge.Citation(id[:])]
	return c.Quote, ok
}
