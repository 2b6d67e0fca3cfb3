package results

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/render"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// modeOf returns the mode in which a job's tree was planned.
func modeOf(job *mapreduce.Job) plan.Mode { return plan.ModeOf(job.Spec.Strategy) }

// A traceWriter writes trace.json, a unit at a time. Its tasks have a scratch file
// until the sums, which come before them, are known.
type traceWriter struct {
	w     *writer
	tasks resultfile.List
}

func newTrace(w *writer) (*traceWriter, error) {
	out, err := w.dir.CreateScratch(".tasks")
	return &traceWriter{w: w, tasks: resultfile.List{Out: out}}, err
}

// addUnit adds a unit to the trace. Its start is computed from the commit of its
// outcome and its duration, so it is a little too late.
func (t *traceWriter) addUnit(u *mapreduce.Unit) error {
	r := render.Ran{Unit: u, Ended: t.w.ended.timeOf(u.ID), Unpriced: t.w.tally.Prices.UnitCost(u) == nil}
	captured := t.w.job.Spec.Capture != mapreduce.CaptureOff || u.CallSums.Tools > 0 // those of agents with tools always are

	if captured && u.Kind != mapreduce.KindParse && len(u.Output) > 0 {
		var err error
		if r.Calls, err = payload.CallsOf(u.Output); err != nil {
			return err
		}
	}
	t.w.traced.Add(r)
	return t.tasks.AddValue("", render.RanTaskOf(r))
}

// fitTimes corrects the times when units ended, so that no more of them seem to have
// run at once than the job allows.
func (w *writer) fitTimes(ctx context.Context) error {
	var keys [][16]byte
	var spans []render.Span
	err := eachUnit(ctx, w.service, mapreduce.ListUnitsQuery{Job: w.config.Job}, func(u *mapreduce.Unit) error {
		if ended := w.ended.timeOf(u.ID); !ended.IsZero() {
			keys, spans = append(keys, endingKey(u.ID)), append(spans, render.Span{Ended: ended, Took: u.Elapsed})
		}
		return nil
	})
	if err != nil {
		return err
	}

	render.FitLanes(spans, w.job.Spec.Parallelism)
	for i, s := range spans {
		w.ended[keys[i]] = s.Ended.UnixMicro()
	}
	return nil
}

// writeTrace assembles trace.json.
func (t *traceWriter) writeTrace(out *folder.File) error {
	job := t.w.job
	for _, s := range job.Superseded {
		t.w.traced.Supersede(s, t.w.tally.Prices.Cost(s.Tokens, s.CostMicros) == nil)
	}

	head := t.w.traced.Head(job.ID, modeOf(job), job.Spec.Pipeline)
	members := []func() error{
		func() error { return resultfile.WriteMember(out, "id", head.ID) },
		func() error { return resultfile.WriteMember(out, "workflow", head.Workflow) },
		func() error { return resultfile.WriteMember(out, "pipeline", head.Pipeline) },
		func() error { return resultfile.WriteMember(out, "started", head.Started) },
		func() error { return resultfile.WriteMember(out, "ended", head.Ended) },
		func() error { return resultfile.WriteSection(out, "tasks", "[", &t.tasks, "]") },
		func() error { return resultfile.WriteMember(out, "mapReduceLevels", head.Levels) },
		func() error { return resultfile.WriteMember(out, "superseded", head.Superseded) },
		func() error { return resultfile.WriteMember(out, "metrics", head.Metrics) },
	}

	if set := settings.RunParameters(&job.Spec); !set.IsZero() {
		members = append(members, func() error { return resultfile.WriteMember(out, "parameters", set) })
	}
	return resultfile.WriteObject(out, members)
}
