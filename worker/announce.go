package worker

import (
	"context"
	"sync"
	"time"
)

// announceWait bounds how long a start waits for its announcement.
const announceWait = time.Second

// An announcement lets an attempt after the first begin only when the orchestrator was
// told: what kills this process at once is then known by name.
type announcement struct {
	once sync.Once
	made chan struct{} // closed once the orchestrator was told that the attempt runs
}

// await waits for the announcement, in vain for announceWait at most. Of none it returns
// at once.
func (a *announcement) await(ctx context.Context) {
	if a == nil {
		return
	}

	t := time.NewTimer(announceWait)
	defer t.Stop()
	select {
	case <-a.made:
	case <-ctx.Done():
	case <-t.C:
	}
}

// noteAnnounced lets attempts begin of which the orchestrator was told that they run.
func noteAnnounced(all []*announcement) {
	for _, a := range all {
		a.once.Do(func() { close(a.made) })
	}
}
