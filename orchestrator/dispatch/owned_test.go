package dispatch_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// steal tries all that a session may say of an attempt, and of the one before, for an
// attempt that it does not hold, and checks that each is refused.
func steal(w enginetest.Bare, session mapreduce.SessionID, h protocol.Held) {
	t := w.T
	t.Helper()
	for _, attempt := range []int{h.Attempt, h.Attempt - 1} {
		h := h
		h.Attempt = max(attempt, 0)
		for name, lie := range map[string]func(*protocol.Report){
			"it is done":           enginetest.AsIs,
			"it failed":            func(r *protocol.Report) { r.Outcome, r.Errors = protocol.Errored, []string{"a lie"} },
			"it can never succeed": func(r *protocol.Report) { r.Outcome, r.Class = protocol.Errored, protocol.PermanentUnit },
			"its job can never succeed": func(r *protocol.Report) {
				r.Outcome, r.Class, r.Errors = protocol.Errored, protocol.PermanentJob, []string{"a lie"}
			},
			"it comes back": func(r *protocol.Report) { r.Outcome, r.Tokens.In, r.Calls = protocol.Returned, 1<<30, 1 },
			"it is parked": func(r *protocol.Report) {
				r.Outcome, r.Parking = protocol.Parked, &mapreduce.Parking{Handle: "lie", WakeAfter: time.Microsecond}
			},
		} {
			if v := w.Report(h, lie); v != protocol.Stale {
				t.Errorf("attempt %d, not its own: the verdict on %q is %v, want stale", h.Attempt, name, v)
			}
		}
		if h.Attempt == 0 {
			continue // no message but a report may name it
		}
		if w.Reserve(h, 1) {
			t.Errorf("attempt %d, not its own: tokens were reserved", h.Attempt)
		}
		data := []byte("an output")
		_, err := w.PutBlob(t.Context(), outputOf(session, h, data, 0), parts(data, io.EOF))
		wantKind(t, err, errs.Precondition)
		wantKind(t, appendOf(w, session, h, 0, entry(t, "lie", h.Attempt, nil)), errs.Precondition)
		for _, kind := range []protocol.BlobKind{protocol.BlobText, protocol.BlobInputs, protocol.BlobJournal, protocol.BlobReferred} {
			q := &protocol.BlobRequest{Session: session, Held: h, Blob: protocol.Blob{Kind: kind}}
			wantKind(t, w.GetBlob(t.Context(), q, func([]byte) error { return nil }), errs.Precondition)
		}
	}
	w.Say(&protocol.FromWorker{Started: []protocol.Held{h}, Heartbeat: &protocol.Heartbeat{Progress: []protocol.Progress{{Held: h, Tokens: mapreduce.Tokens{In: 1 << 40}}}}})
}

// TestOthersAttemptsAreOutOfReach: a worker that knows the ids and the attempts of units
// can change nothing of those that it does not hold, whatever state they are in: not
// what is stored of them, nor how they go on, nor their job.
func TestOthersAttemptsAreOutOfReach(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	spec := enginetest.Script(nil)
	spec.MaxAttempts = 2
	id := n.Submit(spec, 1)
	states := make(map[string]*mapreduce.Unit)
	check := func(state string, h protocol.Held) {
		t.Helper()
		before := n.Units(id)
		// A new one for each state: where this machine stood still, a state takes the whole lease
		// to come, for which one that says nothing would be lost.
		session := mapreduce.SessionID(fmt.Sprintf("thief-%d", len(states)))
		thief := enginetest.GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{Session: session, Slots: 4, Offer: mapreduce.Offer{Providers: []string{"another"}}}})
		thief.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
		steal(thief, session, h)
		if diff := cmp.Diff(before, n.Units(id)); diff != "" {
			t.Errorf("while the unit %s, a thief changed (-before +after):\n%s", state, diff)
		}
		if job, err := n.GetJob(t.Context(), id); err != nil || job.State.Ended() || job.State == mapreduce.JobPaused || job.Error != "" {
			t.Fatalf("while the unit %s, a thief had its job end: %v, %v", state, job, err)
		}
		states[state] = before[h.Unit]
	}
	check("was never claimed", protocol.Held{Job: id, Unit: "doc-0000000"})

	w := enginetest.Greet(t, n, "w", 1)
	held := w.Assigned()
	check("runs", held)
	data := reasoned(t, 100_000)
	put(w, "w", held, data)
	check("has its output stored", held)
	w.Cut() // it may come back for a moment, and is then taken for lost
	n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits == 0 })
	check("waits after its worker was lost", held)

	w = enginetest.Greet(t, n, "w2", 1)
	held = w.Assigned()
	if v := w.Report(held, func(r *protocol.Report) {
		r.Outcome, r.Class = protocol.Errored, protocol.Retryable
		r.RetryAfter = time.Hour
	}); v != protocol.Accepted {
		t.Fatalf("the verdict on a failure is %v", v)
	}
	check("backs off", held)
	if len(states) != 5 {
		t.Errorf("%d states were tried", len(states))
	}
	n.Sound()
}

// TestHandedBackUnitsAreNobodys: once a unit was handed back, no report of its last
// attempt by another session counts, and the worker that reported it may say so again.
func TestHandedBackUnitsAreNobodys(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	thief := enginetest.GreetWith(t, n, &protocol.FromWorker{Hello: &protocol.Hello{Session: "thief", Slots: 1, Offer: mapreduce.Offer{Providers: []string{"another"}}}})
	thief.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	id := n.Submit(enginetest.Script(nil), 1)
	w := enginetest.Greet(t, n, "w", 1)
	held := w.Assigned()
	handBack := func(r *protocol.Report) { r.Outcome = protocol.Returned }
	w.Say(&protocol.FromWorker{Drain: true})
	if v := w.Report(held, handBack); v != protocol.Accepted {
		t.Fatalf("the verdict is %v", v)
	}
	if v := w.Report(held, handBack); v != protocol.Accepted {
		t.Errorf("said again, the verdict is %v", v)
	}
	steal(thief, "thief", held)
	if v := w.Report(held, handBack); v != protocol.Accepted {
		t.Errorf("said again, after a thief spoke, the verdict is %v", v)
	}
	w = enginetest.Greet(t, n, "w2", 1) // w, which drains, gets nothing
	held = w.Assigned()
	if held.Attempt != 2 {
		t.Fatalf("attempt %d", held.Attempt)
	}
	w.Report(held, enginetest.AsIs)
	w.Report(w.Assigned(), enginetest.AsIs)
	n.WantEnd(id, mapreduce.JobComplete)
}

// TestTheLastAttemptIsCalledSo: a worker learns whether another attempt follows one that
// fails. Attempts that cost a unit nothing do not count, nor do those before a resume.
func TestTheLastAttemptIsCalledSo(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	spec := enginetest.Script(nil)
	spec.MaxAttempts = 2
	id := n.Submit(spec, 1)
	w := enginetest.Greet(t, n, "w", 1)
	attempt := func(number int, last bool, outcome protocol.Outcome) {
		t.Helper()
		a := w.Until(func(m *protocol.ToWorker) bool { return len(m.Assignments) > 0 }).Assignments[0]
		if a.Attempt != number || a.Last != last {
			t.Errorf("attempt %d: last is %v, want attempt %d and %v", a.Attempt, a.Last, number, last)
		}
		held := protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Running: true}
		if v := w.Report(held, func(r *protocol.Report) { r.Outcome, r.Class = outcome, protocol.Retryable }); v != protocol.Accepted {
			t.Fatalf("attempt %d: the verdict is %v", number, v)
		}
	}
	attempt(1, false, protocol.Returned)
	attempt(2, false, protocol.Errored)
	attempt(3, true, protocol.Errored)
	n.Until(id, func(j *mapreduce.Job) bool { return j.State.Ended() })
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	attempt(4, false, protocol.Errored)
	attempt(5, true, protocol.Errored)
	n.Until(id, func(j *mapreduce.Job) bool { return j.State.Ended() })
}
