package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

const clientHost = "client"

// A task is a job that a client wants.
type task struct {
	spec      mapreduce.JobSpec
	documents int
	id        atomic.Pointer[mapreduce.JobID] // once it was acknowledged
	cancelled atomic.Bool                     // it was asked to cancel it, whatever came of that
}

// job returns the id of the job, and whether there is one yet.
func (t *task) job() (mapreduce.JobID, bool) {
	id := t.id.Load()
	if id == nil {
		return "", false
	}
	return *id, true
}

// A caller asks one orchestrator after another until one answers.
type caller struct {
	world   *world
	clients []*client.Client // by address
	done    context.Context  // ended when nobody is to be asked any more
	end     context.CancelFunc
}

func (w *world) newCaller() *caller {
	c := &caller{world: w}
	c.done, c.end = context.WithCancel(context.Background())
	for i := range w.scenario.Nodes {
		cl, err := w.dial(clientHost, i)
		w.must("a client", err)
		c.clients = append(c.clients, cl)
	}
	return c
}

func (c *caller) close() {
	c.end()
	for _, cl := range c.clients {
		_ = cl.Close() // nothing goes over it any more
	}
}

// patience is how long a client waits for one orchestrator, and stubbornness how long for all.
const (
	patience     = 5 * time.Second
	stubbornness = 10 * time.Minute
)

// ask makes a call until it succeeds or is refused. It begins with an orchestrator by turns.
func (c *caller) ask(what string, call func(context.Context, *client.Client) error) error {
	for begun, i := time.Now(), 0; ; i++ {
		ctx, cancel := context.WithTimeout(c.done, patience)
		err := call(ctx, c.clients[i%len(c.clients)])
		cancel()
		switch {
		case err == nil || isRefusal(err):
			return err
		case c.done.Err() != nil || time.Since(begun) > stubbornness:
			return fmt.Errorf("%s: %w: %w", what, errNobody, err)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// isRefusal reports whether another orchestrator would answer the same.
func isRefusal(err error) bool {
	switch errs.KindOf(err) {
	case errs.NotFound, errs.Invalid, errs.Precondition, errs.Denied, errs.DataLoss:
		return true
	}
	return false
}

// submit has clients submit all jobs, one after the other, while whatever happens happens.
func (w *world) submit() {
	for i := range w.scenario.Jobs {
		t := &task{documents: w.scenario.Documents, spec: w.spec(i)}
		w.tasks = append(w.tasks, t)
		after := time.Duration(w.random.IntN(3000)) * time.Millisecond
		twice := w.random.IntN(3) == 0
		w.mends.Add(1)
		w.running.Go(func() {
			defer w.mends.Done()
			<-time.After(after)
			w.caller.submit(t)
			if twice {
				w.caller.submit(t)
			}
		})
	}
}

// parallelism is how many units of a job may run at once.
const parallelism = 4

// spec returns what a job asks for, which follows from the seed.
func (w *world) spec(i int) mapreduce.JobSpec {
	s := mapreduce.JobSpec{
		Provider: provider, Schema: []byte(`{"type":"object"}`), RequestID: mapreduce.RequestID(fmt.Sprintf("request-%d", i)),
		Parallelism: parallelism, BreakerThreshold: 1 << 20, MaxAttempts: 100,
	}
	switch size := int64(2 + w.random.IntN(3)); w.random.IntN(4) {
	case 0:
		s.ChunkSize = &size
	case 1:
		size *= 60
		s.TargetTokenBudget = &size
	case 2:
		s.ReduceContextLimit, s.ReduceBatchSize = 1, int(size)
	}
	return s
}

// submit submits a job until that is acknowledged. That it was submitted already is all the same.
func (c *caller) submit(t *task) {
	w := c.world
	err := c.ask("submitting a job", func(ctx context.Context, cl *client.Client) error {
		job, err := cl.SubmitJob(ctx, t.spec, documents(t.documents))
		if err != nil {
			return err
		}
		if before, known := t.job(); known && before != job.ID {
			w.noteBreach("7: request %s is job %s, and was acknowledged as %s", t.spec.RequestID, job.ID, before)
		}
		t.id.Store(&job.ID)
		w.trace.note("request %s is job %s", t.spec.RequestID, job.ID)
		return nil
	})
	if err != nil {
		w.noteBreach("8: a job cannot be submitted: %v", err)
	}
}

// documents are n short texts.
func documents(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			if !yield(&mapreduce.Document{ID: documentID(i), Content: fmt.Appendf(nil, "text of document %d", i)}, nil) {
				return
			}
		}
	}
}

func documentID(i int) mapreduce.DocumentID { return mapreduce.DocumentID(fmt.Sprintf("doc-%03d", i)) }

// pause pauses a job, unless it has ended.
func (c *caller) pause(t *task) {
	c.change("pausing a job", t, func(ctx context.Context, cl *client.Client, id mapreduce.JobID) error {
		_, err := cl.PauseJob(ctx, id)
		return err
	})
}

// resume lets a job go on, unless it has ended.
func (c *caller) resume(t *task) {
	c.change("resuming a job", t, func(ctx context.Context, cl *client.Client, id mapreduce.JobID) error {
		_, err := cl.ResumeJob(ctx, id, mapreduce.Resume{})
		return err
	})
}

// cancel cancels a job, unless it has ended.
func (c *caller) cancel(t *task) {
	c.change("cancelling a job", t, func(ctx context.Context, cl *client.Client, id mapreduce.JobID) error {
		t.cancelled.Store(true)
		_, err := cl.CancelJob(ctx, id)
		return err
	})
}

// change changes a job that was acknowledged. That its state refuses the change is all the same.
func (c *caller) change(what string, t *task, call func(context.Context, *client.Client, mapreduce.JobID) error) {
	id, known := t.job()
	if !known {
		return
	}
	err := c.ask(what, func(ctx context.Context, cl *client.Client) error { return call(ctx, cl, id) })
	if errors.Is(err, errNobody) {
		c.world.noteBreach("8: %v", err)
	}
	c.world.trace.note("%s %s: %v", what, id, err)
}
