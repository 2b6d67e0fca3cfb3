package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// planLevel plans the level that follows one which has ended, or ends the job with its
// result if none does.
func (a *advancer) planLevel(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	compiled, err := a.specs.Job(ctx, id)
	if err != nil {
		return err
	}

	graph := compiled.Graph
	planned := make([]plan.Planned, len(s.Planned))
	for i, l := range s.Planned {
		planned[i] = plan.Planned{Stage: l.Stage, Depth: l.Depth, Root: l.Unit != ""}
	}

	step, err := graph.Next(planned, &planHistory{jobs: a.jobs, ctx: ctx, job: id, status: s, Compiled: compiled})
	switch {
	case errs.KindOf(err) == errs.Precondition: // the same whoever plans
		return a.jobs.Lifecycle.Fail(ctx, id, s.Epoch, err.Error())
	case err != nil:
		return err
	case step == nil:
		return a.assembler.finish(ctx, id, s)
	}

	next := levelPlan(s, step)
	if step.Depth <= 1 {
		next.Progress = graph.Pipeline().Stages[step.Stage].Progress
	}
	return a.planSteps(ctx, id, next, s.Next)
}

// planSteps plans a level that was seen to be planned as far as seen. Of several nodes
// that see it so at the same moment, only one can make the step behind that; the
// others find in their first step that there was one, and leave the level to it: the
// next look at the job waits for it in GiveWay.
func (a *advancer) planSteps(ctx context.Context, id mapreduce.JobID, next lifecycle.Plan, seen int64) error {
	from, done, err := a.jobs.Levels.PlanStep(ctx, id, next)
	if from != seen {
		return err
	}
	for err == nil && !done {
		_, done, err = a.jobs.Levels.PlanStep(ctx, id, next)
	}
	return err
}

// levelPlan returns how the store is to plan a step.
func levelPlan(s *lifecycle.Status, step *plan.Step) lifecycle.Plan {
	next := lifecycle.Plan{
		Epoch: s.Epoch, Number: s.Level + 1, Level: jobspec.LevelOf(step), Kind: step.Kind,
		Group: step.Group, Bins: step.Bins, Each: step.Each, Warnings: warningTexts(step.Warnings),
	}
	for _, e := range step.Items {
		next.Items = append(next.Items, lifecycle.Item{Source: e.Source, Value: e.Value})
	}
	return next
}

// A planHistory gives the outputs of a job's levels, from level 0 on. The levels have
// ended, so every orchestrator gets the same outputs.
type planHistory struct {
	jobs   *jobs.Jobs
	ctx    context.Context // of the planning, which the history does not outlive
	job    mapreduce.JobID
	status *lifecycle.Status
	*jobspec.Compiled
}

// Sizes implements plan.History.
func (h *planHistory) Sizes(level int) (plan.Sizes, error) {
	s := h.status
	units := s.Planned[level].Units

	// The status has the sizes of the level that has ended, and of its source.
	switch int64(level) {
	case s.Level:
		return plan.Sizes{Units: units, Completed: s.Completed, Tokens: s.Size}, nil
	case s.Planned[s.Level].Source:
		if s.Level > 0 {
			return plan.Sizes{Units: units, Completed: s.SourceCompleted, Tokens: s.SourceSize}, nil
		}
	}

	completed, size, err := h.jobs.Levels.Sizes(h.ctx, h.job, int64(level))
	return plan.Sizes{Units: units, Completed: completed, Tokens: size}, err
}

// visitCompletedUnits visits the units of a level that have an output, in order.
func (h *planHistory) visitCompletedUnits(level int, visit func(*records.Unit) error) error {
	for from := int64(0); ; {
		page, err := h.jobs.View.UnitsFrom(h.ctx, h.job, int64(level), from, 256)
		if err != nil || len(page) == 0 {
			return err
		}

		for _, u := range page {
			if from = u.Index + 1; u.State != mapreduce.UnitComplete {
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
	err := h.visitCompletedUnits(level, func(u *records.Unit) error {
		out := plan.Output{Index: u.Index, Tokens: u.Published().Size, Unit: u.ID}
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
	err := h.visitCompletedUnits(level, func(u *records.Unit) error {
		value, err := h.readUnitValue(u)
		if err != nil {
			return err
		}

		list, err := jsonvalue.List(value, path)
		if err != nil {
			return errs.New(errs.Precondition, "output of unit %s: %v", u.ID, err)
		}

		for i, value := range list {
			if len(value) > lifecycle.MaxItem {
				return errs.New(errs.Precondition, "output of unit %s: element %d of %s has %d bytes; at most %d are taken",
					u.ID, i, strings.Join(path, "."), len(value), lifecycle.MaxItem)
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

// Fields implements plan.History.
func (h *planHistory) Fields(level int, name string) ([]plan.Element, error) {
	var all []plan.Element
	err := h.visitCompletedUnits(level, func(u *records.Unit) error {
		value, err := h.readUnitValue(u)
		if err != nil {
			return err
		}

		var fields map[string]json.RawMessage
		if json.Unmarshal(value, &fields) != nil { // it is no object
			fields = nil
		}
		one := plan.Element{Source: u.Index, Value: fields[name]}
		// A field that is null counts as missing.
		if string(one.Value) == "null" {
			one.Value = nil
		}
		all = append(all, one)
		return nil
	})
	return all, err
}

// readUnitValue returns the output of a unit, as a stage reads it.
func (h *planHistory) readUnitValue(u *records.Unit) ([]byte, error) {
	out, err := outputs.Of(h.ctx, h.jobs.Reader(), h.job, u)
	if err != nil {
		return nil, err
	}

	if u.Level > 0 && outputs.NamesRecordsOnly(out) {
		if out, err = outputs.Resolve(h.ctx, h.jobs.Reader(), h.job, u, out); err != nil {
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
func roleOf(p *pipeline.Pipeline, stage int, u *records.Unit, vars map[string]string) string {
	role, err := p.Texts(vars).Role(p.Stages[stage].Name, pipeline.Document{ID: string(u.Document), Metadata: u.Reads().Metadata})
	if err != nil {
		return "" // the warning names the unit too
	}
	return role
}

// maxWarnings bounds the warnings of a level that are listed one by one.
const maxWarnings = 8

// warningTexts returns the warnings of a level for the owner of a job.
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
