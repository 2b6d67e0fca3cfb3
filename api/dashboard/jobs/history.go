package jobs

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A history is how a job went: what was done, and spent, over its time.
type history struct {
	Begin, End time.Time
	Steps      []step
	Most       int64 // units that ended in one step, at most
	Tokens     int64 // in one step, at most
	Width      int   // of the pictures, in their own units
	Cut        bool  // there are more events than were read
	Slots      *slots

	length time.Duration // of a step
	events int           // in all steps
}

// A slots is the picture of which units were at work at the same time; nil if they are many.
type slots struct {
	Lanes, Height int
	Bars          []bar
}

// A bar is the last attempt of a unit that has ended.
type bar struct {
	X, Y, Width int
	ID, State   string
	Path        string
	Took        time.Duration
}

// A step is a part of the time of a job.
type step struct {
	From             time.Time
	Done, Failed     int64
	Tokens           int64
	All              int64 // done until its end
	X, Height, Spent int   // of its bars
}

const (
	historySteps  = 120
	historyWidth  = 960
	historyHeight = 100
	maxEvents     = 100_000
)

// LoadHistory makes the page of how a job went.
func LoadHistory(v *visit.Visit) (any, error) {
	p, err := OpenJob(v, "history")
	if err != nil {
		return nil, err
	}

	end := v.Now
	if !p.Ended.IsZero() {
		end = p.Ended
	}
	h := newHistory(p.Created, end)
	draws := p.TotalUnits <= maxBars
	var events []*mapreduce.Checkpoint // kept of a job whose units are drawn: those of a large one take much memory
	query := mapreduce.ListEventsQuery{Job: p.ID, Counts: !draws, PageSize: 1000}
	for {
		page, err := v.Jobs.ListEvents(v, query)
		if err != nil {
			return nil, err
		}
		h.add(page.Checkpoints)
		if draws {
			events = append(events, page.Checkpoints...)
		}
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || h.events >= maxEvents {
			break
		}
	}

	h.draw()
	h.Cut = query.PageToken != ""
	if draws {
		if h.Slots, err = loadSlots(v, p.ID, h, events); err != nil {
			return nil, err
		}
	}
	p.Content = h
	return p, nil
}

// newHistory returns a history of steps of equal length in which nothing has happened.
func newHistory(begin, end time.Time) *history {
	h := &history{Begin: begin, End: end, Width: historyWidth, Steps: make([]step, historySteps)}
	h.length = max(end.Sub(begin)/historySteps, time.Millisecond)
	for i := range h.Steps {
		h.Steps[i].From = begin.Add(time.Duration(i) * h.length)
		h.Steps[i].X = i * historyWidth / historySteps
	}
	return h
}

// add puts events into their steps.
func (h *history) add(events []*mapreduce.Checkpoint) {
	h.events += len(events)
	for _, e := range events {
		s := &h.Steps[min(max(0, int(e.Time.Sub(h.Begin)/h.length)), historySteps-1)]
		s.Done += int64(len(e.Completed)) + e.CompletedCount
		s.Failed += int64(len(e.Failed)) + e.FailedCount
		s.Tokens += e.Tokens.Total()
	}
}

// draw says how high the bars of the steps are.
func (h *history) draw() {
	all := int64(0)
	for i := range h.Steps {
		s := &h.Steps[i]
		all += s.Done
		s.All = all
		h.Most, h.Tokens = max(h.Most, s.Done+s.Failed), max(h.Tokens, s.Tokens)
	}

	for i := range h.Steps {
		s := &h.Steps[i]
		s.Height = int((s.Done + s.Failed) * historyHeight / max(1, h.Most))
		s.Spent = int(s.Tokens * historyHeight / max(1, h.Tokens))
	}
}

// loadSlots draws the units of a job by when they ended and how long their last attempts took.
func loadSlots(v *visit.Visit, id mapreduce.JobID, h *history, events []*mapreduce.Checkpoint) (*slots, error) {
	ended := make(map[mapreduce.UnitID]time.Time)
	for _, e := range events {
		for _, u := range e.Completed {
			ended[u.Unit] = e.Time
		}
		for _, u := range e.Failed {
			ended[u.Unit] = e.Time
		}
	}

	var units []*mapreduce.Unit
	query := mapreduce.ListUnitsQuery{Job: id, PageSize: UnitsOfRequest}
	for {
		page, err := v.Jobs.ListUnits(v, query)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Units {
			if _, found := ended[u.ID]; found && u.State.Ended() {
				units = append(units, u)
			}
		}
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || len(units) >= maxBars {
			break
		}
	}
	return drawSlots(v, h, units, ended), nil
}

// drawSlots puts each unit into the first lane that is free when it begins.
func drawSlots(v *visit.Visit, h *history, units []*mapreduce.Unit, ended map[mapreduce.UnitID]time.Time) *slots {
	begin := func(u *mapreduce.Unit) time.Time { return ended[u.ID].Add(-u.Elapsed) }
	slices.SortFunc(units, func(a, b *mapreduce.Unit) int { return begin(a).Compare(begin(b)) })

	s := &slots{}
	whole := max(h.End.Sub(h.Begin), time.Millisecond)
	at := func(t time.Time) int { return int(max(0, t.Sub(h.Begin)) * historyWidth / whole) }
	var free []time.Time // when each lane is free again
	for _, u := range units {
		lane := slices.IndexFunc(free, func(t time.Time) bool { return !t.After(begin(u)) })
		if lane < 0 {
			lane = len(free)
			free = append(free, time.Time{})
		}
		free[lane] = ended[u.ID]
		x := at(begin(u))
		s.Bars = append(s.Bars, bar{
			X: x, Y: lane * laneHeight, Width: max(1, at(ended[u.ID])-x), ID: string(u.ID), State: stateOf(u),
			Path: v.JobPath(u.Job, "units", visit.UnitAt(u)), Took: u.Elapsed,
		})
	}
	s.Lanes, s.Height = len(free), len(free)*laneHeight
	return s
}

const (
	maxBars    = 2000 // units that are drawn
	laneHeight = 8
)
