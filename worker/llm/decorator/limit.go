package decorator

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm"
)

// Rates are the limits of calls of a model in a minute. Zero means no limit.
type Rates struct {
	Concurrent int   // calls at once
	Requests   int64 // a minute
	Input      int64 // tokens a minute
	Output     int64 // tokens a minute
}

// Limit holds calls back so that the vendor has no need to refuse them. All
// calls of a process to a model go through one gate. What the vendor says of its
// limits is believed over the configured rates; where it says nothing, a refusal
// halves the calls at once, and each success raises them a little. In a fleet the
// gate lets through what the fleet's share allows: see Gates.
//
// A call that the vendor refuses for want of room is made again once there is some, and
// costs no attempt. If that takes longer than Patience, or if the vendor has asked for a
// longer pause already in answer to another call, the call ends with an
// *agent.BreakerError: its unit can wait in its queue, and loses nothing.
type Limit struct {
	llm.Provider
	Gates    *Gates
	Count    func(*llm.Request) int64 // tokens of a prompt. It is required
	Patience time.Duration            // Defaults to a minute

	// Elsewhere says that the call can be made to another model: then it waits no longer than
	// Patience for room of any kind.
	Elsewhere bool
}

// Complete implements Provider.
func (l *Limit) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	name := BreakerName(l.Name(), req.Model)
	g := l.Gates.gateOf(name)
	want := need{in: l.Count(req), out: req.AnswerBound()}
	last := time.Now().Add(cmp.Or(l.Patience, time.Minute))

	for n := 0; ; n++ {
		pause, err := g.enterGate(ctx, want, last, l.Elsewhere)
		if err != nil {
			return nil, llm.BrokenError(ctx, err)
		}
		// Without a pause the gate has let the call through.
		if pause == 0 {
			var res *llm.Response
			if res, pause, err = l.callOnce(ctx, g, want, req, n); pause == 0 {
				return res, err
			}
		}

		if time.Now().Add(pause).After(last) {
			return nil, &agent.BreakerError{Name: name, OpenFor: pause, NoRoom: true}
		}
	}
}

// callOnce makes a call. If the vendor refused it for want of room it returns how
// long to wait at least; that grows with how often it did.
func (l *Limit) callOnce(ctx context.Context, g *gate, want need, req *llm.Request, n int) (*llm.Response, time.Duration, error) {
	// The gate is left also if the provider panics.
	out := outcome{now: time.Now}
	defer func() {
		g.leaveGate(want, out)
		l.Gates.signalDue(out.refused)
	}()

	res, err := l.Provider.Complete(ctx, req)
	if err != nil {
		pause := out.noteError(err, n)
		return nil, pause, err
	}

	out.ok, out.usage, out.limits = true, res.Usage, res.Limits
	return res, 0, nil
}

// Gates holds the gates of a process, by provider and model. They report the limits that
// vendors state to the fleet, and keep to this process's shares of these limits. A share
// that was not renewed in time lets no call begin, since other processes may have it.
type Gates struct {
	rates func(name string) Rates
	due   chan struct{} // holds one element while there is something to tell at once

	mu  sync.Mutex // guards all
	all map[string]*gate
}

// NewGates returns gates whose first limits are those of rates.
func NewGates(rates func(name string) Rates) *Gates {
	return &Gates{rates: rates, due: make(chan struct{}, 1), all: make(map[string]*gate)}
}

func (gs *Gates) gateOf(name string) *gate {
	gs.mu.Lock()
	defer gs.mu.Unlock()

	g := gs.all[name]
	if g == nil {
		g = newGate(gs.rates(name), time.Now())
		gs.all[name] = g
	}
	return g
}

// Share sets the shares of this process.
func (gs *Gates) Share(shares []protocol.LimitShare) {
	for i := range shares {
		gs.gateOf(shares[i].Name).takeShare(time.Now(), &shares[i])
	}
}

// Notes returns the observations of models since the last call of Notes, sorted by name.
func (gs *Gates) Notes() []protocol.LimitNote {
	gs.mu.Lock()
	defer gs.mu.Unlock()

	var notes []protocol.LimitNote
	for name, g := range gs.all {
		if n, seen := g.takeNote(); seen {
			n.Name = name
			notes = append(notes, n)
		}
	}

	slices.SortFunc(notes, func(a, b protocol.LimitNote) int { return strings.Compare(a.Name, b.Name) })
	return notes
}

// Due returns a channel that holds an element when notes should be taken at
// once: a vendor has refused a call.
func (gs *Gates) Due() <-chan struct{} { return gs.due }

func (gs *Gates) signalDue(due bool) {
	if !due {
		return
	}
	select {
	case gs.due <- struct{}{}:
	default:
	}
}

// A need holds the tokens that a call takes from the buckets.
type need struct{ in, out int64 }

// An outcome is the information about a call from which its gate learns.
type outcome struct {
	ok      bool
	refused bool // for want of room
	pause   time.Duration
	usage   llm.Usage
	limits  llm.Limits
	now     func() time.Time
}

// longestPause bounds a pause whose length the vendor does not state.
const longestPause = 30 * time.Second

// noteError notes an error. For the nth refusal of a call it returns how long to
// wait before the next.
func (o *outcome) noteError(err error, n int) time.Duration {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return 0
	}

	o.refused = e.Kind == llm.RateLimited || e.Kind == llm.Overloaded
	o.pause, o.usage, o.limits = e.RetryAfter, e.Usage, e.Limits
	if e.Kind != llm.RateLimited || e.Class != protocol.Retryable || e.Status == http.StatusOK {
		return 0 // of an answer that had begun, something was paid: that is the meter's affair
	}

	o.pause = cmp.Or(o.pause, min(time.Second<<min(n, 10), longestPause))
	return o.pause
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

	shared bool // the fleet has given a share
	part   float64
	calls  int       // at once, of the share; 0 is no limit
	until  time.Time // the share is valid; zero is for ever
	note   protocol.LimitNote
	noted  bool
}

// firstRoom is where learning begins if nothing is configured.
const firstRoom = 64

func newGate(r Rates, now time.Time) *gate {
	g := &gate{turn: make(chan struct{}, 1), changed: make(chan struct{}), most: float64(r.Concurrent), part: 1}
	g.room = cmp.Or(g.most, firstRoom)
	g.requests, g.input, g.output = newBucket(r.Requests, now), newBucket(r.Input, now), newBucket(r.Output, now)
	return g
}

// enterGate waits until a call may be made. If the vendor lets none begin before last, it
// returns at once how long that pause is; of a call that can be made elsewhere, it returns a pause
// if no room has come until last, for whatever reason.
func (g *gate) enterGate(ctx context.Context, n need, last time.Time, elsewhere bool) (pause time.Duration, err error) {
	// A nil channel never fires: without another model a call waits for as long as its
	// context lets it.
	var late <-chan time.Time
	if elsewhere {
		timer := time.NewTimer(time.Until(last))
		defer timer.Stop()
		late = timer.C
	}

	// Whoever holds the turn waits for room, and all others behind it: that keeps the
	// order.
	select {
	case g.turn <- struct{}{}:
	case <-late:
		return roomPause, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-g.turn }()

	for {
		wait, changed := g.tryEnter(time.Now(), n, last)
		if changed == nil {
			return wait, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-late:
			timer.Stop()
			return roomPause, nil
		case <-ctx.Done():
			timer.Stop()
			return 0, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// roomPause is after how long a call is worth trying again that found no room, where nobody says when
// there will be some.
const roomPause = 5 * time.Second

// longWait means: wait until something changes.
const longWait = time.Hour

// tryEnter takes what a call needs from the buckets, or returns the longest time to wait and
// what is closed when something changes. That is nil if the call is not to wait: it may begin,
// or the vendor lets none begin before last, and the time is how long that pause is.
func (g *gate) tryEnter(now time.Time, n need, last time.Time) (time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if pause := g.frozen.Sub(now); pause > 0 {
		if g.frozen.After(last) {
			return pause, nil
		}
		return pause, g.changed
	}

	if g.isFull(now) {
		return longWait, g.changed
	}

	// All three buckets must have room before anything is taken from one.
	wait := max(g.requests.waitTime(now, 1), g.input.waitTime(now, n.in), g.output.waitTime(now, n.out))
	if wait > 0 {
		return wait, g.changed
	}

	g.requests.takeTokens(1)
	g.input.takeTokens(n.in)
	g.output.takeTokens(n.out)
	g.inFlight++
	return 0, nil
}

// isFull reports whether no call may be made until something changes.
func (g *gate) isFull(now time.Time) bool {
	if !g.shared {
		return g.inFlight > 0 && float64(g.inFlight+1) > g.room
	}
	late := !g.until.IsZero() && now.After(g.until)
	return late || (g.calls > 0 && g.inFlight >= g.calls) || g.part <= 0
}

// leaveGate returns what a call did not use, and learns from its outcome.
func (g *gate) leaveGate(n need, o outcome) {
	now := o.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--

	// The worst case was taken when the call began. What was read from a cache is no input
	// here.
	g.input.giveBack(now, n.in-o.usage.In()+o.usage.CacheRead)
	g.output.giveBack(now, n.out-o.usage.Output)

	told := g.requests.learnLimit(now, o.limits.Requests, g.part)
	told = g.input.learnLimit(now, o.limits.Input, g.part) || told
	told = g.output.learnLimit(now, o.limits.Output, g.part) || told
	told = g.input.learnLimit(now, o.limits.Tokens, g.part) || told
	g.addOutcome(o)

	switch {
	case o.refused:
		g.frozen = laterOf(g.frozen, now.Add(max(o.pause, time.Second)))
		if !told {
			g.room = max(g.room/2, 1)
		}
	// Room grows by about one in as many successes as there are calls at once.
	case o.ok && (g.most == 0 || g.room < g.most):
		g.room += 1 / g.room
		if g.most > 0 {
			g.room = min(g.room, g.most)
		}
	}

	g.wakeWaiters()
}

// wakeWaiters lets the waiting calls try again. The caller holds mu.
func (g *gate) wakeWaiters() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// addOutcome adds an outcome to the next note.
func (g *gate) addOutcome(o outcome) {
	g.noted = true

	if o.ok {
		g.note.Successes++
	}
	if o.refused {
		g.note.Refused = true
		g.note.Pause = max(g.note.Pause, o.pause)
	}

	// The limit of all tokens together counts as that of input, unless there is one of
	// input.
	for _, b := range []struct {
		said       llm.Bucket
		told, left *int64
	}{
		{o.limits.Requests, &g.note.Told.Requests, &g.note.Left.Requests},
		{o.limits.Tokens, &g.note.Told.Input, &g.note.Left.Input},
		{o.limits.Input, &g.note.Told.Input, &g.note.Left.Input},
		{o.limits.Output, &g.note.Told.Output, &g.note.Left.Output},
	} {
		if b.said.Known && b.said.Limit > 0 {
			*b.told, *b.left = b.said.Limit, b.said.Remaining
		}
	}
}

// takeNote returns the observations since the last note, if there are any.
func (g *gate) takeNote() (protocol.LimitNote, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, noted := g.note, g.noted
	g.note, g.noted = protocol.LimitNote{}, false
	return n, noted
}

// takeShare sets the process's share of the fleet's limits.
func (g *gate) takeShare(now time.Time, s *protocol.LimitShare) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.shared, g.part, g.calls = true, s.Part, int(s.Calls)
	// A share without a time holds until the next one comes.
	g.until = time.Time{}
	if s.For > 0 {
		g.until = now.Add(s.For)
	}

	g.requests.takeShare(now, s.Rates.Requests, s.Left.Requests, s.Part)
	g.input.takeShare(now, s.Rates.Input, s.Left.Input, s.Part)
	g.output.takeShare(now, s.Rates.Output, s.Left.Output, s.Part)

	if s.Pause > 0 {
		g.frozen = laterOf(g.frozen, now.Add(s.Pause))
	}

	g.wakeWaiters()
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// A meterBucket fills up in a minute. It may be owed something: a call that took
// more than was reckoned.
type meterBucket struct {
	size  float64 // 0 is no limit
	most  float64 // of a size that is learned, by the share of the fleet; 0 is no limit
	level float64
	at    time.Time
}

func newBucket(perMinute int64, now time.Time) meterBucket {
	return meterBucket{size: float64(perMinute), level: float64(perMinute), at: now}
}

func (b *meterBucket) refillBucket(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.level+b.size*d.Minutes(), b.size)
		b.at = now
	}
}

// waitTime returns how long until n are there. What is more than the bucket ever
// holds is let through when it is full.
func (b *meterBucket) waitTime(now time.Time, n int64) time.Duration {
	if b.size == 0 {
		return 0
	}
	b.refillBucket(now)
	short := min(float64(n), b.size) - b.level
	if short <= 0 {
		return 0
	}
	return time.Duration(short/b.size*float64(time.Minute)) + time.Millisecond
}

func (b *meterBucket) takeTokens(n int64) { b.level -= float64(n) }

// giveBack returns unused tokens, or takes the excess if n is negative.
func (b *meterBucket) giveBack(now time.Time, n int64) {
	b.refillBucket(now)
	b.level = min(b.level+float64(n), b.size)
}

// learnLimit sets the limit to this process's part of the limit that the vendor states.
// It lowers what is left if the vendor states less. It reports whether the vendor stated
// anything.
func (b *meterBucket) learnLimit(now time.Time, said llm.Bucket, part float64) bool {
	if !said.Known {
		return false
	}
	if said.Limit > 0 {
		size := float64(said.Limit) * part
		if b.most > 0 {
			size = min(size, b.most)
		}
		b.resizeBucket(now, size, float64(said.Remaining)*part)
	}

	b.refillBucket(now)
	b.level = min(b.level, float64(said.Remaining)*part)
	return true
}

// takeShare sets the bucket to a part of the fleet's limit and of what is left of it.
func (b *meterBucket) takeShare(now time.Time, rate, left int64, part float64) {
	b.most = float64(rate) * part
	if rate > 0 {
		b.resizeBucket(now, float64(rate)*part, float64(left)*part)
	}
}

// resizeBucket makes the bucket as large as its limit now is. It holds no more for
// that, unless there was no limit before: then it holds what is left.
func (b *meterBucket) resizeBucket(now time.Time, size, left float64) {
	b.refillBucket(now)
	if b.size == 0 {
		b.level, b.at = left, now
	}
	b.size = size
	b.level = min(b.level, size)
}
