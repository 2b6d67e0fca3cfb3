package plan_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/plan"
)

// Pictures are divided among the units of their document, and no unit shows more than it may.
func TestLook(t *testing.T) {
	for name, c := range map[string]struct {
		look  plan.Look
		units int
		want  int64 // tokens of a unit
	}{
		"one page":             {plan.Look{Pages: 1, Page: 700, Most: 100}, 1, 700},
		"none is shown":        {plan.Look{Text: 400}, 1, 0},
		"many pages of a unit": {plan.Look{Pages: 300, Page: 700, Most: 100}, 1, 70_000},
		"some units":           {plan.Look{Pages: 10, Page: 700, Most: 100}, 3, 2_800},
		"more units":           {plan.Look{Pages: 300, Page: 700, Most: 20}, 3, 14_000},
	} {
		items := make([]plan.Item, c.units)
		c.look.Show(items)
		for _, it := range items {
			if it.Shown != c.want {
				t.Errorf("%s: a unit has %d tokens of pictures, want %d", name, it.Shown, c.want)
			}
		}
	}
}
