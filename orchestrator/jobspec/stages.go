package jobspec

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Stages is which stages the levels of a job belong to. Its zero value is of a job of
// which nothing is known.
type Stages struct {
	Compiled *Compiled
	levels   []records.Level // from level 0 on
	Level    int64           // by whose stage the units of the job run; see Control.StageLevel
}

// StageAt returns the stage of a level; nil for the level of units that parse documents.
func (s Stages) StageAt(level int64) *pipeline.Stage {
	if s.Compiled == nil || level < 0 || level >= int64(len(s.levels)) {
		return nil
	}
	stages, at := s.Compiled.Graph.Pipeline().Stages, s.levels[level].Stage
	if at >= len(stages) {
		return nil
	}
	return stages[at]
}

// Current returns the stage that the job has come to.
func (s Stages) Current() *pipeline.Stage { return s.StageAt(s.Level) }

// Later returns the stages behind the one that the job has come to; all of them while documents are parsed.
func (s Stages) Later() []*pipeline.Stage {
	if s.Compiled == nil {
		return nil
	}
	all := s.Compiled.Graph.Pipeline().Stages
	if s.Level < 0 || s.Level >= int64(len(s.levels)) {
		return all
	}
	return all[min(s.levels[s.Level].Stage+1, len(all)):]
}

// StageName returns the name of the stage of a level, or "".
func (s Stages) StageName(level int64) string {
	if stage := s.StageAt(level); stage != nil {
		return stage.Name
	}
	return ""
}

// TreeDepth returns the depth of a level in the tree of its stage, 0 if it has none.
func (s Stages) TreeDepth(level int64) int {
	if s.StageAt(level) == nil {
		return 0
	}
	return s.levels[level].Depth
}

// NewStages returns the stages of a job, as its control record has them.
func NewStages(c *Compiled, ctl *records.Control) Stages {
	return Stages{Compiled: c, Level: ctl.StageLevel(), levels: ctl.Levels}
}

// Requirements returns what units of a stage need of a worker.
func Requirements(spec *mapreduce.JobSpec, stage *pipeline.Stage) mapreduce.Requirements {
	needs := mapreduce.Requirements{Provider: spec.Provider, Model: spec.Model, Dollars: spec.MaxCost() > 0}
	if stage != nil {
		needs.Tools = stage.RequiredTools()
		needs.Batched = stage.GoesByBatch(spec.Vars)
		needs.Reviewed = stage.Review.IsSet()
		needs.Placed = !spec.Deadline.IsZero()
	}
	return needs
}

// LevelOf returns a step as the store describes levels.
func LevelOf(step *plan.Step) records.Level {
	return records.Level{
		Units: step.Units, Stage: step.Stage, Depth: step.Depth, Source: int64(step.Source),
		Prefix: step.Prefix, Unit: step.Unit, Phase: step.Phase,
	}
}
