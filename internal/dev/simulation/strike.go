package simulation

import (
	"time"

	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
)

// strike lets a fault happen, and has it mended in time.
func (w *world) strike(f Fault) {
	w.trace.note("fault %d: %v for %v", f.Number, f.Kind, f.For)
	w.cover(f.Kind.String())

	defer w.trouble()
	var mend func()
	switch {
	case f.Kind <= HalfOpen:
		mend = w.strikeNetwork(f)
	case f.Kind <= Recovery:
		mend = w.strikeStore(f)
	case f.Kind <= WorkerLeaves:
		mend = w.strikeProcess(f)
	default:
		mend = w.interfere(f)
	}
	if mend == nil {
		return
	}

	w.mends.Add(1)
	time.AfterFunc(f.For, func() {
		defer w.mends.Done()
		w.trace.note("fault %d is mended", f.Number)
		mend()
		w.trouble()
	})
}

// strikeNetwork lets something befall connections. What a worker runs that nobody hears of may be
// given to others, if it lasts.
func (w *world) strikeNetwork(f Fault) (mend func()) {
	m, n := w.member(f.A).host, hostOf(int(f.B)%w.scenario.Nodes)
	w.excuse(1)
	switch f.Kind {
	case CutThere:
		return w.cut([][2]string{{m, n}})
	case CutBack:
		return w.cut([][2]string{{n, m}})
	case CutBoth:
		return w.cut([][2]string{{m, n}, {n, m}})
	case Lonely:
		var all [][2]string
		for i := range w.scenario.Nodes {
			all = append(all, [2]string{m, hostOf(i)}, [2]string{hostOf(i), m})
		}
		return w.cut(all)
	case Isolated:
		w.excuse(w.scenario.Workers)
		all := [][2]string{{n, clientHost}, {clientHost, n}}
		for i := range w.scenario.Workers {
			other := w.member(uint32(i)).host
			all = append(all, [2]string{n, other}, [2]string{other, n})
		}
		return w.cut(all)
	case Slow:
		by := time.Duration(1+f.B%4000) * time.Millisecond
		w.net.Slow(m, n, by)
		w.net.Slow(n, m, by)
		return w.mendLinks([][2]string{{m, n}, {n, m}})
	default: // Broken, HalfOpen
		if f.A&(1<<20) == 0 {
			m, n = n, m
		}
		w.net.Break(m, n, f.Kind == HalfOpen)
		return nil
	}
}

// cut blocks links, and returns what mends them.
func (w *world) cut(links [][2]string) (mend func()) {
	for _, l := range links {
		w.net.Block(l[0], l[1])
	}
	return w.mendLinks(links)
}

func (w *world) mendLinks(links [][2]string) func() {
	return func() {
		for _, l := range links {
			w.net.Mend(l[0], l[1])
		}
	}
}

// strikeStore lets something befall messages, clocks and the store.
func (w *world) strikeStore(f Fault) (mend func()) {
	n := w.node(f.A)
	switch f.Kind {
	case Doubled:
		w.setTwice(0.4)
		return func() { w.setTwice(0) }
	case Jump:
		// Ten minutes at most, in either direction.
		n.jumped.Store(int64(time.Duration(f.B%1_200_000)*time.Millisecond - 10*time.Minute))
		return nil
	case StoreThere, StoreBack:
		w.excuse(w.scenario.Workers) // an orchestrator that shows no life is taken for dead
		n.reach.block(f.Kind == StoreThere, f.Kind == StoreBack)
		return n.reach.mend
	case StoreSlow:
		w.excuse(w.scenario.Workers)
		n.reach.set(time.Duration(f.B%700)*time.Millisecond, false)
		return n.reach.mend
	case StoreFull:
		w.excuse(w.scenario.Workers)
		n.reach.set(0, true)
		return n.reach.mend
	case Outage:
		w.excuse(w.scenario.Workers)
		w.faults.BeginOutage()
		return w.faults.EndOutage
	default: // Recovery
		if f.B%2 == 0 {
			w.faults.Recover()
			return nil
		}
		// One that goes on for a while: clients are told of everything that can be.
		w.faults.SetRates(fault.Retryable(0.05))
		return func() { w.faults.SetRates(fault.Retryable(w.scenario.Rate)) }
	}
}

func (w *world) setTwice(rate float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.twice = rate
}

// strikeProcess ends a process. Another is there after a while.
func (w *world) strikeProcess(f Fault) (mend func()) {
	switch f.Kind {
	case Crash, Dark:
		n := w.node(f.A)
		w.excuseUnlessServed(n)
		n.die(f.Kind == Crash)
		return func() { w.restart(n) }
	case CrashAt:
		n, steps := w.node(f.A), busySteps()
		w.excuseUnlessServed(n)
		at := steps[int(f.B/2)%len(steps)].Before()
		if f.B%2 == 0 {
			at = steps[int(f.B/2)%len(steps)].After()
		}
		n.fatal.Store(&at)
		return func() {
			n.fatal.Store(nil)
			w.restart(n)
		}
	case Leave:
		n := w.node(f.A)
		w.excuseUnlessServed(n)
		w.running.Go(n.stop)
		return func() { w.restart(n) }
	}

	place := int(f.A) % w.scenario.Workers
	m := w.member(f.A)
	if f.Kind == WorkerLeaves {
		m.stop()
	} else {
		w.excuse(1)
		m.kill(f.Kind == WorkerDies)
	}
	return func() {
		w.must("a worker begins", w.join(place, m))
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
func (w *world) interfere(f Fault) (mend func()) {
	w.mends.Add(1)
	t := w.tasks[int(f.A)%len(w.tasks)]
	w.running.Go(func() {
		defer w.mends.Done()
		if f.Kind == Paused {
			w.caller.pause(t)
		} else {
			w.caller.cancel(t)
		}
	})
	if f.Kind != Paused {
		return nil
	}
	return func() { w.caller.resume(t) }
}

// excuse notes that what some workers held may be run again, by others or by themselves.
func (w *world) excuse(workers int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.excuses += workers * (slots + w.prefetch)
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
func (w *world) excuseUnlessServed(n *node) {
	w.mu.Lock()
	served := time.Since(w.troubled) >= calm
	others := 0
	for _, other := range w.nodes {
		if other != n && other.serves.Load() {
			others++
		}
	}
	w.mu.Unlock()
	if !served || others == 0 {
		w.excuse(w.scenario.Workers)
	} else {
		w.cover("an orchestrator ended and another served")
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
}
