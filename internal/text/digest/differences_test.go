package digest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/text/claims"
	"github.com/coditect/mapreduce/internal/text/digest"
)

// What sources say of the same things in other numbers is one sentence, which its references
// support. What is not asked for, agrees, or is about something else is none.
func TestDifferences(t *testing.T) {
	const question = "How many houses were evacuated in the flood and how high did the river rise?"
	for _, tt := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{
			"other numbers",
			[]string{"On Monday 120 houses were evacuated in the valley.", "The mayor said that 140 houses were evacuated."},
			[]string{"The sources differ: “120 houses were evacuated” [REF_1], or “140 houses were evacuated” [REF_2]."},
		},
		{
			"two that agree",
			[]string{"Some 120 houses were evacuated.", "Then 140 houses were evacuated.", "As many as 120 houses were evacuated."},
			[]string{"The sources differ: “120 houses were evacuated” [REF_1, REF_3], or “140 houses were evacuated” [REF_2]."},
		},
		{
			"what was done stands before",
			[]string{"The river rose by 3.2 metres.", "The river Ost rose by 2.9 metres in a night."},
			[]string{"The sources differ: “river Ost rose by 2.9 metres” [REF_2], or “river rose by 3.2 metres” [REF_1]."},
		},
		{
			"many numbers",
			[]string{
				"Some 5 houses were evacuated.", "Some 120 houses were evacuated.", "Some 30 houses were evacuated.", "Some 40 houses were evacuated.", "Some 7 houses were evacuated.",
			},
			[]string{"The sources differ, from “5 houses were evacuated” [REF_1] to “120 houses were evacuated” [REF_2]."},
		},
		{"the same number", []string{"Some 1,200 houses were evacuated.", "Then 1200 houses were evacuated."}, nil},
		{"something else was done", []string{"Some 120 houses were evacuated.", "In all 140 houses burned down."}, nil},
		{"other things", []string{"Some 120 houses were evacuated.", "Then 140 villages were evacuated."}, nil},
		{"years", []string{"In 2019 houses were evacuated.", "In 2021 houses were evacuated."}, nil},
		{"not asked for", []string{"A ticket costs 12 crowns at the theatre.", "A ticket costs 14 crowns at the theatre."}, nil},
		{"one source alone", []string{"First 120 houses were evacuated. Later 140 houses were evacuated."}, nil},
		{"a source that gives several", []string{"First 120 houses were evacuated. Later 140 houses were evacuated.", "Some 150 houses were evacuated."}, nil},
	} {
		var findings []digest.Finding
		for i, text := range tt.texts {
			ref := "REF_" + string(rune('1'+i))
			findings = append(findings, digest.Finding{Text: cited(text, ref), Refs: []string{ref}})
		}
		got := digest.Differences(digest.NewQuery(question), findings)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, s := range got {
			if v := claims.Check(s, tt.texts...); v.Grade != claims.Supported {
				t.Errorf("%s: %s is graded %s: %v", tt.name, s, v.Grade, v.Reasons)
			}
		}
	}
}

// cited puts a reference behind each sentence.
func cited(text, ref string) string {
	var out []string
	for _, s := range strings.SplitAfter(text, ". ") {
		out = append(out, strings.TrimRight(s, ". ")+" ["+ref+"].")
	}
	return strings.Join(out, " ")
}
