package apart

import (
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
)

// Relays are those of the processes in which units run apart, and what such a process has to
// know when it starts: they call models too, so each has to keep to the worker's shares of
// limits. Streams tell of shares, and slots add relays; a lock of its own guards it.
type Relays struct {
	mu     sync.Mutex // guards the fields below
	all    map[*relay]struct{}
	shares map[string]knownShare // of limits, by model
}

// A knownShare is a share of limits of a model, and when it came.
type knownShare struct {
	share protocol.LimitShare
	came  time.Time
}

// NewRelays returns the relays of a worker.
func NewRelays() *Relays {
	return &Relays{all: make(map[*relay]struct{}), shares: make(map[string]knownShare)}
}

// add has a relay sent the shares of limits that come from now on.
func (rs *Relays) add(r *relay) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all[r] = struct{}{}
}

// remove removes a relay whose unit has ended.
func (rs *Relays) remove(r *relay) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.all, r)
}

// PassShares notes shares of limits, and passes them on.
func (rs *Relays) PassShares(shares []protocol.LimitShare) {
	rs.mu.Lock()
	defer rs.mu.Unlock()

	for i := range shares {
		rs.shares[shares[i].Name] = knownShare{shares[i], time.Now()}
	}
	for r := range rs.all {
		r.tell(&protocol.ToWorker{Limits: shares}) // which waits for nobody
	}
}

// knownShares returns the shares of limits that hold now.
func (rs *Relays) knownShares() []protocol.LimitShare {
	rs.mu.Lock()
	defer rs.mu.Unlock()

	var all []protocol.LimitShare
	for _, k := range rs.shares {
		// A share was given for a time from when it came. The process begins to count when
		// it gets it.
		share, passed := k.share, time.Since(k.came)
		if share.For > 0 {
			share.For = max(1, share.For-passed)
		}
		share.Pause, share.OpenFor = max(0, share.Pause-passed), max(0, share.OpenFor-passed)
		all = append(all, share)
	}
	return all
}
