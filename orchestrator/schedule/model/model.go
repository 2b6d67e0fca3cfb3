// Package model is what a node of orchestrators knows of one model: what the fleet may ask
// of it, the node's share of that, pauses that its vendor asked for, its breaker, how long
// its calls take, and what the node has to tell the fleet.
//
// It knows of units no more than how many there are, and nothing of workers: the scheduler
// decides whom something concerns. It is pure, and takes the time as an argument.
package model

import (
	"math"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Limits are what the fleet may ask of one model, as its owner says. Zero is
// no limit. Where the vendor tells its own, the lower one counts.
type Limits struct {
	Calls int64 // at once
	Rates mapreduce.Rates

	// Batches is what the account may have of batches. The scheduler has no use for it.
	Batches protocol.BatchRoom
}

// A State is what a node knows of the limits of one model, and what it has to tell the
// fleet of it. It is not safe for concurrent use.
type State struct {
	Name string // "provider/model"
	Pace Pace   // of the calls whose reports came here

	standing
	looked bool // the standing is what the store says

	frozen  time.Time // no unit is begun before: the vendor refused some
	until   time.Time // the breaker is open, and nobody probes
	refused time.Time // until when the vendor is to rest that refused the latest calls from here; zero if it took one
	told    bool      // workers were given a share that limits them

	manners manners // what its servers refuse

	note   limit.Note      // since the latest look
	urgent bool            // it is to be told at once
	left   mapreduce.Rates // of the rates, as the vendor said
	leftAt time.Time
}

// New returns what a node knows of a model of which it has not heard anything.
func New(name string, node mapreduce.NodeID, set Limits) *State {
	return &State{Name: name, standing: standing{node: node, set: set}}
}

// Provider returns whose model it is.
func (s *State) Provider() string { return strings.SplitN(s.Name, "/", 2)[0] }

// IsUnused reports whether nothing is lost if the state is forgotten once no job asks the
// model.
func (s *State) IsUnused(now time.Time) bool {
	return !s.HasShare() && !s.hasNews() && !s.urgent && !s.told && !s.scope.Breaker.Open && !now.Before(s.frozen)
}

// hasNews reports whether there is anything to tell the fleet.
func (s *State) hasNews() bool { return !s.note.IsZero() || len(s.manners.news) > 0 }

// MayRun returns how many units of a job the limits let run here at once; math.MaxInt64 is
// no limit.
func (s *State) MayRun(spec *mapreduce.JobSpec, now time.Time) int64 {
	switch {
	case !s.HasShare() || now.Before(s.frozen):
		return 0
	case s.HoldsBack(spec):
		return s.probes()
	case s.scope.Room > 0:
		return s.share.Slots
	}
	return math.MaxInt64
}

// IsRefusing reports whether the vendor has refused the latest calls from here, and the
// rest that it asked for is not over, or has not been for long.
func (s *State) IsRefusing(now time.Time) bool {
	return !s.refused.IsZero() && (now.Before(s.frozen) || now.Before(s.refused.Add(refusalLasts)))
}

// refusalLasts is how long a vendor counts as refusing all calls, after the pause that it
// asked for. A vendor that still refuses would refuse the next call in that time. If no
// call is refused, the vendor has accepted one that is still running, or was not asked.
const refusalLasts = 2 * time.Minute

// NextEvent is when a model has something to do by its clock; zero is never.
func (s *State) NextEvent(now time.Time) time.Time {
	end := s.frozen
	if s.scope.Breaker.Open && s.scope.Breaker.Prober == "" && s.until.After(end) {
		end = s.until
	}
	if end.After(now) {
		return end
	}
	return time.Time{}
}

// An Allowance is how many calls at once one model bears now, as far as this node knows.
type Allowance struct {
	Calls int64           // that were found to be borne, or are configured; 0 is no limit
	Rates mapreduce.Rates // a minute; 0 is no limit
	Rests bool            // the vendor refused calls a moment ago
	Open  bool            // the breaker is: one call may probe
	Pace  Pace            // of its calls
}

// Allowance returns what the model bears now.
func (s *State) Allowance(now time.Time) Allowance {
	a := Allowance{Calls: int64(s.scope.Room), Rates: s.Rates(), Rests: now.Before(s.frozen), Open: s.scope.Breaker.Open, Pace: s.Pace}
	if s.set.Calls > 0 && (a.Calls == 0 || s.set.Calls < a.Calls) {
		a.Calls = s.set.Calls
	}
	return a
}

// A View is what is known of a model that jobs ask, for people.
type View struct {
	Name        string // provider/model
	BreakerOpen bool
	Pause       time.Duration   // until the next call may begin
	Calls       int64           // at once by the whole fleet; 0 is no limit
	Rates       mapreduce.Rates // a minute by the whole fleet; 0 is no limit
}

// View returns what is known of the model now.
func (s *State) View(now time.Time) View {
	return View{
		Name: s.Name, BreakerOpen: s.scope.Breaker.Open, Pause: max(0, s.frozen.Sub(now)),
		Calls: int64(s.scope.Room), Rates: s.Rates(),
	}
}

// A Pace is what calls of a model took, as reports said that came to this node.
type Pace struct {
	Calls   int64
	Seconds float64 // of one call; like the others a mean in which later calls count more
	In, Out float64 // tokens of one call
}

// paceWeight is the weight of the latest report in a Pace.
const paceWeight = 0.05

// Note counts the calls of a report.
func (p *Pace) Note(rep *protocol.Report) {
	if rep.Calls <= 0 || rep.Latency <= 0 {
		return
	}
	n := float64(rep.Calls)
	w := max(paceWeight, 1/float64(p.Calls+1))
	p.Calls++
	p.Seconds += w * (rep.Latency.Seconds()/n - p.Seconds)
	p.In += w * (float64(rep.Tokens.In)/n - p.In)
	p.Out += w * (float64(rep.Tokens.Out)/n - p.Out)
}
