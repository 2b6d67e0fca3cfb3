package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/clock"
)

func TestSleep(t *testing.T) {
	cause := errors.New("enough")
	ended := func(t *testing.T, after time.Duration) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(after, func() { cancel(cause) })
		return ctx
	}
	for _, c := range []struct {
		name     string
		ctx      func(*testing.T) context.Context
		pause    time.Duration
		want     error
		elapsing time.Duration
	}{
		{"all of it", (*testing.T).Context, time.Hour, nil, time.Hour},
		{"nothing", (*testing.T).Context, 0, nil, 0},
		{"less than nothing", (*testing.T).Context, -time.Hour, nil, 0},
		{"until the context ends", func(t *testing.T) context.Context { return ended(t, time.Minute) }, time.Hour, cause, time.Minute},
		{"in a context that has ended", func(*testing.T) context.Context {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(cause)
			return ctx
		}, time.Hour, cause, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, start := c.ctx(t), time.Now()
				if err := clock.Sleep(ctx, c.pause); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("returned %v, want %v", err, c.want)
				}
				if took := time.Since(start); took != c.elapsing {
					t.Errorf("took %s, want %s", took, c.elapsing)
				}
			})
		})
	}
}
