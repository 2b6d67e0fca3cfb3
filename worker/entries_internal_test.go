package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// holding returns entries of a few attempts in every phase.
func holding() entries {
	es := make(entries)
	add := func(unit mapreduce.UnitID, attempt int, e entry) {
		e.held = protocol.Held{Job: "j", Unit: unit, Attempt: attempt}
		e.calls = &calls{}
		es[unitKeyOf(e.held)] = &e
	}
	add("waits", 1, entry{phase: waiting})
	add("runs", 2, entry{phase: running})
	add("runs too", 1, entry{phase: running})
	add("done second", 1, entry{phase: reported, number: 2, report: &protocol.Report{Outcome: protocol.Done}})
	add("done first", 3, entry{phase: reported, number: 1, report: &protocol.Report{Outcome: protocol.Errored}})
	add("being put", 1, entry{phase: reported, number: 3, puts: puts{underWay: 1}, report: &protocol.Report{Outcome: protocol.Done}})
	add("handed back", 1, entry{phase: reported, number: 4, report: &protocol.Report{Outcome: protocol.Returned}})
	return es
}

// TestEntries: what is told of what a session holds, by phase, and in which order.
func TestEntries(t *testing.T) {
	es := holding()
	names := func(hs []protocol.Held) (all []string) {
		for _, h := range hs {
			name := string(h.Unit)
			if h.Running {
				name += " (running)"
			}
			all = append(all, name)
		}
		return all
	}

	want := []string{"being put (running)", "done first (running)", "done second (running)", "handed back (running)", "runs (running)", "runs too (running)", "waits"}
	if diff := cmp.Diff(want, names(es.states())); diff != "" {
		t.Errorf("what is held (-want +got):\n%s", diff)
	}

	var told []protocol.Held
	for _, p := range es.progress() {
		told = append(told, p.Held)
	}
	if diff := cmp.Diff([]string{"runs (running)", "runs too (running)"}, names(told)); diff != "" {
		t.Errorf("whose progress is told (-want +got):\n%s", diff)
	}

	var settled []protocol.Held
	for _, e := range es.settled() {
		settled = append(settled, e.held)
	}
	if diff := cmp.Diff([]string{"done first", "done second", "handed back"}, names(settled)); diff != "" {
		t.Errorf("what may be reported (-want +got):\n%s", diff)
	}

	if n := len(es.running()); n != 2 {
		t.Errorf("%d attempts run; want 2", n)
	}
	if n := es.unfinished(); n != 6 {
		t.Errorf("%d are not handed back; want all but one of 7", n)
	}
}

// TestEntriesByName: only the attempt that is held is found and removed, not an earlier or a
// later one of its unit.
func TestEntriesByName(t *testing.T) {
	es := holding()
	for attempt, want := range map[int]bool{1: false, 2: true, 3: false} {
		e := es.find(protocol.Held{Job: "j", Unit: "runs", Attempt: attempt})
		if found := e != nil; found != want {
			t.Errorf("attempt %d: found = %t; want %t", attempt, found, want)
		}
	}
	if e := es.find(protocol.Held{Job: "another", Unit: "runs", Attempt: 2}); e != nil {
		t.Error("the unit of another job was found")
	}

	held := es.find(protocol.Held{Job: "j", Unit: "runs", Attempt: 2})
	es.remove(&entry{held: protocol.Held{Job: "j", Unit: "runs", Attempt: 1}}) // whose place was taken
	if es.find(held.held) == nil {
		t.Error("the later attempt was removed with the earlier one")
	}
	es.remove(held)
	if es.find(held.held) != nil {
		t.Error("the attempt is held yet")
	}
}
