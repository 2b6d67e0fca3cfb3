package lifecycle

import (
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestTheJobsOfATenantLeaveRoomForOthers(t *testing.T) {
	a := agenda{most: AtOnce{All: 128, OfTenant: 16}}
	for i := range 1000 {
		a.add("many", mapreduce.JobID(fmt.Sprint("many", i)), true)
	}
	begun := 0
	for range a.begin() {
		begun++
	}
	if begun != a.most.OfTenant {
		t.Fatalf("%d jobs of a tenant were begun at once; want %d", begun, a.most.OfTenant)
	}
	a.add("few", "few0", true)
	if id, _, ok := a.next(); !ok || id != "few0" {
		t.Errorf("next: %q, %v; want the only job of another tenant", id, ok)
	}
	a.end("many0")
	if id, _, ok := a.next(); !ok || id != "many16" {
		t.Errorf("next: %q, %v; want the next job of the tenant of which one has ended", id, ok)
	}
}

func TestAJobIsLookedAtByOneAtATimeAndAgainIfThatIsAsked(t *testing.T) {
	a := agenda{most: AtOnce{All: 128, OfTenant: 16}}
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

func TestNoMoreJobsAreBegunThanAllMayBe(t *testing.T) {
	a := agenda{most: AtOnce{All: 128, OfTenant: 16}}
	for i := range 2 * a.most.All {
		a.add(mapreduce.TenantID(fmt.Sprint("tenant", i)), mapreduce.JobID(fmt.Sprint("job", i)), true)
	}
	begun := 0
	for range a.begin() {
		begun++
	}
	if begun != a.most.All {
		t.Errorf("%d jobs were begun at once; want %d", begun, a.most.All)
	}
}
