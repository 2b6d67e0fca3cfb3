package mapreduce_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// What is a cause has itself as its cause: people say of a cause, as it is shown, that it is ignored or resolved.
func TestCauseOfCause(t *testing.T) {
	want := func(t rapid.TB, text string) {
		cause := mapreduce.CauseOf(text)
		if again := mapreduce.CauseOf(cause); again != cause {
			t.Errorf("the cause of %q is %q, and that of it %q", text, cause, again)
		}
	}
	part := rapid.OneOf(
		rapid.SampledFrom([]string{`"`, "…", " ", "deadbeef", "0123456789ab", strings.Repeat("long ", 45), strings.Repeat("a1234567 ", 30)}),
		rapid.StringMatching(`[0-9a-fx",.: ]{0,12}`),
	)
	rapid.Check(t, func(t *rapid.T) {
		want(t, strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), ""))
	})
	want(t, "x12deadbeef")
	want(t, `"`+strings.Repeat("a1234567 ", 30)+`"`) // too long for a quote until its numbers are gone
}
