package render

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
)

// levelWorkflow tells that the units of each level run in parallel.
const levelWorkflow = "PARALLEL"

// A Trace is trace.json.
type Trace struct {
	ID       mapreduce.JobID `json:"id"`
	Workflow *string         `json:"workflow"` // null without a strategy of reduction
	Pipeline string          `json:"pipeline"`
	Started  *Instant        `json:"started"` // of the first unit
	Ended    *Instant        `json:"ended"`   // of the last unit
	Tasks    []RanTask       `json:"tasks"`
	Levels   []Level         `json:"mapReduceLevels"`
	// Superseded is the expense of units that a resume dropped. They have no task.
	Superseded []Superseded `json:"superseded"`
	Metrics    Metrics      `json:"metrics"`
}

// Superseded sums up the units of a level that were dropped and planned again.
type Superseded struct {
	Level   int     `json:"level"`
	Tasks   int64   `json:"taskCount"` // that had spent something
	Metrics Metrics `json:"metrics"`
}

// An Instant is a time in the form of a trace: in UTC, to the microsecond.
type Instant time.Time

// String returns the time as it is shown.
func (i Instant) String() string { return time.Time(i).UTC().Format("2006-01-02T15:04:05.000000Z") }

// MarshalText implements encoding.TextMarshaler.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// A RanTask is a unit of a trace. Tokens, cost, and sums of calls are left out if they are 0:
// a large job without a model would have more of them than of anything else.
type RanTask struct {
	ID       mapreduce.UnitID `json:"id"`
	NodeType *string          `json:"nodeType"`
	Stage    string           `json:"stage,omitempty"`
	Level    *int             `json:"mapReduceLevel"`
	State    string           `json:"state"`
	Attempts int              `json:"attempts"`
	Started  *Instant         `json:"started"`
	Ended    *Instant         `json:"ended"`
	Duration float64          `json:"duration_ms"`
	In       int64            `json:"tokens_in,omitempty"`
	Out      int64            `json:"tokens_out,omitempty"`
	Cost     Cost             `json:"cost,omitzero"`
	LLMCalls int64            `json:"llmCallCount,omitempty"`
	Models   []string         `json:"models,omitempty"` // that answered it
	Latency  float64          `json:"llmLatency_ms,omitempty"`
	Tools    int64            `json:"toolCallCount,omitempty"`
	ToolTime float64          `json:"toolExecutionTime_ms,omitempty"`
	Prompt   int64            `json:"largestPrompt_bytes,omitempty"` // that a model was given in one call
	Mended   []string         `json:"mended,omitempty"`              // the kinds of what was mended in answers of models
	Calls    []Call           `json:"calls,omitempty"`
}

// A Call is a captured call of a model, or of a tool.
type Call struct {
	Model   string  `json:"model,omitempty"`
	Tool    string  `json:"tool,omitempty"`
	Turn    int     `json:"turn,omitempty"` // of an agent with tools, from 1
	At      float64 `json:"at_ms"`          // since the attempt began
	Latency float64 `json:"latency_ms"`
	In      int64   `json:"tokens_in"`
	Out     int64   `json:"tokens_out"`
	Cost    Cost    `json:"cost"`
	Error   string  `json:"error,omitempty"`
	Prompt  string  `json:"prompt,omitempty"`
	Answer  string  `json:"answer,omitempty"`
	Cut     bool    `json:"cut,omitempty"` // the prompt or the answer is not whole
}

// A Cost is what calls cost. In JSON it is in US dollars, and null if it is not known, as the price
// of a model is not.
type Cost struct {
	Micros  int64 // millionths of a US dollar
	Unknown bool
}

// MarshalJSON implements json.Marshaler.
func (c Cost) MarshalJSON() ([]byte, error) {
	if c.Unknown {
		return []byte("null"), nil
	}
	return json.Marshal(float64(c.Micros) / 1e6)
}

// A Level sums up the units of a level.
type Level struct {
	Level    int     `json:"level"`
	Workflow *string `json:"workflow"` // how its units run
	Tasks    int     `json:"taskCount"`
	Duration float64 `json:"duration_ms"` // from the first start to the last end
	Metrics  Metrics `json:"metrics"`
}

// Metrics are sums over units, from what units called.
type Metrics struct {
	Total    int64   `json:"totalTokens"`
	In       int64   `json:"totalInputTokens"`
	Out      int64   `json:"totalOutputTokens"`
	Calls    int64   `json:"llmCallCount"`
	Latency  float64 `json:"totalLlmLatency_ms"`
	Tools    int64   `json:"toolCallCount"`
	ToolTime float64 `json:"totalToolExecutionTime_ms"`
	Prompt   int64   `json:"largestPrompt_bytes,omitempty"` // that a model was given in one call
	Cost     Cost    `json:"totalCostEstimate"`
}

// A Ran is a unit that ran, with its end and calls.
type Ran struct {
	*mapreduce.Unit
	Ended time.Time        // zero if it has not
	Calls []mapreduce.Call // of the attempt that ended it, if they are captured

	// Unpriced says that the cost is not known, as a model that may have answered has no price.
	Unpriced bool
}

// RanTaskOf returns the task of a unit. Units before the map have no type and no level.
func RanTaskOf(r Ran) RanTask {
	t := RanTask{
		ID: r.ID, Stage: r.Stage, State: r.State.String(), Attempts: r.Attempts, Duration: toMilliseconds(r.Elapsed),
		In: r.Tokens.In, Out: r.Tokens.Out, Cost: Cost{r.CostMicros, r.Unpriced},
		LLMCalls: r.CallSums.Calls, Latency: toMilliseconds(r.CallSums.Latency), Models: r.Models,
		Tools: r.CallSums.Tools, ToolTime: toMilliseconds(r.CallSums.ToolTime), Prompt: r.CallSums.Prompt,
		Mended: mapreduce.MendedKinds(r.Errors),
	}

	for _, c := range r.Calls {
		call := Call{
			Model: c.Name, Turn: c.Turn, At: toMilliseconds(c.At), Latency: toMilliseconds(c.Latency), In: c.Tokens.In, Out: c.Tokens.Out,
			Cost: Cost{c.CostMicros, r.Unpriced && c.CostMicros == 0 && c.Tokens.Total() > 0}, Error: c.Error, Prompt: c.Prompt, Answer: c.Answer, Cut: c.Cut,
		}
		if c.Kind == mapreduce.CallTool {
			call.Model, call.Tool = "", c.Name
		}
		t.Calls = append(t.Calls, call)
	}

	if r.Kind != mapreduce.KindParse && r.Kind != mapreduce.KindUnknown {
		t.NodeType, t.Level = new(r.Kind.String()), new(r.Level)
	}
	if !r.Ended.IsZero() {
		t.Started, t.Ended = new(Instant(r.Ended.Add(-r.Elapsed))), new(Instant(r.Ended))
	}
	return t
}

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// A Tally sums units up by level. Its zero value is ready.
type Tally struct {
	levels     map[int]*levelSums
	superseded []superseded
}

// superseded is the expense of dropped units of a level.
type superseded struct {
	mapreduce.Spent
	unpriced bool
}

// Supersede adds the expense of dropped units of a level; unpriced says that its cost is not known.
func (t *Tally) Supersede(s mapreduce.Spent, unpriced bool) {
	t.superseded = append(t.superseded, superseded{s, unpriced})
}

func (s superseded) sums() *levelSums {
	return &levelSums{tokens: s.Tokens, cost: Cost{s.CostMicros, s.unpriced}, calls: s.CallSums}
}

// Superseded returns the sums of units that were dropped.
func (t *Tally) Superseded() []Superseded {
	out := []Superseded{}
	for _, s := range t.superseded {
		out = append(out, Superseded{Level: s.Level, Tasks: s.Units, Metrics: s.sums().toMetrics()})
	}
	return out
}

// levelSums are the exact sums of a level.
type levelSums struct {
	tasks       int
	first, last time.Time
	tokens      mapreduce.Tokens
	cost        Cost
	calls       mapreduce.CallSums
}

// Add adds a unit.
func (t *Tally) Add(r Ran) {
	if t.levels == nil {
		t.levels = make(map[int]*levelSums)
	}
	s := t.levels[r.Level]
	if s == nil {
		s = new(levelSums)
		t.levels[r.Level] = s
	}

	one := levelSums{tasks: 1, tokens: r.Tokens, cost: Cost{r.CostMicros, r.Unpriced}, calls: r.CallSums}
	if !r.Ended.IsZero() {
		one.first, one.last = r.Ended.Add(-r.Elapsed), r.Ended
	}
	s.addSums(&one)
}

func (s *levelSums) addSums(o *levelSums) {
	s.tasks += o.tasks
	s.tokens = s.tokens.Add(o.tokens)
	s.cost = Cost{s.cost.Micros + o.cost.Micros, s.cost.Unknown || o.cost.Unknown}
	s.calls = s.calls.Add(o.calls)

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

func (s *levelSums) toMetrics() Metrics {
	return Metrics{
		Total: s.tokens.Total(), In: s.tokens.In, Out: s.tokens.Out, Cost: s.cost,
		Calls: s.calls.Calls, Latency: toMilliseconds(s.calls.Latency),
		Tools: s.calls.Tools, ToolTime: toMilliseconds(s.calls.ToolTime), Prompt: s.calls.Prompt,
	}
}

// Levels returns the sums of the map and the levels of reduction.
func (t *Tally) Levels() []Level {
	out := []Level{}
	for _, n := range slices.Sorted(maps.Keys(t.levels)) {
		if s := t.levels[n]; n >= 0 {
			out = append(out, Level{
				Level: n, Workflow: new(levelWorkflow), Tasks: s.tasks, Duration: toMilliseconds(s.last.Sub(s.first)), Metrics: s.toMetrics(),
			})
		}
	}
	return out
}

// totalSums returns the sums of all levels, including parse units and dropped units.
func (t *Tally) totalSums() *levelSums {
	total := new(levelSums)
	for _, s := range t.levels {
		total.addSums(s)
	}
	for _, s := range t.superseded {
		total.addSums(s.sums())
	}
	return total
}

// Metrics returns the sums of all units, including those before the map and dropped
// ones: the expense of the job.
func (t *Tally) Metrics() Metrics { return t.totalSums().toMetrics() }

// Span returns when the first unit began and the last ended; zero times if none
// has ended.
func (t *Tally) Span() (first, last time.Time) {
	s := t.totalSums()
	return s.first, s.last
}

// LevelSpan returns when the first unit of a level began and its last ended; zero times if
// none has ended.
func (t *Tally) LevelSpan(level int) (first, last time.Time) {
	s := t.levels[level]
	if s == nil {
		return time.Time{}, time.Time{}
	}
	return s.first, s.last
}

// Head returns the trace of a job in mode m without its tasks.
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

// NewTrace returns the trace of a job in mode m from its units.
func NewTrace(id mapreduce.JobID, m plan.Mode, pipeline string, units []Ran) *Trace {
	var tally Tally
	tasks := make([]RanTask, len(units))
	for i, r := range units {
		tally.Add(r)
		tasks[i] = RanTaskOf(r)
	}
	t := tally.Head(id, m, pipeline)
	t.Tasks = tasks
	return t
}
