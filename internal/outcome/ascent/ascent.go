// Package ascent compares the answers of the members of a cascade: how sure a cheaper answer
// is, and whether it is like that of the oracle.
//
// By each measure an answer has one score and one label. A measure is a field of the schema,
// over all records that a unit found, or whole records. What always holds:
//
//  1. Equal answers are alike by every measure. Answers with other values in a field are not
//     alike by that field, nor by whole records.
//  2. A score is no more than the least confidence of the values that it is of, and 0 if there
//     is none. It only orders answers; that they are alike is never concluded from it.
//
// It is pure, and imports the schema, and what outputs are made of.
package ascent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// Edition is raised with each change of what scores say: of rules, of prompts, and of how confidences are computed.
// What was certified of scores of another edition does not go for those of this one.
const Edition = 1

// Measures are by what the answers of a cascade are compared. They never change.
type Measures struct {
	schema *schema.Schema
	fields []string // the properties of a record
	names  []string // of the measures: fields, or one empty name for whole records
}

// New returns the measures of a cascade, as cascading.Cascade.Per says, for records of a schema.
// It returns an error if there are more than are kept of a unit.
func New(s *schema.Schema, per string) (*Measures, error) {
	m := &Measures{schema: s}
	for _, f := range s.Fields() {
		if name := fieldOf(f.Path); !slices.Contains(m.fields, name) {
			m.fields = append(m.fields, name)
		}
	}

	if m.names = m.fields; per == cascading.PerRecord {
		m.names = []string{""}
	}
	switch {
	case len(m.fields) == 0:
		return nil, fmt.Errorf("the schema has no field whose values could be compared")
	case len(m.names) > mapreduce.MaxScores:
		return nil, fmt.Errorf("the schema has %d fields, and at most %d can be certified one by one; certify whole records with per: record", len(m.names), mapreduce.MaxScores)
	}
	return m, nil
}

// Names are the names of the fields, or one empty name for whole records.
func (m *Measures) Names() []string { return m.names }

// fieldOf returns the property of the record that a path begins with.
func fieldOf(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// An answer is what a unit found, as far as it is compared.
type answer struct {
	records []map[string]string // by field: what stands there, as text
	sure    []map[string]float64
}

// read reads an output of a map unit.
func (m *Measures) read(out *output.Output) answer {
	var a answer
	for i := range out.Entries {
		found := merge.Resolve(m.schema, output.Believed(m.schema, out.Entries[i].Accumulator, out.Citations))

		texts, sure := make(map[string]string), make(map[string]float64)
		for _, f := range m.schema.Fields() {
			value, ok := found.Values[f.Path]
			if !ok || value == nil {
				continue
			}

			name := fieldOf(f.Path)
			texts[name] += f.Path + "\x00" + keyOf(f.Property, value) + "\x00"
			if c, known := sure[name]; !known || found.Confidence[f.Path] < c {
				sure[name] = found.Confidence[f.Path]
			}
		}
		a.records, a.sure = append(a.records, texts), append(a.sure, sure)
	}
	return a
}

// keyOf returns a text that is the same for values that count as equal.
func keyOf(p *schema.Property, value any) string {
	list, ok := value.([]any)
	if !ok {
		return eval.KeyOf(p, value)
	}

	// A list is equal in any order, as merges have none.
	keys := make([]string, len(list))
	for i, item := range list {
		of := p
		if p.Items != nil {
			of = p.Items
		}
		keys[i] = eval.KeyOf(of, item)
	}
	slices.Sort(keys)
	text, _ := json.Marshal(keys)
	return string(text)
}

// Scores returns how sure an answer is by each measure, in millionths.
func (m *Measures) Scores(out *output.Output) []uint32 {
	a := m.read(out)
	scores := make([]uint32, len(m.names))
	for i, name := range m.names {
		sure := a.leastOf(name)
		if name == "" {
			sure = a.product(m.fields)
		}
		scores[i] = uint32(math.Round(min(max(sure, 0), 1) * mapreduce.MaxScore))
	}
	return scores
}

// leastOf returns the least confidence of a field in any record; 0 if one has no value there.
func (a *answer) leastOf(name string) float64 {
	if len(a.sure) == 0 {
		return 0
	}
	least := 1.0
	for _, of := range a.sure {
		least = min(least, of[name])
	}
	return least
}

// missing is how sure it is, in a product, that a field without a value has none: nobody knows.
const missing = 0.5

// product is how sure whole records are, if fields are right or wrong apart from each other.
func (a *answer) product(fields []string) float64 {
	if len(a.sure) == 0 {
		return 0
	}

	all := 1.0
	for _, of := range a.sure {
		for _, name := range fields {
			if c, known := of[name]; known {
				all *= c
			} else {
				all *= missing
			}
		}
	}
	return all
}

// Alike returns by each measure whether two answers about a unit are alike. Their records may
// stand in any order.
func (m *Measures) Alike(one, other *output.Output) []bool {
	a, b := m.read(one), m.read(other)
	alike := make([]bool, len(m.names))
	for i, name := range m.names {
		alike[i] = slices.Equal(a.texts(name), b.texts(name))
	}
	return alike
}

// Ask has a person judge an answer: it notes what was found, so that Judge can tell later whether that was right. Until
// then all of it is.
func (m *Measures) Ask(out *output.Output) {
	a := m.read(out)
	how := out.Ascent
	how.Found, how.Alike, how.Whole = make([]uint64, len(m.names)), make([]bool, len(m.names)), m.names[0] == ""
	for i, name := range m.names {
		how.Found[i], how.Alike[i] = a.hash(name), true
	}
}

// Judge says by each measure of an answer that a person was asked about whether it is now what was found.
func Judge(s *schema.Schema, out *output.Output) error {
	how := out.Ascent
	if how == nil || len(how.Found) == 0 {
		return nil
	}
	per := cascading.PerField
	if how.Whole {
		per = cascading.PerRecord
	}
	m, err := New(s, per)
	if err != nil {
		return err
	}
	if len(how.Found) != len(m.names) {
		return fmt.Errorf("ascent: the answer has %d measures, and its schema %d", len(how.Found), len(m.names))
	}

	a := m.read(out)
	how.Alike = make([]bool, len(m.names))
	for i, name := range m.names {
		how.Alike[i] = a.hash(name) == how.Found[i]
	}
	return nil
}

// hash returns a hash of what stands in a field of all records, or in all fields of each.
func (a *answer) hash(name string) uint64 {
	h := sha256.New()
	for _, text := range a.texts(name) {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// texts returns what stands in a field of all records, or in all fields of each, sorted.
func (a *answer) texts(name string) []string {
	all := make([]string, 0, len(a.records))
	for _, of := range a.records {
		if name != "" {
			all = append(all, of[name])
			continue
		}

		var whole strings.Builder
		for _, field := range slices.Sorted(maps.Keys(of)) {
			whole.WriteString(field + "\x00" + of[field] + "\x00")
		}
		all = append(all, whole.String())
	}
	slices.Sort(all)
	return all
}
