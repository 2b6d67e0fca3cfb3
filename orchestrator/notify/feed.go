package notify

import (
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Bounds of what those who watch a job are told of what its units say, however many units
// and workers say how much.
const (
	maxKept   = 256 // notes that a feed keeps for who has not seen them
	feedBurst = 256 // notes at once
	feedRate  = 64  // notes a second, after that
)

// Feeds pass what running units say of themselves on to those who watch their jobs. Nothing
// is kept of a job that nobody watches. The zero value is ready, and safe for concurrent use.
type Feeds struct {
	mu    sync.Mutex
	feeds map[mapreduce.JobID]*feed
	begun int64 // feeds so far
}

// A feed is what units of a watched job said last. Feeds.mu guards it.
type feed struct {
	number    int64 // among all feeds
	followers int
	said      int64                // notes so far
	kept      []mapreduce.Activity // the last of them
	room      Allowance
}

// Number returns the number of a job's feed, which no other has had; 0 if nobody watches the
// job.
func (f *Feeds) Number(id mapreduce.JobID) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.feeds[id]; one != nil {
		return one.number
	}
	return 0
}

// Add adds notes to the feed of a job, as many as it may have now. The others are left out.
func (f *Feeds) Add(id mapreduce.JobID, now time.Time, notes ...mapreduce.Activity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.feeds[id]
	if one == nil {
		return
	}
	for _, note := range notes {
		if !one.room.Use(now, feedBurst, feedRate) {
			return
		}
		one.said++
		one.kept = append(one.kept, note)
	}
	if more := len(one.kept) - maxKept; more > 0 {
		one.kept = slices.Delete(one.kept, 0, more)
	}
}

// A Follower reads the feed of a job.
type Follower struct {
	feeds *Feeds
	job   mapreduce.JobID
	feed  *feed
	seen  int64 // notes that it has read, or missed
}

// Follow returns a follower of a job, which begins with what the feed still has. Whoever has
// read enough closes it.
func (f *Feeds) Follow(id mapreduce.JobID) *Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.feeds[id]
	if one == nil {
		f.begun++
		one = &feed{number: f.begun}
		if f.feeds == nil {
			f.feeds = make(map[mapreduce.JobID]*feed)
		}
		f.feeds[id] = one
	}
	one.followers++
	return &Follower{feeds: f, job: id, feed: one}
}

// Next returns the notes that the follower has not read, as far as the feed still has them.
func (r *Follower) Next() []mapreduce.Activity {
	r.feeds.mu.Lock()
	defer r.feeds.mu.Unlock()
	fresh := min(r.feed.said-r.seen, int64(len(r.feed.kept)))
	r.seen = r.feed.said
	return slices.Clone(r.feed.kept[int64(len(r.feed.kept))-fresh:])
}

// Close ends the following. The last follower's end ends the feed.
func (r *Follower) Close() {
	r.feeds.mu.Lock()
	defer r.feeds.mu.Unlock()
	if r.feed.followers--; r.feed.followers == 0 {
		delete(r.feeds.feeds, r.job)
	}
}

// An Allowance is how much of something may be done now: so much at once, and so much a
// second after that. Its zero value allows a whole burst. It is not safe for concurrent use.
type Allowance struct {
	used float64 // of the burst
	at   time.Time
}

// Use reports whether another one is allowed now, and counts it if it is.
func (a *Allowance) Use(now time.Time, burst, rate float64) bool {
	if passed := now.Sub(a.at).Seconds(); passed > 0 {
		a.used, a.at = max(0, a.used-passed*rate), now
	}
	if a.used+1 > burst {
		return false
	}
	a.used++
	return true
}
