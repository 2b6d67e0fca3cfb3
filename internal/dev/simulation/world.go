package simulation

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/simulation/network"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/memory"
)

// Options are what a run has beside its scenario. The zero value works.
type Options struct {
	// Trace gets each event as a line. Defaults to nobody.
	Trace io.Writer
	// Log gets what orchestrators log. Defaults to nobody.
	Log io.Writer
	// Sabotage returns the store that all orchestrators use in place of the one that it is given,
	// for tests of the simulation: it breaks its contract, so that invariants break. Defaults to
	// none.
	Sabotage func(store.Store) store.Store
	// Tamper returns what workers talk to in place of an orchestrator, to the same end. Defaults
	// to none.
	Tamper func(protocol.Fleet) protocol.Fleet
}

// A Report is what a run came to.
type Report struct {
	Broken  []string       // invariants that do not hold; none of a run that is well
	Hash    string         // of everything that happened
	Events  int            // how much that is
	Took    time.Duration  // of virtual time
	Covered map[string]int // what happened, and how often
}

// A world is everything that a scenario runs in.
type world struct {
	scenario *Scenario
	options  Options
	config   orchestrator.Config
	prefetch int // units that a worker holds beside those that it runs
	begun    time.Time
	trace    *trace
	log      *logBook
	net      *network.Network
	faults   *fault.Store
	plain    *jobs.Jobs // over the same store, without faults: what is true
	ledger   *ledger
	random   *rand.Rand     // of the goroutine of Run
	running  sync.WaitGroup // processes
	caller   *caller
	tasks    []*task // what clients want

	mu       sync.Mutex // guards the fields below
	nodes    []*node    // by address
	members  []*member  // by place
	started  int        // orchestrators so far
	joined   int        // workers so far
	dice     *rand.Rand // of whatever goroutine throws them
	twice    float64    // how often a message comes twice
	covered  map[string]int
	broken   []string
	mends    sync.WaitGroup // faults that are not mended yet
	excuses  int            // units that may have been run again, as workers were lost or cut off
	troubled time.Time      // when something last befell processes or links, or was mended
}

// Run lets a scenario happen, and returns what it came to.
func Run(s *Scenario, o Options) *Report {
	w := newWorld(s, o)
	defer w.plain.DB().Close()
	for i := range s.Nodes {
		w.startNode(i, nil)
	}
	for i := range s.Workers {
		w.must("a worker begins", w.join(i, nil))
	}
	w.caller = w.newCaller()

	w.submit()
	for _, f := range s.Faults {
		<-time.After(f.After)
		strikes{w}.strike(f)
		w.sample()
	}
	w.mends.Wait()
	w.endFaults()
	w.try(warden{w}.settle)
	w.try(warden{w}.check)
	w.try(warden{w}.remove)
	w.stop()

	hash, events := w.trace.hash()
	return &Report{Broken: w.broken, Hash: hash, Events: events, Took: time.Since(w.begun), Covered: w.covered}
}

func newWorld(s *Scenario, o Options) *world {
	w := &world{
		scenario: s, options: o, begun: time.Now(), trace: newTrace(o.Trace), log: &logBook{out: o.Log}, ledger: newLedger(),
		random: rand.New(rand.NewPCG(s.Seed, 1)), dice: rand.New(rand.NewPCG(s.Seed, 2)),
		nodes: make([]*node, s.Nodes), members: make([]*member, s.Workers), covered: make(map[string]int),
	}

	latency := time.Duration(50+w.random.IntN(2000)) * time.Microsecond
	w.net = network.New(latency)
	w.net.Seen = func(from, to string, bytes int) { w.trace.note("%s → %s: %d bytes", from, to, bytes) }

	var inner store.Store = witness{new(memory.Store), w.trace}
	w.plain = jobs.New(store.NewDB(inner, store.Config{}), keys.New(), "onlooker", time.Now)
	if o.Sabotage != nil {
		inner = o.Sabotage(inner)
	}
	w.faults = fault.New(inner, fault.Config{Seed: s.Seed, Rates: fault.Retryable(s.Rate), Pause: w.dawdle})

	w.config = orchestrator.Config{Adopt: true, SmallResult: int64(1 + w.random.IntN(2*mostDocuments))}
	w.prefetch = w.random.IntN(2)
	w.config.MaxCalls = 1 + rand.New(rand.NewPCG(s.Seed, 3)).IntN(mostCalls)

	// Half of all fleets are set as they are by default, and half notice everything sooner.
	if w.random.IntN(2) == 0 {
		w.config.Heartbeat, w.config.Lease, w.config.Grace = 300*time.Millisecond, 5*time.Second, time.Second
		w.config.Poll, w.config.Seal = 500*time.Millisecond, 100*time.Millisecond
	}
	return w
}

// mostCalls bounds how many units of all jobs may ask models at once: a fleet has room for as many, or for fewer.
const mostCalls = mostWorkers * slots

// dawdle is how a slow operation of the store takes its time.
func (w *world) dawdle(ctx context.Context) {
	w.mu.Lock()
	takes := time.Duration(1+w.dice.IntN(80)) * time.Millisecond
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
}

// comesTwice decides whether a message comes twice.
func (w *world) comesTwice() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.twice > 0 && w.dice.Float64() < w.twice
}

// cover counts something that has happened.
func (w *world) cover(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.covered[what]++
}

// noteBreach notes that an invariant does not hold.
func (w *world) noteBreach(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	w.broken = append(w.broken, what)
	w.trace.note("broken: %s", what)
}

// A failure is why the simulation itself cannot go on.
type failure struct{ error }

// must ends what is done if something that the simulation itself does has failed.
func (w *world) must(what string, err error) {
	if err != nil {
		panic(failure{fmt.Errorf("%s: %w", what, err)})
	}
}

// try does something, and notes if it cannot be done: where invariants are broken, a store may hold
// what cannot be read.
func (w *world) try(do func()) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			w.noteBreach("1: %v", f)
		default:
			panic(f)
		}
	}()
	do()
}

// node returns the orchestrator at an address.
func (w *world) node(at uint32) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[int(at)%len(w.nodes)]
}

// workerAt returns the worker in a place.
func (w *world) workerAt(place uint32) *member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members[int(place)%len(w.members)]
}

// endFaults ends all faults, and lets each address have an orchestrator.
func (w *world) endFaults() {
	w.trace.note("nothing goes wrong any more")
	w.net.MendAll()
	w.faults.Heal()
	w.mu.Lock()
	w.twice = 0
	all := w.nodes
	w.mu.Unlock()
	for _, n := range all {
		n.reach.mend()
		n.fatal.Store(nil)
		w.restart(n)
	}
}

// stop ends all processes, and waits for them.
func (w *world) stop() {
	for i := range w.members {
		w.workerAt(uint32(i)).stop()
	}
	for i := range w.members {
		<-w.workerAt(uint32(i)).ended
	}
	w.caller.close()
	for i := range w.nodes {
		w.node(uint32(i)).stop()
	}
	w.running.Wait()
	w.faults.Settle()
}
