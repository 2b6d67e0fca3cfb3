package ingest

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// StartMapping adds the units of the documents that workers have parsed, and plans the
// levels above if they follow from how many units there are.
func (in *Intake) StartMapping(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	compiled, err := in.specs.Job(ctx, id)
	if err != nil {
		return err
	}

	spec, graph := compiled.Spec, compiled.Graph
	d, err := in.decideDirect(ctx, id, spec, graph)
	switch {
	case errs.KindOf(err) == errs.Precondition:
		return in.jobs.Lifecycle.Fail(ctx, id, epoch, err.Error())
	case err != nil:
		return err
	case d.direct != nil:
		return in.jobs.Levels.PlanDirect(ctx, id, epoch, *d.direct)
	}

	if d.dissolve && !graph.Gathers() {
		if err := in.splitDirectUnit(ctx, id, epoch, spec, graph, d.staged.docs); err != nil {
			return err
		}
	}

	cuts := graph.Cuts()
	if graph.Gathers() {
		dissolve, err := in.insertGathered(ctx, id, epoch, compiled, d)
		switch {
		case errs.KindOf(err) == errs.Precondition:
			return in.jobs.Lifecycle.Fail(ctx, id, epoch, err.Error())
		case err != nil:
			return err
		}
		return in.jobs.Levels.StartMapping(ctx, id, epoch, jobspec.LevelOf(graph.First(cuts)), dissolve)
	}

	if cuts < 0 { // the documents that there are have their unit, or there are none
		return in.jobs.Levels.StartMapping(ctx, id, epoch, jobspec.LevelOf(graph.First(graph.Bundles())), lifecycle.Dissolve{})
	}

	// From here on nothing is mapped early.
	in.early.forget(id)
	if err := in.jobs.Levels.InsertParsed(ctx, id, epoch, in.parsedUnits(id, spec, graph, d.taken)); err != nil {
		return err
	}

	first := jobspec.LevelOf(graph.First(cuts))
	if tree := graph.TreeAtOnce(cuts); tree >= 0 {
		return in.jobs.Levels.PlanTree(ctx, id, lifecycle.TreePlan{
			Epoch: epoch, First: first, Stage: tree, Name: graph.Pipeline().Stages[tree].Name, Root: graph.Root(tree),
			Phase: graph.Phase(tree), Group: graph.TreeOf(tree).Group(),
		})
	}
	return in.jobs.Levels.StartMapping(ctx, id, epoch, first, lifecycle.Dissolve{Staged: d.dissolve})
}

// parsedUnits returns what makes the units of the documents that workers have parsed,
// except those in taken.
func (in *Intake) parsedUnits(id mapreduce.JobID, spec *mapreduce.JobSpec, g *plan.Graph, taken map[mapreduce.UnitID]bool) lifecycle.DocumentUnits {
	cut := newCutter(in.config, spec, g)
	return func(ctx context.Context, u *records.Unit) ([]records.Batch, error) {
		if taken[u.ID] {
			return nil, nil
		}

		parsed, err := outputs.Parsed(ctx, in.jobs.Reader(), id, u)
		if err != nil || len(parsed.Text) == 0 {
			return nil, err // without text the document is skipped
		}

		text := parsed.Text
		d := &mapreduce.Document{ID: u.Document, MediaType: "text/plain", Metadata: parsed.Describe(u.Source.Metadata)}
		units, err := cut.makeUnits(d, text, keys.Document(u.Index))
		if err != nil {
			return nil, err
		}

		return splitBatches(text, units), nil
	}
}

// splitBatches spreads a document over transactions of a suitable size, its text
// first.
func splitBatches(text []byte, units []*records.Unit) []records.Batch {
	const blobs = store.TargetTxSize / store.ChunkSize
	var all []records.Batch
	for i := 0; i*store.ChunkSize < len(text); i++ {
		if i%blobs == 0 {
			all = append(all, records.Batch{})
		}

		last := &all[len(all)-1]
		data := text[i*store.ChunkSize : min((i+1)*store.ChunkSize, len(text))]
		last.Blobs = append(last.Blobs, records.BlobChunk{SHA256: units[0].Source.SHA256, Index: int64(i), Data: data})
	}

	for len(units) > 0 {
		n := min(len(units), stageUnits, 1+store.TargetTxSize/stagedBytes(units[0])) // all have their document's metadata
		all = append(all, records.Batch{Units: units[:n]})
		units = units[n:]
	}
	return all
}
