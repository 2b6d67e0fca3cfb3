package ingest

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A decision is what becomes of a direct unit once all documents are text.
type decision struct {
	direct   *lifecycle.Direct         // the unit that takes all; nil if there is none
	staged   *directInput              // documents of the unit that is staged
	dissolve bool                      // these get units of their own
	taken    map[mapreduce.UnitID]bool // parse units whose documents a direct unit has
}

// decideDirect decides whether one unit reads all documents. If that unit was claimed
// before a resume, it keeps its documents.
func (in *Intake) decideDirect(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, g *plan.Graph) (*decision, error) {
	all := newBundle(g, spec, in.config.Rules.Counter(spec))
	if all == nil {
		return &decision{}, nil
	}

	u, err := in.jobs.View.Unit(ctx, id, g.First(g.Bundles()).Unit)
	if err != nil {
		return nil, err
	}
	had, err := outputs.Documents(ctx, in.jobs.Reader(), id, u)
	if err != nil {
		return nil, err
	}

	d := &decision{taken: make(map[mapreduce.UnitID]bool)}
	if u != nil && u.Attempt > 0 {
		for _, doc := range had {
			d.taken[mapreduce.ParseUnit(mapreduce.DocumentID(doc.Document))] = true
		}
		return d, nil
	}

	if first, err := in.jobs.View.UnitsFrom(ctx, id, 0, 0, 1); err != nil || u == nil && len(first) > 0 {
		return d, err // they were mapped before
	}

	for _, doc := range had {
		all.addDocument(doc, "text/plain")
	}
	d.staged = &directInput{docs: slices.Clone(all.docs)}

	parsed, err := in.addParsedDocuments(ctx, id, all)
	if err != nil {
		return nil, err
	}

	taken := false
	if len(all.docs) > 0 {
		if taken, err = all.isTaken(); err != nil {
			return nil, errs.New(errs.Precondition, "%v", err)
		}
	}

	if !taken {
		if g.Cuts() < 0 && len(all.docs) > 0 {
			return nil, errs.New(errs.Precondition, "%v", tooLarge(all))
		}
		d.dissolve = u != nil
		return d, nil
	}

	// The unit has the documents in the order of the submission.
	slices.SortFunc(all.docs, func(a, b payload.Document) int { return int(a.Number - b.Number) })
	return d, d.chooseDirect(all, in.config, parsed)
}

// chooseDirect decides for a unit that takes all.
func (d *decision) chooseDirect(all *directInput, c *Config, parsed int64) error {
	unit, data, err := all.makeUnit(c)
	if err != nil {
		return err
	}
	d.direct = &lifecycle.Direct{Unit: unit, Level: jobspec.LevelOf(all.graph.First(all.graph.Bundles())), Characters: parsed}

	for _, batch := range splitBatches(data, []*records.Unit{unit}) {
		d.direct.Blobs = append(d.direct.Blobs, batch.Blobs...)
	}
	return nil
}

// addParsedDocuments adds documents that workers have parsed, as long as all fit, and returns
// how many characters they have.
func (in *Intake) addParsedDocuments(ctx context.Context, id mapreduce.JobID, all *directInput) (chars int64, err error) {
	for from := int64(0); all.fitsOneUnit(); {
		page, err := in.jobs.View.UnitsFrom(ctx, id, -1, from, 64)
		if err != nil || len(page) == 0 {
			return chars, err
		}

		for _, u := range page {
			from = u.Index + 1
			if u.State != mapreduce.UnitComplete || !all.fitsOneUnit() {
				continue
			}

			parsed, err := outputs.Parsed(ctx, in.jobs.Reader(), id, u)
			if err != nil {
				return chars, err
			}
			if len(parsed.Text) == 0 {
				continue // it is skipped
			}

			doc := payload.Document{Document: string(u.Document), Number: keys.Document(u.Index), Metadata: parsed.Describe(u.Source.Metadata), Text: parsed.Text}
			all.addDocument(doc, "text/plain")
			chars += countCharacters([]payload.Document{doc})
		}
	}
	return chars, nil
}

// splitDirectUnit gives the documents of a direct unit that is dissolved units of their
// own. Their characters were counted when they were submitted.
func (in *Intake) splitDirectUnit(ctx context.Context, id mapreduce.JobID, epoch int64, spec *mapreduce.JobSpec, g *plan.Graph, docs []payload.Document) error {
	cut := newCutter(in.config, spec, g)
	for _, doc := range docs {
		d := &mapreduce.Document{ID: mapreduce.DocumentID(doc.Document), MediaType: "text/plain", Metadata: doc.Metadata}
		units, err := cut.makeUnits(d, doc.Text, doc.Number)
		if err != nil {
			return err
		}

		all := splitBatches(doc.Text, units)
		for i := range all {
			all[i].Counted = true
		}
		if err := in.jobs.Levels.Insert(ctx, id, epoch, all); err != nil {
			return err
		}
	}
	return nil
}
