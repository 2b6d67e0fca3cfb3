package pipeline_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
)

// reviewed is a pipeline whose stage has a key review.
func reviewed(review string) string {
	return "name: bills\nstages:\n  - name: find\n    each: chunk\n    review: " + review + "\n  - name: all\n    each: group\n"
}

func TestReview(t *testing.T) {
	for text, want := range map[string]waiting.Reasons{
		`{when: unverified}`: {Unverified: true},
		`{when: "confidence < 0.8, conflict", by: operator}`:       {Confidence: 0.8, Conflict: true},
		`{when: [confidence<.5, sample 2.5%, missing], by: admin}`: {Confidence: 0.5, Sample: 0.025, Missing: true},
		`{when: all, within: 48h, then: accept}`:                   {All: true},
		`{when: all, by: admin, within: 1s, then: fail}`:           {All: true},
		`{when: [fuzzy, all, sample 100 %, confidence < 1]}`:       {Fuzzy: true, All: true, Sample: 1, Confidence: 1},
	} {
		p, err := pipeline.Parse("f.yaml", []byte(reviewed(text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, p.Stages[0].Review.Reasons()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		again, err := pipeline.Parse("canonical", p.Canonical())
		if err != nil || string(again.Canonical()) != string(p.Canonical()) {
			t.Errorf("%s: canonical %s: %v", text, p.Canonical(), err)
		}
	}
}

// What is wrong is named with its key, its line and what to write.
func TestReviewRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{when: doubt}`:                          `review.when: names "doubt", which is no reason; reasons are unverified,`,
		`{when: [fuzzy, fuzzy]}`:                 `names fuzzy twice`,
		`{when: confidence > 0.8}`:               `write it as confidence < 0.8`,
		`{when: confidence < 80}`:                `with a number above 0 and up to 1`,
		`{when: confidence < NaN}`:               `with a number above 0 and up to 1`,
		`{when: sample 0.05}`:                    `write it as sample 5%`,
		`{when: sample 0%}`:                      `above 0 and up to 100`,
		`{when: unverified soon}`:                `which is no reason`,
		`{when: [], by: admin}`:                  `when: is required beside by`,
		`{when: ""}`:                             `needs when`,
		`{by: operator}`:                         `is required beside by`,
		`{when: all, by: ann}`:                   `by: is "ann"; who decides has the role reviewer, operator, admin`,
		`{within: 48h, then: fail}`:              `when: is required beside`,
		`{when: all, within: 48h}`:               `then: is ""; beside within it says what becomes of values`,
		`{when: all, then: fail}`:                `within: is required beside then`,
		`{when: all, within: 48h, then: skip}`:   `then: is "skip"`,
		`{when: all, within: 2, then: fail}`:     `within: is "2"; write a time`,
		`{when: all, within: 0s, then: fail}`:    `of a second to 8760h`,
		`{when: all, within: -1h, then: fail}`:   `of a second to 8760h`,
		`{when: all, within: 9000h, then: fail}`: `of a second to 8760h`,
		`{when: all, who: ann}`:                  `who`,
		`all`:                                    `must be a mapping`,
	} {
		_, err := pipeline.Parse("f.yaml", []byte(reviewed(text)))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "5") {
			t.Errorf("%s: %v, want %q in line 5", text, err, want)
		}
	}

	const group = "name: bills\nstages:\n  - name: find\n    each: chunk\n  - {name: all, each: group, review: {when: all}}\n"
	if _, err := pipeline.Parse("f.yaml", []byte(group)); err == nil || !strings.Contains(err.Error(), "is for a first stage") {
		t.Errorf("of a later stage: %v", err)
	}
}

// A run has values of a preset reviewed, and what a pipeline says itself stands.
func TestReviewOfRuns(t *testing.T) {
	p, err := pipeline.Preset("extract")
	if err != nil {
		t.Fatal(err)
	}
	bound, _ := p.Bind(map[string]string{"review": "fuzzy, confidence < 0.5", "review_by": "operator"})
	if r := bound.Stages[0].Review; !cmp.Equal(r, waiting.Rule{When: []string{"fuzzy", "confidence < 0.5"}, By: "operator"}) {
		t.Errorf("review %+v", r)
	}
	if p.Stages[0].Review.IsSet() {
		t.Error("the preset itself was changed")
	}

	timed, _ := p.Bind(map[string]string{"review": "all", "review_within": "48h", "review_then": "accept"})
	if r := timed.Stages[0].Review; r.Time() != 48*time.Hour || r.Then != waiting.Accept {
		t.Errorf("review %+v", r)
	}

	own, err := pipeline.Parse("f.yaml", []byte(reviewed("{when: missing}")))
	if err != nil {
		t.Fatal(err)
	}
	if bound, _ := own.Bind(map[string]string{"review": "fuzzy"}); !bound.Stages[0].Review.Reasons().Missing {
		t.Errorf("review %+v", bound.Stages[0].Review)
	}
}

// A job may wait for people because of its variables, or of its own pipeline.
func TestReviews(t *testing.T) {
	for _, tt := range []struct {
		vars       map[string]string
		definition string
		want       bool
	}{
		{nil, "", false},
		{map[string]string{"review": "all"}, "", true},
		{map[string]string{"review": "nonsense"}, "", false},
		{nil, reviewed("{when: all}"), true},
		{nil, "name: x\nstages: [{name: a, each: chunk}]\n", false},
		{nil, "no pipeline", false},
	} {
		if got := pipeline.Reviews(tt.vars, []byte(tt.definition)); got != tt.want {
			t.Errorf("%v, %q: %v", tt.vars, tt.definition, got)
		}
	}
}
