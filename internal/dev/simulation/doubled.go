package simulation

import (
	"context"
	"slices"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
)

// Messages do not come twice over a stream of gRPC. What comes twice is what a worker says again
// as it saw no answer, over the same stream or another; and the same of an orchestrator. So messages
// are doubled above gRPC: reports, signs of life, and what began; assignments, verdicts, and what is
// to stop. Questions and their answers go by their order in a stream, and are left as they are. An
// assignment comes again at once: later than that it would be one to a worker that has done with it,
// which no orchestrator sends.

// A doubling fleet is an orchestrator's to which messages come twice.
type doubling struct {
	protocol.Fleet
	world *world
}

// Work implements protocol.Fleet.
func (d doubling) Work(ctx context.Context, s protocol.WorkStream) error {
	return d.Fleet.Work(ctx, &doubledUp{WorkStream: s, world: d.world})
}

// A doubledUp is an orchestrator's end of a stream. One goroutine receives.
type doubledUp struct {
	protocol.WorkStream
	world *world
	again []*protocol.FromWorker // what comes once more
}

// Recv implements protocol.WorkStream.
func (d *doubledUp) Recv() (*protocol.FromWorker, error) {
	// One that comes late may be behind many others, or never come.
	if len(d.again) > 0 && d.world.comesTwice() {
		m := d.again[0]
		d.again = d.again[1:]
		d.world.cover("message to an orchestrator twice")
		return m, nil
	}

	m, err := d.WorkStream.Recv()
	if err == nil && len(m.Reports)+len(m.Started) > 0 && d.world.comesTwice() {
		again := &protocol.FromWorker{Reports: slices.Clone(m.Reports), Started: slices.Clone(m.Started), Heartbeat: m.Heartbeat}
		d.again = append(d.again, again)
	}
	return m, err
}

// A doubledDown is a worker's end of a stream. One goroutine receives.
type doubledDown struct {
	worker.Stream
	world *world
	at    *protocol.ToWorker   // what comes once more at once; may be nil
	again []*protocol.ToWorker // what comes once more some time
}

// Recv implements worker.Stream.
func (d *doubledDown) Recv() (*protocol.ToWorker, error) {
	if m := d.at; m != nil {
		d.at = nil
		d.world.cover("message to a worker twice")
		return m, nil
	}
	if len(d.again) > 0 && d.world.comesTwice() {
		m := d.again[0]
		d.again = d.again[1:]
		d.world.cover("message to a worker twice")
		return m, nil
	}

	m, err := d.Stream.Recv()
	if err != nil || !d.world.comesTwice() {
		return m, err
	}
	if len(m.Assignments) > 0 {
		d.at = &protocol.ToWorker{Assignments: slices.Clone(m.Assignments)}
	}
	if len(m.Verdicts)+len(m.Cancel) > 0 {
		d.again = append(d.again, &protocol.ToWorker{Verdicts: slices.Clone(m.Verdicts), Cancel: slices.Clone(m.Cancel)})
	}
	return m, nil
}
