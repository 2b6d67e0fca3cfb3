package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// Every key is counted once, with its bytes, in the line of its kind and in that of all.
func TestCountCountsEveryKeyOnce(t *testing.T) {
	m := jobstest.NewMixture(t)
	keys, bytes, units := 0, 0, 0
	for _, kv := range m.All() {
		keys, bytes = keys+1, bytes+len(kv.Key)+len(kv.Value)
		if name, _, err := m.Space.Last(kv.Key); err == nil && name == "units" {
			units++
		}
	}

	var lines []string
	m.Must(m.Nodes[0].Check.Count(m.Ctx, func(f mapreduce.Finding) error {
		lines = append(lines, f.Message)
		return nil
	}))
	if got, want := lines[len(lines)-1], fmt.Sprintf("all kinds: %d keys of %d bytes", keys, bytes); got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	want := fmt.Sprintf("kind %q: %d keys of ", "units", units)
	if all := strings.Join(lines, "\n"); units < 2 || !strings.Contains(all, want) {
		t.Errorf("no line begins with %q:\n%s", want, all)
	}
}
