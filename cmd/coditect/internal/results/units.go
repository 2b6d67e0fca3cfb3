package results

import (
	"context"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/dag"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/jsonform"
)

// maxLineOutput is the size, in bytes, of the largest output that a line of units.jsonl
// shows. The records of larger ones are in result.json; twice, they would take most of
// the room of a large result. So Config.UnitOutputs bounds all outputs together.
const maxLineOutput = 64 << 10

// writeUnits writes units.jsonl, dag.json, dag.svg, trace.json and the part of
// metrics.json about units, in one pass over the units.
func (w *writer) writeUnits(ctx context.Context) error {
	calls, err := w.dir.CreateScratch(".calls")
	if err != nil {
		return err
	}

	w.tally = costs.NewTally(&w.job.Spec, resultfile.List{Out: calls})
	// Times are fitted before the pass that writes them.
	if err := w.fitTimes(ctx); err != nil {
		return err
	}

	unpack, err := jsonform.NewUnpacker(w.job)
	if err != nil {
		return err
	}

	return w.dir.WriteFile("units.jsonl", func(lines *folder.File) error {
		return w.dir.WriteFile("dag.json", func(graph *folder.File) error {
			tasks, err := w.dir.CreateScratch(".dag")
			if err != nil {
				return err
			}
			p := &unitPass{w: w, unpack: unpack, lines: lines, dag: dag.New(w.job, graph, tasks)}
			return p.readUnits(ctx)
		})
	})
}

// A unitPass is one pass over all units.
type unitPass struct {
	w      *writer
	unpack *jsonform.Unpacker
	lines  *folder.File
	dag    *dag.Writer
	trace  *traceWriter
	shown  int  // bytes of outputs in lines
	full   bool // no more outputs are shown
}

// showsOutput reports whether the line of a unit shows its output, and counts it. The notes
// of parsers are always shown.
func (p *unitPass) showsOutput(u *mapreduce.Unit) bool {
	size := len(u.Output)
	switch {
	case u.Kind == mapreduce.KindParse || size == 0:
		return true
	case size > maxLineOutput || p.full:
		return false
	}

	// Once one output has no room, no smaller one behind it is shown either.
	p.shown += size
	p.full = p.shown > p.w.config.UnitOutputs
	return !p.full
}

func (p *unitPass) readUnits(ctx context.Context) (err error) {
	if p.trace, err = newTrace(p.w); err != nil {
		return err
	}

	if err := p.dag.WriteHead(); err != nil {
		return err
	}

	q := mapreduce.ListUnitsQuery{Job: p.w.config.Job, Outputs: true, Inputs: true}
	if err := eachUnit(ctx, p.w.service, q, p.addUnit); err != nil {
		return err
	}
	if err := p.dag.WriteEnd(); err != nil {
		return err
	}

	if err := p.w.dir.WriteFile("dag.svg", func(out *folder.File) error { return p.w.writeSVG(p.dag, out) }); err != nil {
		return err
	}
	return p.w.dir.WriteFile("trace.json", p.trace.writeTrace)
}

func (p *unitPass) addUnit(u *mapreduce.Unit) error {
	p.w.countUnit()
	var e jsonform.Extract
	var leftOut int
	if p.showsOutput(u) {
		var err error
		if e, err = p.unpack.Unpack(u); err != nil {
			return err
		}
	} else {
		leftOut = len(u.Output)
	}

	// The line is about the unit as it ran, also if its output is left out.
	line := jsonform.UnitLineOf(u, e)
	line.LeftOut = int64(leftOut)
	if err := writeLine(p.lines, line); err != nil {
		return err
	}

	if err := p.dag.AddUnit(u); err != nil {
		return err
	}
	if err := p.w.tally.AddUnit(u); err != nil {
		return err
	}
	return p.trace.addUnit(u)
}

// eachUnit visits the units of a query, in order. It joins a unit whose dependencies
// are spread over several pages.
func eachUnit(ctx context.Context, s Service, q mapreduce.ListUnitsQuery, visit func(*mapreduce.Unit) error) error {
	q.PageSize = 1000
	var begun *mapreduce.Unit // continues on the next page
	for {
		page, err := s.ListUnits(ctx, q)
		if err != nil {
			return err
		}

		for _, u := range page.Units {
			if u, err = joinPages(begun, u); err != nil {
				return err
			}
			if begun = nil; u.Continues {
				begun = u
				continue
			}
			if err := visit(u); err != nil {
				return fmt.Errorf("unit %s: %w", u.ID, err)
			}
		}

		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return nil
		}
	}
}

// joinPages joins u with its first part from the page before.
func joinPages(begun, u *mapreduce.Unit) (*mapreduce.Unit, error) {
	if begun == nil {
		return u, nil
	}

	if begun.ID != u.ID {
		return nil, fmt.Errorf("units changed while they were read: expected more of %s, got %s", begun.ID, u.ID)
	}

	whole := *begun // the service may keep its page
	whole.DependsOn = slices.Concat(begun.DependsOn, u.DependsOn)
	whole.Continues = u.Continues
	return &whole, nil
}
