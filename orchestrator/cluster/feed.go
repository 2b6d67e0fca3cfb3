package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// Bounds of the notes of units that those who watch a job see, however many units and
// workers there are, and however much they say.
const (
	maxKept   = 256 // notes that a feed keeps for who has not seen them
	feedBurst = 256 // notes at once
	feedRate  = 64  // notes a second, after that
)

// Bounds of what orchestrators tell each other with their signs of life.
const (
	maxWatched   = 64       // jobs that the others are asked about; those who watch more see units of this node alone
	maxTold      = 96       // notes in one sign of life, which has a second's
	maxToldBytes = 32 << 10 // of their texts and ids
	tellTimes    = 3        // signs of life that have a note, as others may miss one
)

// Feeds pass what running units say of themselves on to those who watch their jobs. Nothing
// is kept of a job that nobody watches. The zero value is ready, and safe for concurrent use.
//
// A job may be watched at one orchestrator, and run by workers of another. Signs of life,
// which all give and read anyway, say which jobs are watched, and then what their units say.
type Feeds struct {
	mu    sync.Mutex
	feeds map[mapreduce.JobID]*feed
	begun int64 // feeds so far

	told    int64                      // notes to other orchestrators so far
	telling []toldNote                 // the last of them
	heard   map[mapreduce.NodeID]int64 // notes that others had told when they were heard last
}

// A toldNote is a note for other orchestrators.
type toldNote struct {
	note  nodes.Note
	times int // that it was told
}

func (n *toldNote) size() int { return len(n.note.Job) + len(n.note.Unit) + len(n.note.Note) }

// A feed is what units of a watched job said last. Feeds.mu guards it.
type feed struct {
	number    int64 // among all feeds
	followers int
	elsewhere bool                 // others have followers of the job
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

// Add adds notes of units that workers of this node run to the feed of a job, as many as it
// may have now. The others are left out.
func (f *Feeds) Add(id mapreduce.JobID, now time.Time, notes ...mapreduce.Activity) {
	f.mu.Lock()
	defer f.mu.Unlock()

	one := f.feeds[id]
	if one == nil {
		return
	}

	for _, note := range notes {
		if !one.add(now, note) {
			return
		}
		if one.elsewhere {
			f.told++
			f.telling = append(f.telling, toldNote{note: nodes.Note{Job: id, Activity: note}})
		}
	}

	f.telling = slices.Delete(f.telling, 0, max(0, len(f.telling)-maxTold))
}

// add adds a note, and reports whether there may be one now.
func (one *feed) add(now time.Time, note mapreduce.Activity) bool {
	if !one.room.Use(now, feedBurst, feedRate) {
		return false
	}
	one.said++
	one.kept = append(one.kept, note)
	one.kept = slices.Delete(one.kept, 0, max(0, len(one.kept)-maxKept))
	return true
}

// News returns what this orchestrator adds to its next sign of life: which jobs are watched
// here, the longest first, and what units of jobs that are watched elsewhere have said.
func (f *Feeds) News() nodes.News {
	f.mu.Lock()
	defer f.mu.Unlock()

	var n nodes.News
	for id, one := range f.feeds {
		if one.followers > 0 {
			n.Watched = append(n.Watched, id)
		}
	}
	slices.SortFunc(n.Watched, func(a, b mapreduce.JobID) int { return cmp.Compare(f.feeds[a].number, f.feeds[b].number) })
	n.Watched = n.Watched[:min(len(n.Watched), maxWatched)]

	f.telling = slices.DeleteFunc(f.telling, func(t toldNote) bool { return t.times == tellTimes })

	first := len(f.telling)
	for room := maxToldBytes; first > 0; first-- {
		if room -= f.telling[first-1].size(); room < 0 {
			break
		}
	}

	f.telling = slices.Delete(f.telling, 0, first) // too much in one second: the latest count
	for i := range f.telling {
		f.telling[i].times++
		n.Notes = append(n.Notes, f.telling[i].note)
	}
	n.Told = f.told
	return n
}

// Hear takes in what others have told with their signs of life, and returns the jobs that
// are watched here of whose units there are new notes.
func (f *Feeds) Hear(now time.Time, news map[mapreduce.NodeID]nodes.News) (fresh []mapreduce.JobID) {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.setElsewhere(news)
	for node, n := range news {
		if n.Told < f.heard[node] {
			delete(f.heard, node) // it began anew
		}

		// A note that was heard before comes again: others tell each note a few times.
		first := n.Told - int64(len(n.Notes))
		for _, note := range n.Notes[min(int64(len(n.Notes)), max(0, f.heard[node]-first)):] {
			if one := f.feeds[note.Job]; one != nil && one.followers > 0 && one.add(now, note.Activity) {
				fresh = append(fresh, note.Job)
			}
		}

		if f.heard == nil {
			f.heard = make(map[mapreduce.NodeID]int64)
		}
		f.heard[node] = n.Told
	}

	slices.Sort(fresh)
	return slices.Compact(fresh)
}

// setElsewhere notes which jobs are watched at other orchestrators. The caller holds mu.
func (f *Feeds) setElsewhere(news map[mapreduce.NodeID]nodes.News) {
	for _, one := range f.feeds {
		one.elsewhere = false
	}

	for _, n := range news {
		for _, id := range n.Watched {
			f.feed(id).elsewhere = true
		}
	}

	for id, one := range f.feeds {
		f.endUnwatched(id, one)
	}
}

// feed returns the feed of a job, a new one if it has none. The caller holds mu.
func (f *Feeds) feed(id mapreduce.JobID) *feed {
	one := f.feeds[id]
	if one == nil {
		f.begun++
		one = &feed{number: f.begun}
		if f.feeds == nil {
			f.feeds = make(map[mapreduce.JobID]*feed)
		}
		f.feeds[id] = one
	}
	return one
}

// endUnwatched ends a feed that nobody follows. The caller holds mu.
func (f *Feeds) endUnwatched(id mapreduce.JobID, one *feed) {
	if one.followers == 0 && !one.elsewhere {
		delete(f.feeds, id)
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
	one := f.feed(id)
	one.followers++
	return &Follower{feeds: f, job: id, feed: one}
}

// Next returns the notes that the follower has not read, as far as the feed still has them.
func (f *Follower) Next() []mapreduce.Activity {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	fresh := min(f.feed.said-f.seen, int64(len(f.feed.kept)))
	f.seen = f.feed.said
	return slices.Clone(f.feed.kept[int64(len(f.feed.kept))-fresh:])
}

// Close ends the following. The last follower's end ends the feed.
func (f *Follower) Close() {
	f.feeds.mu.Lock()
	defer f.feeds.mu.Unlock()
	f.feed.followers--
	f.feeds.endUnwatched(f.job, f.feed)
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
