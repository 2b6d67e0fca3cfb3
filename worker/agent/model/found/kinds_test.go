package found_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/found"
	"github.com/coditect/mapreduce/worker/agent/unit"
)

// decode reads JSON, with numbers as they are written.
func decode(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// recordsOf returns the records of an instance as Nest makes them.
func recordsOf(s *schema.Schema, instance any) []map[string]any {
	list, isList := instance.([]any)
	if s.Kind == schema.KindRecord || !isList || !s.Many() {
		list = []any{instance}
	}
	var records []map[string]any
	for _, one := range list {
		record, ok := one.(map[string]any)
		if !ok || s.Bare() {
			record = map[string]any{schema.ValueName: one}
		}
		named := make(map[string]any, len(record))
		for name, v := range record {
			named[schema.RecordName(name)] = v
		}
		records = append(records, named)
	}
	return records
}

// A told is the document and the answer of a model that knows the instance: each finding
// stands on a line of the document, which is its quote.
type told struct {
	document strings.Builder
	n        int
}

func (o *told) finding(path string, value any) map[string]any {
	o.n++
	line := fmt.Sprintf("%d. %s: %s", o.n, path, strings.ReplaceAll(encode(value), ",", ", "))
	o.document.WriteString(line + "\n")
	return map[string]any{"value": value, "quotes": []any{line}, "confidence": 1}
}

func (o *told) record(f *form.Form, s *schema.Schema, record map[string]any) map[string]any {
	values := s.Flatten(record)
	fields, missing := map[string]any{}, []any{}
	for _, field := range f.Fields {
		p, v := field.Property, values[field.Path]
		list := []any{}
		switch v := v.(type) {
		case nil:
			missing = append(missing, map[string]any{"field": field.Key, "reason": "it is not there"})
		case []any:
			if p.Type != schema.Array {
				list = append(list, o.finding(field.Path, form.Told(p, v)))
				break
			}
			for _, item := range v {
				list = append(list, o.finding(field.Path, form.Told(p.Items, item)))
			}
		default:
			entries, isMap := form.Told(p, v).([]any)
			if p.Type != schema.Map || !isMap {
				list = append(list, o.finding(field.Path, form.Told(p, v)))
				break
			}
			for _, entry := range entries {
				list = append(list, o.finding(field.Path, entry))
			}
		}
		fields[field.Key] = list
	}
	return map[string]any{"fields": fields, "not_found": missing}
}

// throughModel has an instance told by a model that knows it, and returns the records that
// come out of its answer.
func throughModel(s *schema.Schema, instance any) (records []map[string]any, results []merge.Result, err error) {
	f, err := form.New(s)
	if err != nil {
		return nil, nil, err
	}
	var o told
	var all []any
	for _, record := range recordsOf(s, instance) {
		all = append(all, o.record(f, s, record))
	}
	answer := all[0]
	if f.Many() {
		answer = map[string]any{"records": all, "no_records": ""}
	}
	raw, err := f.Answer.Check([]byte(encode(answer)))
	if err != nil {
		return nil, nil, fmt.Errorf("the answer %s does not fit the form %s: %w", encode(answer), f.Answer.Document(), err)
	}
	answers, _, err := f.ReadAnswer(raw)
	if err != nil {
		return nil, nil, err
	}
	text := o.document.String()
	sum := sha256.Sum256([]byte(text))
	task := &agent.Task{Assignment: protocol.Assignment{Unit: "d", Kind: mapreduce.KindMap, Text: &protocol.Text{
		Document: "d", SHA256: sum[:], Content: []byte(text), CoreEnd: len(text), Chunks: 1, Length: int64(len(text)),
	}}}
	places, _, err := unit.Find(context.Background(), task, unit.Aligner(task.Text, 0, len(text)), found.Quotes(f, answers))
	if err != nil {
		return nil, nil, err
	}
	read, faults := found.Records(f, answers, places)
	if len(faults) > 0 {
		return nil, nil, fmt.Errorf("faults: %v", faults)
	}
	mapper := unit.NewMapper(task, s)
	for i, rec := range read {
		r := merge.Resolve(s, mapper.Accumulate(int64(i), rec.Values, rec.Missing))
		records, results = append(records, s.Nest(r.Values)), append(results, r)
	}
	return records, results, nil
}

// plain returns a value without nulls and what is empty, and with numbers as their text, so
// that what was not said and what was said to be nothing are the same.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if item = plain(item); item != nil {
				out[name] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case json.Number:
		return "number " + v.String()
	}
	return v
}

// A value of each kind of schema comes out as a model told it, and none is refused.
func TestKindsOfSchemas(t *testing.T) {
	for _, tt := range []struct{ name, schema, instance string }{
		{"types in a list", `{"type":"object","properties":{"a":{"type":["string","number"]},"b":{"type":["integer","boolean","null"]}}}`, `{"a":12.5,"b":true}`},
		{"a text or its list", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`, `{"a":["x","y"]}`},
		{"a text of a number", `{"type":"object","properties":{"a":{"type":["string","number"]}}}`, `{"a":"12"}`},
		{
			"alternatives of objects", `{"$defs":{"cat":{"type":"object","required":["kind","lives"],"properties":{"kind":{"const":"cat"},"lives":{"type":"integer"}}},` +
				`"dog":{"type":"object","required":["kind","breed"],"properties":{"kind":{"const":"dog"},"breed":{"type":"string"}}}},` +
				`"type":"object","properties":{"pet":{"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}]},"pets":{"type":"array","items":{"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}]}}}}`,
			`{"pet":{"kind":"dog","breed":"pug"},"pets":[{"kind":"cat","lives":9},{"kind":"dog","breed":"boxer"}]}`,
		},
		{"alternatives at the top", `{"anyOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}},{"type":"object","required":["b"],"properties":{"b":{"type":"number"}}}]}`, `{"b":5}`},
		{"parts of all", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"number"}},"required":["b"]}]}`, `{"a":"x","b":2}`},
		{"a constant", `{"type":"object","properties":{"version":{"const":2},"kind":{"const":"order"}}}`, `{"version":2,"kind":"order"}`},
		{"a map", `{"type":"object","properties":{"prices":{"type":"object","additionalProperties":{"type":"number"}}}}`, `{"prices":{"apples":1.5,"pear trees":20}}`},
		{
			"a map of objects in a list", `{"type":"object","properties":{"shops":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"stock":{"type":"object","additionalProperties":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}}}`,
			`{"shops":[{"name":"north","stock":{"nails":{"n":5},"screws":{"n":7}}},{"name":"south","stock":{"nails":{"n":1}}}]}`,
		},
		{
			"names and other names", `{"type":"object","properties":{"name":{"type":"string"},"address":{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":{"type":"integer"}}},"patternProperties":{"^x-":{"type":"string"}}}`,
			`{"name":"Ann","x-colour":"red","address":{"city":"Rome","floor":3}}`,
		},
		{"a map at the top", `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`, `{"vowels":["a","e"],"others":["b"]}`},
		{"a tuple", `{"type":"object","properties":{"point":{"type":"array","prefixItems":[{"type":"number"},{"type":"number"},{"type":"string"}],"items":false}}}`, `{"point":[1.5,-2,"m"]}`},
		{"tuples in a list, and more items", `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}}`, `{"rows":[["a",1,2],["b"],["c",3]]}`},
		{"lists of lists", `{"type":"object","properties":{"m":{"type":"array","items":{"type":"array","items":{"type":"number"}}}}}`, `{"m":[[1,2],[3,4]]}`},
		{
			"itself within itself", `{"$defs":{"part":{"type":"object","properties":{"name":{"type":"string"},"parts":{"type":"array","items":{"$ref":"#/$defs/part"}}}}},"$ref":"#/$defs/part"}`,
			`{"name":"1","parts":[{"name":"2","parts":[{"name":"3","parts":[{"name":"4","parts":[{"name":"5","parts":[{"name":"6"}]}]}]}]}]}`,
		},
		{
			"bundled", `{"type":"object","properties":{"a":{"$ref":"https://example.org/money"},"b":{"$ref":"#total"}},"$defs":{"m":{"$id":"https://example.org/money","type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"number"}}},"t":{"$anchor":"total","type":"integer"}}}`,
			`{"a":{"n":1.25},"b":3}`,
		},
		{
			"names that are wild", `{"type":"object","properties":{"_id":{"type":"string"},"":{"type":"string"},"_sources":{"type":"integer"},"a.b":{"type":"string"},"a":{"type":"object","properties":{"b":{"type":"string"}}},"*":{"type":"string"},"l":{"type":"array","items":{"type":"object","properties":{"":{"type":"string"},"_x":{"type":"string"},"naïve name":{"type":"integer"}}}}}}`,
			`{"_id":"i","":"empty","_sources":4,"a.b":"one","a":{"b":"two"},"*":"star","l":[{"":"e","_x":"u","naïve name":1}]}`,
		},
		{"true and false", `{"type":"object","properties":{"a":true,"b":false,"c":{"type":"array","items":true}}}`, `{"a":{"x":[1,null,"y"]},"c":["p",{"q":2}]}`},
		{"a free object", `{"type":"object","properties":{"meta":{"type":"object"},"any":{},"some":{"type":"array"}}}`, `{"meta":{"a":{"b":[1,2]},"c":"x"},"any":[1,"two"],"some":[1,{"a":"b"}]}`},
		{"free objects that differ", `{"type":"object","properties":{"some":{"type":"array"},"meta":{"type":"array","items":{"type":"object"}}}}`, `{"some":[{"a":"b"},{"a":"c"},{"b":"c"},[{"a":"b"}],[{"a":"c"}]],"meta":[{"a":{"b":"x"}},{"a":{"b":"y"}}]}`},
		{"a free object at the top", `{"type":"object"}`, `{"a":{"b":[1,2]},"c":"x"}`},
		{"a list of texts", `{"type":"array","items":{"type":"string"}}`, `["a","b"]`},
		{"a list of lists", `{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`, `[[1,2],[3]]`},
		{"a list of maps", `{"type":"array","items":{"type":"object","additionalProperties":{"type":"string"}}}`, `[{"a":"b"},{"c":"d","e":"f"}]`},
		{"a list of this or that", `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"number"}}}]}}`, `["a",{"a":1}]`},
		{"a tuple at the top", `{"type":"array","prefixItems":[{"type":"string"},{"type":"object","properties":{"a":{"type":"integer"}}}]}`, `["x",{"a":1}]`},
		{"look-around", `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!foo$)(?=.*[0-9])"}}}`, `{"a":"foo1"}`},
		{
			"conditions", `{"type":"object","properties":{"country":{"enum":["US","CA"]}},"if":{"properties":{"country":{"const":"US"}}},"then":{"properties":{"zip":{"type":"string","pattern":"^[0-9]{5}$"}}},"else":{"properties":{"code":{"type":"string"}}},"dependentSchemas":{"zip":{"properties":{"box":{"type":"integer"}}}}}`,
			`{"country":"US","zip":"12345","box":7}`,
		},
		{
			"null that has to be said", `{"type":"object","required":["a","l"],"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":"null"},"l":{"type":"array","items":{"type":"object","required":["x","y"],"properties":{"x":{"type":["integer","null"]},"y":{"type":"string"}}}}}}`,
			`{"a":null,"l":[{"x":null,"y":"z"}]}`,
		},
		{
			"null that one alternative requires", `{"$defs":{"a":{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"anyOf":[{"type":"string"},{"type":"null"}]}}},"c":{"type":"object","required":["c"],"properties":{"c":{"type":"string"}},"additionalProperties":false}},` +
				`"type":"object","properties":{"l":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/a"}]}},"o":{"oneOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/a"}]}},"required":["l","o"]}`,
			`{"l":[{"c":"x"},{"a":"y"}],"o":{"a":"z"}}`,
		},
		{"a choice of nothing", `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","required":["kind","n"],"properties":{"kind":{"enum":["new","old",""]},"n":{"type":"integer"}}}}}}`, `{"l":[{"kind":"","n":1},{"kind":"old","n":2}]}`},
		{"required, and nothing else", `{"type":"object","required":["a"],"properties":{"b":{"type":"string"}}}`, `{"a":"x","b":"y"}`},
		{"an envelope", `{"type":"json_schema","json_schema":{"name":"order","strict":true,"schema":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false,"required":["n"]}}}`, `{"n":4}`},
		{"an envelope of its own", `{"name":"order","description":"an order","schema_definition":{"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}}}}}`, `{"n":4,"l":["x"]}`},
		{
			"an older draft", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x.example/s","definitions":{"p":{"type":"number","minimum":0,"exclusiveMinimum":true}},"type":"object","properties":{"a":{"$ref":"#/definitions/p"},"t":{"type":"array","items":[{"type":"string"},{"$ref":"http://x.example/s#/definitions/p"}]}}}`,
			`{"a":0.5,"t":["x",2]}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := schema.Parse("s.json", []byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			instance := decode(t, tt.instance)
			got, results, err := throughModel(s, instance)
			if err != nil {
				t.Fatal(err)
			}
			var all, want []any
			for i, record := range got {
				all = append(all, plain(record))
				want = append(want, plain(recordsOf(s, instance)[i]))
				if r := results[i]; len(r.Refused) > 0 || len(r.Lacking) > 0 || len(r.Unverified) > 0 {
					t.Errorf("refused %v, lacking %v, unverified %v", r.Refused, r.Lacking, r.Unverified)
				}
			}
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// A part of a value that breaks the schema, or that is no value of its property, goes to what
// was refused by its path, and the rest stays.
func TestPartsThatMayNotStand(t *testing.T) {
	const people = `{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","required":["name"],"properties":{
		"name":{"type":"string","minLength":1},"email":{"type":"string"},"year":{"type":"integer","minimum":1000},"tags":{"type":"array","items":{"type":"string","maxLength":3}}}}},
		"prices":{"type":"object","additionalProperties":{"type":"number","minimum":0}}}}`
	for name, tt := range map[string]struct {
		answer, want string
		refused      map[string]string // constraint by path
	}{
		"a member that breaks a constraint": {
			`{"people":[{"value":{"name":"Bob Ray","email":"bob@x.org","year":5},"quotes":["Bob Ray, bob@x.org"],"confidence":1}]}`,
			`{"people":[{"name":"Bob Ray","email":"bob@x.org"}]}`,
			map[string]string{"people[0].year": "minimum"},
		},
		"a member that is no value": {
			`{"people":[{"value":{"name":"Ann Lee","year":"soon"},"quotes":["Ann Lee"],"confidence":1}]}`,
			`{"people":[{"name":"Ann Lee"}]}`,
			map[string]string{"people[0].year": "type"},
		},
		"an element of a list in it": {
			`{"people":[{"value":{"name":"Ann Lee","tags":["abc","abcd","x"]},"quotes":["Ann Lee"],"confidence":1}]}`,
			`{"people":[{"name":"Ann Lee","tags":["abc","x"]}]}`,
			map[string]string{"people[0].tags[1]": "maxLength"},
		},
		"an element before it": {
			`{"people":[{"value":{"name":""},"quotes":["Ann Lee"],"confidence":1},{"value":{"name":"Bob Ray","year":5},"quotes":["Bob Ray, bob@x.org"],"confidence":1}]}`,
			`{"people":[{"name":"Bob Ray"}]}`,
			map[string]string{"people": "type", "people[0].year": "minimum"},
		},
		"nothing is left": {
			`{"people":[{"value":{"name":"","year":7},"quotes":["Ann Lee"],"confidence":1}]}`, `null`, map[string]string{"people": "type"},
		},
		"an entry of a map": {
			`{"prices":[{"value":{"key":"a","value":5},"quotes":["Ann Lee"],"confidence":1},{"value":{"key":"b","value":-1},"quotes":["Ann Lee"],"confidence":1}]}`,
			`{"prices":{"a":5}}`,
			map[string]string{"prices": "minimum"},
		},
	} {
		s, err := schema.Parse("s.json", []byte(people))
		if err != nil {
			t.Fatal(err)
		}
		f, err := form.New(s)
		if err != nil {
			t.Fatal(err)
		}
		answers, _, err := f.ReadAnswer([]byte(`{"fields":` + tt.answer + `,"not_found":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		text := "Ann Lee is here. Bob Ray, bob@x.org, too."
		sum := sha256.Sum256([]byte(text))
		task := &agent.Task{Assignment: protocol.Assignment{Unit: "d", Kind: mapreduce.KindMap, Text: &protocol.Text{
			Document: "d", SHA256: sum[:], Content: []byte(text), CoreEnd: len(text), Chunks: 1, Length: int64(len(text)),
		}}}
		places, _, err := unit.Find(context.Background(), task, unit.Aligner(task.Text, 0, len(text)), found.Quotes(f, answers))
		if err != nil {
			t.Fatal(err)
		}
		read, _ := found.Records(f, answers, places)
		r := merge.Resolve(s, unit.NewMapper(task, s).Accumulate(0, read[0].Values, read[0].Missing))
		if diff := cmp.Diff(plain(decode(t, tt.want)), plain(any(s.Nest(r.Values)))); diff != "" {
			t.Errorf("%s: record (-want +got):\n%s", name, diff)
		}
		got := map[string]string{}
		for path, refusal := range r.Refused {
			got[path] = refusal.Constraint
			if len(refusal.Citations) == 0 || r.Values[path] == nil && !strings.Contains(r.Missing[path], refusal.Constraint) {
				t.Errorf("%s: %s: %+v, missing as %q", name, path, refusal, r.Missing[path])
			}
		}
		if diff := cmp.Diff(tt.refused, got); diff != "" {
			t.Errorf("%s: refused (-want +got):\n%s", name, diff)
		}
	}
}

// A maker draws schemas of all kinds, and instances of them.
type maker struct{ *rand.Rand }

func (m maker) word() string {
	return []string{"ash", "birch", "cedar", "elm", "fir", "oak", "pine", "yew"}[m.IntN(8)] + fmt.Sprint(m.IntN(1000))
}

// kind draws the schema of a value, and what draws its instances.
func (m maker) kind(depth int) (map[string]any, func() any) {
	n := 12
	if depth == 0 {
		n = 5
	}
	switch m.IntN(n) {
	case 0:
		return map[string]any{"type": "string"}, func() any { return m.word() }
	case 1:
		return map[string]any{"type": "integer", "minimum": -500}, func() any { return json.Number(fmt.Sprint(m.IntN(1000) - 500)) }
	case 2:
		return map[string]any{"type": "number"}, func() any { return json.Number(fmt.Sprintf("%d.%d", m.IntN(100), 1+m.IntN(9))) }
	case 3:
		return map[string]any{"enum": []any{"red", "green", 7, true}}, func() any { return []any{"red", "green", json.Number("7"), true}[m.IntN(4)] }
	case 4:
		return map[string]any{"type": []any{"string", "integer"}}, func() any {
			if m.IntN(2) == 0 {
				return m.word()
			}
			return json.Number(fmt.Sprint(m.IntN(1000)))
		}
	case 5:
		inner, draw := m.kind(depth - 1)
		return map[string]any{"type": "array", "items": inner}, func() any { return m.distinct(draw) }
	case 6:
		inner, draw := m.kind(depth - 1)
		return map[string]any{"type": "object", "additionalProperties": inner}, func() any { return map[string]any{m.word(): draw(), m.word(): draw()} }
	case 7:
		first, drawFirst := m.kind(depth - 1)
		second, drawSecond := m.kind(depth - 1)
		return map[string]any{"type": "array", "prefixItems": []any{first, second}, "items": false}, func() any { return []any{drawFirst(), drawSecond()} }
	case 8:
		inner, draw := m.kind(depth - 1)
		return map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, map[string]any{"type": "array", "items": inner}}}, func() any {
			if m.IntN(2) == 0 {
				return m.IntN(2) == 0
			}
			return m.distinct(draw)
		}
	case 9:
		a, drawA := m.kind(depth - 1)
		b, drawB := m.kind(depth - 1)
		option := func(kind string, inner map[string]any) map[string]any {
			return map[string]any{"type": "object", "required": []any{"kind", kind}, "properties": map[string]any{"kind": map[string]any{"const": kind}, kind: inner}}
		}
		return map[string]any{"oneOf": []any{option("a", a), option("b", b)}}, func() any {
			if m.IntN(2) == 0 {
				return map[string]any{"kind": "a", "a": drawA()}
			}
			return map[string]any{"kind": "b", "b": drawB()}
		}
	case 10:
		return map[string]any{}, func() any {
			return []any{m.word(), true, json.Number("12"), []any{m.word(), json.Number("3")}, map[string]any{m.word(): []any{m.word()}}}[m.IntN(5)]
		}
	}
	return m.object(depth - 1)
}

// distinct draws a list of items that differ, as equal ones become one.
func (m maker) distinct(draw func() any) any {
	list, seen := []any{}, map[string]bool{}
	for range 1 + m.IntN(3) {
		if v := draw(); !seen[encode(v)] {
			list, seen[encode(v)] = append(list, v), true
		}
	}
	return list
}

// object draws the schema of an object.
func (m maker) object(depth int) (map[string]any, func() any) {
	properties, draws := map[string]any{}, map[string]func() any{}
	for range 1 + m.IntN(3) {
		name := m.word()
		properties[name], draws[name] = m.kind(depth)
	}
	s := map[string]any{"type": "object", "properties": properties}
	return s, func() any {
		out := map[string]any{}
		for name, draw := range draws {
			if len(out) == 0 || m.IntN(4) > 0 {
				out[name] = draw()
			}
		}
		return out
	}
}

// Whatever the schema is, an instance that a model tells comes out as it is.
func TestInstancesComeOutAsTheyAre(t *testing.T) {
	for seed := range uint64(40) {
		m := maker{rand.New(rand.NewPCG(seed, 48))}
		kind, draw := m.object(3)
		raw := encode(kind)
		s, err := schema.Parse("s.json", []byte(raw))
		if err != nil {
			t.Errorf("seed %d: %s: %v", seed, raw, err)
			continue
		}
		for range 3 {
			instance := decode(t, encode(draw()))
			got, results, err := throughModel(s, instance)
			if err != nil {
				t.Errorf("seed %d: %s\n%s\n%v", seed, raw, encode(instance), err)
				break
			}
			if diff := cmp.Diff(plain(instance), plain(any(got[0]))); diff != "" {
				t.Errorf("seed %d: %s\nrecord (-want +got):\n%s\nrefused %v", seed, raw, diff, results[0].Refused)
				break
			}
		}
	}
}
