package bench_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/dashboard/bench"
	"github.com/coditect/mapreduce/api/schema"
)

const commented = `# Receipts of a shop.
title: receipt
type: object

required: [company, total]   # the rest may be missing
properties:
  # as the register prints it
  company: {type: string, x-coditect: {lines: [0, 3]}}  # first lines

  total:
    # in the currency of the shop
    type: number
    x-coditect:
      labels: [TOTAL, "GRAND TOTAL"]   # the best first
      pick: max
    # what follows is old

  # lists
  lines:
    type: array
    items:
      type: object
      properties:
        name: {type: string}
        "a/b": {type: string}
# the end
`

// An edit of the form changes what was asked for, and no line of anything else.
func TestEditsKeepTheRestOfTheText(t *testing.T) {
	for name, tt := range map[string]struct {
		edit      bench.Edit
		old, want string // what stood there, and stands now
	}{
		"type in flow": {
			bench.Edit{At: "/properties/company", What: "type", Value: "integer"},
			"company: {type: string, x-coditect: {lines: [0, 3]}}  # first lines", "company: {type: integer, x-coditect: {lines: [0, 3]}} # first lines",
		},
		"type in block": {
			bench.Edit{At: "/properties/total", What: "type", Value: "integer"},
			"    type: number\n    x-coditect:\n      labels: [TOTAL, \"GRAND TOTAL\"]   # the best first\n", "    type: integer\n    x-coditect:\n      labels: [TOTAL, \"GRAND TOTAL\"] # the best first\n",
		},
		"labels": {
			bench.Edit{At: "/properties/total", What: "labels", Value: "Total\n\nSum: all\n12\ntrue\n#3"},
			"      labels: [TOTAL, \"GRAND TOTAL\"]   # the best first\n", "      labels: [Total, 'Sum: all', \"12\", \"true\", '#3'] # the best first\n",
		},
		"a pattern for what has hints": {
			bench.Edit{At: "/properties/company", What: "pattern", Value: "(?i)ltd"},
			"company: {type: string, x-coditect: {lines: [0, 3]}}  # first lines", "company: {type: string, x-coditect: {lines: [0, 3], pattern: '(?i)ltd'}} # first lines",
		},
		"a new property": {
			bench.Edit{At: "/properties/company", What: "add", Value: "date"},
			"# first lines\n", "# first lines\n  date: {type: string}\n",
		},
		"a new property behind all": {
			bench.Edit{What: "add", Value: "yes"},
			"        \"a/b\": {type: string}\n", "        \"a/b\": {type: string}\n  yes: {type: string}\n",
		},
		"another name": {
			bench.Edit{At: "/properties/lines/items/properties/a~1b", What: "name", Value: "c"},
			"        \"a/b\": {type: string}\n", "        c: {type: string}\n",
		},
		"no longer required": {
			bench.Edit{At: "/properties/company", What: "required"},
			"required: [company, total]   # the rest may be missing", "required: [total] # the rest may be missing",
		},
		"required within": {
			bench.Edit{At: "/properties/lines/items/properties/name", What: "required", Value: "true"},
			"      properties:\n        name:", "      required: [name]\n      properties:\n        name:",
		},
		"gone within": {
			bench.Edit{At: "/properties/lines/items/properties/name", What: "remove"},
			"        name: {type: string}\n", "",
		},
	} {
		got, err := bench.Apply(commented, tt.edit)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Count(commented, tt.old) != 1 {
			t.Fatalf("%s: the text has %q %d times", name, tt.old, strings.Count(commented, tt.old))
		}
		if d := cmp.Diff(strings.Replace(commented, tt.old, tt.want, 1), got); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
		if _, err := schema.Parse("schema", []byte(got)); err != nil {
			t.Errorf("%s: the schema is broken: %v", name, err)
		}
	}
}

// With a property its comments go that stand directly above it, and no others.
func TestRemovedWithItsComments(t *testing.T) {
	const text = "# receipts\ntype: object\nproperties:\n  # of the shop\n\n  # in 3 of 4\n  # such as 1.50\n  net: {type: number}  # before tax\n" +
		"  # in 4 of 4\n  total: {type: number}\n    # deeper\n  # at the end\n"
	for at, want := range map[string]string{
		"/properties/net":   "# receipts\ntype: object\nproperties:\n  # of the shop\n\n  # in 4 of 4\n  total: {type: number}\n    # deeper\n  # at the end\n",
		"/properties/total": "# receipts\ntype: object\nproperties:\n  # of the shop\n\n  # in 3 of 4\n  # such as 1.50\n  net: {type: number}  # before tax\n    # deeper\n  # at the end\n",
	} {
		got, err := bench.Apply(text, bench.Edit{At: at, What: "remove"})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", at, d)
		}
	}
}

// The form of a schema has what the text says, also once that was changed by it.
func TestFormHasWhatTheTextSays(t *testing.T) {
	text := commented
	for _, e := range []bench.Edit{
		{At: "/properties/company", What: "labels", Value: "Shop\nSeller"},
		{At: "/properties/company", What: "description", Value: "who: sells"},
		{At: "/properties/company", What: "name", Value: "seller"},
		{At: "/properties/total", What: "remove"},
		{At: "/properties/lines", What: "required", Value: "true"},
	} {
		var err error
		if text, err = bench.Apply(text, e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
	}

	out, err := bench.New(bench.Tools{Try: nothing}).Run(t.Context(), &bench.Sample{Schema: text})
	if err != nil {
		t.Fatal(err)
	}
	type short struct {
		Name, Type, Description, Labels string
		Required                        bool
	}
	var got []short
	for _, r := range out.Rows {
		got = append(got, short{r.Name, r.Type, r.Description, r.Labels, r.Required})
	}
	want := []short{
		{"seller", "string", "who: sells", "Shop\nSeller", true},
		{"lines", "array", "", "", true},
		{"name", "string", "", "", false},
		{"a/b", "string", "", "", false},
	}
	if d := cmp.Diff(want, got); d != "" || out.Broken {
		t.Errorf("broken: %t; -want +got:\n%s", out.Broken, d)
	}
	for line := range strings.Lines(commented) {
		if _, comment, found := strings.Cut(line, "#"); found && !strings.Contains(text, strings.TrimSpace(comment)) && !strings.Contains(comment, "currency") && !strings.Contains(comment, "best first") {
			t.Errorf("the comment %q is lost", comment)
		}
	}
}

// JSON stays JSON, with its names in their order and its numbers as they were written.
func TestEditsOfJSON(t *testing.T) {
	const text = `{"type": "object", "properties": {"b": {"type": ["null", "number"], "minimum": 1e-7}, "a": {"type": "string", "const": "<x>"}}}`
	got, err := bench.Apply(text, bench.Edit{At: "/properties/b", What: "type", Value: "integer"})
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(got)) || !strings.Contains(got, `"minimum": 1e-7`) || !strings.Contains(got, `"<x>"`) || strings.Index(got, `"b"`) > strings.Index(got, `"a"`) {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(strings.Join(strings.Fields(got), ""), `"type":["integer","null"]`) {
		t.Errorf("null is not allowed any more: %s", got)
	}
}

// What cannot be done is refused, and says what to do.
func TestEditsThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		text, want string
		edit       bench.Edit
	}{
		"a broken text":     {"a: [", "mend the text first", bench.Edit{At: "/properties/a", What: "type", Value: "string"}},
		"no property":       {commented, "has changed meanwhile", bench.Edit{At: "/properties/x", What: "type", Value: "string"}},
		"a name twice":      {commented, "already", bench.Edit{At: "/properties/total", What: "name", Value: "company"}},
		"an empty name":     {commented, "is empty", bench.Edit{What: "add", Value: " "}},
		"no place":          {commented, "is no place", bench.Edit{At: "properties", What: "type"}},
		"nothing to change": {commented, "nothing that a form changes", bench.Edit{At: "/properties/total", What: "colour", Value: "red"}},
		"the last property": {"properties:\n  a: {}\n", "at least one", bench.Edit{At: "/properties/a", What: "remove"}},
		"too large":         {strings.Repeat("#", bench.MaxSchema+1), "KiB at most", bench.Edit{What: "add", Value: "a"}},
	} {
		if got, err := bench.Apply(tt.text, tt.edit); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %q and %v, want an error with %q", name, got, err, tt.want)
		}
	}
}
