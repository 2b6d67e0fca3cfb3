package worker

import "time"

// A retirement is how far a session is with leaving: it drains, then nothing runs, then nothing
// is held. The session's lock guards all but idle, which anybody may wait for.
type retirement struct {
	idle chan struct{} // closed when the session drains and holds nothing

	draining bool
	rested   time.Time // since when nothing runs while draining; zero if something does
}

// note takes how many slots are taken and attempts are held now.
func (r *retirement) note(taken, held int) {
	if !r.draining || taken > 0 {
		return
	}

	if r.rested.IsZero() {
		r.rested = time.Now()
	}
	if held == 0 && !r.isIdle() {
		close(r.idle)
	}
}

// isIdle reports whether the session drains and holds nothing. It needs no lock.
func (r *retirement) isIdle() bool {
	select {
	case <-r.idle:
		return true
	default:
		return false
	}
}

// hasWaited reports whether verdicts were waited for in vain: the session drains, and for
// verdictWait nothing has run and no orchestrator was there. Lost is when the last one was.
func (r *retirement) hasWaited(lost time.Time) bool {
	return !r.rested.IsZero() && time.Since(r.rested) >= verdictWait && time.Since(lost) >= verdictWait
}
