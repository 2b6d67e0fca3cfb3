package result

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A reading is what a result is of: the entities that map units found, as the last reduce put
// them together, and the units that are in it. They are read from the store each time.
type reading struct {
	source jobs.Reader
	units  outputs.UnitReader
	job    Job
	schema *schema.Schema // the job's
	last   *output.Output
	// Entities of several records, by the first of these, and all the others.
	merged  map[output.Member]*output.Shared
	within  map[output.Member]*output.Shared
	dropped outputs.Spans  // map units whose reduce failed
	taken   *outputs.Spans // map units of a partial result; nil of a whole one
	// Documents of the records that entities of several have, as the outputs of map
	// units tell; nil once these have been looked through.
	seen   map[output.Member]maker
	habits habits.Habits // complete once all outputs were read for the first time
}

func newReading(s jobs.Reader, job Job) *reading {
	return &reading{
		source: s, units: outputs.NewUnitReader(s, job.ID), job: job, schema: job.Schema, last: &output.Output{},
		merged: make(map[output.Member]*output.Shared), within: make(map[output.Member]*output.Shared), seen: make(map[output.Member]maker),
	}
}

// finalUnit returns the unit that the result is of, nil if there is none yet.
func (r *reading) finalUnit(ctx context.Context) (*records.Unit, error) {
	if r.job.Last == "" {
		return nil, nil
	}
	return r.source.Unit(ctx, r.job.ID, r.job.Last)
}

// reduceTo makes an output the last reduce's.
func (r *reading) reduceTo(last *output.Output) {
	r.last = last
	for _, s := range last.Shared() {
		r.merged[s.Members[0]] = s
		for _, m := range s.Members[1:] {
			r.within[m] = s
		}
	}
}

// A found is an entity of the result with the output that its citations are in.
type found struct {
	merge.Result
	in *output.Output
}

// resolveEntity decides the values of an entity.
func (r *reading) resolveEntity(e *output.Entry, in *output.Output) found {
	believed := output.Believed(r.schema, e.Accumulator, in.Citations)
	settled := r.habits.Settle(r.schema, believed, in.Citations)
	return found{merge.Resolve(r.schema, settled), in}
}

// visitCitations visits the citations of an entity: those of its values, and those of
// values that were not chosen.
func (f *found) visitCitations(visit func(merge.Citation)) {
	seen := make(map[merge.Citation]bool)
	once := func(ids []merge.Citation) {
		for _, id := range ids {
			if !seen[id] {
				seen[id] = true
				visit(id)
			}
		}
	}

	for _, field := range slices.Sorted(maps.Keys(f.Citations)) {
		once(f.Citations[field])
	}
	for _, c := range f.Conflicts {
		for _, choice := range c.Candidates {
			once(choice.Citations)
		}
	}

	for _, d := range f.Dropped {
		once([]merge.Citation{d.Citation})
	}
}

// An entityVisitor is called with an entity of the result as it was reduced, and the output
// that its citations are in.
type entityVisitor func(e *output.Entry, in *output.Output) error

// visitEntities visits the entities of the result, in order of the input, and after those
// of a map unit the unit itself. Units come some at a time; some is called with them first.
func (r *reading) visitEntities(ctx context.Context, some func([]*records.Unit), visit entityVisitor, after func(*records.Unit) error) error {
	return r.units.VisitPages(ctx, 0, r.includesUnit, func(page *outputs.UnitPage) error {
		some(page.Units)
		for i, u := range page.Units {
			if r.includesUnit(u) {
				if err := r.entitiesOf(ctx, u, page.OutputOf(i), visit); err != nil {
					return err
				}
			}
			if err := after(u); err != nil {
				return err
			}
		}
		return nil
	})
}

// includesUnit reports whether a map unit is in the result.
func (r *reading) includesUnit(u *records.Unit) bool {
	return u.State == mapreduce.UnitComplete && !r.dropped.ContainsNumber(u.Index) && r.taken.ContainsNumber(u.Index)
}

// entitiesOf visits the entities that begin in a unit, whose output is out, or is read here.
func (r *reading) entitiesOf(ctx context.Context, u *records.Unit, out *output.Output, visit entityVisitor) error {
	var err error
	if out == nil {
		if out, err = outputs.Of(ctx, r.source, r.job.ID, u); err != nil {
			return err
		}
	}

	if r.seen != nil { // for the first time
		if err := r.checkOutput(ctx, u, out); err != nil {
			return err
		}
		r.habits.Add(r.schema, string(u.Document), out)
	}

	for i := range out.Entries {
		e, in := &out.Entries[i], out
		member := e.Members[0]
		if r.within[member] != nil {
			// The entity is shown with the first of its records.
			continue
		}

		if s := r.merged[member]; s != nil {
			if e, in, err = r.readSharedEntity(ctx, s); err != nil {
				return err
			}
		}

		if err := visit(e, in); err != nil {
			return err
		}
	}
	return nil
}

// readSharedEntity returns an entity of several records, and the output with its
// citations. Records for which reduces had no room are read where they stand.
func (r *reading) readSharedEntity(ctx context.Context, s *output.Shared) (*output.Entry, *output.Output, error) {
	if len(s.Open) == 0 {
		return s.Held, r.last, nil
	}

	var parts []*output.Output
	err := outputs.EachReferred(ctx, r.source, r.job.ID, s.Open, func(_ *records.Unit, out *output.Output) error {
		parts = append(parts, out)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}

	one := s.Together(r.last, parts)
	return &one.Entries[0], one, nil
}

// citationIDs returns the ids of all citations, of each value that was found: which of them
// the result has follows later. An error is left in err.
func (r *reading) citationIDs(ctx context.Context, err *error) iter.Seq[refs.ID] {
	return func(yield func(refs.ID) bool) {
		none, cited := func([]*records.Unit) {}, 0
		e := r.visitEntities(ctx, none, func(e *output.Entry, in *output.Output) error {
			more := true
			e.Cited(func(id merge.Citation) {
				c := in.Citations[id]
				cited += len(c.Quote) + len(c.Document) + len(c.Unit) // each is written with its citation
				more = more && yield(c.ID)
			})

			switch {
			case !more:
				return errEnough
			case r.job.Room > 0 && cited > r.job.Room:
				return ErrNoRoom
			}
			return nil
		}, func(*records.Unit) error { return nil })

		if e != nil && !errors.Is(e, errEnough) {
			*err = e
		}
		if e == nil {
			r.removedCitationIDs(yield)
		}
	}
}

// errEnough ends a visit of entities whose ids nobody wants any more.
var errEnough = errors.New("enough")

// removedCitationIDs yields the ids of the citations that reducers did not pass on, and of
// those of the values that they compared.
func (r *reading) removedCitationIDs(yield func(refs.ID) bool) {
	for _, d := range r.last.Dropped {
		if !yield(refs.ID([]byte(d.Citation))) {
			return
		}
	}

	for i := range r.last.Decided {
		for _, c := range r.last.Decided[i].Candidates {
			for _, id := range c.Citations {
				if !yield(refs.ID([]byte(id))) {
					return
				}
			}
		}
	}
}

// sharedBy returns the entity of several records that a record is of, or nil.
func (r *reading) sharedBy(m *output.Member) *output.Shared {
	if m == nil {
		return nil
	}
	return cmp.Or(r.merged[*m], r.within[*m])
}
