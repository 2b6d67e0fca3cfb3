package outputs

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A UnitReader reads the units of a job level by level.
type UnitReader struct {
	source jobs.Reader
	job    mapreduce.JobID
}

// NewUnitReader returns what reads the units of a job.
func NewUnitReader(s jobs.Reader, job mapreduce.JobID) UnitReader { return UnitReader{s, job} }

// A UnitPage is some units of a level, in order, or why they cannot be read.
type UnitPage struct {
	Units   []*records.Unit
	outputs []*output.Output // of the units, as far as they were read with the page; else nil
	err     error
}

// OutputOf returns the output of the page's n-th unit, if it was read with the page.
func (p *UnitPage) OutputOf(n int) *output.Output {
	if p.outputs == nil {
		return nil
	}
	return p.outputs[n]
}

// Bounds of the units that are read at once. A page of small units costs a store little more
// than one of a few.
const (
	minPage   = 256
	maxPage   = 1024
	pageBytes = 512 << 10 // of outputs that stand in the records of units
)

// nextLimit returns how many units the next page may have: as many as fit if they are like
// those of this one.
func (p *UnitPage) nextLimit() int {
	size := 1
	for _, u := range p.Units {
		size += len(u.Published().Inline)
	}
	return min(max(minPage, pageBytes*len(p.Units)/size), maxPage)
}

// VisitPages visits the units of a level, in order, some at a time. While a page is
// visited, the next is read, and the outputs that stand in the records of those of its
// units that wanted reports, unless it is nil.
func (r UnitReader) VisitPages(ctx context.Context, level int64, wanted func(*records.Unit) bool, visit func(*UnitPage) error) error {
	ctx, stop := context.WithCancel(ctx)

	pages := make(chan UnitPage, 1)
	var reading sync.WaitGroup
	// Deferred calls run in reverse: the reading is stopped, and then waited for.
	defer reading.Wait()
	defer stop()

	read := func(from int64, limit int) {
		reading.Go(func() {
			units, err := r.source.UnitsFrom(ctx, r.job, level, from, limit)
			page := UnitPage{Units: units, err: err}
			if err == nil && wanted != nil {
				page.outputs, page.err = r.readInline(ctx, units, wanted)
			}
			pages <- page
		})
	}

	for read(0, minPage); ; {
		page := <-pages
		if page.err != nil || len(page.Units) == 0 {
			return page.err
		}
		read(page.Units[len(page.Units)-1].Index+1, page.nextLimit())
		if err := visit(&page); err != nil {
			return err
		}
	}
}

// readInline reads the outputs of units that stand in their records: larger ones would be
// too much to hold for a page of units.
func (r UnitReader) readInline(ctx context.Context, units []*records.Unit, wanted func(*records.Unit) bool) ([]*output.Output, error) {
	all := make([]*output.Output, len(units))
	for i, u := range units {
		if len(u.Published().Inline) == 0 || !wanted(u) {
			continue
		}

		var err error
		if all[i], err = Of(ctx, r.source, r.job, u); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// VisitLevel visits the units of a level, in order.
func (r UnitReader) VisitLevel(ctx context.Context, level int64, visit func(*records.Unit) error) error {
	return r.VisitPages(ctx, level, nil, func(page *UnitPage) error {
		for _, u := range page.Units {
			if err := visit(u); err != nil {
				return err
			}
		}
		return nil
	})
}

// FindDropped finds the map units that are in no result because a reduce over them failed,
// of a job with so many levels.
func (r UnitReader) FindDropped(ctx context.Context, levels int64) (dropped Spans, err error) {
	for level := int64(1); level < levels; level++ {
		err := r.VisitLevel(ctx, level, func(u *records.Unit) error {
			if u.State != mapreduce.UnitFailed {
				return nil
			}
			return r.addBelow(ctx, u, &dropped)
		})
		if err != nil {
			return Spans{}, err
		}
	}

	dropped.sortAndJoin() // that of a reduce holds those of the reduces below it
	return dropped, nil
}

// addBelow adds the map units below a reduce. If reduces picked their inputs, the map
// units of one lie between those of others.
func (r UnitReader) addBelow(ctx context.Context, u *records.Unit, to *Spans) error {
	switch {
	case u.Inputs == nil:
		to.list = append(to.list, span{u.Index, u.Index + 1})
		return nil
	case u.Inputs.Picked == 0:
		to.list = append(to.list, span{u.Inputs.MapFirst, u.Inputs.MapEnd})
		return nil
	}
	return EachInput(ctx, r.source, r.job, u, func(in *records.Unit) error { return r.addBelow(ctx, in, to) })
}
