// Package limit is the arithmetic of what the whole fleet may ask of one model:
// calls at once, requests and tokens a minute, pauses that the vendor asked for,
// and the breaker. A Scope is what is kept of a model; a Note is what a node has
// seen of it and wants of it; Step is what becomes of the scope.
//
// It is pure: it imports nothing of the project but the vocabulary, and has no
// clock. A pause and an open breaker are counted, and each node times them from
// its own first sight of the count; one that has had no share, for as long as they last yet.
package limit

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Whole is all of a model's rates, in the unit of Share.Parts.
const Whole int64 = 1_000_000

// LeastPause is how long a model rests that has refused calls without saying for
// how long.
const LeastPause = time.Second

// A Scope holds the fleet's knowledge of one model, and the share of each orchestrator.
type Scope struct {
	Rates mapreduce.Rates // as the vendor told them
	// Room is how many calls at once were found to be taken, where the vendor
	// does not tell its limits, or are configured. 0 is no finding.
	Room    float64
	Pauses  int64         // refusals that began a pause, so far
	Pause   time.Duration // of the latest
	Breaker Breaker
	Shares  map[mapreduce.NodeID]Share
	Manners map[string]string // what servers of the model refuse, by a hash of their address

	// PauseLeft and OpenLeft are what is left of Pause and Breaker.For, by the clocks, for who
	// has not seen them begin. Step does not move them.
	PauseLeft, OpenLeft time.Duration
}

// A Breaker stops the calls of the whole fleet to a model that only fails.
type Breaker struct {
	Turns int64 // openings, probes and closings so far
	Open  bool
	For   time.Duration // it stays open, from the opening on
	// Prober is the node that may make one call, to see whether all is well;
	// "" while nobody may.
	Prober mapreduce.NodeID
}

// A Share is what one node may do.
type Share struct {
	Want  int64 // calls at once that it has use for
	Slots int64 // calls at once that it may make, if Room is limited
	Parts int64 // of the rates, out of Whole
}

// A Note is what a node has seen of a model since its last, and wants of it.
type Note struct {
	Node mapreduce.NodeID
	Most int64 // calls at once that the fleet may make of all models
	Set  int64 // calls at once of this one, as configured; 0 is Most

	Want int64 // calls at once that it has use for; 0 gives its share back
	Held int64 // units that it holds, and so slots that it cannot give back yet

	Told      mapreduce.Rates // by the vendor; what it did not tell is 0
	Successes int64
	Refused   bool          // a call was, for want of room
	Guess     bool          // and the vendor does not tell its limits
	Seen      int64         // pauses that it had seen before that
	Pause     time.Duration // that the vendor asked for

	Opened time.Duration // a breaker has opened for so long; 0 if none has
	Probe  bool          // the breaker has been open for its time
	Turns  int64         // of the breaker, that Probe is about: it may have opened again since
	Closed bool          // the probe succeeded

	Manners map[string]string // what servers were found to refuse, as in Scope
}

// IsZero reports whether a note says nothing.
func (n *Note) IsZero() bool {
	rest := *n
	rest.Manners = nil
	return len(n.Manners) == 0 && reflect.ValueOf(rest).IsZero()
}

// MaxServers bounds the servers of one model of which the fleet knows what they refuse: whoever
// submits jobs names them.
const MaxServers = 16

// Nodes yields the nodes that have a share, and the one that probes.
func (s *Scope) Nodes() iter.Seq[mapreduce.NodeID] {
	return func(yield func(mapreduce.NodeID) bool) {
		for node := range s.Shares {
			if !yield(node) {
				return
			}
		}
		if s.Breaker.Prober != "" {
			yield(s.Breaker.Prober)
		}
	}
}

// Step takes a note, and gives its node a share. Dead reports whether a node is:
// what those had is free.
func (s *Scope) Step(n Note, dead func(mapreduce.NodeID) bool) {
	for node := range s.Shares {
		if node != n.Node && dead(node) {
			delete(s.Shares, node)
		}
	}
	s.learnLimits(n)
	s.learnManners(n)
	s.moveBreaker(n, dead)
	s.grantShare(n)
}

// learnLimits moves the rates and the room. Rates that the vendor tells are believed.
// Where it tells none, a refusal halves the calls at once, and as many successes
// as there are calls at once add one.
func (s *Scope) learnLimits(n Note) {
	s.Rates.Requests = cmp.Or(n.Told.Requests, s.Rates.Requests)
	s.Rates.Input = cmp.Or(n.Told.Input, s.Rates.Input)
	s.Rates.Output = cmp.Or(n.Told.Output, s.Rates.Output)

	switch {
	case n.Refused && n.Seen < s.Pauses:
		// The refusal is of the same moment as one that began a pause.
		if n.Pause > s.Pause {
			s.Pauses++
			s.Pause = n.Pause
		}
	case n.Refused:
		s.Pauses++
		s.Pause = max(n.Pause, LeastPause)
		if n.Guess {
			s.Room = max(min(cmp.Or(s.Room, n.maxCalls()), float64(s.busyCalls(n)))/2, 1)
		}
	case s.Room > 0:
		s.Room += float64(n.Successes) / s.Room
		if s.Room >= n.maxCalls() {
			s.Room = 0
		}
	}

	if most := n.maxCalls(); most < float64(n.Most) && (s.Room == 0 || s.Room > most) {
		s.Room = most
	}
}

// learnManners takes what servers refuse. If two workers have learned different things of
// one server, the later word stands.
func (s *Scope) learnManners(n Note) {
	for _, server := range slices.Sorted(maps.Keys(n.Manners)) {
		if _, known := s.Manners[server]; !known && len(s.Manners) >= MaxServers {
			continue // it is found out anew by each worker
		}
		if s.Manners == nil {
			s.Manners = make(map[string]string)
		}
		s.Manners[server] = n.Manners[server]
	}
}

// maxCalls is how many calls at once the fleet may make of the model.
func (n *Note) maxCalls() float64 {
	if n.Set > 0 {
		return float64(min(n.Set, n.Most))
	}
	return float64(n.Most)
}

// busyCalls is how many calls there may be at once, as far as n's node can tell.
func (s *Scope) busyCalls(n Note) int64 {
	all := n.Held
	for node, o := range s.Shares {
		if node != n.Node {
			all += o.Want
			if s.Room > 0 {
				all += min(o.Slots, o.Want) - o.Want
			}
		}
	}
	return max(all, 1)
}

// moveBreaker moves the breaker. It opens once, however many say so; only the prober
// closes it, or finds that it has to open again.
func (s *Scope) moveBreaker(n Note, dead func(mapreduce.NodeID) bool) {
	b := &s.Breaker
	if b.Prober != "" && b.Prober != n.Node && dead(b.Prober) {
		b.Prober = ""
	}

	mine := b.Prober == n.Node
	switch {
	case n.Opened > 0 && (!b.Open || mine):
		*b = Breaker{Turns: b.Turns + 1, Open: true, For: n.Opened}
	case n.Closed && b.Open && mine:
		*b = Breaker{Turns: b.Turns + 1}
	case n.Probe && b.Open && b.Prober == "" && n.Turns == b.Turns:
		b.Turns++
		b.Prober = n.Node
	case mine && n.Want == 0 && n.Held == 0:
		b.Prober = "" // it has nothing to probe with
	}
}

// grantShare gives n's node what its part comes to by what all want, as far as others
// have not got it. They give back what is beyond theirs with their own notes, so
// that after two rounds everyone has its part.
func (s *Scope) grantShare(n Note) {
	if n.Want == 0 && n.Held == 0 {
		delete(s.Shares, n.Node)
		return
	}

	if s.Shares == nil {
		s.Shares = make(map[mapreduce.NodeID]Share)
	}

	own := s.Shares[n.Node]
	own.Want = max(n.Want, n.Held)
	s.Shares[n.Node] = own
	slots, parts := int64(s.Room), Whole
	for node, o := range s.Shares {
		if node != n.Node {
			slots -= o.Slots
			parts -= o.Parts
		}
	}

	own.Parts = max(0, min(parts, s.nodePart(n.Node, Whole)))
	if s.Room == 0 {
		own.Slots = own.Want
	} else {
		own.Slots = max(0, min(slots, s.nodePart(n.Node, int64(s.Room)), own.Want))
		own.Slots = max(own.Slots, min(n.Held, s.Shares[n.Node].Slots)) // under way
	}

	s.Shares[n.Node] = own
}

// nodePart is a node's part of a total, by what all want.
func (s *Scope) nodePart(node mapreduce.NodeID, total int64) int64 {
	nodes := make([]mapreduce.NodeID, 0, len(s.Shares))
	for id := range s.Shares {
		nodes = append(nodes, id)
	}
	slices.Sort(nodes)
	wants := make([]int64, len(nodes))
	for i, id := range nodes {
		wants[i] = s.Shares[id].Want
	}
	return Divide(total, wants)[slices.Index(nodes, node)]
}

// Divide splits a total by weights, into whole parts that add up to it, by the
// largest remainders; what is left over goes to the first of equals. If no weight
// is above 0, nobody gets anything.
func Divide(total int64, weights []int64) []int64 {
	parts := make([]int64, len(weights))
	sum := float64(0)
	for _, w := range weights {
		sum += float64(max(w, 0))
	}

	if sum == 0 || total <= 0 {
		return parts
	}

	rest := total
	order := make([]int, len(weights))
	remainder := make([]float64, len(weights))
	for i, w := range weights {
		exact := float64(total) * (float64(max(w, 0)) / sum)
		// Floating point must not give out more than there is.
		parts[i] = min(int64(exact), rest)
		remainder[i], order[i] = exact-float64(parts[i]), i
		rest -= parts[i]
	}

	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainder[b], remainder[a]) })
	for k := 0; rest > 0; k++ {
		if i := order[k%len(order)]; weights[i] > 0 {
			parts[i]++
			rest--
		}
	}

	return parts
}
