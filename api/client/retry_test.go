package client_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

// busy is a service that refuses its first calls.
type busy struct {
	servertest.Service
	refusals []error
	calls    int
}

func (b *busy) refuse() (err error) {
	b.calls++
	if len(b.refusals) > 0 {
		err, b.refusals = b.refusals[0], b.refusals[1:]
	}
	return err
}

func (b *busy) SubmitJob(ctx context.Context, by mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if err := b.refuse(); err != nil {
		return nil, err
	}
	return b.Service.SubmitJob(ctx, by, spec, docs)
}

func (b *busy) ListJobs(ctx context.Context, by mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	if err := b.refuse(); err != nil {
		return nil, err
	}
	return b.Service.ListJobs(ctx, by, q)
}

func (b *busy) GetResult(_ context.Context, _ mapreduce.Principal, _ mapreduce.JobID, _ bool, sink func(*mapreduce.ResultPart) error) error {
	if b.calls > 0 { // the first fails before anything is sent, the others after
		if err := sink(&mapreduce.ResultPart{Record: make([]byte, 300<<10)}); err != nil {
			return err
		}
	}
	return b.refuse()
}

// A client makes a call again when the service says for how long it refuses it, waits that
// long at least, and not for longer than its patience; it repeats nothing else.
func TestPatience(t *testing.T) {
	later := func(after time.Duration) error {
		return &errs.Error{Kind: errs.Exhausted, Message: "full", RetryAfter: after}
	}
	list := func(ctx context.Context, c *client.Client) error {
		_, err := c.ListJobs(ctx, mapreduce.ListJobsQuery{})
		return err
	}
	submit := func(ctx context.Context, c *client.Client) error {
		_, err := c.SubmitJob(ctx, mapreduce.JobSpec{}, documents(aDocument("a", "x")))
		return err
	}
	result := func(ctx context.Context, c *client.Client) error {
		return c.GetResult(ctx, someJob, false, func(*mapreduce.ResultPart) error { return nil })
	}
	for name, c := range map[string]struct {
		call     func(context.Context, *client.Client) error
		refusals []error
		patience time.Duration
		calls    int
		kind     error
		least    time.Duration
	}{
		"twice":                     {list, []error{later(2 * time.Second), later(3 * time.Second)}, time.Minute, 3, nil, 5 * time.Second},
		"a submission":              {submit, []error{later(2 * time.Second)}, time.Minute, 2, nil, 2 * time.Second},
		"impatient":                 {list, []error{later(2 * time.Second)}, 0, 1, errs.Exhausted, 0},
		"for too long":              {list, []error{later(40 * time.Second), later(40 * time.Second)}, time.Minute, 2, errs.Exhausted, 40 * time.Second},
		"not said for how long":     {list, []error{errs.New(errs.Unavailable, "away")}, time.Minute, 1, errs.Unavailable, 0},
		"a stream before it began":  {result, []error{later(time.Second)}, time.Minute, 2, nil, time.Second},
		"a stream after it has":     {result, []error{later(time.Second), later(time.Second)}, time.Minute, 2, errs.Exhausted, time.Second},
		"what will never be better": {list, []error{errs.Field("x", "is wrong")}, time.Minute, 1, errs.Invalid, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{refusals: c.refusals}
				cl, err := client.NewInProcess(newServer(t, b, nil, server.Config{}), client.Config{Patience: c.patience})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				err = c.call(t.Context(), cl)
				if c.kind == nil && err != nil || c.kind != nil && !errors.Is(err, c.kind) {
					t.Errorf("%v, want %v", err, c.kind)
				}
				if waited := time.Since(begun); b.calls != c.calls || waited < c.least || waited > c.least*5/4+time.Second {
					t.Errorf("%d calls in %v, want %d in %v", b.calls, waited, c.calls, c.least)
				}
				if err := cl.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
