package simulation

import (
	"time"

	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
)

// Strikes let faults happen in the world.
type strikes struct{ *world }

// strike lets a fault happen, and has it mended in time.
func (s strikes) strike(f Fault) {
	s.trace.note("fault %d: %v for %v", f.Number, f.Kind, f.For)
	s.cover(f.Kind.String())

	defer s.trouble()
	var mend func()
	switch {
	case f.Kind <= HalfOpen:
		mend = s.strikeNetwork(f)
	case f.Kind <= Recovery:
		mend = s.strikeStore(f)
	case f.Kind <= WorkerLeaves:
		mend = s.strikeProcess(f)
	default:
		mend = s.interfere(f)
	}
	if mend == nil {
		return
	}

	s.mends.Add(1)
	time.AfterFunc(f.For, func() {
		defer s.mends.Done()
		s.trace.note("fault %d is mended", f.Number)
		mend()
		s.trouble()
	})
}

// strikeNetwork lets something befall connections. What a worker runs that nobody hears of may be
// given to others, if it lasts.
func (s strikes) strikeNetwork(f Fault) (mend func()) {
	m, n := s.workerAt(f.A).host, hostOf(int(f.B)%s.scenario.Nodes)
	s.excuse(1)
	switch f.Kind {
	case CutThere:
		return s.cut([][2]string{{m, n}})
	case CutBack:
		return s.cut([][2]string{{n, m}})
	case CutBoth:
		return s.cut([][2]string{{m, n}, {n, m}})
	case Lonely:
		var all [][2]string
		for i := range s.scenario.Nodes {
			all = append(all, [2]string{m, hostOf(i)}, [2]string{hostOf(i), m})
		}
		return s.cut(all)
	case Isolated:
		s.excuse(s.scenario.Workers)
		all := [][2]string{{n, clientHost}, {clientHost, n}}
		for i := range s.scenario.Workers {
			other := s.workerAt(uint32(i)).host
			all = append(all, [2]string{n, other}, [2]string{other, n})
		}
		return s.cut(all)
	case Slow:
		by := time.Duration(1+f.B%4000) * time.Millisecond
		s.excuse(int(f.For / calm)) // it lets the worker come back, to be taken for lost once more
		s.net.Slow(m, n, by)
		s.net.Slow(n, m, by)
		return s.mendLinks([][2]string{{m, n}, {n, m}})
	default: // Broken, HalfOpen
		if f.A&(1<<20) == 0 {
			m, n = n, m
		}
		s.net.Break(m, n, f.Kind == HalfOpen)
		return nil
	}
}

// cut blocks links, and returns what mends them.
func (s strikes) cut(links [][2]string) (mend func()) {
	for _, l := range links {
		s.net.Block(l[0], l[1])
	}
	return s.mendLinks(links)
}

func (s strikes) mendLinks(links [][2]string) func() {
	return func() {
		for _, l := range links {
			s.net.Mend(l[0], l[1])
		}
	}
}

// strikeStore lets something befall messages, clocks and the store.
func (s strikes) strikeStore(f Fault) (mend func()) {
	n := s.node(f.A)
	switch f.Kind {
	case Doubled:
		s.setTwice(0.4)
		return func() { s.setTwice(0) }
	case Jump:
		// Ten minutes at most, in either direction.
		n.jumped.Store(int64(time.Duration(f.B%1_200_000)*time.Millisecond - 10*time.Minute))
		return nil
	case StoreThere, StoreBack:
		s.excuse(s.scenario.Workers) // an orchestrator that shows no life is taken for dead
		n.reach.block(f.Kind == StoreThere, f.Kind == StoreBack)
		return n.reach.mend
	case StoreSlow:
		s.excuse(s.scenario.Workers)
		n.reach.set(time.Duration(f.B%700)*time.Millisecond, false)
		return n.reach.mend
	case StoreFull:
		s.excuse(s.scenario.Workers)
		n.reach.set(0, true)
		return n.reach.mend
	case Outage:
		s.excuse(s.scenario.Workers)
		s.faults.BeginOutage()
		return s.faults.EndOutage
	default: // Recovery
		if f.B%2 == 0 {
			s.faults.Recover()
			return nil
		}
		// One that goes on for a while: clients are told of everything that can be.
		s.faults.SetRates(fault.Retryable(0.05))
		return func() { s.faults.SetRates(fault.Retryable(s.scenario.Rate)) }
	}
}

func (s strikes) setTwice(rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.twice = rate
}

// strikeProcess ends a process. Another is there after a while.
func (s strikes) strikeProcess(f Fault) (mend func()) {
	switch f.Kind {
	case Crash, Dark:
		n := s.node(f.A)
		s.excuseUnlessServed(n)
		n.die(f.Kind == Crash)
		return func() { s.restart(n) }
	case CrashAt:
		n, steps := s.node(f.A), busySteps()
		s.excuseUnlessServed(n)
		at := steps[int(f.B/2)%len(steps)].Before()
		if f.B%2 == 0 {
			at = steps[int(f.B/2)%len(steps)].After()
		}
		n.fatal.Store(&at)
		return func() {
			n.fatal.Store(nil)
			s.restart(n)
		}
	case Leave:
		n := s.node(f.A)
		s.excuseUnlessServed(n)
		s.running.Go(n.stop)
		return func() { s.restart(n) }
	}

	place := int(f.A) % s.scenario.Workers
	m := s.workerAt(f.A)
	if f.Kind == WorkerLeaves {
		m.stop()
	} else {
		s.excuse(1)
		m.kill(f.Kind == WorkerDies)
	}
	return func() {
		s.must("a worker begins", s.join(place, m))
	}
}

// restart lets another orchestrator follow one that has ended, unless one has already.
func (w *world) restart(n *node) {
	if n.reach.isDead() || n.left.Load() {
		<-n.ended
		w.startNode(n.at, n)
	}
}

// interfere lets clients change what goes on.
func (s strikes) interfere(f Fault) (mend func()) {
	s.mends.Add(1)
	t := s.tasks[int(f.A)%len(s.tasks)]
	s.running.Go(func() {
		defer s.mends.Done()
		if f.Kind == Paused {
			s.caller.pause(t)
		} else {
			s.caller.cancel(t)
		}
	})
	if f.Kind != Paused {
		return nil
	}
	return func() { s.caller.resume(t) }
}

// excuse notes that what some workers held may be run again, by others or by themselves.
func (s strikes) excuse(workers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.excuses += workers * (slots + s.prefetch)
}

// calm is how long nothing may have befallen processes and links for each worker to have an orchestrator
// again: as long as it takes for one to be noticed that says nothing, and then to find another.
const calm = 12 * time.Second

// trouble notes that something befell processes or links.
func (w *world) trouble() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.troubled = time.Now()
}

// excuseUnlessServed is excuse for all workers, when an orchestrator ends. It is none if another serves, to
// which all workers can go: then what they run is not to be run again.
func (s strikes) excuseUnlessServed(n *node) {
	s.mu.Lock()
	served := time.Since(s.troubled) >= calm
	others := 0
	for _, other := range s.nodes {
		if other != n && other.serves.Load() {
			others++
		}
	}
	s.mu.Unlock()
	if !served || others == 0 {
		s.excuse(s.scenario.Workers)
	} else {
		s.cover("an orchestrator ended and another served")
	}
}

// busySteps are those that most jobs come by.
func busySteps() []failpoint.Step {
	return []failpoint.Step{
		failpoint.Begin, failpoint.Stage, failpoint.Publish, failpoint.Bind, failpoint.Turn, failpoint.Turn, failpoint.Turn, failpoint.Chunk,
		failpoint.Journal, failpoint.Wakeup, failpoint.Grant, failpoint.Return, failpoint.Plan, failpoint.Plan, failpoint.Unblock, failpoint.Ascend,
		failpoint.Complete, failpoint.Pause, failpoint.Resume, failpoint.Cancel, failpoint.Sweep, failpoint.Expire, failpoint.Expire, failpoint.Beat,
		failpoint.Doubt, failpoint.Forget, failpoint.Seal, failpoint.Answer, failpoint.Assign, failpoint.Assign,
	}
}

// sample checks what has to hold at any moment.
func (w *world) sample() {
	for _, t := range w.tasks {
		w.checkRunning(t)
	}
	w.checkCalling()
}
