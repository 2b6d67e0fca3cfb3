package rig

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
)

// Pool returns how long as many goroutines as there are slots, which share a list of units, take to wait for
// these: what timers and this machine add by themselves.
func Pool(ctx context.Context, units []time.Duration, slots int) time.Duration {
	var mu sync.Mutex // guards rest
	rest := slices.Clone(units)
	start := time.Now()
	var all sync.WaitGroup

	for range slots {
		all.Go(func() {
			for {
				mu.Lock()
				if len(rest) == 0 || ctx.Err() != nil {
					mu.Unlock()
					return
				}

				d := rest[0]
				rest = rest[1:]
				mu.Unlock()
				_ = clock.Sleep(ctx, d) // if ctx ends, the loop does
			}
		})
	}

	all.Wait()
	return time.Since(start)
}
