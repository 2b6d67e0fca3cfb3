package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// JoinOptions direct a Join. The zero value works.
type JoinOptions struct {
	// Patience is how long to wait for a process that holds the data
	// directory and does not answer, as one does that only looks something
	// up. Defaults to 30 s.
	Patience time.Duration
	// Waiting is called once if there is something to wait for. Defaults to
	// nothing.
	Waiting func()
}

const (
	answerWait = 2 * time.Second       // for a holder to answer
	retryPause = 50 * time.Millisecond // between looks at a data directory in use
	noticeWait = time.Second           // before it is worth saying that one waits
)

// Join returns a service over a data directory: a node of this process if no
// other holds the directory, else a client of the one that does. Exactly one of
// both is returned.
func Join(ctx context.Context, c Config, o JoinOptions) (*Node, *client.Client, error) {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}

	start := time.Now()
	for {
		node, err := Open(c)
		if err == nil {
			return node, nil, nil
		}

		if !errors.Is(err, store.ErrInUse) {
			return nil, nil, err
		}

		// The store is in use. The process that holds it may serve this directory.
		holder, dialErr := connectIfAnswering(ctx, c.Dir)
		if dialErr == nil {
			return nil, holder, nil
		}

		waited := time.Since(start)
		if waited > o.Patience {
			return nil, nil, fmt.Errorf("%w, which does not answer: %w; wait until it ends, or use another --data-dir", err, dialErr)
		}
		if waited > noticeWait && o.Waiting != nil {
			o.Waiting()
			o.Waiting = nil
		}

		if err := clock.Sleep(ctx, retryPause); err != nil {
			return nil, nil, err
		}
	}
}

// connectIfAnswering returns a client of the process that holds dir, if that answers.
func connectIfAnswering(ctx context.Context, dir string) (*client.Client, error) {
	c, err := dialSocket(dir)
	if err != nil {
		return nil, err
	}

	ctx, stop := context.WithTimeout(ctx, answerWait)
	defer stop()
	if _, err := c.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: 1}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
