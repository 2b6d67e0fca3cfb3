package main_test

import (
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/store/failpoint"
)

// unreachable are the steps that one process on its own does not take, and why.
var unreachable = map[failpoint.Step]string{
	failpoint.Return: "grants are given back to other orchestrators; storms in package orchestrator do",
}

// A killing kills a command at each point of some steps, and brings what is left
// to its end.
type killing struct {
	name   string
	corpus *corpus
	steps  []failpoint.Step
	nth    []int                    // which passes of a point; the first if none
	before func(h *house)           // what is done before; may be nil
	victim func(h *house) []string  // the command that is killed
	after  func(h *house)           // brings it to its end, and checks
}

// Every point is hit, alone and after another, and the process that is killed
// there leaves nothing that the next cannot go on with.
func TestKilledAtEveryPoint(t *testing.T) {
	covered := make(map[failpoint.Step]bool)
	for _, k := range killings(t) {
		for _, s := range k.steps {
			covered[s] = true
		}
		t.Run(k.name, func(t *testing.T) {
			for _, s := range k.steps {
				for _, p := range []failpoint.Point{s.Before(), s.After()} {
					for _, n := range append([]int(nil), max1(k.nth)...) {
						at := fmt.Sprintf("%s:%d", p, n)
						t.Run(at, func(t *testing.T) {
							t.Parallel()
							h := newHouse(t)
							if k.before != nil {
								k.before(h)
							}
							h.dies(at, k.victim(h)...)
							k.after(h)
						})
					}
				}
			}
		})
	}
	for _, s := range failpoint.Steps() {
		if why := unreachable[s]; covered[s] == (why != "") {
			t.Errorf("step %s is covered: %t; reason not to: %q", s, covered[s], why)
		}
	}
}
