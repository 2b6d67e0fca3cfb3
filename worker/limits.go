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

// A MannersKeeper knows what servers of models do not take: what this process has learned, and what
// others of the fleet have.
type MannersKeeper interface {
	// Learn takes what others have learned. What is new is news of this process if pass says so.
	Learn(all []mapreduce.ModelManners, pass bool)

	// News returns what was learned here since the last call of News.
	News() []mapreduce.ModelManners

	// All returns everything that is known.
	All() []mapreduce.ModelManners

	// Due returns a channel that holds an element when there is news.
	Due() <-chan struct{}
}

// mannersDue returns a channel that says that there is news of what servers refuse.
func (l *streamLink) mannersDue() <-chan struct{} {
	if l.session.cfg.Manners == nil {
		return nil
	}
	return l.session.cfg.Manners.Due()
}

// pullManners adds news of what servers refuse to m, if that is due. mu is held.
func (o *outbox) pullManners(m *mapreduce.FromWorker, from MannersKeeper) {
	if from != nil && (o.limits || o.beat) {
		m.Manners = from.News()
	}
}

// learnManners takes what others have learned of servers; pass says that the fleet is to be told.
func (s *session) learnManners(all []mapreduce.ModelManners, pass bool) {
	if s.cfg.Manners != nil && len(all) > 0 {
		s.cfg.Manners.Learn(all, pass)
	}
}

// knownManners returns what is known of servers, for a process in which a unit runs apart.
func (s *session) knownManners() []mapreduce.ModelManners {
	if s.cfg.Manners == nil {
		return nil
	}
	return s.cfg.Manners.All()
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
