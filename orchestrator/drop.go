package orchestrator

import "github.com/coditect/mapreduce/api/mapreduce"

// dropUnits stops what workers of this node run of a job. A worker that has
// spent something by then reports it, and gets the verdict of any late report.
func (b *scheduler) dropUnits(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil {
		return
	}
	for _, s := range b.sessions {
		var stop []mapreduce.Held
		for key, h := range s.held {
			if key.job != id || h.reported {
				continue
			}
			stop = append(stop, mapreduce.Held{Job: id, Unit: key.unit, Attempt: h.attempt})
			s.forgetAttempt(id, key.unit, h.attempt)
			h.claim.endUnit(r)
			b.addHeldUnits(r, -1)
		}
		if len(stop) > 0 {
			s.out.put(&mapreduce.ToWorker{Cancel: stop})
		}
	}
	b.fairQueue.add(r)
	b.wake.Broadcast()
}
