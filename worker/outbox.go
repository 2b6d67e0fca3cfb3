package worker

import (
	"cmp"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// maxMessage is about how many bytes one message may take. It is well inside
// gRPC's default limit of 4 MiB.
const maxMessage = 1 << 20

// An outbox holds what is to be sent, until the stream breaks: what must not be
// lost is found again in the units. It is guarded by session.mu.
type outbox struct {
	reports []*unit // settled, in order
	started []*unit
	asks    []*unit
	states  []*unit
	limits  bool // models have something to tell
	beat    bool
	drain   bool
}

// pull takes one message out of the outbox, or returns nil if there is nothing
// to send. The units whose start it tells are to be announced once it is sent.
func (s *session) pull() (*mapreduce.FromWorker, []*unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.pullStates(); m != nil {
		return m, nil
	}
	o := &s.out
	if len(o.reports)+len(o.started)+len(o.asks) == 0 && !o.beat && !o.drain && !o.limits {
		return nil, nil
	}
	m := &mapreduce.FromWorker{Drain: o.drain}
	o.drain = false
	s.pullReports(m)
	announced := s.pullStarted(m)
	s.pullAsks(m)
	s.pullLimits(m)
	if o.beat {
		o.beat = false
		m.Heartbeat = s.heartbeat()
	}
	return m, announced
}

// pullStates takes states, in a message of their own: a state is for the next
// attempt, so it must arrive before the report that ends this one, and reports
// stand before states in a message.
func (s *session) pullStates() *mapreduce.FromWorker {
	o := &s.out
	if len(o.states) == 0 {
		return nil
	}
	m := &mapreduce.FromWorker{}
	for room := maxMessage; len(o.states) > 0 && room > 0; o.states = o.states[1:] {
		st := o.states[0].takeState()
		room -= len(st.Data)
		m.States = append(m.States, st)
	}
	return m
}

// pullReports takes as many reports as suit a message.
func (s *session) pullReports(m *mapreduce.FromWorker) {
	o := &s.out
	room := maxMessage
	for len(o.reports) > 0 && room > 0 {
		r := &o.reports[0].report
		if m.Reports == nil {
			m.Reports = make([]mapreduce.Report, 0, min(len(o.reports), 1024))
		}
		m.Reports = append(m.Reports, wire(r))
		room -= weigh(r)
		o.reports[0] = nil
		o.reports = o.reports[1:]
	}
}

// weigh returns about how many bytes a report takes.
func weigh(r *mapreduce.Report) int {
	n := 256
	if r.Length == 0 {
		n += len(r.Output)
	}
	for _, e := range r.Errors {
		n += len(e)
	}
	return n
}

// pullStarted takes the starts of what still runs. Others are over, and their
// reports say so.
func (s *session) pullStarted(m *mapreduce.FromWorker) (announced []*unit) {
	for _, u := range s.out.started {
		if u.phase != running {
			continue
		}
		m.Started = append(m.Started, u.held())
		if u.announced != nil {
			announced = append(announced, u)
		}
	}
	clear(s.out.started)
	s.out.started = s.out.started[:0]
	return announced
}

func (s *session) pullAsks(m *mapreduce.FromWorker) {
	for _, u := range s.out.asks {
		if n := u.open(); n > 0 && u.phase == running {
			m.Reserve = append(m.Reserve, mapreduce.ReserveRequest{Held: u.held(), Tokens: n})
		}
	}
	s.out.asks = nil
}

// heartbeat tells how far everything is that runs. mu is held.
func (s *session) heartbeat() *mapreduce.Heartbeat {
	h := &mapreduce.Heartbeat{Breakers: s.breakers.open()}
	for _, u := range s.units {
		if u.phase == running {
			h.Progress = append(h.Progress, u.progress())
		}
	}
	slices.SortFunc(h.Progress, func(a, b mapreduce.Progress) int { return compareHeld(a.Held, b.Held) })
	return h
}

// hello returns the first message of a stream, with the units whose running it
// tells. What starts from here on is told after it.
func (s *session) hello() (*mapreduce.FromWorker, []*unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var announced []*unit
	for _, u := range s.units {
		if u.phase == running && u.announced != nil {
			announced = append(announced, u)
		}
	}
	s.out.started = nil
	s.stats.Connections++
	return &mapreduce.FromWorker{
		Hello: &mapreduce.Hello{
			Session: s.cfg.Session, Version: s.cfg.Version, Slots: s.cfg.Slots, Prefetch: s.cfg.Prefetch,
			Offer: s.cfg.offer(), Embedded: s.cfg.Embedded, Holding: s.holding(),
		},
		Drain: s.draining,
	}, announced
}

// attach makes the outbox what a new stream must be told: everything for which
// no answer has come.
func (s *session) attach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs = make(map[mapreduce.JobID]*job) // each stream introduces its own
	s.out = outbox{started: s.out.started, drain: s.out.drain, beat: true}
	for _, u := range s.units {
		switch u.phase {
		case reported:
			if u.puts == 0 {
				s.out.reports = append(s.out.reports, u)
			}
			if u.leavesState(u.report.Outcome) && u.hasState() {
				s.out.states = append(s.out.states, u)
			}
		case running:
			if u.open() > 0 {
				s.out.asks = append(s.out.asks, u)
			}
			if u.kept() {
				s.out.states = append(s.out.states, u)
			}
		}
	}
	slices.SortFunc(s.out.reports, func(a, b *unit) int { return cmp.Compare(a.number, b.number) })
	s.signal()
}

// announce tells units that the orchestrator knows of their start.
func announce(us []*unit) {
	for _, u := range us {
		u.announce()
	}
}

// ask queues a unit's question.
func (s *session) ask(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.asks = append(s.out.asks, u)
	s.signal()
}

// sendState queues a unit's last state.
func (s *session) sendState(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.phase == running && !slices.Contains(s.out.states, u) {
		s.out.states = append(s.out.states, u)
		s.signal()
	}
}

// beat queues a heartbeat.
func (s *session) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.beat = true
	s.signal()
}

// breakerOpened tells at once that a breaker is open, so that no more units
// come that would meet it.
func (s *session) breakerOpened(name string, d time.Duration, cause error) {
	s.cfg.Logger.Warn("circuit breaker opened", "breaker", name, "for", d, "cause", cause)
	s.beat()
}
