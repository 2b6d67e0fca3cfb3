package jsonvalue_test

import (
	"errors"
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// TestQuoted: a text stands in its quote with or without marks, and a date as the quote may mean it.
func TestQuoted(t *testing.T) {
	form, err := jsonvalue.NewForm([]byte(`{"type": "object", "properties": {
		"view": {"type": ["string", "null"], "x-coditect": {"quoted": true}},
		"date": {"type": ["string", "null"], "format": "date", "x-coditect": {"quoted": true}},
		"refs": {"type": "array", "items": {"type": "string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		quote, value string
		ok           bool
	}{
		{"The [*cause*](a.md) was\n a ``disk``.", `{"view": "The cause was a ` + "`disk`" + `."}`, true},
		{"The [*cause*](a.md) was\n a ``disk``.", `{"view": "The [*cause*](a.md) was"}`, true},
		{"The [*cause*](a.md) was\n a ``disk``.", `{"view": "The cause was no disk."}`, false},
		{"10/04/2016 05:07 AM EDT", `{"date": "2016-10-04"}`, true},
		{"10/04/2016 05:07 AM EDT", `{"date": "2016-04-10"}`, true},
		{"10/04/2016 05:07 AM EDT", `{"date": "2016-10-05"}`, false},
		{"on 25/04/2016", `{"date": "2016-04-25"}`, true},
		{"on May 3, 2024", `{"date": "2024-05-03"}`, true},
		{"on May 3, 2024", `{"date": "2024-03-05"}`, false},
	} {
		v, err := jsonvalue.Decode([]byte(tt.value[:len(tt.value)-1] + `, "refs": ["` + refs.ID{1}.Full() + `"]}`))
		if err != nil {
			t.Fatal(err)
		}

		err = form.CheckQuoted(v, func(refs.ID) (string, bool) { return tt.quote, true })
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, jsonvalue.ErrForm) {
			t.Errorf("%s of %q: %v; it stands there is %t", tt.value, tt.quote, err, tt.ok)
		}
	}
}
