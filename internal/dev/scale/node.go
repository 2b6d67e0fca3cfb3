package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/view"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A node is an orchestrator.
type node struct {
	*simulation
	rank      int
	scheduler *schedule.Scheduler
	lanes     int   // transactions that could begin now
	slots     int64 // of its workers
	workers   map[mapreduce.SessionID]*worker
}

// enter makes a worker begin a session.
func (n *node) enter(i int) {
	w := &worker{node: n}
	w.session = workers.NewSession(&protocol.Hello{
		Session: mapreduce.SessionID(fmt.Sprintf("worker-%05d", i)), Slots: n.config.Slots, Prefetch: n.config.Prefetch,
		Offer: mapreduce.Offer{Providers: []string{provider}},
	}, "", 1, false, w)
	n.scheduler.Sessions.Enter(w.session, nil)
	n.workers[w.session.ID] = w
	n.slots += int64(n.config.Slots)
}

// drive starts tasks, as many at once as the orchestrator runs transactions.
func (n *node) drive() {
	for n.lanes > 0 {
		t := n.scheduler.TryTask()
		if t == nil {
			return
		}
		n.lanes--
		if t.Scan {
			n.scan(t)
		} else {
			n.turn(t)
		}
	}
}

// done ends a task, and looks for the next.
func (n *node) done() {
	n.lanes++
	n.drive()
}

// The numbers of candidates that an orchestrator reads at once, alone and beside others.
const (
	refillTo     = 512
	refillBeside = 128
)

// scan reads on in the queue, from this orchestrator's own place in it, as package
// orchestrator/dispatch does.
func (n *node) scan(t *schedule.Task) {
	n.result.Reads++
	cursors, _, level, crowded := n.scheduler.Turns.ScanPosition(t.Job)
	again := cursors == nil
	if again {
		cursors = []view.Cursor{{To: keys.Seq(level+1, 0)}}
	}

	found := n.read(&cursors[0], again, crowded)
	n.after(n.config.Read.draw(n.random), func() {
		n.scheduler.Turns.ApplyScan(t.Job, found, cursors)
		n.done()
	})
}

// read returns candidates and moves the cursor.
func (n *node) read(c *view.Cursor, again, crowded bool) []records.Candidate {
	nodes := len(n.nodes)
	if nodes == 1 {
		found, more := n.queue.scan(c.At, c.To, refillTo)
		c.MovePast(found, more)
		return found
	}

	part := float64(n.rank) / float64(nodes)
	if crowded {
		part = n.random.Float64()
	}

	found, more := n.queue.scan(c.At, c.To, refillBeside)

	// The first reading jumps to this orchestrator's own part of the queue.
	if again && more {
		first := found[0].Seq
		span := float64(max(0, n.queue.last(c.At, c.To)-first))
		c.At = first + int64(part*span)
		c.Wrap, c.Own = c.At, c.At+int64(span/float64(nodes))
		found, more = n.queue.scan(c.At, c.To, refillBeside)
		c.MovePast(found, more)
		return found
	}

	if !again && c.At >= c.Own {
		part = n.random.Float64()
	}
	c.MovePast(found, more)
	if again || c.At >= c.Own {
		k := int(part * float64(len(found)))
		found = slices.Concat(found[k:], found[:k])
	}

	return found
}

// turn commits a turn: it runs again as long as it conflicts.
func (n *node) turn(t *schedule.Task) {
	read := n.now
	n.after(n.config.Turn.draw(n.random), func() {
		n.result.Commits++
		c := t.Turn.Claim
		if c != nil && n.queue.conflicts(c.Candidates, read) {
			n.result.Conflicts++
			n.turn(t)
			return
		}

		res := &queue.Result{State: mapreduce.Mapping, Epoch: 1, Verdicts: make([]queue.Settled, len(t.Turn.Reports))}
		for i := range res.Verdicts {
			res.Verdicts[i] = queue.Settled{Verdict: protocol.Accepted, State: mapreduce.UnitComplete}
		}
		n.result.Ended += len(t.Turn.Reports)
		if c != nil {
			n.claim(c, res)
		}

		n.scheduler.Turns.Apply(t, res)
		for _, got := range res.Claimed {
			w := n.workers[got.Session]
			n.after(n.config.Network, func() { w.give(got.Unit.ID) })
		}
		n.done()
	})
}

// claim gives units that wait to the sessions that have free slots, in turn.
func (n *node) claim(c *queue.Claim, res *queue.Result) {
	res.Bound = make([]bool, len(c.Workers))
	free := make([]int, len(c.Workers))
	for i, s := range c.Workers {
		res.Bound[i], free[i] = true, s.Slots
	}

	at := 0
	for _, candidate := range c.Candidates {
		if !n.queue.isWaiting(candidate.Seq) {
			n.result.Gone++
			continue
		}

		// The sessions take turns, and those without a free slot are passed over.
		for range free {
			if free[at] > 0 {
				break
			}
			at = (at + 1) % len(free)
		}

		if free[at] == 0 {
			res.Left = append(res.Left, candidate)
			continue
		}

		free[at]--
		n.queue.take(candidate.Seq, n.now)
		res.Claimed = append(res.Claimed, queue.Claimed{Session: c.Workers[at].Session, Unit: &records.Unit{ID: candidate.Unit, Attempt: 1}})
		at = (at + 1) % len(free)
	}
}

// A worker runs units.
type worker struct {
	*node
	session *workers.Session
	running int
	held    []mapreduce.UnitID // that wait for a slot
}

// Send implements schedule.Peer. Messages to workers, but for units, do not matter here.
func (w *worker) Send(*protocol.ToWorker) {}

// Lags implements schedule.Peer.
func (w *worker) Lags() bool { return false }

// Stop implements schedule.Peer.
func (w *worker) Stop(why error) { panic(why) }

// give hands the worker a unit.
func (w *worker) give(u mapreduce.UnitID) {
	if w.running == w.config.Slots {
		w.held = append(w.held, u)
		return
	}
	w.begin(u)
}

// begin runs a unit, and reports it when it has ended.
func (w *worker) begin(u mapreduce.UnitID) {
	w.running++
	took := w.unitTime()
	w.result.begin(w.now, took)
	w.after(took, func() {
		w.running--
		if len(w.held) > 0 {
			next := w.held[0]
			w.held = w.held[1:]
			w.begin(next)
		}

		w.after(w.config.Network, func() { w.report(u, took) })
	})
}

// report tells the orchestrator that a unit has ended.
func (w *worker) report(u mapreduce.UnitID, took time.Duration) {
	m := &protocol.FromWorker{Reports: []protocol.Report{{Job: job, Unit: u, Attempt: 1, Outcome: protocol.Done, Elapsed: took}}}
	w.scheduler.Sessions.Receive(w.session, m, func(mapreduce.JobID) int64 { return 0 })
	w.scheduler.Sessions.EnterChecked(w.session, m)
	w.drive()
}
