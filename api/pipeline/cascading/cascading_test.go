package cascading_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
)

func TestOfRuns(t *testing.T) {
	for name, value := range map[string]string{
		"cascade": "rules", "cascade_target": "1", "cascade_confidence": "NaN", "cascade_seed": "0", "cascade_per": "word", "cascade_kind": " bills",
	} {
		_, err := cascading.Of(map[string]string{"cascade": "rules,a/b", name: value})
		if e, ok := errors.AsType[*errs.Error](err); !ok || e.Kind != errs.Invalid || e.Field != "vars."+name {
			t.Errorf("%s is %q: %v, want an error about it", name, value, err)
		}
	}

	c, err := cascading.Of(map[string]string{"cascade": "rules,a/b", "cascade_target": "0.8", "cascade_seed": "3", "cascade_kind": "bills"})
	want := cascading.Cascade{Members: []string{"rules", "a/b"}, Target: 0.8, Seed: 3, Kind: "bills"}
	if diff := cmp.Diff(want, c); err != nil || diff != "" || c.Oracle() != "a/b" {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}

	want.Confidence, want.Per = cascading.DefaultConfidence, cascading.PerField
	if diff := cmp.Diff(want, c.WithDefaults()); diff != "" {
		t.Errorf("with what it leaves out: -want +got:\n%s", diff)
	}
	if c, err := cascading.Of(nil); err != nil || c.IsSet() || !cmp.Equal(c, c.WithDefaults()) {
		t.Errorf("of no variables: %+v, %v", c, err)
	}
}
