package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// parkedUnits returns the units of a job that are parked.
func parkedUnits(n *enginetest.Node, id mapreduce.JobID) (parked []*mapreduce.Unit) {
	n.T.Helper()
	for _, u := range n.Units(id) {
		if u.Parking != nil {
			parked = append(parked, u)
		}
	}
	return parked
}

// wakeAll wakes all units that are parked, with an answer.
func wakeAll(n *enginetest.Node, id mapreduce.JobID, answer string) {
	n.T.Helper()
	for _, u := range parkedUnits(n, id) {
		if _, err := n.WakeUnit(n.T.Context(), id, u.ID, u.Parking.Handle, []byte(answer)); err != nil {
			n.T.Errorf("waking %s: %v", u.ID, err)
		}
	}
}

// Units that wait leave their slots to others, and their reservations: one slot, and a
// budget that three units reserve are enough for all of them to wait at once.
func TestParkedUnitsHoldNoSlot(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(orchestrator.Config{Adopt: true}) // as users have it: minutes pass
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
		spec := enginetest.Script(map[string]string{
			"script.parks": "1", "script.park_for": "5m", "script.tokens_in": "900", "script.tokens_out": "100",
		})
		const units = 5
		spec.Budget = 30_000 // for three at once
		begun := time.Now()
		id := n.Submit(spec, units)
		n.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == units })
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%d units have waited for one slot for %v", units, took)
		}
		for _, u := range parkedUnits(n, id) {
			if u.State != mapreduce.Pending || u.Attempts != 1 || u.Failures != 0 || u.Tokens.Total() != 1000 || u.Parking.WakeAfter != 5*time.Minute ||
				u.Parking.Note != "parked 1 of 1 times" {
				t.Errorf("a parked unit is %+v, and waits for %+v", u, u.Parking)
			}
		}
		job := n.EndWithin(id, time.Hour)
		if job.State != mapreduce.JobComplete || job.ParkedUnits != 0 || job.TotalTokens.Total() != 1000*(units+1) {
			t.Errorf("the job is %v with %d parked units and %d tokens: %s", job.State, job.ParkedUnits, job.TotalTokens.Total(), job.Error)
		}
		if took := time.Since(begun); took < 10*time.Minute || took > 11*time.Minute {
			t.Errorf("two levels that wait five minutes each took %v", took)
		}
		for _, u := range n.Units(id) {
			if u.Attempts != 2 || u.Failures != 0 || u.Elapsed > time.Minute {
				t.Errorf("unit %s took %d attempts, %d of them failed, and the last %v", u.ID, u.Attempts, u.Failures, u.Elapsed)
			}
		}
	})
}

// A call to any orchestrator wakes a unit, whichever has its worker, and its answer
// reaches the next attempt, on whichever worker.
func TestUnitsAreWokenByCalls(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, a)
		id := a.Submit(enginetest.Script(map[string]string{"script.parks": "2", "script.calls": "2", "script.answer": "granted", "script.tokens_in": "10"}), 3)
		parked := func(units, tokens int64) {
			t.Helper()
			a.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == units && j.TotalTokens.Total() == tokens })
		}
		parked(3, 30)
		drain()
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, a)
		unit := parkedUnits(a, id)[0]
		for _, wrong := range []struct {
			job          mapreduce.JobID
			unit, handle string
		}{{id, string(unit.ID), "another"}, {id, "nobody", unit.Parking.Handle}, {"mr_20260101_aaaaaa", string(unit.ID), unit.Parking.Handle}} {
			_, err := b.WakeUnit(t.Context(), wrong.job, mapreduce.UnitID(wrong.unit), wrong.handle, nil)
			if err == nil || errs.KindOf(err) != errs.NotFound {
				t.Errorf("waking %+v: %v, want that there is none", wrong, err)
			}
		}
		begun := time.Now()
		wakeAll(b, id, "granted") // each unit is parked after either of its calls
		parked(3, 60)
		wakeAll(b, id, "granted")
		parked(1, 70)
		wakeAll(b, id, "granted")
		parked(1, 80)
		wakeAll(b, id, "granted")
		job := b.EndWithin(id, time.Hour)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the job took %v after the first of four calls", took)
		}
		if job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Fatalf("the job is %v: %s", job.State, job.Error)
		}
		for _, u := range b.Units(id) {
			if u.Attempts != 3 || u.CallSums.Calls != 2 {
				t.Errorf("unit %s made %d calls in %d attempts, want 2 in 3", u.ID, u.CallSums.Calls, u.Attempts)
			}
		}
		if _, err := b.WakeUnit(t.Context(), id, unit.ID, "another", nil); err == nil || errs.KindOf(err) != errs.NotFound {
			t.Errorf("waking a unit that is complete: %v", err)
		}
	})
}

// The node that parked a unit dies. Another, and a third that comes later, take off what
// has passed.
func TestParkedUnitsOutliveOrchestrators(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		a, b := c.Orchestrator(enginetest.FleetConfig()), c.Orchestrator(enginetest.FleetConfig())
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, a, b)
		begun := time.Now()
		id := a.Submit(enginetest.Script(map[string]string{"script.parks": "1", "script.park_for": "4m"}), 3)
		a.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == 3 })
		a.Stop()
		enginetest.Pass(t, 3*time.Minute)
		d := c.Orchestrator(enginetest.FleetConfig())
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, d)
		enginetest.Pass(t, time.Minute/2)
		b.Stop()
		d.Until(id, func(j *mapreduce.Job) bool { return j.Level == 1 })
		if took := time.Since(begun); took < 4*time.Minute || took > 5*time.Minute {
			t.Errorf("the units waited %v, want four minutes, though the last node came after three", took)
		}
		if job := d.EndWithin(id, 2*time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Errorf("the job is %v: %s", job.State, job.Error)
		}
	})
}

// Units go on after their time though no node is there for as long.
func TestParkedUnitsGoOnThoughNodesKeepGoingDown(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(enginetest.FleetConfig())
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
		begun := time.Now()
		id := n.Submit(enginetest.Script(map[string]string{"script.parks": "1", "script.park_for": "4m"}), 3)
		n.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == 3 })
		enginetest.Pass(t, time.Second) // so that the worker, which outlives its node, has the verdicts
		for time.Since(begun) < 15*time.Minute {
			n.Stop()
			n = c.Orchestrator(enginetest.FleetConfig())
			c.Worker(&scripted.Agent{}, worker.Config{Slots: 4}, n)
			enginetest.Pass(t, time.Minute)
		}
		job, err := n.GetJob(t.Context(), id)
		if err != nil || job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Errorf("after a quarter of an hour with another node each minute the job is %v (error %v), want that two levels of four minutes each are complete", job, err)
		}
	})
}

// A job whose units are all parked is not stuck, though no worker could run them. Once
// they are woken it is, counted from then.
func TestAJobWhoseUnitsAreParkedIsNotStuck(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		config := enginetest.Steady()
		config.Adopt, config.Stuck = true, time.Minute
		n := c.Orchestrator(config)
		c.WorkerFor("other", &scripted.Agent{}, worker.Config{Slots: 2}, n)
		drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
		id := n.Submit(enginetest.Script(map[string]string{"script.parks": "1"}), 4)
		n.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == 4 })
		drain()
		enginetest.Pass(t, 5*time.Minute)
		if job, err := n.GetJob(t.Context(), id); err != nil || !job.State.Running() {
			t.Fatalf("the job is %+v (%v), while all its units are parked", job, err)
		}
		wakeAll(n, id, "")
		woken := time.Now()
		job := n.EndWithin(id, time.Hour)
		if took := time.Since(woken); job.State != mapreduce.JobPaused || took < config.Stuck || took > config.Stuck+10*time.Second {
			t.Errorf("the job is %v %v after its units were woken, want it paused after %v", job.State, took, config.Stuck)
		}
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		n.Until(id, func(j *mapreduce.Job) bool { return j.Level == 1 && j.ParkedUnits == 1 })
		wakeAll(n, id, "")
		n.WantEnd(id, mapreduce.JobComplete)
	})
}

// What callers say is bounded.
func TestWakeRefuses(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 1)
	for field, call := range map[string]protocol.WakeCall{
		"handle": {},
		"answer": {Handle: "h", Answer: make([]byte, mapreduce.MaxWakeAnswer+1)},
	} {
		_, err := n.Orch.WakeUnit(t.Context(), mapreduce.Local(""), id, "doc-0000000", call.Handle, call.Answer)
		if e := fmt.Sprint(err); err == nil || errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %s, want it refused", field, e)
		}
	}
}
