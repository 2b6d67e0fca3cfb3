package worker

import (
	"context"

	"github.com/coditect/mapreduce/api/protocol"
)

// A Limiter holds back the calls of this process to models, tells the fleet what
// the models said of their limits, and keeps to its share of them. decorator.Gates is
// one.
type Limiter interface {
	// Share sets the limits of this worker for some models.
	Share(shares []protocol.LimitShare)

	// Notes returns the observations of models since the last call of Notes.
	Notes() []protocol.LimitNote

	// Due returns a channel that holds an element when notes should be taken
	// at once, rather than with the next sign of life.
	Due() <-chan struct{}
}

// A MannersKeeper knows what servers of models do not take: what this process has learned, and what
// others of the fleet have.
type MannersKeeper interface {
	// Learn takes what others have learned. What is new is news of this process if pass says so.
	Learn(all []protocol.ModelManners, pass bool)

	// News returns what was learned here since the last call of News.
	News() []protocol.ModelManners

	// All returns everything that is known.
	All() []protocol.ModelManners

	// Due returns a channel that holds an element when there is news.
	Due() <-chan struct{}
}

// A Batcher sees to batches at vendors. batching.Holder is one.
type Batcher interface {
	// Providers returns the names of the providers whose batches it can make.
	Providers() []string

	// Run sees to batches until ctx ends.
	Run(ctx context.Context, desk protocol.BatchDesk)
}

// noLimits are those of a worker that is given none.
type noLimits struct{}

func (noLimits) Share([]protocol.LimitShare) {}
func (noLimits) Notes() []protocol.LimitNote { return nil }
func (noLimits) Due() <-chan struct{}        { return nil }

// noManners are those of a worker that is given no keeper of them.
type noManners struct{}

func (noManners) Learn([]protocol.ModelManners, bool) {}
func (noManners) News() []protocol.ModelManners       { return nil }
func (noManners) All() []protocol.ModelManners        { return nil }
func (noManners) Due() <-chan struct{}                { return nil }

// applyShares applies this worker's shares of the fleet's limits.
func (l *streamLink) applyShares(shares []protocol.LimitShare) {
	s := l.session
	if len(shares) == 0 {
		return
	}

	s.cfg.Limits.Share(shares)
	s.relays.PassShares(shares)
	for i := range shares {
		s.breakers.Order(shares[i].Name, shares[i].OpenFor, shares[i].Probe)
	}
}
