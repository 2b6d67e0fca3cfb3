package jobs

import (
	"time"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A fleetPage is the page of servers, workers, queues, models and the store.
type fleetPage struct {
	*mapreduce.FleetStatus
	Check  string      // address of the page that has the store checked
	Doctor *storeCheck // nil if nobody has asked for it
}

// A storeCheck is what a check of the whole store found.
type storeCheck struct {
	Wrong []mapreduce.Finding // the first of them
	More  int64               // that are wrong and left out
	Lines []string            // what was checked, the last of it
}

// maxFindings bounds what a page shows of a check.
const maxFindings = 100

// Silence returns what is known of the life of a server, as the catalogue names it.
func (p *fleetPage) Silence(s mapreduce.ServerStatus) string {
	switch {
	case s.Node == p.Node:
		return "answers"
	case s.Dead:
		return "dead"
	case s.Silent > 0:
		return "quiet"
	}
	return "lives"
}

// State returns how a worker stands, as the catalogue names it.
func (p *fleetPage) State(w mapreduce.WorkerStatus) string {
	switch {
	case w.Node == "":
		return "lost"
	case !w.Known:
		return "elsewhere"
	case w.Away:
		return "away"
	case w.Draining:
		return "draining"
	}
	return "connected"
}

// Quiet reports whether a worker has said nothing for so long that a reader should know since when.
// Of others the page would change with every sign of life.
func (p *fleetPage) Quiet(w mapreduce.WorkerStatus) bool {
	return !w.Seen.IsZero() && p.Time.Sub(w.Seen) > quietFor
}

// quietFor is some signs of life, and as long as a server waits for one by default.
const quietFor = 10 * time.Second

// Rounded returns a duration as people read it, and short ones to the microsecond.
func (*fleetPage) Rounded(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Second).String()
}

// LoadFleet makes the page of the fleet. A check reads the whole store.
func LoadFleet(v *visit.Visit) (any, error) {
	p, err := readFleet(v)
	if err != nil || !v.Query.Has("check") {
		return p, err
	}

	check := &storeCheck{}
	err = v.Jobs.CheckStore(v, mapreduce.CheckQuery{}, check.note)
	p.Doctor = check
	return p, err
}

// LoadFleetAgain makes what an open page of the fleet shows: no store is checked twice.
func LoadFleetAgain(v *visit.Visit) (any, error) { return readFleet(v) }

func readFleet(v *visit.Visit) (*fleetPage, error) {
	f, err := v.Jobs.FleetStatus(v)
	if err != nil {
		return nil, err
	}
	return &fleetPage{FleetStatus: f, Check: v.With("check", "1")}, nil
}

func (c *storeCheck) note(f mapreduce.Finding) error {
	switch {
	case f.Severity == mapreduce.Info:
		c.Lines = append(c.Lines, f.Message)
		c.Lines = c.Lines[max(0, len(c.Lines)-maxFindings):]
	case len(c.Wrong) < maxFindings:
		c.Wrong = append(c.Wrong, f)
	default:
		c.More++
	}
	return nil
}
