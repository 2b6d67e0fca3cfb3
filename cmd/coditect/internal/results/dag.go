package results

import (
	"bufio"
	"context"
	"io"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/render"
)

// A dagWriter writes the DAG of a job that ran, a unit at a time. dag.json must not
// depend on how often the job was interrupted, so the cost of units is only in the
// picture.
type dagWriter struct {
	out    *folder.File    // dag.json, or what is printed
	tasks  resultfile.List // in a scratch file; its Out is nil if no JSON is wanted
	cost   bool            // write the cost into the tasks as well
	prices costs.Pricing   // of the job's models
	sketch render.Sketch
	parsed map[mapreduce.DocumentID]bool // documents that have a parse unit
}

// newDAG returns a writer to out that collects the tasks in a scratch file.
func newDAG(job *mapreduce.Job, out, tasks *folder.File) *dagWriter {
	d := &dagWriter{
		out:    out,
		prices: costs.PricingOf(&job.Spec),
		sketch: render.Sketch{Mode: modeOf(job), Exact: true},
		parsed: make(map[mapreduce.DocumentID]bool),
	}

	if tasks != nil {
		d.tasks.Out = tasks
	}
	return d
}

// writeHead writes the part before the tasks.
func (d *dagWriter) writeHead() error {
	out := d.out
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
		if err := resultfile.WriteMember(out, m.name, m.v); err != nil {
			return err
		}
	}

	_, err := out.WriteString(",\n")
	return err
}

func (d *dagWriter) addUnit(u *mapreduce.Unit) error {
	inputs := d.inputsOf(u)
	outcome, cost := plan.OutcomeOf(u), d.prices.UnitCost(u)
	outcome.Unpriced = cost == nil
	n := render.Node{ID: u.ID, Kind: u.Kind, Stage: u.Stage, Level: u.Level, Inputs: inputs, Outcome: &outcome}
	// A unit that reads no other one takes an input of the job.
	if len(inputs) == 0 {
		n.Items = 1
	}

	if err := d.sketch.Add(n); err != nil {
		return err
	}

	if d.tasks.Out == nil {
		return nil
	}

	t := render.NewTask(u.ID, u.Kind, u.Level, inputs)
	t.State, t.Stage = u.State.String(), u.Stage
	if d.cost {
		t.Cost = cost
	}

	return d.tasks.AddValue("", t)
}

// inputsOf returns the units whose outputs u reads. A map unit of a parsed document
// reads the text of its parse unit.
func (d *dagWriter) inputsOf(u *mapreduce.Unit) []mapreduce.UnitID {
	switch {
	case u.Kind == mapreduce.KindParse:
		d.parsed[u.Document] = true
	case u.Kind == mapreduce.KindMap && d.parsed[u.Document]:
		return []mapreduce.UnitID{mapreduce.ParseUnit(u.Document)}
	}
	return u.DependsOn
}

// writeEnd writes the part behind the tasks.
func (d *dagWriter) writeEnd() error {
	out := d.out
	if err := resultfile.WriteSection(out, "tasks", "[", &d.tasks, "]"); err != nil {
		return err
	}

	if _, err := out.WriteString(",\n"); err != nil {
		return err
	}

	if err := resultfile.WriteMember(out, "estimate", render.EstimateOf(d.sketch.Estimate)); err != nil {
		return err
	}
	_, err := out.WriteString("\n}\n")
	return err
}

// writeSVG writes dag.svg, and keeps the picture for report.html.
func (w *writer) writeSVG(d *dagWriter, out *folder.File) error {
	svg := d.sketch.SVG()
	if len(svg) <= maxTree {
		w.tree = svg
	}
	_, err := out.WriteString(svg)
	return err
}

// WriteDAG writes the current DAG of a job, with the state and the cost of each unit,
// in a format of package render.
func WriteDAG(ctx context.Context, s Service, job *mapreduce.Job, format string, to io.Writer) error {
	out := &folder.File{Writer: bufio.NewWriter(to)}
	d := newDAG(job, out, nil)
	d.cost = true

	if format == "json" {
		scratch, err := folder.NewScratch()
		if err != nil {
			return err
		}
		defer scratch.Discard() //nolint:errcheck // it is of use to nobody
		if d.tasks.Out, err = scratch.CreateScratch(".dag"); err != nil {
			return err
		}
		if err := d.writeHead(); err != nil {
			return err
		}
	}

	if err := eachUnit(ctx, s, mapreduce.ListUnitsQuery{Job: job.ID, Inputs: true}, d.addUnit); err != nil {
		return err
	}

	if format == "json" {
		if err := d.writeEnd(); err != nil {
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
