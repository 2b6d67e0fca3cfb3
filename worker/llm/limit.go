package llm

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Rates are what a model may be asked in a minute. Zero is no limit.
type Rates struct {
	Concurrent int   // calls at once
	Requests   int64 // a minute
	Input      int64 // tokens a minute
	Output     int64 // tokens a minute
}

// Limit holds calls back so that the vendor has no need to refuse them. All
// calls of a process to a model go through one gate. What the vendor says of its
// limits is believed over the configured rates; where it says nothing, a refusal
// halves the calls at once, and each success raises them a little.
type Limit struct {
	Provider
	Gates *Gates
	Count func(*Request) int64 // tokens of a prompt. It is required
}

// Complete implements Provider.
func (l *Limit) Complete(ctx context.Context, req *Request) (*Response, error) {
	g := l.Gates.of(BreakerName(l.Name(), req.Model))
	want := need{in: l.Count(req), out: req.maxTokens()}
	if err := g.enter(ctx, want); err != nil {
		return nil, broken(ctx, err)
	}
	outcome := outcome{now: time.Now}
	defer func() { g.leave(want, outcome) }()
	res, err := l.Provider.Complete(ctx, req)
	if err != nil {
		outcome.failed(err)
		return nil, err
	}
	outcome.ok, outcome.usage, outcome.limits = true, res.Usage, res.Limits
	return res, nil
}

// Gates are the gates of a process, by provider and model.
type Gates struct {
	rates func(name string) Rates

	mu  sync.Mutex // guards all
	all map[string]*gate
}

// NewGates returns gates whose first limits are those of rates.
func NewGates(rates func(name string) Rates) *Gates {
	return &Gates{rates: rates, all: make(map[string]*gate)}
}

func (gs *Gates) of(name string) *gate {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.all[name]
	if g == nil {
		g = newGate(gs.rates(name), time.Now())
		gs.all[name] = g
	}
	return g
}

// A need is what a call takes from the buckets.
type need struct{ in, out int64 }

// An outcome is what a call teaches its gate.
type outcome struct {
	ok      bool
	refused bool // for want of room
	pause   time.Duration
	usage   Usage
	limits  Limits
	now     func() time.Time
}

func (o *outcome) failed(err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return
	}
	o.refused = e.Kind == RateLimited || e.Kind == Overloaded
	o.pause, o.usage, o.limits = e.RetryAfter, e.Usage, e.Limits
}

// A gate lets calls of one model through, first come, first served: a large
// call is not overtaken for ever by small ones.
type gate struct {
	turn chan struct{} // holds a token for who is next

	mu       sync.Mutex // guards the fields below
	changed  chan struct{}
	inFlight int
	room     float64 // calls at once, as learned
	most     float64 // calls at once, as configured; 0 is no limit
	frozen   time.Time
	requests meterBucket
	input    meterBucket
	output   meterBucket
}

// firstRoom is where learning begins if nothing is configured.
const firstRoom = 64

func newGate(r Rates, now time.Time) *gate {
	g := &gate{turn: make(chan struct{}, 1), changed: make(chan struct{}), most: float64(r.Concurrent)}
	g.room = cmp.Or(g.most, firstRoom)
	g.requests, g.input, g.output = newBucket(r.Requests, now), newBucket(r.Input, now), newBucket(r.Output, now)
	return g
}

// enter waits until a call may be made.
func (g *gate) enter(ctx context.Context, n need) error {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-g.turn }()
	for {
		wait, changed := g.try(time.Now(), n)
		if wait == 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}

// longWait stands for waiting until something changes.
const longWait = time.Hour

// try takes what a call needs, or returns how long to wait at most.
func (g *gate) try(now time.Time, n need) (time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.frozen.Sub(now); wait > 0 {
		return wait, g.changed
	}
	if g.inFlight > 0 && float64(g.inFlight+1) > g.room {
		return longWait, g.changed
	}
	wait := max(g.requests.wait(now, 1), g.input.wait(now, n.in), g.output.wait(now, n.out))
	if wait > 0 {
		return wait, g.changed
	}
	g.requests.take(1)
	g.input.take(n.in)
	g.output.take(n.out)
	g.inFlight++
	return 0, nil
}

// leave gives back what a call did not use, and learns from it.
func (g *gate) leave(n need, o outcome) {
	now := o.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.input.give(now, n.in-o.usage.In()+o.usage.CacheRead)
	g.output.give(now, n.out-o.usage.Output)
	told := g.requests.learn(now, o.limits.Requests)
	told = g.input.learn(now, o.limits.Input) || told
	told = g.output.learn(now, o.limits.Output) || told
	told = g.input.learn(now, o.limits.Tokens) || told
	switch {
	case o.refused:
		g.frozen = later(g.frozen, now.Add(max(o.pause, time.Second)))
		if !told {
			g.room = max(g.room/2, 1)
		}
	case o.ok && (g.most == 0 || g.room < g.most):
		g.room += 1 / g.room
		if g.most > 0 {
			g.room = min(g.room, g.most)
		}
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A meterBucket fills up in a minute. It may be owed something: a call that took
// more than was reckoned.
type meterBucket struct {
	size  float64 // 0 is no limit
	level float64
	at    time.Time
}

func newBucket(perMinute int64, now time.Time) meterBucket {
	return meterBucket{size: float64(perMinute), level: float64(perMinute), at: now}
}

func (b *meterBucket) refill(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.level+b.size*d.Minutes(), b.size)
		b.at = now
	}
}

// wait returns how long until n are there. What is more than the bucket ever
// holds is let through when it is full.
func (b *meterBucket) wait(now time.Time, n int64) time.Duration {
	if b.size == 0 {
		return 0
	}
	b.refill(now)
	short := min(float64(n), b.size) - b.level
	if short <= 0 {
		return 0
	}
	return time.Duration(short/b.size*float64(time.Minute)) + time.Millisecond
}

func (b *meterBucket) take(n int64) { b.level -= float64(n) }

// give returns what was not used, or takes what was used besides.
func (b *meterBucket) give(now time.Time, n int64) {
	b.refill(now)
	b.level = min(b.level+float64(n), b.size)
}

// learn believes the vendor about its limit, and about what is left if that is
// less than was reckoned. It reports whether it was told anything.
func (b *meterBucket) learn(now time.Time, said Bucket) bool {
	if !said.Known {
		return false
	}
	b.refill(now)
	if said.Limit > 0 {
		if b.size == 0 {
			b.level = float64(said.Remaining)
		}
		b.size = float64(said.Limit)
	}
	b.level = min(b.level, float64(said.Remaining), b.size)
	return true
}
