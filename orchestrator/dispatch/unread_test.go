package dispatch_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A worker that asks for very many units and reads none of them is given few: what it
// does not read would be held for it. A worker that reads gets the others.
func TestAWorkerThatDoesNotReadIsGivenLittle(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Lease, config.MaxCalls = 2*time.Second, 1000
	n := c.Orchestrator(config)
	const units = 400
	text := []byte(strings.Repeat("x y ", 15_000)) // as much as an assignment carries itself
	spec := enginetest.Script(nil)
	spec.MaxTokensPerUnit, spec.Parallelism = 1<<30, 1000
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for i := range units {
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: text}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Greet(t, n, "deaf", 2000) // only now: its lease runs from here, and to submit 24 MB may take longer
	most := int64(0)
	n.Until(job.ID, func(j *mapreduce.Job) bool {
		most = max(most, j.RunningUnits)
		return most > 0 && j.RunningUnits == 0 // the lease of its stream has ended
	})
	if most > units/2 {
		t.Errorf("it was given %d of %d units of 60 kB, and has read none", most, units)
	}
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 16}, n)
	n.WantEnd(job.ID, mapreduce.JobComplete)
}

// Nothing is remembered of models that no job asks: workers could make up any number.
func TestNamesOfModelsThatAreMadeUp(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "inventor", 1)
	w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	before := heap()
	const rounds, names = 30, 1000
	for i := range rounds {
		m := &protocol.FromWorker{Heartbeat: &protocol.Heartbeat{}}
		for k := range names {
			name := fmt.Sprintf("%d.%d/%s", i, k, strings.Repeat("x", 500))
			m.Heartbeat.Breakers = append(m.Heartbeat.Breakers, protocol.BreakerState{Name: name, OpenFor: time.Hour})
			m.Limits = append(m.Limits, protocol.LimitNote{Name: name + "2", Refused: true, Pause: time.Hour})
		}
		if err := w.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Send(&protocol.FromWorker{Reports: []protocol.Report{{Job: "mr_20260704_000000", Unit: "u", Attempt: 1, Outcome: protocol.Returned}}})
	w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }) // so all was heard
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap has grown by %d kB for %d names that a worker has made up", grown>>10, 2*rounds*names)
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // pools keep through one what was put into them
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A worker that reads is soon given as much as it asks for.
func TestAWorkerThatReadsIsGivenAllItAsksFor(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(orchestrator.Config{Adopt: true, MaxCalls: 1000})
		spec := enginetest.Script(map[string]string{"script.latency": "1m"})
		spec.Parallelism, spec.UnitTimeout = 200, time.Hour
		c.Worker(&scripted.Agent{}, worker.Config{Slots: 200}, n)
		id := n.Submit(spec, 250)
		n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits == 200 })
		n.WantEnd(id, mapreduce.JobComplete)
	})
}

// A quietStream is one whose worker has said hello, and neither says nor reads more.
type quietStream struct {
	ctx   context.Context // of the stream
	hello chan *protocol.FromWorker
	bound chan struct{} // closed when the worker was welcomed
}

// Send implements protocol.WorkStream.
func (s quietStream) Send(m *protocol.ToWorker) error {
	if m.Welcome != nil {
		close(s.bound)
	}
	return nil
}

// Recv implements protocol.WorkStream.
func (s quietStream) Recv() (*protocol.FromWorker, error) {
	select {
	case m := <-s.hello:
		return m, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// ClosedByWorker implements protocol.WorkStream.
func (s quietStream) ClosedByWorker() bool { return false }

type unreadKey struct{}

// A session waits for its worker to come back, and then for its units to be elsewhere. Its
// stream does not: what the transport has of it, such as messages that nobody has read, is
// reached by its context.
func TestSessionsKeepNothingOfStreamsThatHaveEnded(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Grace = time.Hour
	n := c.Orchestrator(config)
	var kept weak.Pointer[[1 << 20]byte]
	func() {
		unread := new([1 << 20]byte)
		kept = weak.Make(unread)
		ctx, cut := context.WithCancel(context.WithValue(t.Context(), unreadKey{}, unread))
		defer cut()
		s := quietStream{ctx, make(chan *protocol.FromWorker, 1), make(chan struct{})}
		s.hello <- &protocol.FromWorker{Hello: &protocol.Hello{Session: "s", Slots: 1, Offer: mapreduce.Offer{Providers: []string{"scripted"}}}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = n.Orch.Work(ctx, s)
		}()
		<-s.bound
		cut()
		<-ended
	}()
	for range 200 {
		if runtime.GC(); kept.Value() == nil {
			return
		}
	}
	t.Error("the session of a stream that has ended keeps what the stream had in its buffers")
}

// What a worker asks for in one message is answered in one, however much it is.
func TestReservationsAreAnsweredTogether(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "asking", 1)
	m := new(protocol.FromWorker)
	for i := range 1000 {
		m.Reserve = append(m.Reserve, protocol.ReserveRequest{Held: protocol.Held{Job: "mr_20260101_000000", Unit: mapreduce.UnitID(fmt.Sprint(i)), Attempt: 1}, Tokens: 1})
	}
	w.Say(m)
	if got := w.Until(func(m *protocol.ToWorker) bool { return len(m.Reserved) > 0 }).Reserved; len(got) != len(m.Reserve) {
		t.Errorf("the first message answers %d of %d requests", len(got), len(m.Reserve))
	}
}

// Reports of jobs that are not there are answered, and nothing else comes of them.
func TestReportsOfJobsThatAreMadeUp(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	w := enginetest.Greet(t, n, "inventor", 1)
	w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
	m := new(protocol.FromWorker)
	const jobs = 500
	for i := range jobs {
		m.Reports = append(m.Reports, protocol.Report{Job: mapreduce.JobID(fmt.Sprintf("mr_20260101_%06x", i)), Unit: "u", Attempt: 1, Outcome: protocol.Returned})
	}
	if err := w.Send(m); err != nil {
		t.Fatal(err)
	}
	verdicts := w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 }).Verdicts
	if len(verdicts) != jobs {
		t.Errorf("%d of %d reports were answered at once", len(verdicts), jobs)
	}
	for _, v := range verdicts {
		if v.Verdict != protocol.Gone {
			t.Fatalf("the verdict on a report of job %s, which is not there, is %v", v.Job, v.Verdict)
		}
	}
}

// A worker that makes jobs up waits for the store to be asked for them; it is not asked as
// often as the worker likes.
func TestMadeUpJobsAreSeldomLookedFor(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		w := enginetest.Greet(t, n, "inventor", 1)
		w.Until(func(m *protocol.ToWorker) bool { return m.Welcome != nil })
		for _, tt := range []struct {
			jobs        int
			least, most time.Duration
		}{{500, 0, time.Second}, {200, 2 * time.Second, 5 * time.Second}} {
			m := new(protocol.FromWorker)
			for i := range tt.jobs {
				m.Reports = append(m.Reports, protocol.Report{Job: mapreduce.JobID(fmt.Sprintf("mr_20260101_%06x", i)), Unit: "u", Attempt: 1, Outcome: protocol.Returned})
			}
			begun := time.Now()
			if err := w.Send(m); err != nil {
				t.Fatal(err)
			}
			w.Until(func(m *protocol.ToWorker) bool { return len(m.Verdicts) > 0 })
			if took := time.Since(begun); took < tt.least || took > tt.most {
				t.Errorf("reports of %d jobs that are made up were answered after %v, want %v to %v", tt.jobs, took, tt.least, tt.most)
			}
		}
	})
}

// A stream that ends before its jobs can be looked for is refused for its own deadline; it is
// no fault of the server's.
func TestMadeUpJobsOfAStreamThatIsAboutToEnd(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		stream, err := n.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := &protocol.FromWorker{Hello: &protocol.Hello{Session: "inventor", Slots: 1}}
		for i := range 1500 {
			m.Reports = append(m.Reports, protocol.Report{Job: mapreduce.JobID(fmt.Sprintf("mr_20260101_%06x", i)), Unit: "u", Attempt: 1, Outcome: protocol.Returned})
		}
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = stream.Recv()
		}
		if errs.KindOf(err) != errs.Deadline {
			t.Errorf("the stream ends with %v, want that its deadline comes first", err)
		}
	})
}

// A media type goes into the record of each unit, so it has to be short: a document with
// a long one is skipped.
func TestLongMediaTypesAreSkipped(t *testing.T) {
	n := enginetest.NewCluster(t).Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	job, err := n.SubmitJob(t.Context(), enginetest.Script(nil), func(yield func(*mapreduce.Document, error) bool) {
		_ = yield(&mapreduce.Document{ID: "a", Content: []byte("text"), MediaType: "text/plain; x=" + strings.Repeat("x", 300<<10)}, nil) &&
			yield(&mapreduce.Document{ID: "b", Content: []byte("text")}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if job.TotalUnits != 1 {
		t.Errorf("%d units, want that of the one document without a media type of 300 kB", job.TotalUnits)
	}
}
