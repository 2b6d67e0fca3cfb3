package outputs

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// pageUnits is how many units are read at once, each with an output of up to
// protocol.MaxInline bytes.
const pageUnits = 256

// EachInput visits the units that a unit takes, in order.
func EachInput(ctx context.Context, s jobs.Reader, id mapreduce.JobID, u *records.Unit, visit func(*records.Unit) error) error {
	return eachInputFrom(ctx, s.Inputs, id, u, u.Inputs.First, visit)
}

// eachInputFrom visits the units that a unit takes with indexes from a first one on.
func eachInputFrom(ctx context.Context, read InputReader, id mapreduce.JobID, u *records.Unit, from int64, visit func(*records.Unit) error) error {
	for from < u.Inputs.End {
		page, err := read(ctx, id, u, from, pageUnits)
		if err != nil {
			return err
		}

		for _, in := range page {
			if err := visit(in); err != nil {
				return err
			}
			from = in.Index + 1
		}

		if len(page) == 0 {
			return nil
		}
	}
	return nil
}

// InputPages read what each of some units takes, unit after unit in their order. What
// neighbours take is read together: ten reduces of ten outputs each cost one
// transaction, and not ten. It holds a page of units, and is for one goroutine.
type InputPages struct {
	read InputReader
	job  mapreduce.JobID
	ends map[mapreduce.UnitID]int64 // of what a unit and its neighbours behind it take

	level, from, end int64 // the units of a level that the page has
	page             []*records.Unit
}

// An InputReader reads some of the units that a unit takes, with indexes from a first one on:
// jobs.Reader.Inputs.
type InputReader func(ctx context.Context, id mapreduce.JobID, reduce *records.Unit, from int64, limit int) ([]*records.Unit, error)

// NewInputPages returns the pages of units of a job. Nothing is read yet.
func NewInputPages(read InputReader, id mapreduce.JobID, units []*records.Unit) *InputPages {
	p := &InputPages{read: read, job: id, ends: make(map[mapreduce.UnitID]int64)}
	for i, u := range slices.Backward(units) {
		if u.Inputs == nil || u.Inputs.Picked > 0 {
			continue
		}

		p.ends[u.ID] = u.Inputs.End
		if i+1 < len(units) && areNeighbours(u, units[i+1]) {
			p.ends[u.ID] = max(u.Inputs.End, p.ends[units[i+1].ID])
		}
	}
	return p
}

// areNeighbours reports whether a unit takes what follows on what another takes, or the
// same.
func areNeighbours(u, next *records.Unit) bool {
	return next.Inputs != nil && next.Inputs.Picked == 0 && next.Level == u.Level && next.Index == u.Index+1 &&
		next.Inputs.Level == u.Inputs.Level && next.Inputs.First >= u.Inputs.First
}

// Each visits the units that one of the units takes, in order.
func (p *InputPages) Each(ctx context.Context, u *records.Unit, visit func(*records.Unit) error) error {
	in := u.Inputs
	end, known := p.ends[u.ID]
	if !known {
		return eachInputFrom(ctx, p.read, p.job, u, in.First, visit)
	}

	if p.level != in.Level || in.First < p.from || p.end < in.End {
		if err := p.readPage(ctx, in.Level, in.First, end); err != nil {
			return err
		}
	}

	at, _ := slices.BinarySearchFunc(p.page, in.First, func(u *records.Unit, first int64) int { return int(u.Index - first) })
	for _, one := range p.page[at:] {
		if one.Index >= in.End {
			break
		}
		if err := visit(one); err != nil {
			return err
		}
	}

	// The other units stand behind the page.
	return eachInputFrom(ctx, p.read, p.job, u, p.end, visit)
}

// readPage reads the first of the units of a level with indexes in [first, end).
func (p *InputPages) readPage(ctx context.Context, level, first, end int64) error {
	all := &records.Unit{Inputs: &records.Inputs{Level: level, First: first, End: end}}
	page, err := p.read(ctx, p.job, all, first, pageUnits)
	if err != nil {
		return err
	}
	p.level, p.from, p.end, p.page = level, first, first, page
	if len(page) > 0 {
		p.end = page[len(page)-1].Index + 1
	}
	return nil
}
