package step_test

import (
	"context"
	"io"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/internal/counting"
)

// A line is a stream that says hello once, and gives one unit.
type line struct {
	protocol.Blobs // none
	ctx            context.Context
	down           chan *protocol.ToWorker
	up             chan *protocol.FromWorker
}

func (l *line) Send(m *protocol.FromWorker) error {
	select {
	case l.up <- m:
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}

func (l *line) Recv() (*protocol.ToWorker, error) {
	select {
	case m, ok := <-l.down:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
}

func (l *line) CloseSend() error { return nil }

// TestAddedKind runs a unit of a kind of step that the program does not have
// through a worker. The kind is a package and one call that adds it.
func TestAddedKind(t *testing.T) {
	steps := step.NewRegistry()
	steps.Provide(mapreduce.Provider{Name: "plain"}, step.Table{step.Extract: named("another step")})
	counting.Add(steps, "plain")
	up, down := make(chan *protocol.FromWorker), make(chan *protocol.ToWorker)
	w, err := worker.New(worker.Config{
		Steps: steps, Slots: 1,
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return &line{nil, ctx, down, up}, nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-up // hello
	spec := specOf(t, "name: p\nstages:\n  - {name: count, each: document, output: records}\n  - {name: join, each: group}\n")
	spec.Provider = "plain"
	const id = mapreduce.JobID("mr_20260101_abcdef")
	down <- &protocol.ToWorker{
		Welcome: &protocol.Welcome{}, Jobs: []protocol.JobInfo{{Job: id, Stage: "count", Spec: *spec}},
		Assignments: []protocol.Assignment{{
			Job: id, Unit: "u", Attempt: 1, Kind: mapreduce.KindMap, Stage: "count", Text: &protocol.Text{Content: []byte("seven..")},
		}},
	}
	var report *protocol.Report
	for report == nil {
		if m := <-up; len(m.Reports) > 0 {
			report = &m.Reports[0]
		}
	}
	if report.Outcome != protocol.Done || string(report.Output) != "7" {
		t.Errorf("report %+v, want a count of 7", report)
	}
	held := protocol.Held{Job: id, Unit: "u", Attempt: 1}
	down <- &protocol.ToWorker{Verdicts: []protocol.VerdictOn{{Held: held, Verdict: protocol.Accepted}}}
	stop()
	for {
		select {
		case m := <-up:
			if m.Drain {
				close(down)
			}
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}
