package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

var hello = &protocol.FromWorker{Hello: &protocol.Hello{
	Session: "s1", Version: "v0", Slots: 4, Offer: mapreduce.Offer{Providers: []string{"rules"}},
	Holding: []protocol.Held{{Job: someJob, Unit: "a", Attempt: 2, Running: true}},
}}

// begin connects and says hello.
func begin(ctx context.Context, t testing.TB, c *client.Client) client.WorkerStream {
	t.Helper()
	stream, err := c.Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(hello); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if m.Welcome == nil || !cmp.Equal(m.Welcome.Drop, hello.Hello.Holding) {
		t.Fatalf("got %+v, want a welcome that drops what was held", m)
	}
	return stream
}

func assignment(unit mapreduce.UnitID, content []byte) protocol.Assignment {
	return protocol.Assignment{
		Job: someJob, Unit: unit, Attempt: 1, Kind: mapreduce.KindMap,
		Text: &protocol.Text{Document: "d", Content: content, CoreEnd: len(content), Chunks: 1},
	}
}

func TestSession(t *testing.T) {
	sent := &protocol.ToWorker{
		Jobs:        []protocol.JobInfo{{Job: someJob, Spec: mapreduce.JobSpec{Schema: []byte("{}")}}},
		Assignments: []protocol.Assignment{assignment("a", []byte("alpha"))},
	}
	received := make(chan *protocol.FromWorker, 1)
	fleet := &servertest.Fleet{Messages: []*protocol.ToWorker{sent}, Received: received}
	overEveryEdge(t, memory, fleet, func(t *testing.T, c *client.Client) {
		stream := begin(t.Context(), t, c)
		got, err := stream.Recv()
		if diff := cmp.Diff(sent, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v; sent (-), got (+):\n%s", err, diff)
		}
		report := &protocol.FromWorker{Reports: []protocol.Report{{Job: someJob, Unit: "a", Attempt: 1, Outcome: protocol.Done, Output: []byte("x")}}}
		if err := stream.Send(report); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(report, <-received, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("report sent (-), received (+):\n%s", diff)
		}
		got, err = stream.Recv()
		if err != nil || len(got.Verdicts) != 1 || got.Verdicts[0].Verdict != protocol.Accepted {
			t.Errorf("got %+v and %v, want a verdict", got, err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the stream to end in order", err)
		}
	})
}

// Messages of any size get through, as several, in order, as long as each part
// is within the limit.
func TestLargeSessionMessages(t *testing.T) {
	const parts, size = 12, 6_400_000
	content := make([]byte, size)
	var assignments []protocol.Assignment
	reports := make([]protocol.Report, 200)
	for i := range parts {
		assignments = append(assignments, assignment(mapreduce.UnitID(fmt.Sprint(i)), content))
	}
	for i := range reports {
		reports[i] = protocol.Report{Job: someJob, Unit: "a", Attempt: i, Outcome: protocol.Done, Output: content[:64<<10]}
	}
	received := make(chan *protocol.FromWorker, len(reports))
	fleet := &servertest.Fleet{
		Messages: []*protocol.ToWorker{{Assignments: assignments, Goodbye: true}},
		Received: received,
	}
	c := inProcess(t, newServer(t, memory(), fleet, server.Config{}))
	stream := begin(t.Context(), t, c)

	next := 0
	for goodbye := false; !goodbye; {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range m.Assignments {
			if want := mapreduce.UnitID(fmt.Sprint(next)); a.Unit != want || len(a.Text.Content) != size {
				t.Fatalf("got unit %s with %d bytes, want %s", a.Unit, len(a.Text.Content), want)
			}
			next++
		}
		goodbye = m.Goodbye
	}
	if next != parts {
		t.Errorf("goodbye came after %d assignments", next)
	}

	if err := stream.Send(&protocol.FromWorker{Reports: reports, Drain: true}); err != nil {
		t.Fatal(err)
	}
	next = 0
	for drain := false; !drain; {
		m := <-received
		for _, s := range m.Reports {
			if s.Attempt != next {
				t.Fatalf("got report %d, want %d", s.Attempt, next)
			}
			next++
		}
		drain = m.Drain
	}
	if next != len(reports) {
		t.Errorf("drain came after %d reports", next)
	}
}

func TestSessionErrors(t *testing.T) {
	overEveryEdge(t, memory, new(servertest.Fleet), func(t *testing.T, c *client.Client) {
		t.Run("refused by the fleet", func(t *testing.T) {
			stream, err := c.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&protocol.FromWorker{Drain: true}); err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			wantField(t, err, "hello")
		})
		t.Run("refused by the wire", func(t *testing.T) {
			stream := begin(t.Context(), t, c)
			if err := stream.Send(&protocol.FromWorker{Reports: []protocol.Report{{Job: someJob, Unit: "a"}}}); err != nil {
				t.Fatal(err)
			}
			_, err := stream.Recv()
			wantField(t, err, "reports[0].outcome")
			for err = nil; err == nil; {
				err = stream.Send(&protocol.FromWorker{Drain: true})
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("sending on an ended stream gave %v, want io.EOF", err)
			}
		})
		t.Run("cancelled by the worker", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			stream := begin(ctx, t, c)
			cancel()
			_, err := stream.Recv()
			wantKind(t, err, errs.Cancelled)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v is not context.Canceled", err)
			}
		})
	})
}

// A slow worker makes the orchestrator's Send wait instead of filling memory.
func TestSlowWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, size = 200, 1 << 20
		var sent atomic.Int64
		fleet := counting{total: messages, message: &protocol.ToWorker{Assignments: []protocol.Assignment{assignment("a", make([]byte, size))}}, sent: &sent}
		c := inProcess(t, newServer(t, memory(), fleet, server.Config{}))
		stream := begin(t.Context(), t, c)

		synctest.Wait() // the worker does not read
		if n := sent.Load(); n > 8 {
			t.Errorf("%d MiB are under way to a worker that does not read", n)
		}
		for range messages {
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
		if n := sent.Load(); n != messages {
			t.Errorf("sent %d of %d", n, messages)
		}
	})
}

// A counting fleet sends the same message many times.
type counting struct {
	protocol.Blobs // nil: no test asks for one
	total          int
	message        *protocol.ToWorker
	sent           *atomic.Int64
}

func (f counting) Work(_ context.Context, stream protocol.WorkStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := stream.Send(&protocol.ToWorker{Welcome: &protocol.Welcome{Drop: first.Hello.Holding}}); err != nil {
		return err
	}
	for range f.total {
		if err := stream.Send(f.message); err != nil {
			return err
		}
		f.sent.Add(1)
	}
	return nil
}

// A slow store makes the client's documents wait.
func TestSlowSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 400
		var taken atomic.Int64
		s := &stalling{ready: make(chan struct{})}
		c := inProcess(t, newServer(t, s, nil, server.Config{}))
		done := make(chan error, 1)
		go func() {
			_, err := c.SubmitJob(t.Context(), mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
				for i := range total {
					taken.Add(1)
					if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: make([]byte, 256<<10)}, nil) {
						return
					}
				}
			})
			done <- err
		}()
		synctest.Wait() // the service does not read
		if n := taken.Load(); n > 20 {
			t.Errorf("%d documents of 256 KiB are under way to a service that does not read", n)
		}
		close(s.ready)
		if err := <-done; err != nil || taken.Load() != total {
			t.Errorf("got %v after %d documents", err, taken.Load())
		}
	})
}

// A stalling service waits before it reads a submission.
type stalling struct {
	servertest.Service
	ready chan struct{}
}

func (s *stalling) SubmitJob(ctx context.Context, _ mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	<-s.ready
	return s.Service.SubmitJob(ctx, mapreduce.Local(""), spec, docs)
}

// An early service answers a submission without reading it, as for a request id
// that it knows.
type early struct {
	servertest.Service
	job *mapreduce.Job
	err error
}

func (s *early) SubmitJob(context.Context, mapreduce.Principal, mapreduce.JobSpec, iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	return s.job, s.err
}

func TestSubmissionsAnsweredEarly(t *testing.T) {
	endless := func(yield func(*mapreduce.Document, error) bool) {
		for i := 0; yield(&mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: make([]byte, 256<<10)}, nil); i++ {
		}
	}
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			s := &early{job: &mapreduce.Job{ID: someJob}}
			job, err := e.open(t, newServer(t, s, nil, server.Config{})).SubmitJob(t.Context(), mapreduce.JobSpec{}, endless)
			if err != nil || job.ID != someJob {
				t.Errorf("got %v and %v, want the earlier job", job, err)
			}
			s = &early{err: errs.New(errs.Exhausted, "no room")}
			_, err = e.open(t, newServer(t, s, nil, server.Config{})).SubmitJob(t.Context(), mapreduce.JobSpec{}, endless)
			wantKind(t, err, errs.Exhausted)
		})
	}
}

// A submission that the client gives up on never looks complete to the service.
func TestSubmissionCancelled(t *testing.T) {
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			s := new(servertest.Service)
			c := e.open(t, newServer(t, s, nil, server.Config{}))
			ctx, cancel := context.WithCancel(t.Context())
			_, err := c.SubmitJob(ctx, mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
				for i := range 100 {
					if i == 50 {
						cancel()
					}
					if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(fmt.Sprint(i)), Content: make([]byte, 256<<10)}, nil) {
						return
					}
				}
			})
			wantKind(t, err, errs.Cancelled)
			if page, err := s.ListJobs(t.Context(), mapreduce.Local(""), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 0 {
				t.Errorf("got %v and %v, want no job", page, err)
			}
		})
	}
}

// Documents that stop coming without an error once the context has ended are not all.
func TestSubmissionWhoseDocumentsStop(t *testing.T) {
	s := new(servertest.Service)
	srv := newServer(t, s, nil, server.Config{})
	c := inProcess(t, srv)
	for range 200 { // the stream must not be ended before it is broken, whoever is faster
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.SubmitJob(ctx, mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
			for i := 0; ctx.Err() == nil && yield(aDocument(mapreduce.DocumentID(fmt.Sprint(i)), "text"), nil); i++ {
				cancel()
			}
		})
		cancel()
		wantKind(t, err, errs.Cancelled)
	}
	srv.Shutdown(t.Context()) // waits for what the calls have left there
	if page, err := s.ListJobs(t.Context(), mapreduce.Local(""), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 0 {
		t.Errorf("got %v and %v, want no job", page, err)
	}
}
