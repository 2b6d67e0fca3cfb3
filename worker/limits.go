package worker

import "github.com/coditect/mapreduce/api/mapreduce"

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

// pullLimits adds the notes on models to m, if they are due. mu is held.
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
	s.passShares(shares)
	for i := range shares {
		s.breakers.Order(shares[i].Name, shares[i].OpenFor, shares[i].Probe)
	}
}
