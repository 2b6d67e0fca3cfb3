package lifecycle

import (
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestTheJobOfAnotherTenantIsNext(t *testing.T) {
	var a agenda
	for i := range 1000 {
		a.add("many", mapreduce.JobID(fmt.Sprint("many", i)), true)
	}
	begun := 0
	for range a.begin() {
		begun++
	}
	if begun != maxAdvancing {
		t.Fatalf("%d jobs were begun at once; want %d", begun, maxAdvancing)
	}
	a.add("few", "few0", true)
	a.end("many0")
	a.end("many1")
	var next []mapreduce.JobID
	for id := range a.begin() {
		next = append(next, id)
	}
	if len(next) != 2 || next[0] != "few0" && next[1] != "few0" {
		t.Errorf("%v were begun next, behind them waits the only job of another tenant", next)
	}
}

func TestAJobIsLookedAtByOneAtATimeAndAgainIfThatIsAsked(t *testing.T) {
	var a agenda
	a.add("t", "job", false)
	a.add("t", "job", true)
	id, whole, ok := a.next()
	if !ok || id != "job" || !whole {
		t.Fatalf("next: %q, whole %v, %v; want the job, whole", id, whole, ok)
	}
	a.add("t", "job", false)
	if id, _, ok := a.next(); ok {
		t.Fatalf("%q was begun while it was being looked at", id)
	}
	a.end("job")
	id, whole, ok = a.next()
	if !ok || id != "job" || whole {
		t.Fatalf("next: %q, whole %v, %v; want the job, not whole", id, whole, ok)
	}
	a.end("job")
	if id, _, ok := a.next(); ok {
		t.Fatalf("%q was begun though nothing more was asked", id)
	}
}
