package worker

import "github.com/coditect/mapreduce/api/protocol"

// This file makes the messages of a stream out of what the session holds.

// newHello returns the first message of a stream, and what it announces. Attempts that start
// later are reported after it.
func (c *connector) newHello() (*protocol.FromWorker, []*announcement) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()

	var announced []*announcement
	for _, e := range s.entries.running() {
		if e.announced != nil {
			announced = append(announced, e.announced)
		}
	}

	// The hello itself lists what runs, so starts that were queued before it need not be
	// sent.
	s.out.forgetStarts()
	s.stats.Connections++

	return &protocol.FromWorker{
		Hello: &protocol.Hello{
			Session: s.cfg.Session, Version: s.cfg.Version, Slots: s.cfg.Slots, Prefetch: s.cfg.Prefetch,
			Offer: s.cfg.workerOffer(), Embedded: s.cfg.Embedded, Holding: s.entries.states(),
		},
		Drain: s.retiring.draining,
	}, announced
}

// refillOutbox fills the outbox for a new stream with everything that has no answer yet.
func (l *streamLink) refillOutbox() {
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()

	s.jobs.forgetAll() // each stream introduces its own
	s.out.empty()      // first: a question that is put meanwhile stays

	for _, e := range s.entries.running() {
		if e.calls.OpenReserve() > 0 {
			s.out.queueQuestion(e)
		}
	}
	for _, e := range s.entries.settled() {
		s.out.queueReport(e)
	}
}

// pullMessage takes one message out of the outbox, or returns nil if there is nothing
// to send. The units whose start it tells are to be announced once it is sent.
func (l *streamLink) pullMessage() (*protocol.FromWorker, []*announcement) {
	s, o := l.session, &l.session.out
	s.mu.Lock()
	defer s.mu.Unlock()
	// Both locks are held: reports and starts are read off the entries.
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isEmpty() {
		return nil, nil
	}

	m := &protocol.FromWorker{Drain: o.drain}
	o.drain = false
	o.pullNotes(m)
	o.pullReports(m)
	announced := o.pullStarted(m)
	o.pullAsks(m)
	o.pullNews(m, s.cfg.Limits, s.cfg.Manners)

	if o.beat {
		o.beat = false
		beat := &protocol.Heartbeat{Breakers: s.breakers.Untold(), Progress: s.entries.progress()}
		if m.Heartbeat != nil {
			beat.Progress = append(m.Heartbeat.Progress, beat.Progress...) // what was said comes first
		}
		m.Heartbeat = beat
	}
	return m, announced
}
