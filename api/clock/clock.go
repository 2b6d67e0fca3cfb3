// Package clock waits, and reads the times that people write. No store or model
// is behind it, so both sides may use it.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d, and returns nil. If ctx ends by then, it returns the cause of
// that at once.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}
