package dashboard

import (
	"time"

	"github.com/coditect/mapreduce/api/errs"
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

// loadHistory makes the page of how a job went.
func loadHistory(v *visit) (any, error) {
	p, err := openJob(v, "history")
	if err != nil {
		return nil, err
	}

	var events []*mapreduce.Checkpoint
	query := mapreduce.ListEventsQuery{Job: p.ID, PageSize: 1000}
	for {
		page, err := v.jobs.ListEvents(v, query)
		if err != nil {
			return nil, err
		}
		events = append(events, page.Checkpoints...)
		query.PageToken = page.NextPageToken
		if query.PageToken == "" || len(events) >= maxEvents {
			break
		}
	}

	end := v.now
	if !p.Ended.IsZero() {
		end = p.Ended
	}
	h := newHistory(p.Created, end, events)
	h.Cut = query.PageToken != ""
	p.Content = h
	return p, nil
}

// newHistory puts events into steps of equal length.
func newHistory(begin, end time.Time, events []*mapreduce.Checkpoint) *history {
	h := &history{Begin: begin, End: end, Width: historyWidth, Steps: make([]step, historySteps)}
	length := max(end.Sub(begin)/historySteps, time.Millisecond)
	for i := range h.Steps {
		h.Steps[i].From = begin.Add(time.Duration(i) * length)
		h.Steps[i].X = i * historyWidth / historySteps
	}

	for _, e := range events {
		s := &h.Steps[min(max(0, int(e.Time.Sub(begin)/length)), historySteps-1)]
		s.Done += int64(len(e.Completed))
		s.Failed += int64(len(e.Failed))
		s.Tokens += e.Tokens.Total()
	}

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
	return h
}

// isDamage reports whether an error says that what is stored is not what was stored.
func isDamage(err error) bool { return errs.KindOf(err) == errs.DataLoss }
