package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
)

// document is a DAG in JSON: what plan prints, and dag.json.
type document struct {
	SchemaVersion string    `json:"schemaVersion"`
	Mode          *string   `json:"mapReduceMode"`
	Exact         bool      `json:"exact"`
	Tasks         []Task    `json:"tasks"`
	Estimate      Estimate  `json:"estimate"`
	Levels        []level   `json:"mapReduceLevels,omitempty"`
	Warnings      []warning `json:"warnings,omitempty"`
}

// A Task is an entry of the tasks of a DAG in JSON.
type Task struct {
	ID        mapreduce.UnitID   `json:"id"`
	NodeType  *string            `json:"nodeType"`
	Stage     string             `json:"stage,omitempty"` // of the pipeline; none for parse units
	Level     *int               `json:"mapReduceLevel"`
	DependsOn []mapreduce.UnitID `json:"dependsOn"`

	// Before the run: what it would read and write, and calls of a model.
	Read  int64 `json:"inputTokens,omitempty"`
	Size  int64 `json:"outputTokens,omitempty"`
	Calls int64 `json:"calls,omitempty"`

	// After it: what became of it. Cost, in US dollars, depends on how often it
	// was interrupted; it is left out if it is not known.
	State string   `json:"state,omitempty"`
	Cost  *float64 `json:"cost,omitempty"`
}

// An Estimate is how large a DAG is, and before the run what it is expected to
// take.
type Estimate struct {
	Parse  int `json:"parseUnits"`
	Map    int `json:"mapUnits"`
	Reduce int `json:"reduceUnits"`
	Levels int `json:"levels"` // of reduction
	Tasks  int `json:"tasks"`
	*outlook
}

// An outlook is what a plan knows besides sizes, and a DAG that ran does not
// repeat.
type outlook struct {
	spend
	Low         spend   `json:"low"`
	High        spend   `json:"high"`
	Parallelism int     `json:"parallelism"`
	Makespan    float64 `json:"makespanMs"`
}

type spend struct {
	Calls  int64   `json:"calls"`
	Input  int64   `json:"inputTokens"`
	Output int64   `json:"outputTokens"`
	Cost   float64 `json:"cost"` // US dollars
}

type level struct {
	Level    int  `json:"level"`
	Tasks    int  `json:"taskCount"`
	Expected bool `json:"expected"`
}

type warning struct {
	Kind    plan.WarningKind `json:"kind"`
	Message string           `json:"message"`
}

// JSON returns d as the document of dag.json. The tasks of a DAG that is not
// exact are those of its map level, and what comes before it; of the rest there
// are counts alone.
func JSON(d *plan.DAG) (string, error) {
	doc := document{SchemaVersion: plan.SchemaVersion, Mode: ModeOf(d.Mode), Exact: d.Exact, Tasks: []Task{}, Estimate: EstimateOf(d.Estimate)}
	for _, l := range d.Levels {
		if doc.Estimate.outlook != nil {
			doc.Levels = append(doc.Levels, level{Level: l.Level, Tasks: l.Count(), Expected: l.Expected})
		}
		if l.Level > 0 && !d.Exact {
			continue
		}
		for i := l.First; i < l.End; i++ {
			doc.Tasks = append(doc.Tasks, taskOf(d, i))
		}
	}

	for _, w := range d.Warnings {
		doc.Warnings = append(doc.Warnings, warning{w.Kind, w.String()})
	}

	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	return out.String(), nil
}

// ModeOf returns a mode as JSON shows it: null if it is none.
func ModeOf(m plan.Mode) *string {
	if m == "" {
		return nil
	}
	return new(string(m))
}

// NewTask returns the task of a unit. Units that come before the map have no
// type and no level.
func NewTask(id mapreduce.UnitID, kind mapreduce.UnitKind, level int, dependsOn []mapreduce.UnitID) Task {
	t := Task{ID: id, DependsOn: dependsOn}
	if t.DependsOn == nil {
		t.DependsOn = []mapreduce.UnitID{}
	}
	if kind != mapreduce.KindParse && kind != mapreduce.KindUnknown {
		t.NodeType, t.Level = new(kind.String()), new(level)
	}
	return t
}

func taskOf(d *plan.DAG, i int) Task {
	n := &d.Nodes[i]
	inputs := make([]mapreduce.UnitID, len(n.Inputs))
	for j, in := range n.Inputs {
		inputs[j] = d.Nodes[in].ID
	}

	t := NewTask(n.ID, n.Kind, n.Level, inputs)
	t.Stage = n.Stage
	t.Read, t.Size, t.Calls = n.Load.Read, n.Load.Size, n.Load.Calls
	if o := n.Outcome; o != nil {
		t.State = o.State.String()
		if !o.Unpriced {
			t.Cost = new(float64(o.CostMicros) / 1e6)
		}
	}
	return t
}

// EstimateOf returns an estimate as JSON shows it.
func EstimateOf(e plan.Estimate) Estimate {
	out := Estimate{Parse: e.Parses, Map: e.Maps, Reduce: e.Reduces, Levels: e.Levels, Tasks: e.Tasks}
	if e.Parallelism > 0 {
		out.outlook = &outlook{
			spend: spendOf(e.Expected), Low: spendOf(e.Low), High: spendOf(e.High),
			Parallelism: e.Parallelism, Makespan: float64(e.Makespan.Microseconds()) / 1e3,
		}
	}
	return out
}

func spendOf(s plan.Spend) spend {
	return spend{Calls: s.Calls, Input: s.In, Output: s.Out, Cost: float64(s.CostMicros) / 1e6}
}
