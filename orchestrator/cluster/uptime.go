package cluster

import (
	"context"
	"sync"
	"time"
)

// A storeUptime is a clock that runs while the store answers signs of life, and from one
// to the next for two beats at most: so it stands still while the store is away, or
// this process is stopped, and runs on, if slower, with a store that is only slow.
type storeUptime struct {
	mu         sync.Mutex // guards the variables below
	uptime     time.Duration
	lastAnswer time.Time // when the store answered; zero if its last answer was an error
}

// uptimeAt returns what the clock shows. The caller holds mu.
func (u *storeUptime) uptimeAt(now time.Time, most time.Duration) time.Duration {
	if u.lastAnswer.IsZero() {
		return u.uptime
	}
	return u.uptime + min(now.Sub(u.lastAnswer), most)
}

// NoteAnswer notes that the store has answered a sign of life.
func (s *Supervisor) NoteAnswer(now time.Time) {
	u := &s.uptime
	u.mu.Lock()
	defer u.mu.Unlock()
	u.uptime = u.uptimeAt(now, 2*s.config.Beat)
	u.lastAnswer = now
}

// NoteStoreAway has the clock of the store's uptime stand still until the store
// answers again.
func (s *Supervisor) NoteStoreAway(now time.Time) {
	u := &s.uptime
	u.mu.Lock()
	defer u.mu.Unlock()
	u.uptime = u.uptimeAt(now, 2*s.config.Beat)
	u.lastAnswer = time.Time{}
}

// StoreUptime returns for how long, in all, the store has been answering. A time in which
// it did not, or this process stood still, counts against no worker and no orchestrator:
// none could show life then.
func (s *Supervisor) StoreUptime() time.Duration {
	u := &s.uptime
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.uptimeAt(time.Now(), 2*s.config.Beat)
}

// StoreAnswers reports whether the store answered the latest signs of life.
func (s *Supervisor) StoreAnswers() bool {
	u := &s.uptime
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.lastAnswer.IsZero() && time.Since(u.lastAnswer) < max(3*s.config.Beat, time.Second)
}

// AfterGrace calls end once a worker has had d to come back. It cannot while the store
// is away, and tries seldom then: so if the store was, the worker has the lease.
func (s *Supervisor) AfterGrace(d time.Duration, end func(context.Context)) {
	begun, from := time.Now(), s.StoreUptime()
	var look func(context.Context)
	look = func(ctx context.Context) {
		had, need := s.StoreUptime()-from, d
		if away := time.Since(begun) - had; away > s.config.Grace/2 {
			need = max(d, s.config.Lease)
		}

		if had < need {
			s.signals.CallAt(time.Now().Add(max(need-had, s.config.Beat/2)), look)
			return
		}
		end(ctx)
	}

	s.signals.CallAt(begun.Add(d), look)
}
