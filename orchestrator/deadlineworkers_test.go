package orchestrator_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// An elderly fleet has workers of an earlier version: those with a session among its own offer no deadlines, and are not
// told of them.
type elderly struct {
	protocol.Fleet
	session mapreduce.SessionID
	got     *atomic.Int64 // units that it was given
}

// Work implements protocol.Fleet.
func (e elderly) Work(ctx context.Context, s protocol.WorkStream) error {
	return e.Fleet.Work(ctx, &elderlyStream{WorkStream: s, of: e})
}

type elderlyStream struct {
	protocol.WorkStream
	of  elderly
	old atomic.Bool
}

// Recv implements protocol.WorkStream.
func (s *elderlyStream) Recv() (*protocol.FromWorker, error) {
	m, err := s.WorkStream.Recv()
	if err == nil && m.Hello != nil && m.Hello.Session == s.of.session {
		s.old.Store(true)
		m.Hello.Offer.Deadlines = false
	}
	return m, err
}

// Send implements protocol.WorkStream.
func (s *elderlyStream) Send(m *protocol.ToWorker) error {
	if s.old.Load() {
		s.of.got.Add(int64(len(m.Assignments)))
	}
	return s.WorkStream.Send(m)
}

// Units of a job with a deadline wait for workers that know deadlines, and whoever looks is told; those of other jobs
// go to any.
func TestDeadlinesAndEarlierWorkers(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 6 * time.Minute }})
		var got atomic.Int64
		f.Wrap = func(o protocol.Fleet) protocol.Fleet { return elderly{o, "w_1", &got} }
		f.Stop(0, false)
		f.Start(0)
		f.join() // w_1

		const documents = 20
		spec := dueIn(sellers[0], time.Hour)
		id := f.Any().Submit(spec, documents)
		<-time.After(2 * time.Minute)
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil || job.CompletedUnits+job.ParkedUnits > 0 || got.Load() > 0 {
			t.Fatalf("%d units are complete and %d parked (%v), and a worker that knows no deadlines was given %d", job.CompletedUnits, job.ParkedUnits, err, got.Load())
		}
		if told := strings.Join(job.Warnings, "\n"); !strings.Contains(told, `no worker has the a version that knows "--deadline"`) {
			t.Errorf("nobody is told why the job waits: %q", job.Warnings)
		}

		// Another job is done by that worker.
		other := specOf(sellers[0])
		delete(other.Vars, "tier")
		if job := f.Any().EndWithin(f.Any().Submit(other, 5), 10*time.Minute); job.State != mapreduce.JobComplete || got.Load() == 0 {
			t.Errorf("a job without a deadline is %v, and %d units of it were given", job.State, got.Load())
		}

		given := got.Load()
		f.join() // w_2, of this version
		job = f.Any().EndWithin(id, time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 || job.Ended.After(spec.Deadline) {
			t.Errorf("the job is %v with %d failed units at %v, due at %v: %s", job.State, job.FailedUnits, job.Ended, spec.Deadline, job.Error)
		}
		if more := got.Load() - given; more > 1 { // the reduce asks no model
			t.Errorf("a worker that knows no deadlines was given %d units", more)
		}
		if _, lines := f.bill(); lines != documents {
			t.Errorf("%d of %d calls went by batch", lines, documents)
		}
	})
}
