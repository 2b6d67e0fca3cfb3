package fair_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/fair"
)

func takeAll(q *fair.Queue[string]) (all []string) {
	for {
		item, ok := q.Next()
		if !ok {
			return all
		}
		all = append(all, item)
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	var q fair.Queue[string]
	for i := range 1000 {
		q.Add("many", fmt.Sprint("many", i))
	}
	q.Add("few", "few0")
	q.Add("few", "few1")
	q.Add("one", "one0")
	got := takeAll(&q)
	if want := []string{"many0", "few0", "one0", "many1", "few1", "many2", "many3"}; !slices.Equal(got[:7], want) {
		t.Errorf("they came as %v; want %v", got[:7], want)
	}
	if len(got) != 1003 || got[1002] != "many999" {
		t.Errorf("%d came, the last of them %s; want 1003 in their order", len(got), got[len(got)-1])
	}
}

func TestATenantThatComesLateIsNotBehindItsOwnPast(t *testing.T) {
	var q fair.Queue[string]
	q.Add("a", "a0")
	q.Add("b", "b0")
	q.Add("b", "b1")
	q.Next()
	q.Add("a", "a1")
	if got, want := takeAll(&q), []string{"b0", "a1", "b1"}; !slices.Equal(got, want) {
		t.Errorf("they came as %v; want %v", got, want)
	}
}

func TestRemovedItemsDoNotCome(t *testing.T) {
	var q fair.Queue[string]
	q.Add("a", "a0")
	q.Add("b", "b0")
	q.Add("b", "b1")
	q.Remove("a0")
	q.Remove("b1")
	q.Remove("never there")
	if got, want := takeAll(&q), []string{"b0"}; !slices.Equal(got, want) {
		t.Errorf("they came as %v; want %v", got, want)
	}
}

func TestOthersAreTenantsThatWait(t *testing.T) {
	var q fair.Queue[string]
	q.Add("a", "a0")
	q.Add("b", "b0")
	q.Add("b", "b1")
	if a, c := q.Others("a"), q.Others("c"); a != 1 || c != 2 {
		t.Errorf("beside a wait %d, beside c %d; want 1 and 2", a, c)
	}
	q.Remove("a0")
	if b := q.Others("b"); b != 0 {
		t.Errorf("beside b wait %d; want none", b)
	}
}

func TestTheTenantWithTheSmallestLoadIsNext(t *testing.T) {
	var q fair.Queue[string]
	for _, tenant := range []mapreduce.TenantID{"a", "b", "c"} {
		q.Add(tenant, string(tenant)+"0")
		q.Add(tenant, string(tenant)+"1")
	}
	loads := map[mapreduce.TenantID]int{"a": 2, "b": 1, "c": 1}
	load := func(tenant mapreduce.TenantID) int { return loads[tenant] }
	var got []string
	for range 3 {
		item, _ := q.NextBelow(5, load)
		got = append(got, item)
	}
	if want := []string{"b0", "c0", "b1"}; !slices.Equal(got, want) {
		t.Errorf("they came as %v; want %v", got, want)
	}
	if item, ok := q.NextBelow(1, load); ok {
		t.Errorf("%s came, of a tenant with a load of 1; want none below 1", item)
	}
}
