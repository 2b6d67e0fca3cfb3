package records

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/keys"
)

// A Control is the control record of a job at an epoch: its state and its progress.
type Control struct {
	State   mapreduce.JobState
	Phase   mapreduce.JobState // the last state in which it ran
	Epoch   int64              // grows with each change
	Level   int64              // that runs; -1 while documents are parsed
	Levels  []Level            // that are planned, from level 0 on
	TreeTop int64              // the last of the levels that were planned at once with their tree; 0 if there is no such tree
	Error   string

	Tenant   mapreduce.TenantID
	Priority int
	Budget   int64 // in BudgetIn; 0 if none is set
	BudgetIn mapreduce.Currency
	Shards   int64 // of its queue

	ParseUnits, StagedUnits int64 // units that parse documents, and those of level 0 that were submitted
	MapEarly                bool  // units of documents that are text may run while others are parsed
	Resuming                bool  // a resume began and has not ended
	Sweeping                bool  // a cancel has units left to end
}

// ControlOf returns the domain's form of a stored control record.
func ControlOf(c *storagev1.Ctl) *Control {
	out := &Control{
		State: mapreduce.JobState(c.State), Phase: mapreduce.JobState(c.Phase), Epoch: c.Epoch, Level: c.Level,
		Levels: make([]Level, len(c.Levels)), TreeTop: c.TreeTop, Error: c.Error,
		Tenant: mapreduce.TenantID(c.Tenant), Priority: int(c.Priority), Budget: c.Budget, BudgetIn: CurrencyOf(c), Shards: c.Shards,
		ParseUnits: c.ParseUnits, StagedUnits: c.StagedUnits, MapEarly: c.MapEarly, Resuming: c.Resuming, Sweeping: c.Sweeping,
	}
	for i, l := range c.Levels {
		out.Levels[i] = LevelFrom(l)
	}
	return out
}

// CurrencyOf returns what a job's budget, grants and reservations are in.
func CurrencyOf(c *storagev1.Ctl) mapreduce.Currency { return mapreduce.Currency(c.GetBudgetIn()) }

// spentCounters are the counters of what was spent of a budget.
func spentCounters(in mapreduce.Currency) []keys.Counter {
	if in == mapreduce.InDollars {
		return []keys.Counter{keys.Cost}
	}
	return []keys.Counter{keys.TokensIn, keys.TokensOut}
}

// BudgetCounters are the counters whose sum is what of a budget is gone, or may be.
func BudgetCounters(in mapreduce.Currency) []keys.Counter {
	return append(spentCounters(in), keys.Charged, keys.Reserved)
}

// OpenLevel returns the highest level whose units may be claimed: of a tree that was
// planned at once any that is not blocked, once its level 0 may be claimed; and level 0
// while documents are parsed, if the others need not wait for these.
func (c *Control) OpenLevel() int64 { return openLevel(c.Level, c.TreeTop, c.MapEarly) }

// StageLevel returns the level by whose stage the units of a job run that may be claimed
// now: -1 while documents are parsed and nothing else runs.
func (c *Control) StageLevel() int64 {
	if c.Level < 0 && c.MapEarly {
		return 0
	}
	return c.Level
}

// StageLevels returns the levels of the pipeline's stages: all but the one that
// assembles the result.
func (c *Control) StageLevels() []Level {
	if n := len(c.Levels) - 1; n >= 0 && c.Levels[n].Result {
		return c.Levels[:n]
	}
	return c.Levels
}

// AtResult reports whether a job has come to the level that assembles its result.
func (c *Control) AtResult() bool { return c.LevelAt(c.Level).Result }

// LevelAt returns a level that is planned; the zero Level if it is not, and for the
// parse units, which are level -1.
func (c *Control) LevelAt(level int64) Level {
	if level < 0 || level >= int64(len(c.Levels)) {
		return Level{}
	}
	return c.Levels[level]
}

// A Job is what was submitted as a job.
type Job struct {
	Spec      mapreduce.JobSpec
	Documents int64 // processed and skipped
	Skipped   int64 // of them
}

// JobOf returns the domain's form of a stored record of a job.
func JobOf(j *storagev1.Job) *Job {
	return &Job{Spec: SpecOf(j.Config), Documents: j.Documents, Skipped: j.SkippedDocuments}
}

// A Standing holds what an orchestrator needs to run a job, read in one version.
type Standing struct {
	Control  *Control
	Job      *Job
	Sleepers []SleeperRef // as Sleepers returns them
	// NextParked is where Sleepers should go on.
	NextParked mapreduce.UnitID
}
