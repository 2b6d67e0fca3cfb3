package dispatch

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/batches"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/orchestrator/transfer"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A dispatcher sends units to the workers that they were claimed for.
type dispatcher struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	transfers  *transfer.Transfers
	batches    *batches.Batches
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	tracing    *observe.Tracer
}

// messageBytes bounds the content of one message to a worker, but for the last
// assignment in it.
const messageBytes = 1 << 20

// dispatchUnits sends the units that a turn claimed to their workers, with what they
// work on. A unit whose input cannot be read goes back.
func (d *dispatcher) dispatchUnits(ctx context.Context, t *schedule.Task, res *queue.Result, ahead *textsAhead) {
	if len(res.Claimed) == 0 {
		return
	}

	texts, err := ahead.wait()
	if err != nil {
		d.supervisor.LogFailure(ctx, "reading documents", err, "job", t.Job.ID)
	}

	units := make([]*records.Unit, len(res.Claimed))
	claims := make(map[mapreduce.SessionID]int)
	for i, c := range res.Claimed {
		units[i] = c.Unit
		claims[c.Session]++
	}
	inputs := outputs.NewInputPages(d.jobs.Reader().Inputs, t.Job.ID, units)

	bySession := make(map[mapreduce.SessionID]*assignmentBatch)
	for i, c := range res.Claimed {
		session := d.scheduler.Sessions.KeepClaimed(t, res.Epoch, c, texts[i])
		if session == nil {
			continue // gone meanwhile: what expires it gives the unit back
		}
		b := bySession[c.Session]

		if b == nil {
			d.scheduler.Sessions.Introduce(session, t.Job)
			b = &assignmentBatch{session: session, message: &protocol.ToWorker{Assignments: make([]protocol.Assignment, 0, claims[c.Session])}}
			bySession[c.Session] = b
		}

		err := d.supervisor.ContainPanic(ctx, "preparing a unit", func() error {
			return d.prepareAssignment(ctx, t, c.Unit, texts[i], inputs.Each, b)
		},
			"job", t.Job.ID, "unit", c.Unit.ID)
		if err != nil {
			d.supervisor.LogFailure(ctx, "preparing a unit", err, "job", t.Job.ID, "unit", c.Unit.ID)
			d.reportUnprepared(t.Job, session, c.Unit, err)
		}
	}

	for _, b := range bySession {
		b.sendBatch()
	}
}

// prepareAssignment puts a unit into what its worker is sent. The units that it takes are
// visited by inputs.
func (d *dispatcher) prepareAssignment(ctx context.Context, t *schedule.Task, u *records.Unit, text []byte, inputs transfer.InputVisitor, b *assignmentBatch) error {
	a, taken, failed, err := d.makeAssignment(ctx, t, u, text, inputs)
	switch {
	case err != nil:
		return err
	case failed != nil:
		d.scheduler.Sessions.EnterReportFor(b.session, failed, false)
	default:
		d.scheduler.Sessions.KeepInputs(b.session, protocol.Held{Job: t.Job.ID, Unit: u.ID, Attempt: a.Attempt}, taken)
		a.TraceParent = d.tracing.Claim(ctx, &a, t.Spec, b.session.ID)
		b.addAssignment(a, u.GoesApart())
	}
	return nil
}

// unpreparedAfter is how long a unit rests whose input could not be read.
const unpreparedAfter = time.Second

// reportUnprepared reports in the worker's name that a unit was not run, once the store
// had the time to recover: that is no fault of the unit's. What can never be read fails
// the unit, and what fails for an unclear reason costs it an attempt, or it would come back
// for ever.
func (d *dispatcher) reportUnprepared(j *schedule.Job, session *workers.Session, u *records.Unit, why error) {
	report := protocol.Report{
		Job: j.ID, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Returned,
	}

	if cluster.ClassOf(why) != cluster.Passing {
		report.Outcome, report.Errors = protocol.Errored, []string{"input of the unit: " + why.Error()}
		if cluster.IsDamage(why) {
			report.Class = protocol.PermanentUnit
		}
	}

	d.signals.CallAt(time.Now().Add(unpreparedAfter), func(context.Context) {
		d.scheduler.Sessions.EnterReportFor(session, &report, false)
	})
}

// An assignmentBatch is what goes to one worker, in messages of bounded size.
type assignmentBatch struct {
	session *workers.Session
	message *protocol.ToWorker
	size    int
}

// addAssignment adds an assignment; apart says that it has a message of its own.
func (b *assignmentBatch) addAssignment(a protocol.Assignment, apart bool) {
	if apart {
		b.sendBatch()
	}

	b.message.Assignments = append(b.message.Assignments, a)
	b.size += assignmentSize(&a)

	if apart || b.size >= messageBytes {
		b.sendBatch()
	}
}

// assignmentSize is about how many bytes an assignment takes.
func assignmentSize(a *protocol.Assignment) int {
	n := len(a.Journal) + len(a.Item) + 256
	if a.WakeCall != nil {
		n += len(a.WakeCall.Answer)
	}
	if a.Text != nil {
		n += len(a.Text.Content)
	}
	for _, in := range a.Inputs {
		n += len(in.Data) + 64
	}
	return n
}

func (b *assignmentBatch) sendBatch() {
	if m := b.message; len(m.Assignments) > 0 {
		b.session.Peer.Send(m)
	}
	b.message, b.size = &protocol.ToWorker{}, 0
}

// makeAssignment returns the assignment of a unit with the units that it takes, if their
// outputs are in it; or of one that failed in the job that this one repeats, its report.
func (d *dispatcher) makeAssignment(ctx context.Context, t *schedule.Task, u *records.Unit, text []byte, inputs transfer.InputVisitor) (a protocol.Assignment, taken []*records.Unit, failed *protocol.Report, err error) {
	a = protocol.Assignment{
		Job: t.Job.ID, Unit: u.ID, Attempt: int(u.Attempt), Kind: u.Kind,
		Level: int(u.Level), Stage: t.Stages.StageName(u.Level), Depth: t.Stages.TreeDepth(u.Level), Index: u.Index, Item: u.Item, Timeout: t.Spec.UnitTimeout, Reserved: u.Reserved, Alone: u.MustBeAlone(),
		Last: u.Failures+1 >= int64(t.Spec.MaxAttempts),
	}

	if u.Kind != mapreduce.KindParse {
		a.Tier, a.RealTime = d.batches.TierOf(ctx, t.Job.ID, t.Spec, u.ID)
	}

	if err := d.transfers.AssignWakeCall(ctx, &a, u); err != nil {
		return a, nil, nil, err
	}

	// An input that is larger than the room that is left goes as a blob, which the worker
	// gets.
	room := protocol.MaxAssigned - len(a.Item)
	if a.WakeCall != nil {
		room -= len(a.WakeCall.Answer)
	}
	room = max(room, 0)

	failed, err = d.transfers.AssignJournal(ctx, &a, t.Spec, u, room)
	if err != nil || failed != nil {
		return a, nil, failed, err
	}
	room -= len(a.Journal)

	if err := d.transfers.AssignEvidence(ctx, &a, t.Spec, t.Stages.StageAt(u.Level), u); err != nil {
		return a, nil, nil, err
	}

	if u.Source != nil && !outputs.IsBundle(u) {
		if err := d.transfers.AssignText(ctx, &a, u, text, room); err != nil {
			return a, nil, nil, err
		}
		room -= len(a.Text.Content)
		if err := d.assignPages(ctx, &a, t, u); err != nil {
			return a, nil, nil, err
		}
	}

	taken, err = d.transfers.AssignInputs(ctx, &a, u, inputs, room)
	return a, taken, nil, err
}

// assignPages names the pages that a model may be shown beside the text of a unit, if the job has models
// see pages. A page is no input of a unit that parses, which reads all of them.
func (d *dispatcher) assignPages(ctx context.Context, a *protocol.Assignment, t *schedule.Task, u *records.Unit) error {
	if t.Spec.See() == mapreduce.SeeNever || u.Kind == mapreduce.KindParse {
		return nil
	}

	locations, src := outputs.NewLocator(d.jobs.Reader(), a.Job), u.Source
	pages, err := locations.Pages(ctx, string(u.Document), src.Start, src.End, protocol.MaxShownPages)
	if err != nil || len(pages) == 0 {
		return err
	}
	parse, err := locations.Submitted(ctx, string(u.Document))
	if err != nil || parse == nil || parse.Source == nil {
		return err
	}
	a.Text.Shown = &protocol.ShownPages{SHA256: parse.Source.SHA256, Length: parse.Source.Length, Pages: pages}
	return nil
}
