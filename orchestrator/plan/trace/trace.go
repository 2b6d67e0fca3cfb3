// Package trace says what ran when, and what it took: a job's trace as the
// document trace.json, and the sums of its levels. A Tally adds units up one by
// one, so that a job of any size can be traced as its units are read.
//
// It is pure and imports the vocabulary and orchestrator/plan.
package trace

import (
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// levelWorkflow is how the units of each level run: side by side.
const levelWorkflow = "PARALLEL"

// A Trace is trace.json.
type Trace struct {
	ID       mapreduce.JobID `json:"id"`
	Workflow *string         `json:"workflow"` // null without a strategy of reduction
	Pipeline string          `json:"pipeline"`
	Started  *Instant        `json:"started"` // of the first map, or whatever came first
	Ended    *Instant        `json:"ended"`   // of the last unit
	Tasks    []Task          `json:"tasks"`
	Levels   []Level         `json:"mapReduceLevels"`
	// Superseded is what units had spent that a resume dropped: no task is theirs.
	Superseded []Superseded `json:"superseded"`
	Metrics    Metrics      `json:"metrics"`
}

// Superseded sums up the units of a level that were dropped, and planned anew.
type Superseded struct {
	Level   int     `json:"level"`
	Tasks   int64   `json:"taskCount"` // that had spent something
	Metrics Metrics `json:"metrics"`
}

// An Instant is a time as a trace shows it: in UTC, to the microsecond.
type Instant time.Time

// String returns the time as it is shown.
func (i Instant) String() string { return time.Time(i).UTC().Format("2006-01-02T15:04:05.000000Z") }

// MarshalText implements encoding.TextMarshaler.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// A Task is a unit of a trace.
type Task struct {
	ID       mapreduce.UnitID `json:"id"`
	NodeType *string          `json:"nodeType"`
	Stage    string           `json:"stage,omitempty"`
	Level    *int             `json:"mapReduceLevel"`
	State    string           `json:"state"`
	Attempts int              `json:"attempts"`
	Started  *Instant         `json:"started"`
	Ended    *Instant         `json:"ended"`
	Duration float64          `json:"duration_ms"`
	In       int64            `json:"tokens_in"`
	Out      int64            `json:"tokens_out"`
	Cost     float64          `json:"cost"` // US dollars
	LLMCalls int64            `json:"llmCallCount"`
	Latency  float64          `json:"llmLatency_ms"`
	Tools    int64            `json:"toolCallCount"`
	ToolTime float64          `json:"toolExecutionTime_ms"`
	Calls    []Call           `json:"calls,omitempty"`
}

// A Call is a captured call of a model.
type Call struct {
	Name    string  `json:"model"`
	At      float64 `json:"at_ms"` // since the attempt began
	Latency float64 `json:"latency_ms"`
	In      int64   `json:"tokens_in"`
	Out     int64   `json:"tokens_out"`
	Cost    float64 `json:"cost"` // US dollars
	Error   string  `json:"error,omitempty"`
	Prompt  string  `json:"prompt,omitempty"`
	Answer  string  `json:"answer,omitempty"`
	Cut     bool    `json:"cut,omitempty"` // the prompt or the answer is not whole
}

// A Level sums up the units of a level.
type Level struct {
	Level    int     `json:"level"`
	Workflow *string `json:"workflow"` // how its units run
	Tasks    int     `json:"taskCount"`
	Duration float64 `json:"duration_ms"` // from the first start to the last end
	Metrics  Metrics `json:"metrics"`
}

// Metrics are sums over units, as the journal of calls has them.
type Metrics struct {
	Total    int64   `json:"totalTokens"`
	In       int64   `json:"totalInputTokens"`
	Out      int64   `json:"totalOutputTokens"`
	Calls    int64   `json:"llmCallCount"`
	Latency  float64 `json:"totalLlmLatency_ms"`
	Tools    int64   `json:"toolCallCount"`
	ToolTime float64 `json:"totalToolExecutionTime_ms"`
	Cost     float64 `json:"totalCostEstimate"` // US dollars
}

// A Ran is what is known of a unit that ran.
type Ran struct {
	*mapreduce.Unit
	Ended time.Time        // zero if it has not
	Calls []mapreduce.Call // of the attempt that ended it, if they are captured
}

// Of returns the unit's part in the trace. Units that come before the map have
// no type and no level.
func Of(r Ran) Task {
	t := Task{
		ID: r.ID, Stage: r.Stage, State: r.State.String(), Attempts: r.Attempts, Duration: milliseconds(r.Elapsed),
		In: r.Tokens.In, Out: r.Tokens.Out, Cost: dollars(r.CostMicros),
		LLMCalls: r.Journal.Calls, Latency: milliseconds(r.Journal.Latency),
		Tools: r.Journal.Tools, ToolTime: milliseconds(r.Journal.ToolTime),
	}
	for _, c := range r.Calls {
		t.Calls = append(t.Calls, Call{
			Name: c.Name, At: milliseconds(c.At), Latency: milliseconds(c.Latency), In: c.Tokens.In, Out: c.Tokens.Out,
			Cost: dollars(c.CostMicros), Error: c.Error, Prompt: c.Prompt, Answer: c.Answer, Cut: c.Cut,
		})
	}
	if r.Kind != mapreduce.KindParse && r.Kind != mapreduce.KindUnknown {
		t.NodeType, t.Level = new(r.Kind.String()), new(r.Level)
	}
	if !r.Ended.IsZero() {
		t.Started, t.Ended = new(Instant(r.Ended.Add(-r.Elapsed))), new(Instant(r.Ended))
	}
	return t
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

func dollars(micros int64) float64 { return float64(micros) / 1e6 }

// A Tally sums units up by level. Its zero value is ready.
type Tally struct {
	levels     map[int]*sums
	superseded []mapreduce.Spent
}

// Supersede adds what units had spent that were dropped.
func (t *Tally) Supersede(all []mapreduce.Spent) { t.superseded = append(t.superseded, all...) }

func sumsOf(s mapreduce.Spent) *sums {
	return &sums{tokens: s.Tokens, cost: s.CostMicros, journal: s.Journal}
}

// Superseded returns the sums of units that were dropped.
func (t *Tally) Superseded() []Superseded {
	out := []Superseded{}
	for _, s := range t.superseded {
		out = append(out, Superseded{Level: s.Level, Tasks: s.Units, Metrics: sumsOf(s).metrics()})
	}
	return out
}

// sums are those of a level, exact until they are shown.
type sums struct {
	tasks       int
	first, last time.Time
	tokens      mapreduce.Tokens
	cost        int64
	journal     mapreduce.Journal
}

// Add adds a unit.
func (t *Tally) Add(r Ran) {
	if t.levels == nil {
		t.levels = make(map[int]*sums)
	}
	s := t.levels[r.Level]
	if s == nil {
		s = new(sums)
		t.levels[r.Level] = s
	}
	one := sums{tasks: 1, tokens: r.Tokens, cost: r.CostMicros, journal: r.Journal}
	if !r.Ended.IsZero() {
		one.first, one.last = r.Ended.Add(-r.Elapsed), r.Ended
	}
	s.add(&one)
}

func (s *sums) add(o *sums) {
	s.tasks += o.tasks
	s.tokens = s.tokens.Add(o.tokens)
	s.cost += o.cost
	s.journal = s.journal.Add(o.journal)
	if o.last.IsZero() {
		return
	}
	if s.last.IsZero() || o.first.Before(s.first) {
		s.first = o.first
	}
	if o.last.After(s.last) {
		s.last = o.last
	}
}

func (s *sums) metrics() Metrics {
	return Metrics{
		Total: s.tokens.Total(), In: s.tokens.In, Out: s.tokens.Out, Cost: dollars(s.cost),
		Calls: s.journal.Calls, Latency: milliseconds(s.journal.Latency),
		Tools: s.journal.Tools, ToolTime: milliseconds(s.journal.ToolTime),
	}
}

// Levels returns the sums of the map and the levels of reduction.
func (t *Tally) Levels() []Level {
	out := []Level{}
	for _, n := range slices.Sorted(maps.Keys(t.levels)) {
		if s := t.levels[n]; n >= 0 {
			out = append(out, Level{
				Level: n, Workflow: new(levelWorkflow), Tasks: s.tasks, Duration: milliseconds(s.last.Sub(s.first)), Metrics: s.metrics(),
			})
		}
	}
	return out
}

// all returns the sums of all levels, parse units and those that were dropped
// included.
func (t *Tally) all() *sums {
	total := new(sums)
	for _, s := range t.levels {
		total.add(s)
	}
	for _, s := range t.superseded {
		total.add(sumsOf(s))
	}
	return total
}

// Metrics returns the sums of all units, those that come before the map and those
// that were dropped too: what the job has spent.
func (t *Tally) Metrics() Metrics { return t.all().metrics() }

// Span returns when the first unit began and the last ended; zero times if none
// has ended.
func (t *Tally) Span() (first, last time.Time) {
	s := t.all()
	return s.first, s.last
}

// Head returns the trace of a job in mode m but for its tasks.
func (t *Tally) Head(id mapreduce.JobID, m plan.Mode, pipeline string) *Trace {
	out := &Trace{ID: id, Pipeline: pipeline, Levels: t.Levels(), Superseded: t.Superseded(), Metrics: t.Metrics()}
	if w := m.Workflow(); w != "" {
		out.Workflow = &w
	}
	if first, last := t.Span(); !last.IsZero() {
		out.Started, out.Ended = new(Instant(first)), new(Instant(last))
	}
	return out
}

// New returns the trace of a job in mode m from its units.
func New(id mapreduce.JobID, m plan.Mode, pipeline string, units []Ran) *Trace {
	var tally Tally
	tasks := make([]Task, len(units))
	for i, r := range units {
		tally.Add(r)
		tasks[i] = Of(r)
	}
	t := tally.Head(id, m, pipeline)
	t.Tasks = tasks
	return t
}
