package results

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/plan/trace"
	"github.com/coditect/mapreduce/worker/output"
)

// modeOf returns how a job's tree came about.
func modeOf(job *mapreduce.Job) plan.Mode { return plan.ModeOf(job.Spec.Strategy) }

// A traced makes trace.json, a unit at a time. Its tasks have a file of their
// own until the sums, which stand before them, are known.
type traced struct {
	w     *writer
	tasks list
	tally trace.Tally
}

func newTrace(w *writer) (*traced, error) {
	out, err := w.dir.scratch(".tasks")
	return &traced{w: w, tasks: list{out: out, prefix: "    "}}, err
}

// add takes a unit into the trace. It began the time that it took before the
// commit of its outcome, or a little earlier.
func (t *traced) add(u *mapreduce.Unit) error {
	r := trace.Ran{Unit: u, Ended: t.w.ended.of(u.ID)}
	if t.w.job.Spec.Capture != mapreduce.CaptureOff && u.Kind != mapreduce.KindParse && len(u.Output) > 0 {
		var err error
		if r.Calls, err = output.CallsOf(u.Output); err != nil {
			return err
		}
	}
	t.tally.Add(r)
	return t.tasks.addValue("", trace.Of(r))
}

// assemble puts trace.json together.
func (t *traced) assemble(out *file) error {
	job := t.w.job
	t.tally.Supersede(job.Superseded)
	head := t.tally.Head(job.ID, modeOf(job), job.Spec.Pipeline)
	return object(out, []func() error{
		func() error { return member(out, "id", head.ID) },
		func() error { return member(out, "workflow", head.Workflow) },
		func() error { return member(out, "pipeline", head.Pipeline) },
		func() error { return member(out, "started", head.Started) },
		func() error { return member(out, "ended", head.Ended) },
		func() error { return section(out, "tasks", "[", &t.tasks, "]") },
		func() error { return member(out, "mapReduceLevels", head.Levels) },
		func() error { return member(out, "superseded", head.Superseded) },
		func() error { return member(out, "metrics", head.Metrics) },
	})
}
