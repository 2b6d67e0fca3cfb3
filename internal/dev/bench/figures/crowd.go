package figures

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// A Crowd is what came of the calls of many callers.
type Crowd struct {
	Reads, Submissions Answers
	First              string // of the failures; empty if there was none
	Took               time.Duration
}

// Answers are those to calls of one kind.
type Answers struct {
	Made, Done int64
	Refused    int64 // as the server had too much to do, or held too much of the caller's
	Paused     int64 // of these, said when to ask again
	Failed     int64 // in another way
}

func (a Answers) plus(b Answers) Answers {
	return Answers{a.Made + b.Made, a.Done + b.Done, a.Refused + b.Refused, a.Paused + b.Paused, a.Failed + b.Failed}
}

// A crowdOrder makes a process that of many callers. They ask again at once, whatever a refusal
// says.
type crowdOrder struct {
	Server  string
	Job     mapreduce.JobID // whose state is asked for
	Callers int
	Submits bool    // one call in ten is the submission of a job, which nobody runs
	Rate    float64 // calls a second of all of them; 0 is as fast as answers come
	For     time.Duration
}

// callersEach is how many callers share a connection.
const callersEach = 100

// nobody is a provider of models that no worker here has.
const nobody = "openai"

func (o *crowdOrder) runCrowd(ctx context.Context, out *json.Encoder) error {
	if err := rig.YieldToOthers(); err != nil {
		return err
	}
	var clients []*client.Client
	defer func() {
		for _, c := range clients {
			_ = c.Close() // what was asked has come
		}
	}()
	for range (o.Callers + callersEach - 1) / callersEach {
		c, err := client.Dial(o.Server, client.Config{})
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}

	asking, stop := context.WithTimeout(ctx, o.For)
	defer stop()
	crowds := make([]Crowd, o.Callers)
	var all sync.WaitGroup
	start := time.Now()
	for i := range crowds {
		all.Go(func() { o.ask(ctx, asking, clients[i/callersEach], i, &crowds[i]) })
	}
	all.Wait()

	total := Crowd{Took: time.Since(start)}
	for _, c := range crowds {
		total.Reads, total.Submissions = total.Reads.plus(c.Reads), total.Submissions.plus(c.Submissions)
		if total.First == "" {
			total.First = c.First
		}
	}
	return out.Encode(total)
}

// ask is what one caller does until asking ends. The answer to its last call is waited for.
func (o *crowdOrder) ask(ctx, asking context.Context, c *client.Client, number int, crowd *Crowd) {
	spec := rig.NoopSpec(1)
	spec.Tenant, spec.Provider = "crowd", nobody
	next := time.Now()
	for n := number; asking.Err() == nil; n++ {
		if o.Submits && n%10 == 0 {
			_, err := c.SubmitJob(ctx, spec, rig.Documents(1))
			crowd.note(&crowd.Submissions, err)
		} else {
			_, err := c.GetJob(ctx, o.Job)
			crowd.note(&crowd.Reads, err)
		}

		if o.Rate > 0 {
			next = next.Add(time.Duration(float64(o.Callers) / o.Rate * float64(time.Second)))
			if clock.Sleep(asking, time.Until(next)) != nil {
				return
			}
		}
	}
}

// note counts an answer.
func (c *Crowd) note(a *Answers, err error) {
	a.Made++
	var e *errs.Error
	switch {
	case err == nil:
		a.Done++
	case errors.As(err, &e) && (e.Kind == errs.Exhausted || e.Kind == errs.Unavailable):
		a.Refused++
		if e.RetryAfter > 0 {
			a.Paused++
		} else if c.First == "" {
			c.First = err.Error()
		}
	default:
		a.Failed++
		if c.First == "" {
			c.First = err.Error()
		}
	}
}
