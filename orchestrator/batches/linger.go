package batches

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A sighting is how many lines of a job waited when a worker last asked, and since when.
type sighting struct {
	count  int
	same   time.Time // since when there are so many
	coming time.Time // since when there are any
	due    bool      // a batch is made of them, until there are none
}

// see notes how many lines of a job wait, and reports whether a batch is to be made of them even if it is
// not full. It is if no line has come for a while and none is coming; or if some have waited for long,
// whatever is coming: a job may have work for days.
func (b *Batches) see(id mapreduce.JobID, count int, coming bool, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	// Those that come once there are none have waited for nothing yet.
	if count == 0 {
		delete(b.lines, id)
		return false
	}

	s, known := b.lines[id]
	if !known {
		s.coming = now
	}
	if !known || s.count != count {
		s.count, s.same = count, now
	}

	s.due = s.due || s.isDue(coming, now, b.config)
	b.lines[id] = s
	return s.due
}

// forget forgets the lines of a job that were seen: batches were made of them.
func (b *Batches) forget(id mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.lines, id)
}

func (s sighting) isDue(coming bool, now time.Time, c Config) bool {
	return !coming && now.Sub(s.same) >= c.Linger || now.Sub(s.coming) >= c.Most
}

// forgetBut forgets what was seen of other jobs.
func (b *Batches) forgetBut(ids []mapreduce.JobID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.lines {
		if !slices.Contains(ids, id) {
			delete(b.lines, id)
		}
	}
	for id := range b.seen {
		if !slices.Contains(ids, id) {
			delete(b.seen, id)
		}
	}
}
