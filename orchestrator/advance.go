package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs"
)

// advanceLoop looks after the jobs that are due, each in a goroutine of its own,
// never two for one job.
func (o *Orchestrator) advanceLoop(ctx context.Context) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards busy
		busy = make(map[mapreduce.JobID]bool)
	)
	defer wg.Wait()
	claim := func(id mapreduce.JobID) bool {
		mu.Lock()
		defer mu.Unlock()
		if busy[id] {
			return false
		}
		busy[id] = true
		return true
	}
	waiting := make(map[mapreduce.JobID]bool)
	for {
		for id, whole := range o.signals.TakeDue() {
			waiting[id] = waiting[id] || whole
		}
		for id, whole := range waiting {
			if !claim(id) {
				continue
			}
			delete(waiting, id)
			wg.Go(func() {
				defer o.signals.DueSignal.Wake()
				o.supervisor.ForJob(ctx, id, "advancing a job", func() { o.advanceDueJob(ctx, id, whole) })
				mu.Lock()
				defer mu.Unlock()
				delete(busy, id)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-o.signals.DueSignal.C():
		}
	}
}

// advanceDueJob looks at how far a job is, and takes it as far as it can go without
// any unit moving; or if that is not due, it only lets go what waited for units
// that have ended.
func (o *Orchestrator) advanceDueJob(ctx context.Context, id mapreduce.JobID, whole bool) {
	err := o.unblockReduces(ctx, id)
	if err == nil && whole {
		err = o.advanceJob(ctx, id)
	}
	switch {
	case err == nil || ctx.Err() != nil:
	case errs.KindOf(err) == errs.NotFound:
		o.scheduler.retireJob(id)
		o.dropUnits(id)
	default:
		o.supervisor.LogFailure(ctx, "advancing a job; trying again", err, "job", id)
		o.signals.CallAt(time.Now().Add(time.Second), func(context.Context) { o.signals.MarkDue(id) })
	}
}

func (o *Orchestrator) advanceJob(ctx context.Context, id mapreduce.JobID) error {
	if f, ok := o.signals.TakeFailure(id); ok {
		if err := o.jobs.Fail(ctx, id, f.Epoch, f.Why); err != nil {
			o.signals.RequestFailure(id, f)
			return err
		}
	}
	if o.signals.TakeTreeLook(id) {
		if err := o.unblockAll(ctx, id); err != nil {
			if errs.KindOf(err) != errs.NotFound {
				o.signals.RequestTreeLook(id)
			}
			return err
		}
	}
	s, err := o.jobs.LevelStatus(ctx, id)
	if err == nil && s.State.Running() && s.Ended() && o.isOwnJob(id) {
		s, err = o.members.GiveWay(ctx, id, s)
	}
	if err == nil && s.State.Running() && o.isOwnJob(id) && !o.scheduler.hasJobEpoch(id, s.Epoch) {
		err = o.refreshJob(ctx, id) // another has turned it
	}
	if err != nil {
		return err
	}
	if !s.State.Running() {
		return o.handleStoppedJob(ctx, id, s)
	}
	if !o.isOwnJob(id) {
		return nil
	}
	if s.FailFast && s.Failures > 0 {
		return o.failFast(ctx, id, s)
	}
	if s.Ended() {
		return o.turnLevel(ctx, id, s)
	}
	if err := o.adjustGrants(ctx, id); err != nil {
		return err
	}
	return o.primePrefix(ctx, id)
}

// handleStoppedJob takes a job that does not run off the scheduler, and ends what a cancel
// has begun.
func (o *Orchestrator) handleStoppedJob(ctx context.Context, id mapreduce.JobID, s *jobs.LevelStatus) error {
	o.scheduler.retireJob(id)
	o.signals.NotifyWatchers(id)
	if s.State != mapreduce.JobCancelled {
		return o.sealAll(ctx, id)
	}
	o.dropUnits(id)
	var cursor []byte
	for done := !s.Sweeping; !done; {
		var err error
		if cursor, done, err = o.jobs.SweepCancelled(ctx, id, cursor); err != nil {
			return err
		}
	}
	return o.sealAll(ctx, id)
}

// dropUnits stops what workers of this node run of a job. A worker that has
// spent something by then reports it, and gets the verdict of any late report.
func (o *Orchestrator) dropUnits(id mapreduce.JobID) {
	b := o.scheduler
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return
	}
	for _, s := range b.sessions {
		var stop []mapreduce.Held
		for key, h := range s.held {
			if key.job != id || h.reported {
				continue
			}
			stop = append(stop, mapreduce.Held{Job: id, Unit: key.unit, Attempt: h.attempt})
			s.forgetAttempt(id, key.unit, h.attempt)
			h.claim.endUnit(r)
			b.addHeldUnits(r, -1)
		}
		if len(stop) > 0 {
			s.out.put(&mapreduce.ToWorker{Cancel: stop})
		}
	}
	b.fairQueue.add(r)
	b.wake.Broadcast()
}

func (o *Orchestrator) failFast(ctx context.Context, id mapreduce.JobID, s *jobs.LevelStatus) error {
	why := fmt.Sprintf("%d units failed, and the job is to fail fast", s.Failures)
	if u, err := o.jobs.FirstFailed(ctx, id); err != nil {
		return err
	} else if u != nil {
		why = fmt.Sprintf("unit %s failed, and the job is to fail fast: %s", u.UnitId, lastOf(u.Errors))
	}
	if err := o.jobs.Fail(ctx, id, s.Epoch, why); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	return nil
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return "no reason given"
	}
	return list[len(list)-1]
}

// turnLevel ends a level: it plans the next, or completes the job.
func (o *Orchestrator) turnLevel(ctx context.Context, id mapreduce.JobID, s *jobs.LevelStatus) error {
	switch {
	case s.Level < 0:
		if err := o.intake.StartMapping(ctx, id, s.Epoch); err != nil {
			return err
		}
	case s.Completed == 0:
		if err := o.failAll(ctx, id, s); err != nil {
			return err
		}
	case s.InTree():
		if err := o.ascendLevel(ctx, id, s); err != nil {
			return err
		}
	default:
		if err := o.planLevel(ctx, id, s); err != nil {
			return err
		}
	}
	o.signals.NotifyWatchers(id)
	o.signals.MarkDue(id)
	return o.refreshJob(ctx, id)
}

func (o *Orchestrator) failAll(ctx context.Context, id mapreduce.JobID, s *jobs.LevelStatus) error {
	u, err := o.jobs.FirstFailed(ctx, id)
	if err != nil {
		return err
	}
	skipped, err := o.jobs.Skipped(ctx, id, 0, 1)
	if err != nil {
		return err
	}
	why := "no document is left to process"
	switch {
	case u != nil && s.Failed > 0:
		why = fmt.Sprintf("all %d units of level %d failed; the first, %s: %s", s.Failed, s.Level, u.UnitId, lastOf(u.Errors))
	case u != nil:
		why += fmt.Sprintf("; the first to fail, %s: %s", u.UnitId, lastOf(u.Errors))
	case len(skipped) > 0:
		why += fmt.Sprintf("; the first that was skipped, %s: %s", skipped[0].Document, skipped[0].Reason)
	}
	return o.jobs.Fail(ctx, id, s.Epoch, why)
}

// planLevel plans the level that follows one which has ended, or completes the job
// if none does.
func (o *Orchestrator) planLevel(ctx context.Context, id mapreduce.JobID, s *jobs.LevelStatus) error {
	compiled, err := o.specs.Job(ctx, id)
	if err != nil {
		return err
	}
	graph := compiled.Graph
	planned := make([]plan.Planned, len(s.Planned))
	for i, l := range s.Planned {
		planned[i] = plan.Planned{Stage: l.Stage, Depth: l.Depth, Root: l.Unit != ""}
	}
	step, err := graph.Next(planned, &planHistory{o: o, ctx: ctx, job: id, status: s, Compiled: compiled})
	switch {
	case errs.KindOf(err) == errs.Precondition: // the same whoever plans
		return o.jobs.Fail(ctx, id, s.Epoch, err.Error())
	case err != nil:
		return err
	case step == nil:
		return o.jobs.Complete(ctx, id, s.Epoch)
	}
	return o.planSteps(ctx, id, levelPlan(s, step), s.Next)
}

// planSteps plans a level that was seen to be planned as far as seen. Of several nodes
// that see it so at the same moment, only one can make the step behind that; the
// others find in their first step that there was one, and leave the level to it: the
// next look at the job waits for it in GiveWay.
func (o *Orchestrator) planSteps(ctx context.Context, id mapreduce.JobID, next jobs.LevelPlan, seen int64) error {
	from, done, err := o.jobs.PlanStep(ctx, id, next)
	if from != seen {
		return err
	}
	for err == nil && !done {
		_, done, err = o.jobs.PlanStep(ctx, id, next)
	}
	return err
}

// levelPlan returns how the store is to plan a step.
func levelPlan(s *jobs.LevelStatus, step *plan.Step) jobs.LevelPlan {
	next := jobs.LevelPlan{
		Epoch: s.Epoch, Number: s.Level + 1, Level: jobspec.LevelOf(step), Kind: step.Kind,
		Group: step.Group, Bins: step.Bins, Each: step.Each, Warnings: warningTexts(step.Warnings),
	}
	for _, e := range step.Items {
		next.Items = append(next.Items, jobs.Item{Source: e.Source, Value: e.Value})
	}
	return next
}

// A planHistory is what the levels of a job came to, from level 0 on. They have ended,
// so that it is the same whoever asks.
type planHistory struct {
	o      *Orchestrator
	ctx    context.Context // of the planning, which the history does not outlive
	job    mapreduce.JobID
	status *jobs.LevelStatus
	*jobspec.Compiled
}

// Sizes implements plan.History.
func (h *planHistory) Sizes(level int) (plan.Sizes, error) {
	s := h.status
	units := s.Planned[level].Units
	switch int64(level) {
	case s.Level:
		return plan.Sizes{Units: units, Completed: s.Completed, Tokens: s.Size}, nil
	case s.Planned[s.Level].Source:
		if s.Level > 0 {
			return plan.Sizes{Units: units, Completed: s.SourceCompleted, Tokens: s.SourceSize}, nil
		}
	}
	completed, size, err := h.o.jobs.LevelSizes(h.ctx, h.job, int64(level))
	return plan.Sizes{Units: units, Completed: completed, Tokens: size}, err
}

// visitCompletedUnits visits the units of a level that have an output, in order.
func (h *planHistory) visitCompletedUnits(level int, visit func(*storagev1.Unit) error) error {
	for from := int64(0); ; {
		page, err := h.o.jobs.UnitsFrom(h.ctx, h.job, int64(level), from, 256)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, u := range page {
			if from = u.Index + 1; mapreduce.UnitState(u.Status) != mapreduce.UnitComplete {
				continue
			}
			if err := visit(u); err != nil {
				return err
			}
		}
	}
}

// Outputs implements plan.History. Agents are named whose outputs are above the
// budget: the job's owner is warned of them.
func (h *planHistory) Outputs(level int) ([]plan.Output, error) {
	stage := h.status.Planned[level].Stage
	budget := h.Graph.TreeOf(stage).Budget()
	all := make([]plan.Output, 0, h.status.Completed)
	err := h.visitCompletedUnits(level, func(u *storagev1.Unit) error {
		out := plan.Output{Index: u.Index, Tokens: u.Result.GetSize(), Unit: mapreduce.UnitID(u.UnitId)}
		if out.Tokens > budget {
			out.Agent = roleOf(h.Graph.Pipeline(), stage, u, h.Spec.Vars)
		}
		all = append(all, out)
		return nil
	})
	return all, err
}

// maxItems bounds the elements that a stage fans out to.
const maxItems = 100_000

// Items implements plan.History.
func (h *planHistory) Items(level int, path []string) ([]plan.Element, error) {
	var all []plan.Element
	err := h.visitCompletedUnits(level, func(u *storagev1.Unit) error {
		value, err := h.readUnitValue(u)
		if err != nil {
			return err
		}
		list, err := pipeline.List(value, path)
		if err != nil {
			return errs.New(errs.Precondition, "output of unit %s: %v", u.UnitId, err)
		}
		for i, value := range list {
			if len(value) > jobs.MaxItem {
				return errs.New(errs.Precondition, "output of unit %s: element %d of %s has %d bytes; at most %d are taken",
					u.UnitId, i, strings.Join(path, "."), len(value), jobs.MaxItem)
			}
			all = append(all, plan.Element{Source: u.Index, Value: value})
		}
		if len(all) > maxItems {
			return errs.New(errs.Precondition, "%s has more than %d elements", strings.Join(path, "."), maxItems)
		}
		return nil
	})
	return all, err
}

// readUnitValue returns what a unit came to, as a stage reads it.
func (h *planHistory) readUnitValue(u *storagev1.Unit) ([]byte, error) {
	out, err := outputs.Of(h.ctx, h.o.jobs, h.job, u)
	if err != nil {
		return nil, err
	}
	if u.Level > 0 && outputs.NamesRecordsOnly(out) {
		if out, err = outputs.Resolve(h.ctx, h.o.jobs, h.job, u, out); err != nil {
			return nil, err
		}
	}
	if len(out.Value) > 0 {
		return out.Value, nil
	}
	return out.Read(h.Schemas[h.status.Planned[u.Level].Stage])
}

// roleOf returns the role of the agent that ran a unit of a stage, or "" if it
// cannot be told.
func roleOf(p *pipeline.Pipeline, stage int, u *storagev1.Unit, vars map[string]string) string {
	role, err := p.Role(p.Stages[stage].Name, vars, pipeline.Document{ID: u.DocumentId, Metadata: u.Source.GetMetadata()})
	if err != nil {
		return "" // the warning names the unit too
	}
	return role
}

// maxWarnings bounds what is told one by one of a level.
const maxWarnings = 8

// warningTexts returns what the owner of a job is told of a level.
func warningTexts(all []plan.Warning) []string {
	var texts []string
	for _, w := range all[:min(len(all), maxWarnings)] {
		texts = append(texts, w.String())
	}
	if n := len(all) - maxWarnings; n > 0 {
		texts = append(texts, fmt.Sprintf("and so have %d more outputs", n))
	}
	return texts
}

// sealAll chains what is left of a job's checkpoints.
func (o *Orchestrator) sealAll(ctx context.Context, id mapreduce.JobID) error {
	for {
		n, err := o.jobs.Seal(ctx, id)
		if err != nil || n == 0 {
			return err
		}
	}
}

// sealLoop chains new checkpoints a few times a second.
func (o *Orchestrator) sealLoop(ctx context.Context) {
	supervise.CallEvery(ctx, o.config.Seal, func() {
		for _, id := range o.signals.TakeUnsealed(o.members.TurnToSeal) {
			if _, err := o.jobs.Seal(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
				o.supervisor.LogFailure(ctx, "sealing checkpoints; trying again", err, "job", id)
				o.signals.NotifyWatchers(id)
			}
		}
	})
}
