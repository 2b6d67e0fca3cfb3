package loop_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// twelve is the script of an agent of twelve turns: it fetches pages, two at a time, posts in
// three of its turns, once beside a fetch, and answers.
func twelve(c fakellm.Call) fakellm.Reply {
	switch n := turnOf(c); {
	case n == 11 || c.NoCalls:
		return answer(c)
	case n == 4 || n == 9:
		return fakellm.Reply{Text: "I note it.", Calls: []fakellm.Use{use("post", fmt.Sprintf("note %d", n))}}
	case n == 7:
		return fakellm.Reply{Thinking: "Both at once.", Calls: []fakellm.Use{use("post", "note 7"), use("fetch", "p7"), use("post", "note 7, again")}}
	default:
		return fetches(fmt.Sprintf("p%d", n), fmt.Sprintf("q%d", n))
	}
}

// paid returns the tokens that the vendor has counted.
func (r *rig) paid() (n int64) {
	for _, e := range r.fake.Entries() {
		n += e.In() + e.Output
	}
	return n
}

// largest returns the tokens of the largest turn.
func (r *rig) largest() (n int64) {
	for _, e := range r.fake.Entries() {
		n = max(n, e.In()+e.Output)
	}
	return n
}

// finish makes attempts at a unit, whose workers die at the events that next names, until one
// ends; 0 is none.
func (r *rig) finish(t *testing.T, next func(attempt int) int) (value string, deaths int) {
	t.Helper()
	for n := range 40 {
		res, a, err := r.try(t, next(n))
		synctest.Wait() // calls under way end with their worker
		switch {
		case a.isDead():
			deaths++
			continue
		case err != nil:
			t.Fatal(err)
		}
		out, err := output.Decode(res.Output)
		if err != nil {
			t.Fatal(err)
		}
		return string(out.Value), deaths
	}
	t.Fatal("the unit does not come to an end")
	return "", 0
}

// A worker is killed at every event of an agent of twelve turns: before and after each turn of
// the model and each call of a tool, when evidence is kept and when the journal is stored. The
// unit goes on elsewhere and comes to the same; no call that changes something is made twice;
// what is paid for twice is no more than one interval of the journal, with the turn that was
// under way.
func TestKilledAtEveryEvent(t *testing.T) {
	testenv.Unraced(t, testenv.Processes)

	var want string
	var events int
	var cost, largest int64
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "anthropic", itemsOutput, "{}", fakellm.Config{Model: twelve})
		res, a, err := r.try(t, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, err := output.Decode(res.Output)
		if err != nil {
			t.Fatal(err)
		}
		want, events, cost, largest = string(out.Value), a.events, r.paid(), r.largest()
		if n := len(r.fake.Entries()); n != 12 || len(out.Citations) != 17 || len(r.web.did) != 21 {
			t.Fatalf("%d turns, %d citations, %d calls", n, len(out.Citations), len(r.web.did))
		}
	})
	var most int64
	deaths, interrupted := 0, 0
	check := func(t *testing.T, r *rig, got string, died int, where string) {
		if got != want {
			t.Errorf("killed %s: it came to %s, want %s", where, got, want)
		}
		for _, q := range []string{"note 4", "note 7", "note 7, again", "note 9"} {
			switch n := r.web.done("post " + q); n {
			case 1:
			case 0:
				interrupted++
			default:
				t.Errorf("killed %s: %q was posted %d times", where, q, n)
			}
		}
		twice := r.paid() - cost
		if bound := int64(died) * max(agent.KeepEvery, largest); twice > bound {
			t.Errorf("killed %s: %d tokens were paid twice, more than %d", where, twice, bound)
		}
		if died == 1 {
			most = max(most, twice)
		}
		deaths += died
	}
	for at := 1; at <= events; at++ {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "anthropic", itemsOutput, "{}", fakellm.Config{Model: twelve})
			got, died := r.finish(t, func(attempt int) int {
				if attempt == 0 {
					return at
				}
				return 0
			})
			check(t, r, got, died, fmt.Sprintf("at event %d", at))
		})
	}
	for seed := range uint64(12) { // and again and again
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t, []string{"anthropic", "openai"}[seed%2], itemsOutput, "{}", fakellm.Config{Model: twelve})
			got, died := r.finish(t, func(attempt int) int {
				if attempt > 15 {
					return 0
				}
				return 1 + random.IntN(30)
			})
			if seed%2 == 1 {
				return // of another vendor: it costs something else
			}
			check(t, r, got, died, fmt.Sprintf("again and again, seed %d", seed))
		})
	}
	if deaths < events || interrupted == 0 {
		t.Errorf("%d deaths at %d events, %d calls were interrupted", deaths, events, interrupted)
	}
	t.Logf("%d events, %d deaths: at most %d tokens were paid twice by one death, of %d (interval %d, largest turn %d); %d calls that change something were not made or not known to be, none twice",
		events, deaths, most, cost, agent.KeepEvery, largest, interrupted)
}
