package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
)

// BenchmarkWork measures units a second through a session: assignments of 1 kB
// go out in batches, reports come back in the same batches, and verdicts answer
// them, with a few batches under way.
func BenchmarkWork(b *testing.B) {
	for _, e := range edges {
		for _, batch := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/%d", e.name, batch), func(b *testing.B) {
				units := (b.N + batch - 1) / batch * batch
				fleet := newMill(units, batch)
				c := e.open(b, newServer(b, memory(), fleet, server.Config{}))
				b.ReportAllocs()
				b.ResetTimer()
				if n := grind(b, begin(b.Context(), b, c)); n != units {
					b.Errorf("%d of %d units", n, units)
				}
				b.ReportMetric(float64(units)/b.Elapsed().Seconds(), "units/s")
			})
		}
	}
}

// grind reports every unit that stream brings as done, and returns how many got
// their verdict.
func grind(b *testing.B, stream interface {
	Send(*protocol.FromWorker) error
	Recv() (*protocol.ToWorker, error)
	CloseSend() error
},
) (verdicts int) {
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return verdicts
		case err != nil:
			b.Error(err)
			return verdicts
		}
		verdicts += len(m.Verdicts)
		if m.Goodbye {
			err = stream.CloseSend()
		} else if len(m.Assignments) > 0 {
			err = stream.Send(&protocol.FromWorker{Reports: reports(m.Assignments)})
		}
		if err != nil {
			b.Error(err)
			return verdicts
		}
	}
}

func reports(done []protocol.Assignment) []protocol.Report {
	all := make([]protocol.Report, len(done))
	for i, a := range done {
		all[i] = protocol.Report{
			Job: a.Job, Unit: a.Unit, Attempt: a.Attempt, Outcome: protocol.Done,
			Output: a.Text.Content[:300], SHA256: a.Text.Content[:32], Length: 300,
			Tokens: mapreduce.Tokens{In: 250, Out: 80}, Calls: 1, Confidence: 0.9, Elapsed: 1234567,
		}
	}
	return all
}

// A mill is a fleet that hands out the same batch again and again, a few batches
// ahead of the reports.
type mill struct {
	protocol.Blobs // nil: its units are small
	units          int
	batch          []protocol.Assignment
}

const ahead = 8 // batches

func newMill(units, batch int) *mill {
	m := &mill{units: units}
	for i := range batch {
		m.batch = append(m.batch, assignment(mapreduce.UnitID(fmt.Sprintf("documents/%d.txt", i)), make([]byte, 1000)))
	}
	return m
}

func (f *mill) Work(_ context.Context, stream protocol.WorkStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := stream.Send(&protocol.ToWorker{Welcome: &protocol.Welcome{Drop: first.Hello.Holding}}); err != nil {
		return err
	}
	out := 0
	for done := 0; done < f.units; {
		for ; out < f.units && out-done < ahead*len(f.batch); out += len(f.batch) {
			if err := stream.Send(&protocol.ToWorker{Assignments: f.batch}); err != nil {
				return err
			}
		}
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		verdicts := make([]protocol.VerdictOn, len(m.Reports))
		for i, r := range m.Reports {
			verdicts[i] = protocol.VerdictOn{Held: protocol.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt}, Verdict: protocol.Accepted}
		}
		if err := stream.Send(&protocol.ToWorker{Verdicts: verdicts}); err != nil {
			return err
		}
		done += len(m.Reports)
	}
	if err := stream.Send(&protocol.ToWorker{Goodbye: true}); err != nil {
		return err
	}
	_, err = stream.Recv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
