package cascade_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/cascade"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// scored returns units with gaps between their indexes, as map units have, and some scores each.
func scored(n, scores int) []cascade.Scored {
	all := make([]cascade.Scored, n)
	for i := range all {
		all[i].Index = int64(i) << 20
		for m := range scores {
			all[i].Scores = append(all[i].Scores, uint32(i*m)%mapreduce.MaxScore)
		}
	}
	return all
}

// newTrial returns a trial with so many measures.
func newTrial(measures int) *cascade.Trial {
	return &cascade.Trial{Member: "rules", Oracle: "a/b", Target: 0.9, Confidence: 0.95, Seed: 7, Measures: make([]string, measures)}
}

// A trial is what its first beginning stored, and its first decision: others change nothing.
func TestTrial(t *testing.T) {
	for _, tt := range []struct{ units, measures int }{{1, 1}, {2_500, 1}, {700, mapreduce.MaxScores}} {
		w := jobstest.NewWorld(t, jobstest.Open(t), 2)
		j, other := w.Nodes[0].Cascade, w.Nodes[1].Cascade
		id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(1))

		if got, err := j.Trial(w.Ctx, id, 0); err != nil || got != nil {
			t.Fatalf("a trial that nobody began: %+v, %v", got, err)
		}
		units := scored(tt.units, tt.measures)
		w.Must(j.Decide(w.Ctx, id, 0, newTrial(tt.measures), units, nil, nil)) // which did not begin
		w.Must(j.Begin(w.Ctx, id, 0, newTrial(tt.measures), units, nil))
		w.Must(other.Begin(w.Ctx, id, 0, newTrial(tt.measures), units[:1], nil))

		begun, err := other.Trial(w.Ctx, id, 0)
		w.Must(err)
		got, err := other.TrialUnits(w.Ctx, id, 0, begun)
		w.Must(err)
		if diff := cmp.Diff(units, got); diff != "" || begun.Decided {
			t.Fatalf("%d units, decided %t (-want +got):\n%s", tt.units, begun.Decided, diff)
		}

		for i := range units {
			units[i].Accepted = i%3 == 0
		}
		begun.Accepted, begun.Verdicts = int64((tt.units+2)/3), []cascade.Verdict{{First: 5, Least: 4, Labels: 3, Right: 2, Ended: "all"}}
		w.Must(other.Decide(w.Ctx, id, 0, begun, units, nil, nil))
		late := scored(tt.units, tt.measures)
		w.Must(j.Decide(w.Ctx, id, 0, newTrial(tt.measures), late, nil, nil))

		decided, err := j.Trial(w.Ctx, id, 0)
		w.Must(err)
		if diff := cmp.Diff(begun, decided, cmp.AllowUnexported(cascade.Trial{})); diff != "" {
			t.Errorf("decided (-want +got):\n%s", diff)
		}
		got, err = j.TrialUnits(w.Ctx, id, 0, decided)
		w.Must(err)
		if diff := cmp.Diff(units, got); diff != "" {
			t.Errorf("what is accepted (-want +got):\n%s", diff)
		}
	}
}

// A unit goes on once, and only if it is parked under the handle.
func TestJudge(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	s := w.Session(j)
	var units []cascade.Judged
	for i, u := range w.Claim(j, id, s, 3) {
		handle := "cascade/0"
		if i == 2 {
			handle = "somebody"
		}
		w.Report(j, jobstest.Parked(id, u, handle, 0))
		units = append(units, cascade.Judged{Unit: u.ID, Answer: "accept"})
	}
	units = append(units, cascade.Judged{Unit: "nobody", Answer: "accept"})

	for _, node := range w.Nodes { // the second comes late
		woken, err := node.Cascade.Judge(w.Ctx, id, "cascade/0", units)
		w.Must(err)
		if len(woken) != 2 {
			t.Errorf("%d units wait in the queue, want 2", len(woken))
		}
	}
	if job := w.Job(id); job.ParkedUnits != 1 {
		t.Errorf("%d units are parked, want 1", job.ParkedUnits)
	}
	for _, u := range w.Claim(j, id, s, 3) {
		if call, err := j.View.WakeCall(w.Ctx, id, u.ID); err != nil || call == nil || string(call.Answer) != "accept" {
			t.Errorf("%s was told %+v, %v", u.ID, call, err)
		}
	}
}

// A job that does not run keeps its units where they are.
func TestStoppedJobs(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	u := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Parked(id, u, "cascade/0", 0))
	ctl, err := j.View.Control(w.Ctx, id)
	w.Must(err)
	w.Must(j.Lifecycle.Pause(w.Ctx, id, ctl.Epoch, "somebody paused it"))

	w.Must(j.Cascade.Begin(w.Ctx, id, 0, newTrial(1), scored(1, 1), nil))
	woken, err := j.Cascade.Judge(w.Ctx, id, "cascade/0", []cascade.Judged{{Unit: u.ID, Answer: "accept"}})
	w.Must(err)
	if trial, err := j.Cascade.Trial(w.Ctx, id, 0); len(woken) > 0 || trial != nil || err != nil {
		t.Errorf("%d units were woken, and the trial is %+v, %v", len(woken), trial, err)
	}
}
