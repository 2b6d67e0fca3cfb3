package fetch

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
)

// hosts spaces the requests to each host, of all units of the process.
type hosts struct {
	most  int // requests at a time
	pause time.Duration
	now   func() time.Time

	mu  sync.Mutex // guards the map and what its hosts hold
	all map[string]*host
}

// A host is what is known of one host at one port.
type host struct {
	slots chan struct{} // holds an element for each request that is under way
	users int           // that wait or are under way
	next  time.Time     // when the next request may begin
}

func newHosts(most int, pause time.Duration, now func() time.Time) *hosts {
	return &hosts{most: most, pause: pause, now: now, all: make(map[string]*host)}
}

// maxHosts is how many hosts are remembered that no request is made to now.
const maxHosts = 10_000

// enter waits until a request to a host may begin. leave ends it.
func (h *hosts) enter(ctx context.Context, u *url.URL) (leave func(), err error) {
	one := h.useHost(u.Host)
	select {
	case one.slots <- struct{}{}:
	case <-ctx.Done():
		h.drop(u.Host, one)
		return nil, fmt.Errorf("%s waited for other requests to the same host: %w", u, context.Cause(ctx))
	}

	leave = func() {
		<-one.slots
		h.drop(u.Host, one)
	}

	wait := h.reserve(one, u)
	// A wait that would outlast the call is given up at once.
	if end, ok := ctx.Deadline(); ok && wait > max(0, time.Until(end)) {
		leave()
		return nil, fmt.Errorf("%s was not asked for: its host asked for a pause of %v", u, wait.Round(time.Second))
	}

	if err := clock.Sleep(ctx, wait); err != nil {
		leave()
		return nil, fmt.Errorf("%s was not asked for: %w", u, err)
	}
	return leave, nil
}

// useHost returns a host, which is kept until drop.
func (h *hosts) useHost(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()

	one := h.all[name]
	if one == nil {
		if len(h.all) >= maxHosts {
			h.forget()
		}
		one = &host{slots: make(chan struct{}, h.most)}
		h.all[name] = one
	}

	one.users++
	return one
}

func (h *hosts) drop(name string, one *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if one.users--; one.users == 0 && !h.now().Before(one.next) {
		delete(h.all, name)
	}
}

// forget removes the hosts that are not in use. h.mu is held.
func (h *hosts) forget() {
	for name, one := range h.all {
		if one.users == 0 {
			delete(h.all, name)
		}
	}
}

// reserve returns how long the next request to a host has to wait, and counts it.
func (h *hosts) reserve(one *host, u *url.URL) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()

	now := h.now()
	at := one.next
	if at.Before(now) {
		at = now
	}

	if !isThisMachine(u) {
		one.next = at.Add(h.pause)
	}

	return at.Sub(now)
}

// isThisMachine reports whether a host is an address of this machine, which needs no pause.
func isThisMachine(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && a.IsLoopback()
}

// maxHoldBack is the longest pause that a host gets by asking for it.
const maxHoldBack = 10 * time.Minute

// holdBack lets no request to a host begin for a time.
func (h *hosts) holdBack(u *url.URL, wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := h.now().Add(min(wait, maxHoldBack))
	if one := h.all[u.Host]; one != nil && one.next.Before(until) {
		one.next = until
	}
}
