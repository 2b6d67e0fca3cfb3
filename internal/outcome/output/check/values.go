package check

import (
	"encoding/json"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// Values checks what an output says against the schema: that its fields are
// the schema's, each once in an entry; that its values are of their fields' types;
// and that what tells how sure they are can be so.
func Values(s *schema.Schema, o *output.Output) error {
	for i := range o.Entries {
		e := &o.Entries[i]
		for j := range e.Fields {
			f := &e.Fields[j]
			if j > 0 && e.Fields[j-1].Path >= f.Path {
				return breachError("field %.80q stands twice, or out of order", f.Path)
			}
			if err := checkField(s, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(s *schema.Schema, f *merge.Field) error {
	p := s.Field(f.Path)
	if p == nil {
		return breachError("the schema has no field %.80q", f.Path)
	}

	for i := range f.Candidates {
		c := &f.Candidates[i]
		// A value may be an element of a list, or one that is refused later and shown with
		// the reason.
		if err := p.Fits(c.Value); err != nil && !fitsElement(p, c.Value) && !isRefusable(c.Value) {
			return breachError("%s: %.80q is no value of the field: %v", f.Path, output.Show(c.Value), err)
		}

		for _, m := range c.Mentions {
			if err := checkMention(f.Path, &m); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxRefusable bounds a text that is no value of its field.
const maxRefusable = 4096

// isRefusable reports whether a value that does not fit its field may stand in an
// output all the same: a short text or another value that is not large. It is never a value of a
// record. merge.Resolve refuses it, and so shows what was found, with the reason.
func isRefusable(value any) bool {
	switch v := value.(type) {
	case string:
		return len(v) <= maxRefusable
	case json.Number:
		return len(v) <= 100
	case bool:
		return true
	case []any, map[string]any:
		raw, err := json.Marshal(v)
		return err == nil && len(raw) <= maxRefusable
	}

	return false
}

// fitsElement reports whether a value is one of a list's.
func fitsElement(p *schema.Property, value any) bool {
	return p.Type == schema.Array && p.Items != nil && p.Items.Fits(value) == nil
}

// sureOf is how many millionths all are.
const sureOf = 1_000_000

func checkMention(field string, m *merge.Mention) error {
	if m.Confidence < 0 || m.Confidence > sureOf || m.Said < 0 || m.Said > sureOf {
		return breachError("%s: a confidence of %d and %d millionths", field, m.Confidence, m.Said)
	}
	if len(m.Formula) > maxRefusable {
		return breachError("%s: a formula of %d bytes", field, len(m.Formula))
	}

	for _, r := range m.Readings {
		if r.Found < 0 || r.Found > r.Of {
			return breachError("%s: a value was found by %d of %d passes", field, r.Found, r.Of)
		}
	}
	return nil
}

// Entities checks that a map unit names the entities of its records as the
// schema does: a record that goes by another's name would be merged with it.
func Entities(s *schema.Schema, o *output.Output) error {
	for i := range o.Entries {
		e := &o.Entries[i]
		if len(e.Members) != 1 || len(e.Sources) != 1 {
			return breachError("an entry of a map unit stands for %d records of %d documents", len(e.Members), len(e.Sources))
		}

		m := e.Members[0]
		order := merge.Order{Unit: m.Unit, Record: m.Record}
		if !merge.Named(s, e.Accumulator, e.Sources[0].Document, order) {
			return breachError("record %d of unit %d goes by the name %.80q, which is not its own", m.Record, m.Unit, e.Entity)
		}
	}
	return nil
}
