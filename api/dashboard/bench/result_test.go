package bench_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
)

// The records of a job stand with their documents, each value with the passages that it rests on there, and
// what was not found with why not.
func TestResultOfAJob(t *testing.T) {
	s, err := schema.Parse("schema", []byte("type: object\nproperties:\n  total: {type: number}\n  shop:\n    type: object\n    properties:\n      name: {type: string}\n      city: {type: string}\n"))
	if err != nil {
		t.Fatal(err)
	}
	docs := []bench.Document{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	cite := func(ref, document string, start, end int64) *mapreduce.ResultPart {
		return &mapreduce.ResultPart{Citation: &mapreduce.Citation{Ref: ref, Document: mapreduce.DocumentID(document), ByteStart: start, ByteEnd: end, Quote: "q" + ref}}
	}
	parts := []*mapreduce.ResultPart{
		{Record: []byte(`{"total": 12.50, "shop": {"name": "X"}, "_citations": {"total": ["1"], "shop.name": ["2", "3"]}, "_missing": {"shop.city": "no label matched"}}`)},
		cite("1", "b", 3, 8), cite("2", "b", 0, 1), cite("3", "a", 5, 6),
		{Record: []byte(`{"total": null, "shop": {"name": null}, "_unverified": {"total": "12,5"}, "_sources": ["a"]}`)},
		{Source: &mapreduce.Source{Document: "c", Errors: []string{"first", "last"}}},
	}
	got, err := bench.FromResult(s, docs, func(sink func(*mapreduce.ResultPart) error) error {
		for _, p := range parts {
			if err := sink(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	want := &bench.Report{
		Documents: []bench.Tried{
			{Document: "a", Records: []bench.Record{{Fields: []bench.Field{{Name: "total", Refused: `"12,5"`}, {Name: "shop.name"}, {Name: "shop.city"}}}}},
			{Document: "b", Records: []bench.Record{{Fields: []bench.Field{
				{Name: "total", Accepted: true, Values: []bench.Value{{Text: "12.50", Quote: "q1", Start: 3, End: 8}}},
				{Name: "shop.name", Accepted: true, Values: []bench.Value{{Text: "X", Quote: "q2", Start: 0, End: 1}}},
				{Name: "shop.city", Reason: "no label matched"},
			}}}},
			{Document: "c", Skipped: "last"},
		},
		Fields: []bench.Count{{Field: "total", Found: 1, Records: 2}, {Field: "shop.name", Found: 1, Records: 2}, {Field: "shop.city", Records: 2}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// What is proposed as one types is known to schemas: each name and value is taken where it is proposed.
func TestCompletionsAreTaken(t *testing.T) {
	all := bench.Completions()
	for name, where := range map[string]string{
		"type": "properties: {a: {type: %}}", "format": "properties: {a: {type: string, format: %}}",
		"pick": "properties: {a: {type: array, items: {type: number}, x-coditect: {labels: [a], pick: %}}}", "merge": "properties: {a: {type: array, items: {type: number}, x-coditect: {merge: %}}}",
		"otherwise": "properties: {a: {type: string, format: date, x-coditect: {labels: [a], otherwise: %}}}", "match": "properties: {a: {type: string}}\nx-coditect: {key: [a], match: %}",
		"date_order": "properties: {a: {type: string, format: date, x-coditect: {date_order: %}}}", "number_words": "properties: {a: {type: number, x-coditect: {number_words: %}}}",
		"uniqueItems": "properties: {a: {type: array, items: {type: string}, uniqueItems: %}}", "additionalProperties": "properties: {a: {type: string}}\nadditionalProperties: %",
	} {
		if len(all[name]) == 0 {
			t.Errorf("nothing is proposed for %s", name)
		}
		for _, value := range all[name] {
			_, err := schema.Parse("schema", []byte("type: object\n"+replaced(where, value)))
			if err != nil && (strings.Contains(err.Error(), `"`+value+`"; `) || !strings.Contains("type pick merge", name)) { // which not every property may have
				t.Errorf("%s: %s is proposed and refused: %v", name, value, err)
			}
		}
	}
	for list, where := range map[string]string{
		"hints": "properties: {a: {type: string, x-coditect: {%: 1}}}", "top": "properties: {a: {type: string}}\nx-coditect: {%: 1}", "within": "properties: {a: {type: string, x-coditect: {within: {%: 1}}}}",
	} {
		for _, name := range all[list] {
			if _, err := schema.Parse("schema", []byte("type: object\n"+replaced(where, name))); err != nil && (strings.Contains(err.Error(), `hint "`+name+`"`) || strings.Contains(err.Error(), `place "`+name+`"`)) {
				t.Errorf("%s: %s is not known: %v", list, name, err)
			}
		}
	}
}

func replaced(where, value string) string { return strings.Replace(where, "%", value, 1) }
