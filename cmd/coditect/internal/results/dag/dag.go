// Package dag writes the graph of a job that ran, a unit at a time: dag.json, and the sketch
// that dag.svg is drawn from.
package dag

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/render"
)

// A Writer writes the DAG of a job that ran, a unit at a time. dag.json must not
// depend on how often the job was interrupted, so the cost of units is only in the
// picture.
type Writer struct {
	out    *folder.File    // dag.json, or what is printed
	Tasks  resultfile.List // in a scratch file; its Out is nil if no JSON is wanted
	Cost   bool            // write the cost into the tasks as well
	prices costs.Pricing   // of the job's models
	Sketch render.Sketch
	parsed map[mapreduce.DocumentID]bool // documents that have a parse unit
}

// New returns a writer to out that collects the tasks in a scratch file.
func New(job *mapreduce.Job, out, tasks *folder.File) *Writer {
	d := &Writer{
		out:    out,
		prices: costs.PricingOf(&job.Spec),
		Sketch: render.Sketch{Mode: plan.ModeOf(job.Spec.Strategy), Exact: true},
		parsed: make(map[mapreduce.DocumentID]bool),
	}

	if tasks != nil {
		d.Tasks.Out = tasks
	}
	return d
}

// WriteHead writes the part before the tasks.
func (d *Writer) WriteHead() error {
	out := d.out
	for _, m := range []struct {
		name string
		v    any
	}{
		{"schemaVersion", plan.SchemaVersion},
		{"mapReduceMode", render.ModeOf(d.Sketch.Mode)},
		{"exact", d.Sketch.Exact},
	} {
		before := ",\n"
		if m.name == "schemaVersion" {
			before = "{\n"
		}
		if _, err := out.WriteString(before); err != nil {
			return err
		}
		if err := resultfile.WriteMember(out, m.name, m.v); err != nil {
			return err
		}
	}

	_, err := out.WriteString(",\n")
	return err
}

// AddUnit adds a unit.
func (d *Writer) AddUnit(u *mapreduce.Unit) error {
	inputs := d.inputsOf(u)
	outcome, cost := plan.OutcomeOf(u), d.prices.UnitCost(u)
	outcome.Unpriced = cost == nil
	n := render.Node{ID: u.ID, Kind: u.Kind, Stage: u.Stage, Level: u.Level, Inputs: inputs, Outcome: &outcome}
	// A unit that reads no other one takes an input of the job.
	if len(inputs) == 0 {
		n.Items = 1
	}

	if err := d.Sketch.Add(n); err != nil {
		return err
	}

	if d.Tasks.Out == nil {
		return nil
	}

	t := render.NewTask(u.ID, u.Kind, u.Level, inputs)
	t.State, t.Stage = u.State.String(), u.Stage
	if d.Cost {
		t.Cost = cost
	}

	return d.Tasks.AddValue("", t)
}

// inputsOf returns the units whose outputs u reads. A map unit of a parsed document
// reads the text of its parse unit.
func (d *Writer) inputsOf(u *mapreduce.Unit) []mapreduce.UnitID {
	switch {
	case u.Kind == mapreduce.KindParse:
		d.parsed[u.Document] = true
	case u.Kind == mapreduce.KindMap && d.parsed[u.Document]:
		return []mapreduce.UnitID{mapreduce.ParseUnit(u.Document)}
	}
	return u.DependsOn
}

// WriteEnd writes the part behind the tasks.
func (d *Writer) WriteEnd() error {
	out := d.out
	if err := resultfile.WriteSection(out, "tasks", "[", &d.Tasks, "]"); err != nil {
		return err
	}

	if _, err := out.WriteString(",\n"); err != nil {
		return err
	}

	if err := resultfile.WriteMember(out, "estimate", render.EstimateOf(d.Sketch.Estimate)); err != nil {
		return err
	}
	_, err := out.WriteString("\n}\n")
	return err
}
