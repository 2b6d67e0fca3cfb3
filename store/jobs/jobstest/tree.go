package jobstest

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/staging"
)

// SubmitTree submits docs as a job whose tree has groups of group, not planned
// yet.
func (w *World) SubmitTree(j *jobs.Jobs, docs []Document, group int64) mapreduce.JobID {
	w.Helper()
	id := mapreduce.JobID(w.Name("job"))
	s := Spec()
	w.Must(j.Submit.Begin(w.Ctx, id, s))
	p := &staging.Publication{Spec: s, Shards: 2, Tree: true, Level: MapLevel}

	for n, d := range docs {
		b := Batch(d, int64(n), 2)
		for _, u := range b.Units {
			if d.Parse {
				continue
			}
			u.Parent = 1 + p.Map/group
			p.Map++
		}

		w.Must(j.Submit.Stage(w.Ctx, id, &b))
		p.Documents++
		if d.Parse {
			p.Parse++
			continue
		}
		p.Characters += int64(len(d.Text))
	}

	_, err := j.Submit.Publish(w.Ctx, id, p)
	w.Must(err)
	return id
}

// PlanTree plans a tree once all documents are parsed.
func (w *World) PlanTree(j *jobs.Jobs, id mapreduce.JobID, group int64) {
	w.Helper()
	s, err := j.Levels.Status(w.Ctx, id)
	w.Must(err)
	w.Must(j.Levels.InsertParsed(w.Ctx, id, s.Epoch, w.DocumentUnits(j, id)))
	w.Must(j.Levels.PlanTree(w.Ctx, id, TreeOver(s.Epoch, group)))
}

// LetGo unblocks what was told, and what that ends.
func (w *World) LetGo(j *jobs.Jobs, id mapreduce.JobID, refs []records.WaitRef) {
	w.Helper()
	for len(refs) > 0 {
		_, told, err := j.Turns.Unblock(w.Ctx, id, refs[:min(len(refs), queue.MaxUnblock)])
		w.Must(err)
		refs = append(refs[min(len(refs), queue.MaxUnblock):], told...)
	}
}

// Shape returns how many units each level has.
func (k *Kept) Shape(id mapreduce.JobID) (levels []int64) {
	k.Helper()
	ctl, err := k.Look.View.Control(k.Ctx, id)
	k.Must(err)
	for level := range ctl.Levels {
		units := k.Level(k.Look, id, int64(level))
		if int64(len(units)) != ctl.Levels[level].Units {
			k.Errorf("level %d has %d units, and %d were planned", level, len(units), ctl.Levels[level].Units)
		}
		levels = append(levels, int64(len(units)))
	}
	return levels
}
