package ingest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// Submissions that begin and never end leave nothing in the store: neither while they are
// open, nor if none of their documents can be processed.
func TestSubmissionsThatOnlyBeginLeaveNothing(t *testing.T) {
	testenv.Raced(t)

	c, n := enginetest.One(t, &scripted.Agent{})
	before := enginetest.Pairs(t, c.Store)
	const flood = 50
	begun, end, ended := make(chan bool), make(chan bool), make(chan error)
	for i := range flood {
		go func() {
			_, err := n.SubmitJob(t.Context(), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
				if i%2 == 0 && !yield(&mapreduce.Document{ID: "d", Content: []byte("text")}, nil) {
					return
				}
				begun <- true
				<-end
				yield(nil, errs.New(errs.Cancelled, "the client has gone"))
			})
			ended <- err
		}()
	}
	for range flood {
		<-begun
	}
	if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
		t.Errorf("submissions that have only begun are stored (-before +while):\n%s", diff)
	}
	close(end)
	for range flood {
		if err := <-ended; err == nil {
			t.Error("a submission that broke off was taken")
		}
	}
	_, err := n.SubmitJob(t.Context(), enginetest.Script(nil), func(func(*mapreduce.Document, error) bool) {})
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("a job without documents: %v", err)
	}
	if diff := cmp.Diff(before, enginetest.Pairs(t, c.Store)); diff != "" {
		t.Errorf("something is left (-before +after):\n%s", diff)
	}
}

// However many submissions a server had under way when it was killed, the next removes
// all of them.
func TestManySubmissionsOfADeadServerAreRemoved(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		dead := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		empty := enginetest.Pairs(t, c.Store)
		for i := range 2500 {
			if err := dead.Jobs.Submit.Begin(t.Context(), mapreduce.JobID(fmt.Sprintf("mr_20260101_%06x", i)), &mapreduce.JobSpec{}); err != nil {
				t.Fatal(err)
			}
		}
		dead.Stop()
		begun := time.Now()
		c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		for len(enginetest.Pairs(t, c.Store)) > len(empty) {
			if enginetest.Pass(t, time.Second); time.Since(begun) > 2*time.Minute {
				t.Fatalf("%d submissions of a dead server are left after %v", len(enginetest.Pairs(t, c.Store))-len(empty), time.Since(begun))
			}
		}
	})
}
