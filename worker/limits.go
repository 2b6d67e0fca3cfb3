package worker

import (
	"errors"

	"github.com/sony/gobreaker/v2"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Limiter holds back the calls of this process to models, tells the fleet what
// the models said of their limits, and keeps to its share of them. decorator.Gates is
// one.
type Limiter interface {
	// Share sets the limits of this worker for some models.
	Share(shares []mapreduce.LimitShare)

	// Notes returns the observations of models since the last call of Notes.
	Notes() []mapreduce.LimitNote

	// Due returns a channel that holds an element when notes should be taken
	// at once, rather than with the next sign of life.
	Due() <-chan struct{}
}

// limitsDue returns a channel that says that models have something to tell.
func (l *streamLink) limitsDue() <-chan struct{} {
	if l.session.cfg.Limits == nil {
		return nil
	}
	return l.session.cfg.Limits.Due()
}

// noteLimits makes the next message carry the notes on models.
func (s *session) noteLimits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.limits = true
	s.wakeSender()
}

// pullLimits adds the notes on models to m, if they are due.
func (o *outbox) pullLimits(m *mapreduce.FromWorker, from Limiter) {
	if from == nil || (!o.limits && !o.beat) {
		return
	}
	o.limits = false
	m.Limits = from.Notes()
}

// applyShares applies this worker's shares of the fleet's limits.
func (l *streamLink) applyShares(shares []mapreduce.LimitShare) {
	s := l.session
	if len(shares) == 0 {
		return
	}
	if s.cfg.Limits != nil {
		s.cfg.Limits.Share(shares)
	}
	for i := range shares {
		if shares[i].OpenFor > 0 {
			s.breakers.tripAll(shares[i].Name)
		}
	}
}

// tripAll opens the breakers of a name that are closed: another worker's has opened,
// and one need not fail as often again to learn the same.
func (bs *breakers) tripAll(name string) {
	bs.mu.Lock()
	var some []*breaker
	for key, b := range bs.all {
		if key.name == name {
			some = append(some, b)
		}
	}
	bs.mu.Unlock()
	for _, b := range some {
		b.tripBreaker()
	}
}

// errOrdered is the error of calls at a breaker that the fleet opened.
var errOrdered = errors.New("the breaker of the fleet is open")

// tripBreaker opens the breaker without reporting it: the orchestrator asked for it.
func (b *breaker) tripBreaker() {
	for b.state.State() == gobreaker.StateClosed {
		report, err := b.state.Allow()
		if err != nil {
			return
		}
		report(errOrdered)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fresh {
		b.fresh, b.ordered = false, true
	}
}
