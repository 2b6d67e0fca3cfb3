package scripted

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// makeValue makes the output of a unit whose stage does not make records: a value that
// fits the stage's schema, decided by the hash of the seed, the unit and its
// inputs. Its texts cite what the inputs cite.
func (r *run) makeValue(ctx context.Context) (*agent.Result, error) {
	form, err := unit.Form(r.task)
	if err != nil {
		return nil, err
	}

	inputs := r.decodedInputs()
	if r.task.StageSpec.Passages {
		if inputs, _, err = unit.Given(r.task); err != nil {
			return nil, err
		}
	}

	if len(r.task.StageSpec.Tools) > 0 {
		found, err := r.findEvidence(ctx)
		if err != nil {
			return nil, err
		}
		if r.task.StageSpec.Output == agent.PassagesChosen {
			return choose(found)
		}
		inputs = append(inputs, output.OfCitations(found...))
	}

	m := &maker{rates: r.script.rates, hash: r.payload.Hash, items: r.script.itemsOf(r.task.StageSpec.Name), filler: r.payload.Filler}
	d := json.NewDecoder(bytes.NewReader(r.task.StageSpec.Schema))
	d.UseNumber()
	if err := d.Decode(&m.root); err != nil {
		return nil, agent.PermanentJob(fmt.Errorf("schema: %w", err))
	}

	// Texts may cite what the inputs cite, by the names that are issued for it.
	issued := output.IssueAll(inputs)
	m.refs = issued.Names()
	raw, err := json.Marshal(m.makeAt(m.root, "", 0))
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	out, err := output.NewValue(string(r.task.Unit), raw, form, issued, inputs)
	if err != nil {
		return nil, agent.PermanentJob(fmt.Errorf("the scripted provider makes no value of this schema: %w", err))
	}
	return unit.Valued(out)
}

// decodedInputs returns the inputs that are outputs. Those of other scripted units need
// not be.
func (r *run) decodedInputs() []*output.Output {
	var all []*output.Output
	for _, in := range r.task.Inputs {
		if out, err := output.Decode(in.Data); err == nil && !in.Failed {
			all = append(all, out)
		}
	}
	return all
}

// A maker makes values of a schema.
type maker struct {
	root   any
	hash   string
	items  int      // elements of a list, unless the schema has other bounds
	refs   []string // that texts may cite
	rates  map[string]float64
	filler string
}

// maxMade bounds how deep values are made: schemas may refer to themselves.
const maxMade = 8

// hashAt returns a number that is decided by the hash and a path.
func (m *maker) hashAt(path string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", m.hash, path)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func (m *maker) makeAt(schema any, path string, depth int) any {
	s := m.plainSchema(schema, 0)
	if v, ok := s["const"]; ok {
		return v
	}
	if all, _ := s["enum"].([]any); len(all) > 0 {
		return all[m.hashAt(path)%uint64(len(all))]
	}

	// The hint names texts that have a form of their own.
	hint, _ := s["x-coditect"].(map[string]any)
	switch hint["write"] {
	case "references":
		return m.makeReferences(path)
	case "evidence":
		return m.makeEvidence(path)
	}

	switch kindOf(s) {
	case "object":
		return m.makeObject(s, path, depth)
	case "array":
		return m.makeList(s, path, depth)
	case "integer", "number":
		return m.makeNumber(s, path)
	case "boolean":
		return m.hashAt(path)%2 == 0
	case "null":
		return nil
	}

	return m.makeText(s, path)
}

// plainSchema returns a schema without references, and of alternatives the first that is
// not null.
func (m *maker) plainSchema(schema any, depth int) map[string]any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok && depth < maxMade {
		return m.plainSchema(m.resolveRef(ref), depth+1)
	}

	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		all, _ := s[key].([]any)
		for _, one := range all {
			if p := m.plainSchema(one, depth+1); depth < maxMade && kindOf(p) != "null" {
				return p
			}
		}
	}

	return s
}

func (m *maker) resolveRef(ref string) any {
	at := m.root
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		object, _ := at.(map[string]any)
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
}

// kindOf is the type of a schema, of several the first that is not null.
func kindOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, _ := one.(string); name != "null" {
				return name
			}
		}
	}

	// A schema without a type shows by its other keys what it is.
	if s["properties"] != nil {
		return "object"
	}
	if s["items"] != nil {
		return "array"
	}
	return ""
}

func (m *maker) makeObject(s map[string]any, path string, depth int) any {
	named, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	out := make(map[string]any, len(named))
	for key, sub := range named {
		if depth < maxMade || slices.Contains(required, any(key)) {
			out[key] = m.makeAt(sub, path+"."+key, depth+1)
		}
	}
	return out
}

func (m *maker) makeList(s map[string]any, path string, depth int) any {
	n := int64(m.items)
	if depth >= maxMade {
		n = 0
	}
	n = max(n, boundOf(s, "minItems", 0))
	n = min(n, boundOf(s, "maxItems", n))

	out := make([]any, n)
	for i := range out {
		out[i] = m.makeAt(s["items"], fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
	return out
}

// boundOf reads a whole number of a schema.
func boundOf(s map[string]any, key string, otherwise int64) int64 {
	if n, ok := s[key].(json.Number); ok {
		if v, err := n.Int64(); err == nil {
			return v
		}
	}
	return otherwise
}

// makeReferences makes a list of references: a share of all, so that the objects of a list
// have them all together.
func (m *maker) makeReferences(path string) any {
	list := []any{}
	for i, ref := range m.refs {
		if m.items > 1 && !strings.Contains(path, fmt.Sprintf("[%d]", i%m.items)) {
			continue
		}
		if ref = m.misuse(ref, fmt.Sprintf("%s/%d", path, i)); ref != "" {
			list = append(list, ref)
		}
	}
	return list
}

// makeEvidence makes a text with a sentence for each reference.
func (m *maker) makeEvidence(path string) any {
	var b strings.Builder
	for i, ref := range m.refs {
		fmt.Fprintf(&b, "The %d. passage of %016x was read", i+1, m.hashAt(path))
		if ref = m.misuse(ref, fmt.Sprintf("%s/%d", path, i)); ref != "" {
			b.WriteString(" [" + ref + "]")
		}
		b.WriteString(". ")
	}

	if b.Len() == 0 {
		return "There is no passage."
	}
	return strings.TrimSpace(b.String())
}

// misuse does to a reference what the script has happen to it; "" leaves it out.
func (m *maker) misuse(ref, path string) string {
	n := m.hashAt("misuse " + path)
	x := float64(n%10_000) / 10_000
	for _, how := range []string{dropRefs, inventRefs, mixRefs, rewriteRefs} {
		if x -= m.rates[how]; x >= 0 {
			continue
		}

		switch how {
		case dropRefs:
			return ""
		case inventRefs:
			return fmt.Sprintf("REF_%08x", uint32(n>>20))
		case mixRefs:
			return m.refs[n/10_000%uint64(len(m.refs))]
		}

		// Two of these spellings can still be understood; the last has another digit.
		switch n / 10_000 % 3 {
		case 0:
			return strings.ToUpper(ref)
		case 1:
			return strings.ToLower(ref)
		}
		return ref[:len(ref)-1] + "z"
	}
	return ref
}

func (m *maker) makeNumber(s map[string]any, path string) any {
	least := boundOf(s, "minimum", boundOf(s, "exclusiveMinimum", -1)+1)
	most := max(least, boundOf(s, "maximum", boundOf(s, "exclusiveMaximum", least+1001)-1))
	v := least + int64(m.hashAt(path)%uint64(most-least+1))
	if of := boundOf(s, "multipleOf", 1); of > 1 {
		v = (v + of - 1) / of * of
	}
	return v
}

// makeText makes a text that names its place and hash, and cites something if there is
// room for it.
func (m *maker) makeText(s map[string]any, path string) any {
	n := m.hashAt(path)
	switch s["format"] {
	case "date":
		return fmt.Sprintf("2024-%02d-%02d", 1+n%12, 1+n%28)
	case "date-time":
		return fmt.Sprintf("2024-%02d-%02dT00:00:00Z", 1+n%12, 1+n%28)
	case "time":
		return fmt.Sprintf("%02d:00:00Z", n%24)
	case "email":
		return fmt.Sprintf("a%x@example.com", n)
	case "uri":
		return fmt.Sprintf("https://example.com/%x", n)
	}

	text := strings.TrimPrefix(fmt.Sprintf("%s %016x", path, n), ".")
	text += strings.Repeat("x", int(max(0, min(boundOf(s, "minLength", 0), maxOutputBytes)-int64(len(text)))))
	if most := boundOf(s, "maxLength", -1); most >= 0 {
		return text[:min(int64(len(text)), most)]
	}

	if s["pattern"] == nil && len(m.refs) > 0 {
		if ref := m.misuse(m.refs[n%uint64(len(m.refs))], path); ref != "" {
			text += " [" + ref + "]"
		}
	}

	if path == "" && m.filler != "" { // of a report, as long as the script wants it
		text += " " + m.filler
	}
	return text
}
