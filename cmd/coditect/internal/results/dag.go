package results

import (
	"bufio"
	"context"
	"io"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/plan/render"
)

// A dag writes the DAG of a job that ran, a unit at a time. What is in dag.json
// does not depend on how often the job was interrupted, so what units cost is
// only in the picture.
type dag struct {
	tasks  list
	cost   bool // is in the tasks as well
	sketch render.Sketch
	parsed map[mapreduce.DocumentID]bool // documents that have a parse unit
}

func newDAG(job *mapreduce.Job, out *file) *dag {
	return &dag{
		tasks:  list{out: out, prefix: "    "},
		sketch: render.Sketch{Mode: modeOf(job), Exact: true},
		parsed: make(map[mapreduce.DocumentID]bool),
	}
}

// begin writes what stands before the tasks.
func (d *dag) begin() error {
	out := d.tasks.out
	for _, m := range []struct {
		name string
		v    any
	}{
		{"schemaVersion", plan.SchemaVersion},
		{"mapReduceMode", render.ModeOf(d.sketch.Mode)},
		{"exact", d.sketch.Exact},
	} {
		before := ",\n"
		if m.name == "schemaVersion" {
			before = "{\n"
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

func (d *dag) add(u *mapreduce.Unit) error {
	inputs := d.inputs(u)
	outcome := plan.OutcomeOf(u)
	n := render.Node{ID: u.ID, Kind: u.Kind, Stage: u.Stage, Level: u.Level, Inputs: inputs, Outcome: &outcome}
	if len(inputs) == 0 {
		n.Items = 1
	}
	if err := d.sketch.Add(n); err != nil {
		return err
	}
	if d.tasks.out == nil {
		return nil
	}
	t := render.NewTask(u.ID, u.Kind, u.Level, inputs)
	t.State, t.Stage = u.State.String(), u.Stage
	if d.cost {
		t.Cost = new(USD(u.CostMicros))
	}
	return d.tasks.addValue("", t)
}

// inputs returns the units that u takes the outputs of. Those of a document that
// was parsed take its text.
func (d *dag) inputs(u *mapreduce.Unit) []mapreduce.UnitID {
	switch {
	case u.Kind == mapreduce.KindParse:
		d.parsed[u.Document] = true
	case u.Kind == mapreduce.KindMap && d.parsed[u.Document]:
		return []mapreduce.UnitID{mapreduce.ParseUnit(u.Document)}
	}
	return u.DependsOn
}

// end writes what stands behind the tasks.
func (d *dag) end() error {
	out := d.tasks.out
	if _, err := out.WriteString("\n  ],\n"); err != nil {
		return err
	}
	if err := member(out, "estimate", render.EstimateOf(d.sketch.Estimate)); err != nil {
		return err
	}
	_, err := out.WriteString("\n}\n")
	return err
}

// picture writes dag.svg.
func (d *dag) picture(out *file) error {
	_, err := out.WriteString(d.sketch.SVG())
	return err
}

// WriteDAG writes the DAG of a job as it stands, with the state of each unit and
// what it cost, in a format of package render.
func WriteDAG(ctx context.Context, s Service, job *mapreduce.Job, format string, to io.Writer) error {
	out := &file{Writer: bufio.NewWriter(to)}
	d := newDAG(job, out)
	d.cost = true
	if format != "json" {
		d.tasks.out = nil
	} else if err := d.begin(); err != nil {
		return err
	}
	if err := eachUnit(ctx, s, mapreduce.ListUnitsQuery{Job: job.ID, Inputs: true}, d.add); err != nil {
		return err
	}
	if format == "json" {
		if err := d.end(); err != nil {
			return err
		}
		return out.Flush()
	}
	text, err := d.sketch.As(format)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, text)
	return err
}
