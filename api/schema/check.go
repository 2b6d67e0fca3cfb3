package schema

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/validator"
)

// compileSchema checks the file against the meta-schema and prepares validation of
// records.
func (r *shaper) compileSchema(s *Schema, root *source.Node) {
	fragment := ""
	// Of a schema of a list, the validator sees one record: the schema of the items, or a
	// list of one.
	if s.Kind == KindRecords && !s.whole {
		items := root.Get("items")
		if s.wrap = items == nil || items.Kind != source.Map; !s.wrap {
			fragment = "#/items"
		}
	}

	doc := root.DecodeValue()
	var first error
	for _, draft := range r.DraftsOf(root, doc) {
		var err error
		s.validator, err = validator.Compile(doc, fragment, func(c *jsonschema.Compiler) {
			c.DefaultDraft(draft)
			c.RegisterFormat(&jsonschema.Format{Name: string(DateTime), Validate: validDateTime})
			c.RegisterFormat(&jsonschema.Format{Name: string(Time), Validate: validTime})
		})

		if err == nil {
			return
		}

		first = cmp.Or(first, err)
		// Another draft would not mend a schema for which no value can be.
		if errors.Is(err, validator.ErrNothingFits) {
			break
		}
	}

	r.CompileError(root, first)
}

// IsPlainPattern reports whether a pattern has the syntax that all who match patterns know,
// and takes them little time.
func IsPlainPattern(expr string) bool { return validator.IsPlainPattern(expr) }

func validDateTime(v any) error { return validFormat(v, calendar.ParseDateTime) }

func validTime(v any) error { return validFormat(v, calendar.ParseTime) }

// validFormat accepts strings that are in the form that parse gives them.
func validFormat(v any, parse func(string) (string, bool)) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if normal, ok := parse(s); !ok || normal != s {
		return errors.New("not in the normalised form")
	}
	return nil
}

// Canonical returns the schema as compact JSON: equal schemas give equal bytes,
// and Parse makes the same schema of it. Keys are sorted, but for those whose
// order means something: properties and values.
func (s *Schema) Canonical() []byte { return bytes.Clone(s.canonical) }

// Plain returns the canonical form without our hints, for readers that know JSON
// Schema alone. Properties are in the order of the file.
func (s *Schema) Plain() []byte { return bytes.Clone(s.plain) }

// Asked returns Plain without the properties at the top that have the hint given: what a model
// is asked to write. See withoutGiven for the schemas that keep them.
func (s *Schema) Asked() []byte { return bytes.Clone(s.asked) }
