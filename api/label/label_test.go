package label_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestLabels(t *testing.T) {
	long := strings.Repeat("a", label.MaxSize)
	for _, tt := range []struct {
		name    string
		texts   []string
		refused string // a part of the reason; empty if they are taken
	}{
		{"none", nil, ""},
		{"plain", []string{"team=billing", "env=prod"}, ""},
		{"no value", []string{"urgent="}, ""},
		{"as Kubernetes has them", []string{"app.kubernetes.io/name=web-1.2_x"}, ""},
		{"as long as can be", []string{long + "=" + long}, ""},
		{"no sign of equality", []string{"team"}, "is not KEY=VALUE"},
		{"no key", []string{"=billing"}, `the key "" must be`},
		{"twice", []string{"team=a", "team=b"}, "team is given twice"},
		{"key too long", []string{long + "a=1"}, "must be 1 to 63"},
		{"value too long", []string{"a=" + long + "a"}, "must be at most 63"},
		{"a blank", []string{"team=two words"}, `the value "two words" of team`},
		{"a second sign of equality", []string{"a=b=c"}, `the value "b=c"`},
		{"a slash in a value", []string{"a=b/c"}, `the value "b/c"`},
		{"begins with a dash", []string{"-a=b"}, "begin and end"},
		{"ends with a point", []string{"a=b."}, "begin and end"},
		{"a letter outside of ASCII", []string{"größe=1"}, "of ASCII"},
		{"control character", []string{"a=\x00"}, "of ASCII"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			labels, err := label.Parse(tt.texts)
			if tt.refused == "" {
				if err != nil || len(labels) != len(tt.texts) {
					t.Errorf("%v, %v; want all taken", labels, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("error %v, want one with %q", err, tt.refused)
			}
		})
	}

	many := make(map[string]string)
	for i := range label.Max + 1 {
		many[strings.Repeat("k", i+1)] = ""
	}
	if err := label.CheckAll(many); err == nil {
		t.Errorf("%d labels are taken", len(many))
	}
}

func TestLabelFilters(t *testing.T) {
	labels := map[string]string{"team": "billing", "urgent": ""}
	for _, tt := range []struct {
		filters []string
		want    bool
	}{
		{nil, true},
		{[]string{"team"}, true},
		{[]string{"team=billing"}, true},
		{[]string{"team=billing", "urgent"}, true},
		{[]string{"urgent="}, true},
		{[]string{"team="}, false},
		{[]string{"team=Billing"}, false},
		{[]string{"team=billing", "env"}, false},
		{[]string{"env="}, false},
	} {
		filters, err := label.ParseFilters(tt.filters)
		if err != nil {
			t.Fatal(err)
		}
		if got := label.Match(filters, labels); got != tt.want {
			t.Errorf("%v: matches %v, want %v", tt.filters, got, tt.want)
		}

		var texts []string
		for _, f := range filters {
			texts = append(texts, f.String())
		}
		if diff := cmp.Diff(tt.filters, texts); diff != "" {
			t.Errorf("filters as texts (-want +got):\n%s", diff)
		}
	}

	for _, text := range []string{"", "=x", "a b", "a=b c"} {
		if _, err := label.ParseFilters([]string{text}); err == nil {
			t.Errorf("the filter %q is taken", text)
		}
	}
}

// A job that nobody gives a name is called by its inputs, within the bounds of names.
func TestNames(t *testing.T) {
	for _, tt := range []struct {
		first  string
		inputs int
		want   string
	}{
		{"docs", 1, "docs"},
		{"docs", 3, "docs +2"},
		{"", 2, ""},
		{"a\x00\nb", 1, "ab"},
		{"bad\xff", 1, "bad\ufffd"},
		{strings.Repeat("ü", 100), 2, strings.Repeat("ü", 31) + "… +1"},
	} {
		got := mapreduce.NameOf(tt.first, tt.inputs)
		if got != tt.want || mapreduce.CheckName(got) != nil {
			t.Errorf("%q of %d is called %q, want %q: %v", tt.first, tt.inputs, got, tt.want, mapreduce.CheckName(got))
		}
	}
	for _, name := range []string{strings.Repeat("x", mapreduce.MaxName+1), "a\nb", "bad\xff", "\x1b[31m"} {
		if err := mapreduce.CheckName(name); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := mapreduce.CheckName(strings.Repeat("x", mapreduce.MaxName)); err != nil {
		t.Error(err)
	}
}
