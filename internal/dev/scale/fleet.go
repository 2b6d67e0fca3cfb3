package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Latency is how long something takes: log-normal times, by two of their percentiles.
type Latency struct{ Median, P99 time.Duration }

// draw returns a time.
func (l Latency) draw(r *rand.Rand) time.Duration {
	sigma := math.Log(float64(l.P99)/float64(l.Median)) / 2.326
	return time.Duration(float64(l.Median) * math.Exp(sigma*r.NormFloat64()))
}

// A Config says what is simulated.
type Config struct {
	Orchestrators, Workers int
	Slots, Prefetch        int // of a worker
	Units                  int // of the one job
	Lanes                  int // transactions of an orchestrator at once
	Mean                   time.Duration
	Sigma                  float64 // of the logarithm of the times of units
	Turn, Read             Latency // of transactions that write, and of readings of a queue
	Network                time.Duration
	Seed                   uint64
}

func (c *Config) check() error {
	for name, n := range map[string]int{"orchestrators": c.Orchestrators, "workers": c.Workers, "slots": c.Slots, "units": c.Units, "lanes": c.Lanes} {
		if n < 1 {
			return fmt.Errorf("%s is %d; it must be at least 1", name, n)
		}
	}
	if c.Turn.Median <= 0 || c.Turn.P99 <= c.Turn.Median || c.Read.Median <= 0 || c.Read.P99 <= c.Read.Median || c.Mean <= 0 {
		return fmt.Errorf("a time is not positive, or a 99th percentile is not above its median")
	}
	return nil
}

const job = mapreduce.JobID("mr_20260101_000000")

// An event is something that happens at a time.
type event struct {
	at    time.Duration
	order int64 // of events at the same time
	do    func()
}

type events []event

// Len implements heap.Interface.
func (e events) Len() int { return len(e) }

// Less implements heap.Interface.
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}

// Swap implements heap.Interface.
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// A simulation is a fleet at a moment.
type simulation struct {
	config  Config
	random  *rand.Rand
	epoch   time.Time // of the virtual clock
	now     time.Duration
	order   int64
	waiting events
	nodes   []*node
	queue   *waitingUnits
	result  Result
}

// after makes something happen later.
func (s *simulation) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.waiting, event{s.now + d, s.order, do})
}

// Run simulates one job from the moment at which all orchestrators know it to its last
// unit's end.
func Run(c Config) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &simulation{
		config: c, random: rand.New(rand.NewPCG(c.Seed, 23)), //nolint:gosec // a simulation is to be repeatable
		epoch: time.Unix(1_700_000_000, 0), queue: newWaitingUnits(c.Units),
	}
	s.result.Config = c

	for i := range c.Orchestrators {
		s.nodes = append(s.nodes, s.newNode(i))
	}
	for i := range c.Workers {
		s.nodes[i%c.Orchestrators].enter(i)
	}

	s.submit()
	for len(s.waiting) > 0 {
		e := heap.Pop(&s.waiting).(event)
		s.now = e.at
		e.do()
	}

	if s.result.Ended != c.Units {
		return nil, fmt.Errorf("%d of %d units ended, and nothing is left to happen", s.result.Ended, c.Units)
	}

	s.result.Makespan = s.now
	return &s.result, nil
}

// submit makes the job known to all orchestrators, each with the slots of its workers.
func (s *simulation) submit() {
	spec := &mapreduce.JobSpec{Provider: provider, Model: "model", Parallelism: s.config.Workers * s.config.Slots}
	ctl := &records.Control{
		State: mapreduce.Mapping, Phase: mapreduce.Mapping, Epoch: 1, Tenant: "default", Shards: 1,
		Levels: []records.Level{{Units: int64(s.config.Units)}}, StagedUnits: int64(s.config.Units),
	}

	for _, n := range s.nodes {
		n.scheduler.PutJob(job, ctl, spec, jobspec.NewStages(nil, ctl), false, 0, nil)
		n.scheduler.Grants.Apply(job, &nodes.GrantReply{Slots: n.slots, Epoch: 1})
		n.drive()
	}
}

// unitTime draws how long a unit takes: log-normal times of the mean of the Config.
func (s *simulation) unitTime() time.Duration {
	mu := math.Log(s.config.Mean.Seconds()) - s.config.Sigma*s.config.Sigma/2
	return time.Duration(math.Exp(mu+s.config.Sigma*s.random.NormFloat64()) * float64(time.Second))
}

const provider = "simulated"

// newNode returns an orchestrator without workers.
func (s *simulation) newNode(i int) *node {
	n := &node{simulation: s, rank: i, lanes: s.config.Lanes, workers: make(map[mapreduce.SessionID]*worker)}
	claims := 0

	n.scheduler = schedule.New(schedule.Config{
		Node: mapreduce.NodeID(fmt.Sprintf("node-%03d", i)), Limits: func(string) model.Limits { return model.Limits{} },
		Lease: 10 * time.Second, Now: func() time.Time { return s.epoch.Add(s.now) },
		NewID:  func() string { claims++; return fmt.Sprint(claims) },
		Jitter: s.random.Float64,
	})

	return n
}
