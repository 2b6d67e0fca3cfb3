package fair_test

import (
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
)

// A job is an item of rounds.
type job struct {
	name     string
	tenant   mapreduce.TenantID
	priority int
	place    fair.Place
}

func (j *job) Tenant() mapreduce.TenantID { return j.tenant }
func (j *job) Priority() int              { return j.priority }
func (j *job) Place() *fair.Place         { return &j.place }

func names(r *fair.Rounds[*job]) (all []string) {
	for j, ok := r.Next(); ok; j, ok = r.Next() {
		all = append(all, j.name)
	}
	return all
}

// Tenants take turns, and of a tenant those of higher priority come first, each once however
// often it is added.
func TestRoundsGoByTenantAndPriority(t *testing.T) {
	var r fair.Rounds[*job]
	low, high, other := &job{name: "low", tenant: "a"}, &job{name: "high", tenant: "a", priority: 1}, &job{name: "other", tenant: "b"}
	gone := &job{name: "gone", tenant: "b"}
	for _, j := range []*job{low, gone, high, other, low, high} {
		r.Add(j)
	}
	r.Remove(gone)
	if got, want := names(&r), []string{"high", "other", "low"}; !slices.Equal(got, want) {
		t.Errorf("they come as %v, want %v", got, want)
	}
	r.Add(low)
	if r.AddFirst(other); !slices.Equal(names(&r), []string{"other", "low"}) {
		t.Error("one that is to come first does not")
	}
}

// One that found no place comes first once there is one, of the tenant with the smallest load.
func TestOneThatFoundNoPlaceComesFirstOnceThereIsOne(t *testing.T) {
	var r fair.Rounds[*job]
	busy, idle, ended := &job{name: "busy", tenant: "a"}, &job{name: "idle", tenant: "b"}, &job{name: "ended", tenant: "c"}
	for _, j := range []*job{busy, idle, ended, busy} {
		r.AddStarved(j)
	}
	load := func(tenant mapreduce.TenantID) int {
		return map[mapreduce.TenantID]int{"a": 9, "b": 1}[tenant]
	}

	r.RequeueStarved(load, func(j *job) fair.Look {
		if j == ended {
			return fair.Forgets
		}
		return fair.Waits
	})
	if r.HasWaiting() || !r.IsContended() {
		t.Fatal("there is no place, and they do not wait for one")
	}

	r.RequeueStarved(load, func(*job) fair.Look { return fair.Goes })
	if got := names(&r); !slices.Equal(got, []string{"idle"}) {
		t.Errorf("there is a place for %v, want the one whose tenant has the smallest load", got)
	}
	if r.RequeueStarved(load, func(*job) fair.Look { return fair.Goes }); !slices.Equal(names(&r), []string{"busy"}) || r.IsContended() {
		t.Error("the other does not come next, or one that was forgotten still waits")
	}
}

// While other tenants wait, a visit takes no more than its share.
func TestAVisitTakesItsShare(t *testing.T) {
	var r fair.Rounds[*job]
	j := &job{tenant: "a"}
	if got := r.Allowance(j, 100, 200); got != 200 {
		t.Errorf("alone it may take %d, want all", got)
	}
	r.Add(&job{tenant: "b"})
	r.AddStarved(&job{tenant: "c"})
	if got := r.Allowance(j, 100, 200); got != 32 {
		t.Errorf("it may take %d of 100, want the most of a visit", got)
	}
	if got := r.Allowance(j, 10, 200); got != 5 {
		t.Errorf("it may take %d of 10, want half", got)
	}
}
