package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// callAgain makes a call, and makes it again while the service refuses it for a while and says
// for how long: such a call has done nothing. It gives up when it would wait for longer
// than a client's patience in all.
func callAgain(ctx context.Context, patience time.Duration, call func() error) error {
	for left := patience; ; {
		err := call()
		var e *errs.Error
		if !errors.As(err, &e) || e.RetryAfter <= 0 || e.RetryAfter > left {
			return err
		}

		left -= e.RetryAfter
		more := rand.N(e.RetryAfter/4 + 1) //nolint:gosec // no secret: clients should not come back all at once
		wait := time.NewTimer(e.RetryAfter + more)

		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return err
		}
	}
}
