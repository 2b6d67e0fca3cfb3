package mapreduce

import (
	"math"
	"time"
)

// PlanVersion is the version of the JSON document of a plan.
const PlanVersion = "1.1"

// A PlanQuery asks for the plan of a job.
type PlanQuery struct {
	Spec JobSpec
	// Exact refuses a plan that is an estimate, with errs.Precondition.
	Exact bool
}

// A Plan is what a job would do, and cost, before anything is spent.
type Plan struct {
	Strategy Strategy   // that decides the tree; the default is ADR-028's
	Exact    bool       // every task is as it will run
	Tasks    []PlanTask // level by level; what a task depends on comes before it
	Levels   []PlanLevel
	Estimate PlanEstimate
	Warnings []PlanWarning

	// Deadline is by when the job would have to end; zero if nobody said.
	Deadline time.Time
	// Turnarounds are how long the batches of the job's first model took that ended of late, of a job with a deadline, as
	// far as whoever made the plan knows.
	Turnarounds []time.Duration
}

// A PlanTask is a unit of a plan.
type PlanTask struct {
	Unit      UnitID
	Kind      UnitKind
	Stage     string // of the pipeline; empty for parse units
	Level     int    // 0 takes documents, -1 are parse units
	DependsOn []UnitID
	Items     int   // of the job's inputs that it takes by itself: 1 for a map, all for direct
	Read      int64 // tokens of its inputs
	Written   int64 // tokens of its output
	Calls     int64 // of a model
	Tokens    Tokens
}

// A PlanLevel is a level of a plan.
type PlanLevel struct {
	Level    int
	Tasks    int
	Expected bool // they depend on sizes that are not known yet
}

// A PlanEstimate is the size of a plan, and its cost and time without retries.
type PlanEstimate struct {
	Parses, Maps, Reduces int // tasks; the direct one counts as a map
	Levels                int // of reduction
	// Low assumes that rules reduce wherever they may; High assumes that every call
	// writes as much as it may.
	Low, Expected, High PlanSpend
	Parallelism         int           // tasks at a time
	Makespan            time.Duration // time of the job at that parallelism; 0 if unknown
}

// A PlanSpend is what calls of models take.
type PlanSpend struct {
	Calls      int64
	Tokens     Tokens
	CostMicros int64 // millionths of a US dollar
}

// A JobPlan is what a job was expected to take when it was submitted, without retries.
type JobPlan struct {
	Units  int64 // at all levels
	Asking int64 // of these, those that ask models; 0 if that is not known
	PlanSpend
}

// Deviation returns by how many percent something differs from what was planned, to a tenth;
// false if none of it was planned.
func Deviation(planned, actual int64) (percent float64, ok bool) {
	if planned <= 0 {
		return 0, false
	}
	return math.Round((float64(actual)/float64(planned)-1)*1000) / 10, true
}

// A PlanWarning is a problem that does not stop a job, but that its owner should know.
type PlanWarning struct {
	Kind    string
	Message string // for people
}
