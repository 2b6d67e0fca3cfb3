package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline: the time of an attempt ends when it is due, whatever stopped or renewed it
// meanwhile, and nothing renews the time of an attempt that was interrupted.
func TestDeadline(t *testing.T) {
	const limit, grace = 10 * time.Second, 3 * time.Second
	why := errors.New("superseded")
	for _, tt := range []struct {
		name  string
		do    func(d *deadline) // 4 s after the start
		want  time.Duration     // from the start until the time is over; 0 is never
		cause error             // of the context
	}{
		{"nothing happens", func(*deadline) {}, limit, nil},
		{"its blobs have come", func(d *deadline) { d.restart() }, 4*time.Second + limit, nil},
		{"it waits for the processor", func(d *deadline) { d.pause() }, 0, nil},
		{"it has waited", func(d *deadline) { d.pause(); d.restart() }, 4*time.Second + limit, nil},
		{"its process has begun", func(d *deadline) { d.extend(time.Minute) }, 64 * time.Second, nil},
		{"it is interrupted", func(d *deadline) { d.interrupt(why, grace) }, 4*time.Second + grace, why},
		{"it is interrupted twice", func(d *deadline) { d.interrupt(why, grace); d.interrupt(errOver, time.Hour) }, 4*time.Second + grace, why},
		{"it is interrupted, and then the blobs come", func(d *deadline) { d.interrupt(why, grace); d.restart() }, 4*time.Second + grace, why},
		{"it is interrupted, and then waits", func(d *deadline) { d.interrupt(why, grace); d.pause() }, 4*time.Second + grace, why},
		{"it is interrupted, and then its process begins", func(d *deadline) { d.interrupt(why, grace); d.extend(time.Hour) }, 4*time.Second + grace, why},
		{"it is over", func(d *deadline) { d.stop() }, 0, errOver},
		{"it is over after an interruption", func(d *deadline) { d.interrupt(why, grace); d.stop() }, 0, why},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				d := &deadline{end: end}
				expired := make(chan time.Time, 1)
				began := time.Now()
				d.start(limit, func() { expired <- time.Now() })

				<-time.After(4 * time.Second)
				tt.do(d)

				var after time.Duration
				select {
				case at := <-expired:
					after = at.Sub(began)
				case <-time.After(2 * time.Hour):
				}

				if after != tt.want {
					t.Errorf("the time was over after %v; want %v", after, tt.want)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, tt.cause) {
					t.Errorf("the context ended by %v; want %v", cause, tt.cause)
				}
			})
		})
	}
}

// TestDeadlineBeforeTheStart: an attempt that never began has no time to stop.
func TestDeadlineBeforeTheStart(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	d := &deadline{end: end}
	d.stop()
	if err := context.Cause(ctx); err != nil {
		t.Errorf("the context of an attempt that never began ended: %v", err)
	}
}
