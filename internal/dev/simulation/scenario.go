package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Scenario is what is run, and what befalls it. Its fields are few and plain, so that one that
// fails can be made smaller and told on a command line.
type Scenario struct {
	Seed      uint64
	Order     uint64 // which of its histories: what goes on at once has no order of its own, and pauses are drawn
	Nodes     int    // orchestrators
	Workers   int
	Jobs      int
	Documents int     // of each job
	Rate      float64 // of each fault of the store that a transaction survives
	Faults    []Fault // in order
}

// Bounds of scenarios, which are small: faults meet more often where there is less.
const (
	mostNodes     = 3
	mostWorkers   = 3
	mostJobs      = 2
	mostDocuments = 14
	mostFaults    = 8
)

// A Fault is one thing that befalls a scenario.
type Fault struct {
	Number int // in the scenario as it follows from the seed
	Kind   Kind
	After  time.Duration // the one before it
	For    time.Duration // until it is mended, if it can be
	A, B   uint32        // drawn: which process, which point
}

// Of returns the scenario that follows from a seed.
func Of(seed uint64) *Scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &Scenario{
		Seed: seed, Nodes: 1 + r.IntN(mostNodes), Workers: 1 + r.IntN(mostWorkers), Jobs: 1 + r.IntN(mostJobs),
		Documents: 1 + r.IntN(mostDocuments), Rate: []float64{0, 0, 0.003, 0.02}[r.IntN(4)],
	}

	for i := range r.IntN(mostFaults + 1) {
		f := Fault{
			Number: i, Kind: Kind(r.IntN(int(kinds))), A: r.Uint32(), B: r.Uint32(),
			After: time.Duration(r.IntN(4000)) * time.Millisecond, For: time.Duration(100+r.IntN(6000)) * time.Millisecond,
		}
		// Few are long enough for somebody to be taken for dead who lives.
		if r.IntN(4) == 0 {
			f.For *= 5
		}
		s.Faults = append(s.Faults, f)
	}
	return s
}

// Keep drops all faults but those with some numbers.
func (s *Scenario) Keep(numbers []int) {
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool { return !slices.Contains(numbers, f.Number) })
}

// numbers returns those of the faults.
func (s *Scenario) numbers() []int {
	numbers := make([]int, len(s.Faults))
	for i, f := range s.Faults {
		numbers[i] = f.Number
	}
	return numbers
}

// Arguments returns what tells the scenario on a command line. What is as it follows from the
// seed is left out.
func (s *Scenario) Arguments() string {
	whole := Of(s.Seed)
	args := []string{fmt.Sprintf("-seed %d", s.Seed)}
	if s.Order > 0 {
		args = append(args, fmt.Sprintf("-order %d", s.Order))
	}
	for _, p := range []struct {
		name      string
		is, would int
	}{
		{"nodes", s.Nodes, whole.Nodes},
		{"workers", s.Workers, whole.Workers},
		{"jobs", s.Jobs, whole.Jobs},
		{"documents", s.Documents, whole.Documents},
	} {
		if p.is != p.would {
			args = append(args, fmt.Sprintf("-%s %d", p.name, p.is))
		}
	}

	if s.Rate != whole.Rate {
		args = append(args, fmt.Sprintf("-rate %g", s.Rate))
	}
	if len(s.Faults) != len(whole.Faults) {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(s.numbers()), " ", ","), "[]")
		args = append(args, fmt.Sprintf("-faults=%s", list))
	}
	return strings.Join(args, " ")
}

// A Kind is a kind of fault.
type Kind int

// The kinds of faults. A worker is cut off from one orchestrator, unless it says otherwise.
const (
	CutThere     Kind = iota // nothing goes from a worker to an orchestrator
	CutBack                  // nothing comes from there
	CutBoth                  // neither
	Lonely                   // nothing goes from a worker to any orchestrator, or comes from there
	Isolated                 // an orchestrator is cut off from everything but its store
	Slow                     // a link takes longer
	Broken                   // connections break
	HalfOpen                 // they break, and one end hears nothing of it
	Doubled                  // messages come twice
	Jump                     // the clock of an orchestrator jumps
	StoreThere               // what an orchestrator asks of the store does not get there
	StoreBack                // what the store answers does not come back
	StoreSlow                // the store takes longer
	StoreFull                // it has no room
	Outage                   // it is away
	Recovery                 // all transactions under way fail
	Crash                    // an orchestrator's process dies
	Dark                     // its machine does
	CrashAt                  // an orchestrator dies at a point of a transaction
	Leave                    // an orchestrator stops in order
	WorkerDies               // a worker's process dies
	WorkerDark               // its machine does
	WorkerLeaves             // a worker leaves in order
	Paused                   // jobs are paused, and resumed
	Cancelled                // a job is cancelled

	kinds
)

var kindNames = [kinds]string{
	"cut there", "cut back", "cut both ways", "worker cut off", "orchestrator cut off", "slow link", "broken connections",
	"half-open connections", "doubled messages", "clock jump", "store out of reach", "store unheard", "slow store", "full store",
	"store away", "recovery of the store", "orchestrator dies", "orchestrator loses its machine", "orchestrator dies at a point",
	"orchestrator leaves", "worker dies", "worker loses its machine", "worker leaves", "jobs paused", "job cancelled",
}

// String returns what a fault of the kind is called.
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("simulation.Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}
