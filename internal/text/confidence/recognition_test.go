package confidence_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/text/confidence"
)

// TestOfRecognition: what was surer is never less confident, text that was not recognised keeps its
// confidence, and nothing gains any.
func TestOfRecognition(t *testing.T) {
	for _, form := range confidence.Forms() {
		before := 0.0
		for i := 1; i <= 1000; i++ {
			sure := float64(i) / 1000
			got := confidence.OfRecognition(form, sure)
			if got < before || got <= 0 || got > 1 {
				t.Errorf("%s, sure by %v: %v, and %v before", form, sure, got, before)
			}
			before = got
		}
		if got := confidence.OfRecognition(form, 0); got != 1 {
			t.Errorf("%s that was not recognised: %v", form, got)
		}
	}

	// What is misread of a date is mostly no date, and of a name another name.
	if text, date := confidence.OfRecognition(confidence.TextForm, 0.4), confidence.OfRecognition(confidence.StrictForm, 0.4); date < 2*text {
		t.Errorf("a text has %v, and a date %v", text, date)
	}
}

// TestFormOf: the form of a value says what becomes of it when it is misread.
func TestFormOf(t *testing.T) {
	for field, want := range map[string]confidence.Form{
		"name": confidence.TextForm, "total": confidence.NumberForm, "date": confidence.StrictForm, "mail": confidence.StrictForm,
		"kind": confidence.StrictForm, "paid": confidence.StrictForm, "tags": confidence.TextForm, "who": confidence.TextForm,
	} {
		if got := confidence.FormOf(property(t, field)); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	if got := confidence.FormOf(nil); got != confidence.TextForm {
		t.Errorf("without a property: %s", got)
	}
}
