package render

import (
	"encoding/json"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// document is a DAG in JSON: what plan prints, and dag.json.
type document struct {
	SchemaVersion string    `json:"schemaVersion"`
	Mode          *string   `json:"mapReduceMode"`
	Exact         bool      `json:"exact"`
	Tasks         []task    `json:"tasks"`
	Estimate      estimate  `json:"estimate"`
	Levels        []level   `json:"mapReduceLevels,omitempty"`
	Warnings      []warning `json:"warnings,omitempty"`
}

type task struct {
	ID          mapreduce.UnitID   `json:"id"`
	NodeType    *string            `json:"nodeType"`
	Level       *int               `json:"mapReduceLevel"`
	DependsOn   []mapreduce.UnitID `json:"dependsOn"`
	InputTokens int64              `json:"inputTokens,omitempty"`
}

type estimate struct {
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
// exact are those of its map level; of the rest there are counts alone.
func JSON(d *plan.DAG) (string, error) {
	doc := document{SchemaVersion: plan.SchemaVersion, Exact: d.Exact, Tasks: []task{}, Estimate: estimateOf(d)}
	if d.Mode != "" {
		doc.Mode = new(string(d.Mode))
	}
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
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "", fmt.Errorf("render: %w", err)
	}
	return string(out) + "\n", nil
}

func taskOf(d *plan.DAG, i int) task {
	n := &d.Nodes[i]
	t := task{ID: n.ID, DependsOn: make([]mapreduce.UnitID, len(n.Inputs)), InputTokens: n.Load.In}
	if n.Kind != mapreduce.KindParse && n.Kind != mapreduce.KindUnknown {
		t.NodeType, t.Level = new(n.Kind.String()), &n.Level
	}
	for j, in := range n.Inputs {
		t.DependsOn[j] = d.Nodes[in].ID
	}
	return t
}

func estimateOf(d *plan.DAG) estimate {
	e := d.Estimate
	out := estimate{Parse: e.Parses, Map: e.Maps, Reduce: e.Reduces, Levels: e.Levels, Tasks: e.Tasks}
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
