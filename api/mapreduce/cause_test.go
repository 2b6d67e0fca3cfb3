package mapreduce_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Errors that differ in what is a unit's own have one cause, and others have not.
func TestCauseOf(t *testing.T) {
	for text, want := range map[string]string{
		`page 17 of "a b.pdf" is broken`:           `page … of … is broken`,
		`page 3,5 of "" is broken`:                 `page … of … is broken`,
		"unit 0123456789abcdef timed out":          "unit … timed out",
		"facade was refused: dial 10.0.0.7:443":    "facade was refused: dial …",
		"no number and nothing that is quoted":     "no number and nothing that is quoted",
		mapreduce.CauseOf("attempt 4 took 3.5 s"):  mapreduce.CauseOf("attempt 41 took 12 s"),
		mapreduce.CauseOf(mapreduce.CauseOf("1s")): mapreduce.CauseOf("1s"),
	} {
		if got := mapreduce.CauseOf(text); got != mapreduce.CauseOf(want) || got != want && mapreduce.CauseOf(want) == want {
			t.Errorf("the cause of %q is %q, want %q", text, got, want)
		}
	}
	if got := mapreduce.CauseOfAll([]string{"first 1", "last 2"}); got != "last …" {
		t.Errorf("the cause of several errors is %q", got)
	}
	if got := mapreduce.CauseOfAll(nil); got != "" {
		t.Errorf("without errors the cause is %q", got)
	}
}
