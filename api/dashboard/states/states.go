// Package states reads where all units of a job stand, for pages that show each of them: a
// letter a unit. What was read is kept in a bounded memory, and all pages of a job share it.
//
// A reading has no goroutine of its own. Whoever needs more of it than is there reads the next
// page of units, unless somebody else is about to; whoever goes away leaves it to the others.
// So at any time one request reads the units of a job, and one that is slow in taking what was
// read holds up nobody.
//
// What a request has been sent at its end was read after it came, or of the same version of the
// job. The package imports the vocabulary alone.
package states

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Line has the states of some units that follow each other.
type Line struct {
	States string `json:"states"` // a letter for each
	At     string `json:"at"`     // token of the page of units that begins with them
	First  int    `json:"first"`  // units before these; 0 begins anew, as what comes now is newer
}

// letters are those of states, by the numbers of the states; p is for those that are parked.
const letters = "?bwrcfx"

// UnitsOfLine is how many units a line has, at most.
const UnitsOfLine = 1000

// Config says how much is kept.
type Config struct {
	// Room is how many units are kept the states of, of all jobs together: a byte each. Defaults to 16 million.
	Room int

	// Least is how many units a job has whose states are kept: few are read as quickly as they are found.
	// Defaults to 10,000.
	Least int

	// Now defaults to time.Now.
	Now func() time.Time
}

// settled is how long what was read of a job that runs stands for its version, at least: a unit may take the place of
// another in the same state, which changes no count. What took long stands for ten times as long as it took.
const settled = 10 * time.Second

// An Index keeps where the units of jobs stand. It is safe for use by several goroutines.
type Index struct {
	config Config

	mu    sync.Mutex // guards the variables below
	asked int64      // requests so far
	kept  []*reading // of a job each, those asked for last at the end
}

// New returns an index that keeps nothing yet.
func New(c Config) *Index {
	if c.Room == 0 {
		c.Room = 16_000_000
	}
	if c.Least == 0 {
		c.Least = 10_000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Index{config: c}
}

// List returns a page of units, as mapreduce.Client does.
type List func(context.Context, mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error)

// A Job is a job as a request finds it.
type Job struct {
	ID      mapreduce.JobID
	Version string // changes with the states of its units
	Units   int64
	Running bool
}

// Send calls emit with the lines of a job, or of those of its units that are in some states: with what is known of
// it at once, and if that is of an earlier version, again from the first line on as it is now.
func (x *Index) Send(ctx context.Context, job Job, of []mapreduce.UnitState, list List, emit func(Line) error) error {
	asked := x.ask()
	for seen := (*reading)(nil); ; {
		r, last := x.join(job, asked, seen)
		err := r.follow(ctx, x.config.Now, list, choose(of, emit))
		x.leave(r)
		if err != nil || last {
			return err
		}
		seen = r
	}
}

// First returns the token of a page of units in which the first one in some states is, if all states are known as
// they are now. It is not found if no unit is in any of these.
func (x *Index) First(job Job, of []mapreduce.UnitState) (token string, found, known bool) {
	x.mu.Lock()
	r := x.find(job.ID)
	known = r != nil && x.stands(r, job)
	x.mu.Unlock()
	if !known {
		return "", false, false
	}

	lines, whole, _ := r.since(0)
	if !whole {
		return "", false, false
	}
	for _, l := range lines {
		if strings.ContainsAny(l.States, lettersOf(of)) {
			return l.At, true, true
		}
	}
	return "", false, true
}

func (x *Index) ask() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked++
	return x.asked
}

// join returns the reading of a job that a request is to follow, and whether that is the last one it needs. It has
// seen another to its end; nil if none.
func (x *Index) join(job Job, asked int64, seen *reading) (r *reading, last bool) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if job.Units < int64(x.config.Least) || job.Units > int64(x.config.Room) {
		return newReading(job, asked, x.config.Now()), true
	}

	r = x.find(job.ID)
	switch {
	case r != nil && (r.asked >= asked || x.stands(r, job)):
		last = true
	// What is known is of use meanwhile, and while others read there is no second reading. One that was left half
	// read is neither.
	case r != nil && r != seen && (r.followers > 0 || r.whole()):
	default:
		r, last = newReading(job, x.asked, x.config.Now()), true
	}
	r.followers++
	x.keep(r)
	return r, last
}

func (x *Index) leave(r *reading) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.followers--
}

// stands reports whether what a reading says is so of a job as it is now.
func (x *Index) stands(r *reading, job Job) bool {
	if r.job.Version != job.Version || !job.Running {
		return r.job.Version == job.Version
	}
	took, since := r.took(x.config.Now())
	return since < max(settled, 10*took)
}

func (x *Index) find(id mapreduce.JobID) *reading {
	for _, r := range x.kept {
		if r.job.ID == id {
			return r
		}
	}
	return nil
}

// keep keeps a reading in the place of another of its job, and forgets those for which there is no room, and which
// were not asked for the longest.
func (x *Index) keep(r *reading) {
	kept, units := []*reading{r}, r.job.Units
	for _, old := range slices.Backward(x.kept) {
		if old.job.ID != r.job.ID && units+old.job.Units <= int64(x.config.Room) {
			units += old.job.Units
			kept = append([]*reading{old}, kept...)
		}
	}
	x.kept = kept
}

// choose returns what emits of a line the units that are in some states; all if there are none.
func choose(of []mapreduce.UnitState, emit func(Line) error) func(Line) error {
	if len(of) == 0 {
		return emit
	}

	wanted, first := lettersOf(of), 0
	return func(l Line) error {
		begins := l.First == 0
		l.States = strings.Map(func(r rune) rune {
			if strings.ContainsRune(wanted, r) {
				return r
			}
			return -1
		}, l.States)

		if l.First = first; l.States == "" && !begins {
			return nil // nothing begins there
		}
		first += len(l.States)
		return emit(l)
	}
}

// lettersOf returns the letters of units in some states.
func lettersOf(states []mapreduce.UnitState) string {
	var all strings.Builder
	for _, s := range states {
		all.WriteByte(letterOf(mapreduce.UnitStanding{State: s}))
		if s == mapreduce.Pending {
			all.WriteByte('p')
		}
	}
	return all.String()
}

func letterOf(u mapreduce.UnitStanding) byte {
	switch {
	case u.Parked:
		return 'p'
	case int(u.State) < len(letters):
		return letters[u.State]
	}
	return '?'
}
