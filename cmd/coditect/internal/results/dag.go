package results

import (
	"bufio"
	"context"
	"io"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/dag"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// writeSVG writes dag.svg, and keeps the picture for report.html.
func (w *writer) writeSVG(d *dag.Writer, out *folder.File) error {
	svg := d.Sketch.SVG()
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
	d := dag.New(job, out, nil)
	d.Cost = true

	if format == "json" {
		scratch, err := folder.NewScratch()
		if err != nil {
			return err
		}
		defer scratch.Discard() //nolint:errcheck // it is of use to nobody
		if d.Tasks.Out, err = scratch.CreateScratch(".dag"); err != nil {
			return err
		}
		if err := d.WriteHead(); err != nil {
			return err
		}
	}

	if err := eachUnit(ctx, s, mapreduce.ListUnitsQuery{Job: job.ID, Inputs: true}, d.AddUnit); err != nil {
		return err
	}

	if format == "json" {
		if err := d.WriteEnd(); err != nil {
			return err
		}
		return out.Flush()
	}

	text, err := d.Sketch.As(format)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, text)
	return err
}
