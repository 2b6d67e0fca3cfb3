// Package memory bounds what the peers of a process can make it hold: one budget for all of
// them, with limits for each connection and for each principal. A call that needs room
// waits for it, so that a full budget slows peers down; one that waits too long is refused,
// and learns when to try again. It imports nothing of the project but the error kinds.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// Limits are those of a Budget, in bytes. The zero Limits work.
type Limits struct {
	// Total bounds what all peers together make the process hold. Defaults to 384 MiB.
	Total int64
	// Connection bounds what one connection does. Defaults to five eighths of Total.
	Connection int64
	// Principal bounds what one principal does, over all its connections. Defaults to
	// five eighths of Total.
	Principal int64
	// Patience is how long a call waits for room before it is refused. Defaults to 10 s.
	Patience time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Total = cmp.Or(l.Total, 384<<20)
	l.Connection = cmp.Or(l.Connection, l.Total/8*5)
	l.Principal = cmp.Or(l.Principal, l.Total/8*5)
	l.Patience = cmp.Or(l.Patience, 10*time.Second)
	return l
}

const (
	// lookEvery is how often a call that waits for room looks for one that should make
	// way, and also how long that one must have kept others waiting.
	lookEvery = time.Second
	// retryAfter is how long a refused caller should wait at least.
	retryAfter = 2 * time.Second
	// leastCut is what a connection must hold, in bytes, to be worth cutting.
	leastCut = 1 << 20
)

// A Budget counts what peers make a process hold. Its methods, and those of its
// connections and leases, are safe for concurrent use.
type Budget struct {
	limits Limits

	mu          sync.Mutex // guards the variables below, and all of connections and leases
	used        int64
	peak        int64 // of used, since it last settled
	sequence    int64 // of the latest lease
	connections map[*Connection]struct{}
	principals  map[string]*account
	leases      map[*Lease]struct{} // that hold something, or wait
	waiting     []*line             // in which some wait, in no order
}

// A line is the requests that wait over one connection, those of the oldest call first.
// A call without a connection has a line of its own.
type line struct{ requests []*request }

// An account is what one connection or one principal holds.
type account struct {
	used, limit int64
	leases      int // that use it
}

// New returns a budget of which nothing is used.
func New(l Limits) *Budget {
	return &Budget{
		limits: l.withDefaults(), connections: make(map[*Connection]struct{}),
		principals: make(map[string]*account), leases: make(map[*Lease]struct{}),
	}
}

// Used returns how many bytes are held.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Settle reports, once each time, whether at least so many bytes were held and no more
// than a quarter of that is left.
func (b *Budget) Settle(least int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.peak < least || b.used > b.peak/4 {
		return false
	}
	b.peak = b.used
	return true
}

// add changes what is held. The caller holds mu.
func (b *Budget) add(n int64) {
	b.used += n
	b.peak = max(b.peak, b.used)
}

// room is how much of the total leases may use: the rest is for what comes and goes
// over connections, which cannot wait.
func (b *Budget) room() int64 { return b.limits.Total - b.limits.Total/8 }

// A Connection is what one connection holds: buffers of its transport, and the leases
// of its calls.
type Connection struct {
	budget  *Budget
	account account
	line    line  // of the requests of its calls
	charged int64 // of account.used, by Charge
	cut     func(error)
	ended   bool
}

// Connect adds a connection. If it holds too much, cut is called, once, and has to end
// it; it is called with locks held, so it must not call the budget or wait.
func (b *Budget) Connect(cut func(error)) *Connection {
	c := &Connection{budget: b, account: account{limit: b.limits.Connection}, cut: cut}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connections[c] = struct{}{}
	return c
}

// Charge sets what the transport of a connection holds. If that is too much, the
// connection is cut, or whichever holds the most.
func (c *Connection) Charge(n int64) {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.ended {
		return
	}

	d := n - c.charged
	c.charged = n
	c.account.used += d
	b.add(d)

	switch {
	case d < 0:
		b.grantWaiting()
	case c.account.used > c.account.limit:
		c.cutOff()
	case b.used > b.limits.Total:
		b.cutGreediest()
	}
}

// Close removes a connection.
func (c *Connection) Close() {
	b := c.budget
	b.mu.Lock()
	defer b.mu.Unlock()

	if _, ok := b.connections[c]; !ok {
		return
	}

	c.ended = true
	delete(b.connections, c)
	b.add(-c.charged)
	c.account.used -= c.charged
	c.charged = 0
	b.grantWaiting()
}

// cutOff ends a connection. The caller holds the budget's mu.
func (c *Connection) cutOff() {
	if !c.ended {
		c.ended = true // what it is charged with goes when it is closed
		c.cut(errs.New(errs.Exhausted, "the calls of this connection need %d bytes of memory here; one connection may use at most %d", c.account.used, c.account.limit))
	}
}

// cutGreediest ends the connection that holds the most. The caller holds mu.
func (b *Budget) cutGreediest() {
	var most *Connection
	for c := range b.connections {
		if c.ended {
			return // what it holds is about to be free
		}
		if most == nil || c.account.used > most.account.used {
			most = c
		}
	}

	if most != nil && most.account.used >= leastCut {
		most.cutOff()
	}
}

// A Lease is what one call holds.
type Lease struct {
	budget    *Budget
	number    int64
	line      *line
	accounts  []*account
	principal string
	held      int64
	revoke    context.CancelCauseFunc
	revoked   bool
	closed    bool
	around    func(wait func() error) error // see Around; nil if nothing is

	awaiting time.Time     // since when its peer keeps it waiting; zero while it does not
	awaited  time.Duration // how long its peer kept it waiting before
	got      int64         // bytes that it has asked room for since it held nothing
}

// leaseKey is the key of a call's lease in its context.
type leaseKey struct{}

// Open returns the lease of a call over a connection, which may be nil, and the context
// to make the call in: it ends, with a cause of the kind errs.Exhausted, when the call
// has to make way for others. The lease must be closed.
func (b *Budget) Open(ctx context.Context, c *Connection) (context.Context, *Lease) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &Lease{budget: b, revoke: cancel, line: new(line)}
	if c != nil {
		l.line, l.accounts = &c.line, append(l.accounts, &c.account)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sequence++
	l.number = b.sequence
	return context.WithValue(ctx, leaseKey{}, l), l
}

// Of returns the lease of the call that ctx is of, or nil: a nil lease holds anything.
func Of(ctx context.Context) *Lease {
	l, _ := ctx.Value(leaseKey{}).(*Lease)
	return l
}

// Around sets what is to be called around each wait of the call, for room or for its peer, so that
// others may have what the call needs only while it does something. It is called at most once, before
// anything is held.
func (l *Lease) Around(around func(wait func() error) error) { l.around = around }

// Bill has what the call holds count for a principal as well. It is called at most
// once, before anything is held.
func (l *Lease) Bill(principal string) {
	if l == nil || principal == "" {
		return
	}

	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()

	a := b.principals[principal]
	if a == nil {
		a = &account{limit: b.limits.Principal}
		b.principals[principal] = a
	}

	a.leases++
	a.used += l.held
	l.accounts, l.principal = append(l.accounts, a), principal
}

// A request is a lease that waits for room.
type request struct {
	lease   *Lease
	bytes   int64
	granted chan struct{} // closed when it has the room
}

// Hold waits for room for n more bytes. It fails with errs.Exhausted if there is none
// for long, or could never be.
func (l *Lease) Hold(ctx context.Context, n int64) error {
	if l == nil || n <= 0 {
		return nil
	}
	_, err := l.hold(ctx, n, false)
	return err
}

// hold waits for room for n more bytes and returns how many they were: with clip set,
// those beyond what one call may hold are not counted.
func (l *Lease) hold(ctx context.Context, n int64, clip bool) (int64, error) {
	r, waits, err := l.budget.request(l, n, clip)
	if err != nil || !waits {
		return r.bytes, err
	}
	wait := func() error { return l.budget.wait(ctx, r) }
	if l.around == nil {
		return r.bytes, wait()
	}
	return r.bytes, l.around(wait)
}

// request asks for room for a lease, and reports whether it has to be waited for.
func (b *Budget) request(l *Lease, n int64, clip bool) (r *request, waits bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	r = &request{lease: l, bytes: n, granted: make(chan struct{})}
	switch {
	case l.closed: // what is left of the call must not hold what nobody would give back
		return r, false, errEnded()
	case l.revoked:
		return r, false, errRevoked()
	}

	most := b.room()
	for _, a := range l.accounts {
		most = min(most, a.limit)
	}
	if clip { // some is left for what the transport holds, or there would never be room
		r.bytes = max(0, min(n, most-most/8-l.held))
	}

	if l.held+r.bytes > most {
		return r, false, errs.New(errs.Exhausted, "the call needs %d bytes of memory here; one call may use at most %d", l.held+n, most)
	}

	b.leases[l] = struct{}{}
	b.enqueue(r)
	b.grantWaiting()

	select {
	case <-r.granted:
		return r, false, nil
	default:
		return r, true, nil
	}
}

// wait waits until a request is granted.
func (b *Budget) wait(ctx context.Context, r *request) error {
	patience := time.NewTimer(b.limits.Patience)
	defer patience.Stop()

	look := time.NewTicker(lookEvery)
	defer look.Stop()

	for {
		select {
		case <-r.granted:
			return nil
		case <-look.C:
			b.makeRoom(r)
		case <-patience.C:
			return b.withdraw(r, &errs.Error{
				Kind: errs.Exhausted, Reason: "MEMORY", RetryAfter: retryAfter,
				Message: "this process has no memory left for more calls; try again later",
			})
		case <-ctx.Done():
			return b.withdraw(r, context.Cause(ctx))
		}
	}
}

// withdraw gives a request up, unless it was granted meanwhile and its call goes on.
func (b *Budget) withdraw(r *request, why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dequeue(r) {
		if r.lease.closed {
			return why
		}
		return nil
	}
	b.grantWaiting() // some may have waited behind it
	return why
}

// enqueue has a request wait. The caller holds mu.
func (b *Budget) enqueue(r *request) {
	l := r.lease.line
	if len(l.requests) == 0 {
		b.waiting = append(b.waiting, l)
	}
	at := len(l.requests)
	for at > 0 && l.requests[at-1].lease.number > r.lease.number {
		at--
	}
	l.requests = slices.Insert(l.requests, at, r)
}

// dequeue has a request wait no more, and reports whether it did. The caller holds mu.
func (b *Budget) dequeue(r *request) bool {
	l := r.lease.line
	at := slices.Index(l.requests, r)
	if at < 0 {
		return false
	}
	if l.requests = slices.Delete(l.requests, at, at+1); len(l.requests) == 0 {
		at := slices.Index(b.waiting, l)
		b.waiting = slices.Delete(b.waiting, at, at+1)
	}
	return true
}

// grantWaiting gives room to those who wait for it, one after the other. If the next has
// no room in the total, the others wait as well, or small requests would have large ones
// wait for ever. The caller holds mu.
func (b *Budget) grantWaiting() {
	for {
		r := b.next()
		if r == nil || b.used+r.bytes > b.room() {
			return
		}
		b.dequeue(r)
		r.lease.add(r.bytes)
		r.lease.got += r.bytes
		close(r.granted)
	}
}

// maxLooks is how many requests of a line are looked at for one that its connection and
// principal have room for. A peer can have thousands wait, and whoever takes or frees
// memory would have to look at all of them.
const maxLooks = 16

// next returns which request is the next that is granted, or nil: those of connections that
// hold little come before those that hold much, so that however much some peers have
// begun, others can begin; and among these the call that began first, so that what has
// begun ends. A connection that holds as much as it may waits for itself. The caller
// holds mu.
func (b *Budget) next() *request {
	var next *request
	for _, l := range b.waiting {
		for _, r := range l.requests[:min(len(l.requests), maxLooks)] {
			if r.lease.overdrawn(r.bytes) {
				continue
			}
			if next == nil || r.lease.before(next.lease) {
				next = r
			}
			break // the others of its connection come later
		}
	}

	return next
}

// before reports whether what l waits for is granted before what other waits for. The
// caller holds the budget's mu.
func (l *Lease) before(other *Lease) bool {
	if much := l.holdsMuch(); much != other.holdsMuch() {
		return !much
	}
	return l.number < other.number
}

// holdsMuch reports whether a 32nd of all is held for the connection of the lease. The
// caller holds the budget's mu.
func (l *Lease) holdsMuch() bool {
	used := l.held
	if len(l.accounts) > 0 {
		used = l.accounts[0].used
	}
	return used > l.budget.limits.Total/32
}

// overdrawn reports whether n more bytes are more than the lease's connection or
// principal may hold. The caller holds the budget's mu.
func (l *Lease) overdrawn(n int64) bool {
	return slices.ContainsFunc(l.accounts, func(a *account) bool { return a.used+n > a.limit })
}

// add changes what a lease holds. The caller holds the budget's mu.
func (l *Lease) add(n int64) {
	l.held += n
	l.budget.add(n)
	for _, a := range l.accounts {
		a.used += n
	}
}

// makeRoom ends the call which holds most needlessly what another waits for: that of
// the slowest peer, or, if all wait for each other, the youngest.
func (b *Budget) makeRoom(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.next() != r { // the others look when it is their turn
		return
	}

	victim := b.slowestPeer(r.lease)
	if victim == nil {
		victim = b.youngestWaiting(r.lease)
	}

	if victim != nil {
		victim.revoked = true
		victim.revoke(errRevoked())
	}
}

func errRevoked() error {
	return &errs.Error{
		Kind: errs.Exhausted, Reason: "MEMORY", RetryAfter: retryAfter,
		Message: "the call was ended to free memory for others, as it used much and sent or read little; try again later",
	}
}

func errEnded() error { return errs.New(errs.Cancelled, "the call has ended") }

// slowestPeer returns the lease whose peer has sent the least in the time that it was
// waited for, if that is long enough. The caller holds mu.
func (b *Budget) slowestPeer(other *Lease) *Lease {
	var slowest *Lease
	least := 0.0
	now := time.Now()
	for l := range b.leases {
		if l == other || l.revoked || l.held == 0 {
			continue
		}

		awaited := l.awaited
		if !l.awaiting.IsZero() {
			awaited += now.Sub(l.awaiting)
		}
		if awaited < lookEvery {
			continue
		}

		if rate := float64(l.got) / awaited.Seconds(); slowest == nil || rate < least {
			slowest, least = l, rate
		}
	}

	return slowest
}

// youngestWaiting returns the youngest lease that holds something and waits for more,
// if it is younger than another. The caller holds mu.
func (b *Budget) youngestWaiting(other *Lease) *Lease {
	var youngest *Lease
	for _, line := range b.waiting {
		for _, r := range line.requests {
			l := r.lease
			if l.held > 0 && !l.revoked && l.number > other.number && (youngest == nil || l.number > youngest.number) {
				youngest = l
			}
		}
	}
	return youngest
}

// Release gives n bytes back.
func (l *Lease) Release(n int64) {
	if l == nil || n <= 0 {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	l.add(-min(n, l.held))
	b.grantWaiting()
}

// Await makes a call that waits for the peer: a slow peer is the first to make way.
func (l *Lease) Await(call func() error) error {
	if l == nil {
		return call()
	}

	b := l.budget
	b.mu.Lock()
	l.awaiting = time.Now()
	b.mu.Unlock()

	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		l.awaited += time.Since(l.awaiting)
		l.awaiting = time.Time{}
	}()

	if l.around == nil {
		return call()
	}
	return l.around(call)
}

// Close gives all back that the call holds. What still runs of the call can hold nothing
// more.
func (l *Lease) Close() {
	if l == nil {
		return
	}

	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()

	frees := l.held > 0
	l.closed = true
	for _, r := range slices.Clone(l.line.requests) {
		if r.lease == l {
			b.dequeue(r) // whoever waits for it has its context end
			frees = true // others may have waited behind it
		}
	}

	l.add(-l.held)
	delete(b.leases, l)

	if a := b.principals[l.principal]; a != nil {
		if a.leases--; a.leases == 0 {
			delete(b.principals, l.principal)
		}
	}

	l.principal = ""
	l.revoke(nil)

	if frees {
		b.grantWaiting()
	}
}

// Hold waits for room for n more bytes, which count for the call that ctx is of until
// it has ended. See Lease.Hold.
func Hold(ctx context.Context, n int64) error { return Of(ctx).Hold(ctx, n) }

// HoldFor waits for room for what the call that ctx is of holds until release is called.
// It may be more than one call may hold: then it waits for as much as there may be.
func HoldFor(ctx context.Context, n int64) (release func(), err error) {
	l := Of(ctx)
	if l == nil || n <= 0 {
		return func() {}, nil
	}
	held, err := l.hold(ctx, n, true)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { l.Release(held) }), nil
}
