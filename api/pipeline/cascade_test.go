package pipeline_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
)

// cascaded is a pipeline whose first stage has some more keys.
func cascaded(keys string) string {
	return "name: a\nstages:\n- {name: map, each: chunk, output: records" + keys + "}\n- {name: reduce, each: group}\n"
}

func TestCascade(t *testing.T) {
	p := parse(t, cascaded(", cascade: [rules, a/cheap, a/strong], target: 0.9, per: record, seed: 7"))
	want := cascading.Cascade{Members: []string{"rules", "a/cheap", "a/strong"}, Target: 0.9, Confidence: cascading.DefaultConfidence, Per: cascading.PerRecord, Seed: 7}
	if kind := parse(t, cascaded(", cascade: [rules, a/b], kind: bills")).Stages[0].Kind; kind != "bills" {
		t.Errorf("the kind is %q", kind)
	}
	if diff := cmp.Diff(want, p.Stages[0].Cascade); diff != "" {
		t.Errorf("cascade (-want +got):\n%s", diff)
	}
	if p.Stages[0].Model != "a/strong" || p.Stages[1].Model != "" {
		t.Errorf("the stages have the models %q and %q", p.Stages[0].Model, p.Stages[1].Model)
	}

	again := parse(t, string(p.Canonical()))
	if diff := cmp.Diff(string(p.Canonical()), string(again.Canonical())); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if text := string(parse(t, cascaded("")).Canonical()); strings.Contains(text, "target") || strings.Contains(text, "cascade") {
		t.Errorf("a pipeline without a cascade is %s", text)
	}
}

// A run gives a cascade to the stages that may have one.
func TestCascadeOfARun(t *testing.T) {
	p := parse(t, cascaded(""))
	vars := map[string]string{"cascade": "rules,a/strong", "cascade_target": "0.8", "cascade_confidence": "0.9", "cascade_per": "record", "cascade_seed": "3"}
	bound, warnings := p.Bind(vars)
	want := cascading.Cascade{Members: []string{"rules", "a/strong"}, Target: 0.8, Confidence: 0.9, Per: cascading.PerRecord, Seed: 3}
	if diff := cmp.Diff(want, bound.Stages[0].Cascade); diff != "" || len(warnings) > 0 {
		t.Errorf("cascade (-want +got), with %q:\n%s", warnings, diff)
	}
	if bound.Stages[1].Cascade.IsSet() || p.Stages[0].Cascade.IsSet() {
		t.Error("a stage that reduces has a cascade, or the pipeline itself has changed")
	}

	own := parse(t, cascaded(", cascade: [rules, a/other]"))
	if bound, _ := own.Bind(vars); bound.Stages[0].Oracle() != "a/other" {
		t.Errorf("the cascade of the run stands in place of the stage's own: %q", bound.Stages[0].Members)
	}
	input := parse(t, "name: a\ninputs: {cascade: no}\nstages: [{name: map, each: chunk, output: records}, {name: reduce, each: group}]\n")
	if bound, _ := input.Bind(vars); bound.Stages[0].Cascade.IsSet() {
		t.Error("an input of the pipeline gives a cascade")
	}
}

func TestCascadesThatAreNoneAreRefused(t *testing.T) {
	const stage = "stages[0]."
	for _, tt := range []struct{ name, keys, field, rule string }{
		{"one member", ", cascade: [a/b]", "cascade", "needs 2 to 4 members, the cheapest first, and has 1"},
		{"too many", ", cascade: [rules, a/b, a/c, a/d, a/e]", "cascade", "and has 5"},
		{"rules judge", ", cascade: [a/b, rules]", "cascade", "ends with rules"},
		{"the same twice", ", cascade: [a/b, a/b]", "cascade", "names a/b twice"},
		{"an empty name", ", cascade: ['', a/b]", "cascade", `is ""`},
		{"a list in a name", ", cascade: ['a/b,a/c', a/d]", "cascade", "each is rules, provider/model, or an alias"},
		{"a target of 1", ", cascade: [rules, a/b], target: 1", "target", "less than 1"},
		{"a target of 0", ", cascade: [rules, a/b], target: 0", "target", "more than 0"},
		{"a target in percent", ", cascade: [rules, a/b], target: 95", "target", "less than 1, such as 0.95"},
		{"a text", ", cascade: [rules, a/b], confidence: high", "confidence", "more than 0 and less than 1"},
		{"no members", ", target: 0.9", "cascade", "is required beside target"},
		{"per what", ", cascade: [rules, a/b], per: value", "per", "must be field or record"},
		{"a kind of three", ", cascade: [rules, a/b, a/c], kind: bills", "kind", "keeps the certificate of one member"},
		{"a kind with a blank", ", cascade: [rules, a/b], kind: ' bills'", "kind", "in at most 64 bytes"},
		{"a kind alone", ", kind: bills", "cascade", "is required beside target"},
		{"a kind that people judge", ", cascade: [rules, a/b], kind: bills, review: {when: compared}", "kind", "by review a person does"},
		{"people judge nobody", ", review: {when: compared}", "review.when", "has compared, which is for units that a cascade draws"},
		{"another model", ", cascade: [rules, a/b], model: a/c", "model", "leave out model"},
		{"tools", ", cascade: [rules, a/b], tools: [read], agent: {role: x}, task: y", "cascade", "no tools"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := pipeline.Parse("kitchen.yaml", []byte(cascaded(tt.keys)))
			wantField(t, err, stage+tt.field, tt.rule)
		})
	}

	_, err := pipeline.Parse("kitchen.yaml", []byte("name: a\nstages:\n- {name: map, each: chunk}\n- {name: reduce, each: group, cascade: [rules, a/b]}\n"))
	wantField(t, err, "stages[1].cascade", "is for stages that find records in documents")
}
