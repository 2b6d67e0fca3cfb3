package pipeline

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/schema"
)

// A Document is what templates may say of one.
type Document struct {
	ID       string
	Metadata map[string]string
}

// titles are how the texts of a step are headed in a prompt, by the end of their
// field.
var titles = map[string]string{
	"agent.role": "ROLE", "agent.goal": "GOAL", "agent.background": "BACKGROUND",
	"task.description": "TASK", "task.expected_output": "EXPECTED OUTPUT",
}

// Fixed renders what the agent of a step, "map", "reduce" or "direct", is told
// whatever its unit works on: the texts that name no item.
func (p *Pipeline) Fixed(step string, vars map[string]string) (string, error) {
	return p.tell(step, false, vars, nil)
}

// Own renders what the agent of a step is told beside that of a unit that works
// on certain documents; nothing if no text names any.
func (p *Pipeline) Own(step string, vars map[string]string, docs []Document) (string, error) {
	return p.tell(step, true, vars, docs)
}

// Role renders who runs a unit of a step that works on certain documents.
func (p *Pipeline) Role(step string, vars map[string]string, docs ...Document) (string, error) {
	t := p.templates[step+".agent.role"]
	return t.render(func(v Variable) (string, bool) { return p.value(v, vars, docs) })
}

func (p *Pipeline) tell(step string, own bool, vars map[string]string, docs []Document) (string, error) {
	var b strings.Builder
	for _, s := range p.steps() {
		if s.name != step {
			continue
		}
		for _, one := range s.parts() {
			t := p.templates[one.field]
			if own != (t.names(Item) || t.names(Items)) {
				continue
			}
			text, err := t.render(func(v Variable) (string, bool) { return p.value(v, vars, docs) })
			if err != nil {
				return "", errs.Field(one.field, "%s", err)
			}
			fmt.Fprintf(&b, "%s: %s\n", titles[strings.TrimPrefix(one.field, step+".")], text)
		}
	}
	return b.String(), nil
}

func (p *Pipeline) value(v Variable, vars map[string]string, docs []Document) (string, bool) {
	switch v.Space {
	case Input:
		if text, ok := vars[v.Name]; ok {
			return text, true
		}
		if text := p.Inputs[v.Name]; text != nil {
			return *text, true
		}
		return "", false
	case Items:
		return itemsValue(v.Name, docs)
	}
	if len(docs) != 1 {
		return "", false
	}
	return itemValue(v.Name, docs[0].ID, docs[0].Metadata)
}

// itemsValue is what all items have under a name, in order.
func itemsValue(key string, docs []Document) (string, bool) {
	if key == count {
		return strconv.Itoa(len(docs)), true
	}
	all := make([]string, len(docs))
	for i, d := range docs {
		text, ok := itemValue(key, d.ID, d.Metadata)
		if !ok {
			return "", false
		}
		all[i] = text
	}
	return strings.Join(all, ", "), true
}

// Bounds of examples: they are a part of every prompt.
const (
	maxExamples = 16
	maxExample  = 16 << 10 // bytes of a document
)

// CheckExamples refuses examples that are not such of a schema: with fields that
// it has not, values that do not fit, or quotes that do not stand in the
// document. A model would learn from them.
func (p *Pipeline) CheckExamples(s *schema.Schema) error {
	if p.Map == nil {
		return nil
	}
	if n := len(p.Map.Examples); n > maxExamples {
		return errs.Field("map.examples", "there are %d; at most %d are taken", n, maxExamples)
	}
	for i := range p.Map.Examples {
		e := &p.Map.Examples[i]
		field := fmt.Sprintf("map.examples[%d]", i)
		switch {
		case strings.TrimSpace(e.Document) == "":
			return errs.Field(field+".document", "is needed: an example shows what is found in a text")
		case len(e.Document) > maxExample:
			return errs.Field(field+".document", "has %d bytes; at most %d are taken", len(e.Document), maxExample)
		case s.Kind == schema.KindRecord && len(e.Records) != 1:
			return errs.Field(field+".records", "must be one, as the schema is of one record a document, and there are %d", len(e.Records))
		}
		for n, r := range e.Records {
			if err := r.check(fmt.Sprintf("%s.records[%d]", field, n), s, e.Document); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Record) check(at string, s *schema.Schema, document string) error {
	fields := make(map[string]bool)
	var names []string
	for _, f := range s.Fields() {
		fields[f.Path] = true
		names = append(names, f.Path)
		p := f.Property
		if p.Type == schema.Array && p.Items != nil {
			p = p.Items
		}
		for _, found := range r[f.Path] {
			where := at + "." + f.Path
			if _, err := p.Normalize(found.Value); err != nil || found.Value == nil {
				return errs.Field(where, "the value %v does not fit the schema: %v", found.Value, err)
			}
			if found.Quote == "" || !strings.Contains(document, found.Quote) {
				return errs.Field(where, "the quote %.80q does not stand in the example's document, letter by letter", found.Quote)
			}
		}
		if f.Property.Type != schema.Array && len(r[f.Path]) > 1 {
			return errs.Field(at+"."+f.Path, "has %d values, and the schema has one", len(r[f.Path]))
		}
	}
	for path := range r {
		if !fields[path] {
			return errs.Field(at+"."+path, "is no field of the schema, which has %s", listed(names))
		}
	}
	return nil
}
