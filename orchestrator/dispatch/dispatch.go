package dispatch

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
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

	if err := d.assignWakeCall(ctx, &a, u); err != nil {
		return a, nil, nil, err
	}

	// An input that is larger than the room that is left goes as a blob, which the worker
	// gets.
	room := protocol.MaxAssigned - len(a.Item)
	if a.WakeCall != nil {
		room -= len(a.WakeCall.Answer)
	}
	room = max(room, 0)

	remembered, own, failed, err := d.transfers.Journal(ctx, t.Job.ID, t.Spec, u)
	if err != nil || failed != nil {
		return a, nil, failed, err
	}
	a.JournalEntries = own

	if len(remembered) <= room {
		a.Journal = remembered
		room -= len(remembered)
	} else {
		sum := sha256.Sum256(remembered)
		a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobJournal, SHA256: sum[:], Length: int64(len(remembered))})
	}

	if err := d.assignEvidence(ctx, &a, t, u); err != nil {
		return a, nil, nil, err
	}

	if u.Source != nil && !outputs.IsBundle(u) {
		if err := d.assignText(ctx, &a, u, text, room); err != nil {
			return a, nil, nil, err
		}
		room -= len(a.Text.Content)
		if err := d.assignPages(ctx, &a, t, u); err != nil {
			return a, nil, nil, err
		}
	}

	taken, err = d.assignInputs(ctx, &a, u, inputs, room)
	return a, taken, nil, err
}

// assignWakeCall adds the call that woke a unit to its assignment. What people have decided about its values may be too
// large for that: then it is announced as a blob.
func (d *dispatcher) assignWakeCall(ctx context.Context, a *protocol.Assignment, u *records.Unit) (err error) {
	if u.Woken == "" {
		return nil
	}
	if a.WakeCall, err = d.jobs.View.WakeCall(ctx, a.Job, a.Unit); err != nil {
		return err
	}

	answer, err := d.transfers.WakeAnswer(ctx, a.Job, u, a.WakeCall)
	if err != nil || answer == nil {
		return err
	}
	sum := sha256.Sum256(answer)
	a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobWakeAnswer, SHA256: sum[:], Length: int64(len(answer))})
	return nil
}

// assignEvidence announces what tools have brought to earlier attempts, if that is
// anything.
func (d *dispatcher) assignEvidence(ctx context.Context, a *protocol.Assignment, t *schedule.Task, u *records.Unit) error {
	stage := t.Stages.StageAt(u.Level)
	if stage == nil || len(stage.Tools) == 0 {
		return nil
	}

	list, own, err := d.transfers.Evidence(ctx, a.Job, t.Spec, u)
	if err != nil || len(list) == 0 {
		return err
	}

	sum := sha256.Sum256(list)
	a.EvidenceItems = own
	a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobEvidenceList, SHA256: sum[:], Length: int64(len(list))})
	return nil
}

// assignText adds the text of a unit to its assignment, or announces it as a blob.
func (d *dispatcher) assignText(ctx context.Context, a *protocol.Assignment, u *records.Unit, text []byte, room int) (err error) {
	src := u.Source
	switch size := src.End - src.Start; {
	case size > int64(room):
		a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobText, SHA256: src.SHA256, Length: src.Length, Start: src.Start, End: src.End})
		text = nil
	case text == nil && size > 0:
		text, err = d.jobs.Content.Text(ctx, a.Job, src.SHA256, src.Start, src.End)
	}
	a.Text = textOf(u, text)
	return err
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

// assignInputs adds what a unit takes to its assignment, or announces it as a blob. It
// returns the units that it takes, with their outputs, if it added these.
func (d *dispatcher) assignInputs(ctx context.Context, a *protocol.Assignment, u *records.Unit, each transfer.InputVisitor, room int) (taken []*records.Unit, err error) {
	if u.Inputs == nil && !outputs.IsBundle(u) { // as of most units
		return nil, nil
	}

	type input struct {
		unit   *records.Unit
		header *payload.InputHeader
	}
	var inputs []input // as long as they fit
	var total int64
	err = d.transfers.Inputs.Each(ctx, a.Job, u, each, func(in *records.Unit, h *payload.InputHeader) error {
		if total += h.Size(); total <= int64(room) {
			inputs = append(inputs, input{in, h})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	if total > int64(room) {
		a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobInputs, Length: total})
		return nil, nil
	}

	for _, in := range inputs {
		h := in.header
		one := protocol.Input{Unit: h.Unit, First: h.First, End: h.End, Failed: h.Failed, Referred: h.Referred}
		if !h.Failed {
			err := d.transfers.Inputs.Parts(ctx, a.Job, u, in.unit, func(part []byte) error {
				one.Data = append(one.Data, part...)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}

		if u.Inputs != nil && in.unit.Level == u.Inputs.Level { // else a merged output below it only names it
			taken = append(taken, in.unit.WithOutput(one.Data))
		}

		if h.Calls { // which the trace may have captured
			if bare, err := payload.WithoutCalls(one.Data); err == nil { // else the reduce says so
				one.Data = bare
			}
		}
		a.Inputs = append(a.Inputs, one)
	}

	return taken, nil
}

func textOf(u *records.Unit, content []byte) *protocol.Text {
	s := u.Source
	return &protocol.Text{
		Document: u.Document, SHA256: s.SHA256, MediaType: s.MediaType, Metadata: s.Metadata,
		Content: content, CoreStart: int(s.CoreStart - s.Start), CoreEnd: int(s.CoreEnd - s.Start),
		ByteOffset: s.Start, CharOffset: s.CharOffset, ChunkIndex: int(s.ChunkIndex), Chunks: int(s.Chunks), Length: s.Length,
	}
}
