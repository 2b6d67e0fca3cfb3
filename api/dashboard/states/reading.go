package states

import (
	"context"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A reading is the states of the units of a job as they are read, page by page.
type reading struct {
	job   Job
	asked int64 // requests that had come when it began
	began time.Time
	turn  chan struct{} // held by whoever reads the next page

	followers int // requests that follow it now; guarded by the index

	mu    sync.Mutex // guards the variables below
	lines []Line
	units int
	next  string        // token of the next page
	done  bool          // there is none
	ended time.Time     // when it was done
	more  chan struct{} // closed when something has come
}

func newReading(job Job, asked int64, now time.Time) *reading {
	return &reading{job: job, asked: asked, began: now, turn: make(chan struct{}, 1), more: make(chan struct{})}
}

// follow calls emit with all lines, from the first one on, and reads those that nobody else is about to read.
func (r *reading) follow(ctx context.Context, now func() time.Time, list List, emit func(Line) error) error {
	for n := 0; ; {
		lines, done, more := r.since(n)
		for _, l := range lines {
			if err := emit(l); err != nil {
				return err
			}
		}

		n += len(lines)
		switch {
		case len(lines) > 0 && !done:
			continue // there may be more by now
		case done:
			return nil
		}

		select {
		case r.turn <- struct{}{}:
			err := r.step(ctx, now, n, list)
			<-r.turn
			if err != nil {
				return err
			}
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// since returns the lines after the first n, whether these are the last, and what is closed when more have come.
func (r *reading) since(n int) (lines []Line, done bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[n:], r.done, r.more
}

// whole reports whether all has been read.
func (r *reading) whole() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// took returns how long it has read, and how long that is ago: not at all as long as it reads.
func (r *reading) took(now time.Time) (took, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		return now.Sub(r.began), 0
	}
	return r.ended.Sub(r.began), now.Sub(r.ended)
}

// step reads the line after n others, unless it has been read meanwhile. The caller has the turn.
func (r *reading) step(ctx context.Context, now func() time.Time, n int, list List) error {
	r.mu.Lock()
	token, there := r.next, len(r.lines) > n || r.done
	r.mu.Unlock()
	if there {
		return nil
	}

	page, err := list(ctx, mapreduce.ListUnitsQuery{Job: r.job.ID, Standings: true, PageSize: UnitsOfLine, PageToken: token})
	if err != nil {
		return err
	}

	states := make([]byte, 0, len(page.Standings)+len(page.Units))
	for _, s := range page.Standings {
		states = append(states, letterOf(s))
	}
	for _, u := range page.Units { // of an earlier server
		states = append(states, letterOf(mapreduce.UnitStanding{State: u.State, Parked: u.Parking != nil}))
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, Line{string(states), token, r.units})
	r.units += len(states)
	r.next, r.done = page.NextPageToken, page.NextPageToken == ""
	if r.done {
		r.ended = now()
	}
	close(r.more)
	r.more = make(chan struct{})
	return nil
}
