package workers

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
)

// Bounds of what one attempt says of itself, beyond which nobody hears it.
const (
	maxNotes  = 4096 // in all
	noteBurst = 64   // at once
	noteRate  = 8    // a second, after that
)

// saidNotes is what those who watch a job have heard of an attempt.
type saidNotes struct {
	feed  int64 // the feed that heard it
	last  int64 // the number of the latest note there
	count int
	room  cluster.Allowance
}

// hear reports whether a note is to be passed on to a feed, and notes that it is.
func (n *saidNotes) hear(feed, number int64, now time.Time) bool {
	if n.feed != feed {
		n.feed, n.last = feed, 0
	}
	if number <= n.last || n.count == maxNotes || !n.room.Use(now, noteBurst, noteRate) {
		return false
	}
	n.last = number
	n.count++
	return true
}

// HearNotes returns which notes of a worker are for those who watch jobs: they are of
// attempts that session was given and has not lost, new, and no more than an attempt may say.
// Feed returns the number of a job's feed, or 0 if nobody watches the job.
func (all *attempts) HearNotes(said []protocol.Progress, feed func(mapreduce.JobID) int64, now time.Time) (heard []protocol.Progress) {
	for _, p := range said {
		held := all.Attempt(protocol.Held{Job: p.Job, Unit: p.Unit, Attempt: p.Attempt})
		if p.Note == "" || p.Number == 0 || held == nil {
			continue
		}

		if f := feed(p.Job); f != 0 && held.said.hear(f, p.Number, now) {
			heard = append(heard, p)
		}
	}
	return heard
}
