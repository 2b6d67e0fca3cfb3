package plan

import (
	"container/heap"
	"time"

	"github.com/coditect/mapreduce/internal/text/pack"
)

// estimateMakespan returns how long the DAG takes with so many units at a time, each as
// long as expected, by list scheduling (Graham 1966): whenever a slot is free,
// the unit that has been ready the longest takes it. With barriers a level waits
// for all of the one below, without them a unit for its own inputs; the map waits
// for all documents to be text in any case. Nothing that is expected to take no
// time is simulated.
func (d *DAG) estimateMakespan(r Rates, barriers bool) time.Duration {
	if r.UnitTime == 0 && r.ReadRate == 0 && r.CallTime == 0 && r.WriteRate == 0 {
		return 0
	}

	s := schedule{dag: d, rates: r, free: r.Parallelism, takers: make([]int32, len(d.Nodes)), waits: make([]int32, len(d.Nodes))}
	s.linkUnits()
	for _, l := range d.Levels {
		for i := l.First; i < l.End && (barriers || l.Level <= 0); i++ {
			s.ready = append(s.ready, int32(i))
		}
		s.runReady(!barriers && l.Level >= 0)
	}
	return s.now
}

// A schedule is a run in virtual time.
type schedule struct {
	dag     *DAG
	rates   Rates
	free    int
	now     time.Duration
	takers  []int32 // of each node, the one that takes its output
	waits   []int32 // inputs that a node still waits for
	ready   []int32 // the one that is ready the longest is the first
	running running
}

func (s *schedule) linkUnits() {
	for i := range s.takers {
		s.takers[i] = -1
	}
	for i := range s.dag.Nodes {
		for _, in := range s.dag.Nodes[i].Inputs {
			s.takers[in] = int32(i)
		}
		s.waits[i] = int32(len(s.dag.Nodes[i].Inputs))
	}
}

// runReady runs all that is ready, and with wake also what becomes so.
func (s *schedule) runReady(wake bool) {
	for len(s.ready) > 0 || len(s.running) > 0 {
		for s.free > 0 && len(s.ready) > 0 {
			node := s.ready[0]
			s.ready = s.ready[1:]
			s.free--
			heap.Push(&s.running, run{addDuration(s.now, s.rates.unitDuration(s.dag.Nodes[node].Load)), node})
		}

		done := heap.Pop(&s.running).(run)
		s.now, s.free = done.end, s.free+1
		if taker := s.takers[done.node]; wake && taker >= 0 {
			if s.waits[taker]--; s.waits[taker] == 0 {
				s.ready = append(s.ready, taker)
			}
		}
	}
}

func addDuration(t, d time.Duration) time.Duration {
	return time.Duration(pack.Sum(int64(t), int64(d)))
}

// A run is a unit that runs until end.
type run struct {
	end  time.Duration
	node int32
}

// running is a heap of what runs, the first to end at its top; of two that end
// together, the one that comes first in the DAG.
type running []run

func (r running) Len() int { return len(r) }
func (r running) Less(i, j int) bool {
	return r[i].end < r[j].end || r[i].end == r[j].end && r[i].node < r[j].node
}
func (r running) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *running) Push(x any)   { *r = append(*r, x.(run)) }
func (r *running) Pop() any {
	old := *r
	last := old[len(old)-1]
	*r = old[:len(old)-1]
	return last
}
