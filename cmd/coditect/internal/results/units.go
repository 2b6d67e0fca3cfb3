package results

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A UnitLine is a line of units.jsonl.
type UnitLine struct {
	Unit       mapreduce.UnitID     `json:"unit_id"`
	Document   mapreduce.DocumentID `json:"document_id,omitempty"`
	Kind       string               `json:"kind"`
	Level      int                  `json:"level"`
	State      string               `json:"state"`
	Attempts   int                  `json:"attempts"`
	Tokens     int64                `json:"tokens_used"`
	ElapsedMS  float64              `json:"elapsed_ms"`
	ChunkIndex int                  `json:"chunk_index"`
	Chunks     int                  `json:"total_chunks"`
	Confidence float64              `json:"confidence_score"`
	Citations  json.RawMessage      `json:"citations"`
	Errors     []string             `json:"errors"`
	Data       json.RawMessage      `json:"extracted_data"`
}

// UnitLineOf returns a unit as JSON shows it.
func UnitLineOf(u *mapreduce.Unit, e Extract) UnitLine {
	l := UnitLine{
		Unit: u.ID, Document: u.Document, Kind: u.Kind.String(), Level: u.Level, State: u.State.String(),
		Attempts: u.Attempts, Tokens: u.Tokens.Total(), ElapsedMS: milliseconds(u.Elapsed),
		ChunkIndex: u.ChunkIndex, Chunks: u.Chunks, Confidence: u.Confidence,
		Citations: orEmpty(e.Citations, "[]"), Errors: u.Errors, Data: orEmpty(e.Data, "{}"),
	}
	if l.Errors == nil {
		l.Errors = []string{}
	}
	return l
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// units writes units.jsonl, dag.json, trace.json and the part of metrics.json
// that is about units, in one pass over them.
func (w *writer) units(ctx context.Context) error {
	w.tally.levels = make(map[int]*levelTally)
	calls, err := w.dir.scratch(".calls")
	if err != nil {
		return err
	}
	w.tally.calls = list{out: calls, prefix: "    "}
	return w.dir.fill("units.jsonl", func(lines *file) error {
		return w.dir.fill("dag.json", func(dag *file) error {
			return w.dir.fill("trace.json", func(trace *file) error {
				p, err := newPass(w, lines, dag, trace)
				if err != nil {
					return err
				}
				return p.run(ctx)
			})
		})
	})
}

// A pass is one reading of all units.
type pass struct {
	w      *writer
	unpack *Unpacker
	lines  *file
	dag    list
	trace  list
	parsed map[mapreduce.DocumentID]bool // documents that have a parse unit
	begun  *mapreduce.Unit               // on the page before; nil for none
}

func newPass(w *writer, lines, dag, trace *file) (*pass, error) {
	unpack, err := NewUnpacker(w.job)
	return &pass{
		w: w, unpack: unpack, lines: lines, dag: list{out: dag, prefix: "    "}, trace: list{out: trace, prefix: "    "},
		parsed: make(map[mapreduce.DocumentID]bool),
	}, err
}

func (p *pass) run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	q := mapreduce.ListUnitsQuery{Job: p.w.config.Job, Outputs: true, Inputs: true, PageSize: 1000}
	for {
		page, err := p.w.service.ListUnits(ctx, q)
		if err != nil {
			return err
		}
		for _, u := range page.Units {
			u, err := p.whole(u)
			if err != nil {
				return err
			}
			if u == nil {
				continue
			}
			if err := p.unit(u); err != nil {
				return fmt.Errorf("unit %s: %w", u.ID, err)
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return p.end()
		}
	}
}

// whole returns a unit with all that it depends on, or nil if more of that
// comes with the next page.
func (p *pass) whole(u *mapreduce.Unit) (*mapreduce.Unit, error) {
	if first := p.begun; first != nil {
		if first.ID != u.ID {
			return nil, fmt.Errorf("units changed while they were read: %s was to go on, and %s came", first.ID, u.ID)
		}
		first.DependsOn = append(first.DependsOn, u.DependsOn...)
		first.Continues = u.Continues
		u = first
	}
	p.begun = nil
	if u.Continues {
		p.begun = u
		return nil, nil
	}
	return u, nil
}

func (p *pass) unit(u *mapreduce.Unit) error {
	e, err := p.unpack.Unpack(u)
	if err != nil {
		return err
	}
	if err := line(p.lines, UnitLineOf(u, e)); err != nil {
		return err
	}
	if u.Kind == mapreduce.KindParse {
		p.parsed[u.Document] = true
	}
	task := taskOf(u)
	if task.DependsOn == nil {
		task.DependsOn = []mapreduce.UnitID{}
		if u.Kind == mapreduce.KindMap && p.parsed[u.Document] {
			task.DependsOn = append(task.DependsOn, mapreduce.ParseUnit(u.Document))
		}
	}
	if err := p.dag.addValue("", task); err != nil {
		return err
	}
	if err := p.w.tally.add(u); err != nil {
		return err
	}
	return p.trace.addValue("", p.traced(u))
}

// A Task is a node of the DAG.
type Task struct {
	ID        mapreduce.UnitID   `json:"id"`
	NodeType  *string            `json:"nodeType"`
	Level     *int               `json:"mapReduceLevel"`
	DependsOn []mapreduce.UnitID `json:"dependsOn"`
}

// taskOf returns a unit's node. Units that come before the map have no type.
func taskOf(u *mapreduce.Unit) Task {
	t := Task{ID: u.ID, DependsOn: u.DependsOn}
	if u.Kind != mapreduce.KindParse && u.Kind != mapreduce.KindUnknown {
		kind, level := u.Kind.String(), u.Level
		t.NodeType, t.Level = &kind, &level
	}
	return t
}

// A tracedTask is an entry of trace.json's tasks.
type tracedTask struct {
	ID       mapreduce.UnitID `json:"id"`
	NodeType *string          `json:"nodeType"`
	Level    *int             `json:"mapReduceLevel"`
	State    string           `json:"state"`
	Attempts int              `json:"attempts"`
	Started  *string          `json:"started"`
	Ended    *string          `json:"ended"`
	Duration float64          `json:"duration_ms"`
	In       int64            `json:"tokens_in"`
	Out      int64            `json:"tokens_out"`
	Cost     float64          `json:"cost"`
}

// traced returns a unit's part in the trace. It began the time that it took
// before the commit of its outcome, or a little earlier.
func (p *pass) traced(u *mapreduce.Unit) tracedTask {
	node := taskOf(u)
	t := tracedTask{
		ID: u.ID, NodeType: node.NodeType, Level: node.Level, State: u.State.String(), Attempts: u.Attempts,
		Duration: milliseconds(u.Elapsed), In: u.Tokens.In, Out: u.Tokens.Out, Cost: USD(u.CostMicros),
	}
	ended := p.w.ended.of(u.ID)
	if !ended.IsZero() {
		t.Started, t.Ended = instant(ended.Add(-u.Elapsed)), instant(ended)
		p.w.tally.levels[u.Level].span(ended.Add(-u.Elapsed), ended)
	}
	return t
}

// begin writes what stands before the tasks.
func (p *pass) begin() error {
	if _, err := p.dag.out.WriteString("{\n  \"schemaVersion\": \"1.1\",\n  \"mapReduceMode\": null,\n  \"exact\": true,\n  \"tasks\": ["); err != nil {
		return err
	}
	head := []struct {
		name string
		v    any
	}{
		{"id", p.w.job.ID},
		{"workflow", nil},
		{"pipeline", p.w.job.Spec.Pipeline},
		{"started", instant(p.w.job.Created)},
		{"ended", instant(p.w.job.Updated)},
	}
	out := p.trace.out
	for i, m := range head {
		before := "{\n"
		if i > 0 {
			before = ",\n"
		}
		if _, err := out.WriteString(before); err != nil {
			return err
		}
		if err := member(out, m.name, m.v); err != nil {
			return err
		}
	}
	_, err := out.WriteString(",\n  \"tasks\": [")
	return err
}

// end writes what stands behind the tasks.
func (p *pass) end() error {
	if _, err := p.dag.out.WriteString("\n  ],\n"); err != nil {
		return err
	}
	if err := member(p.dag.out, "estimate", p.w.tally.estimate()); err != nil {
		return err
	}
	if _, err := p.dag.out.WriteString("\n}\n"); err != nil {
		return err
	}
	if _, err := p.trace.out.WriteString("\n  ],\n"); err != nil {
		return err
	}
	if err := member(p.trace.out, "mapReduceLevels", p.w.tally.traceLevels()); err != nil {
		return err
	}
	_, err := p.trace.out.WriteString("\n}\n")
	return err
}
