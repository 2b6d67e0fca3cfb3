package result

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A unitReader reads the units of a job level by level.
type unitReader struct {
	source jobs.Reader
	job    mapreduce.JobID
}

// A unitPage is some units of a level, in order, or why they cannot be read.
type unitPage struct {
	units   []*records.Unit
	outputs []*output.Output // of the units, as far as they were read with the page; else nil
	err     error
}

// outputOf returns the output of the page's n-th unit, if it was read with the page.
func (p *unitPage) outputOf(n int) *output.Output {
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
func (p *unitPage) nextLimit() int {
	size := 1
	for _, u := range p.units {
		size += len(u.Published().Inline)
	}
	return min(max(minPage, pageBytes*len(p.units)/size), maxPage)
}

// visitPages visits the units of a level, in order, some at a time. While a page is
// visited, the next is read, and the outputs that stand in the records of those of its
// units that wanted reports, unless it is nil.
func (r unitReader) visitPages(ctx context.Context, level int64, wanted func(*records.Unit) bool, visit func(*unitPage) error) error {
	ctx, stop := context.WithCancel(ctx)

	pages := make(chan unitPage, 1)
	var reading sync.WaitGroup
	// Deferred calls run in reverse: the reading is stopped, and then waited for.
	defer reading.Wait()
	defer stop()

	read := func(from int64, limit int) {
		reading.Go(func() {
			units, err := r.source.UnitsFrom(ctx, r.job, level, from, limit)
			page := unitPage{units: units, err: err}
			if err == nil && wanted != nil {
				page.outputs, page.err = r.readInline(ctx, units, wanted)
			}
			pages <- page
		})
	}

	for read(0, minPage); ; {
		page := <-pages
		if page.err != nil || len(page.units) == 0 {
			return page.err
		}
		read(page.units[len(page.units)-1].Index+1, page.nextLimit())
		if err := visit(&page); err != nil {
			return err
		}
	}
}

// readInline reads the outputs of units that stand in their records: larger ones would be
// too much to hold for a page of units.
func (r unitReader) readInline(ctx context.Context, units []*records.Unit, wanted func(*records.Unit) bool) ([]*output.Output, error) {
	all := make([]*output.Output, len(units))
	for i, u := range units {
		if len(u.Published().Inline) == 0 || !wanted(u) {
			continue
		}

		var err error
		if all[i], err = outputs.Of(ctx, r.source, r.job, u); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// visitLevel visits the units of a level, in order.
func (r unitReader) visitLevel(ctx context.Context, level int64, visit func(*records.Unit) error) error {
	return r.visitPages(ctx, level, nil, func(page *unitPage) error {
		for _, u := range page.units {
			if err := visit(u); err != nil {
				return err
			}
		}
		return nil
	})
}

// findDropped finds the map units that are in no result because a reduce over them failed,
// of a job with so many levels.
func (r unitReader) findDropped(ctx context.Context, levels int64) (dropped spans, err error) {
	for level := int64(1); level < levels; level++ {
		err := r.visitLevel(ctx, level, func(u *records.Unit) error {
			if u.State != mapreduce.UnitFailed {
				return nil
			}
			return r.addBelow(ctx, u, &dropped)
		})
		if err != nil {
			return spans{}, err
		}
	}

	dropped.sortAndJoin() // that of a reduce holds those of the reduces below it
	return dropped, nil
}

// addBelow adds the map units below a reduce. If reduces picked their inputs, the map
// units of one lie between those of others.
func (r unitReader) addBelow(ctx context.Context, u *records.Unit, to *spans) error {
	switch {
	case u.Inputs == nil:
		to.list = append(to.list, span{u.Index, u.Index + 1})
		return nil
	case u.Inputs.Picked == 0:
		to.list = append(to.list, span{u.Inputs.MapFirst, u.Inputs.MapEnd})
		return nil
	}
	return outputs.EachInput(ctx, r.source, r.job, u, func(in *records.Unit) error { return r.addBelow(ctx, in, to) })
}
