package dispatch

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// passNotes passes what units of a worker say of themselves on to those who watch their
// jobs. Nothing keeps it.
func (r *reports) passNotes(heard []protocol.Progress) {
	if len(heard) == 0 {
		return
	}

	now := time.Now()
	woken := make(map[mapreduce.JobID]bool)
	for _, p := range heard {
		r.signals.Feeds.Add(p.Job, now, mapreduce.Activity{Unit: p.Unit, Attempt: p.Attempt, Number: p.Number, Tokens: p.Tokens, Note: p.Note})
		woken[p.Job] = true
	}

	for id := range woken {
		r.signals.WakeWatchers(id)
	}
}
