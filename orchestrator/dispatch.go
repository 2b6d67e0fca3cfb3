package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/worker/output"
)

const (
	messageBytes = 1 << 20   // of content in one message to a worker
	pieceBytes   = 512 << 10 // of an input that comes in pieces

	referredBytes = 32 << 20 // of records that the inputs of a unit only name
)

// assign sends the units that a turn claimed to their workers, with what they
// work on. A unit whose input cannot be read goes back.
func (o *Orchestrator) assign(ctx context.Context, t *task, res *jobs.TurnResult) {
	if len(res.Claimed) == 0 {
		return
	}
	texts, err := o.texts(ctx, t.run.id, res.Claimed)
	if err != nil {
		o.failed(ctx, "reading documents", err, "job", t.run.id)
	}
	bySession := make(map[mapreduce.SessionID]*parcel)
	for i, c := range res.Claimed {
		s := o.board.holding(t, c, texts[i])
		if s == nil {
			continue // gone meanwhile: what expires it gives the unit back
		}
		p := bySession[c.Session]
		if p == nil {
			o.board.introduce(s, t.run)
			p = &parcel{session: s, message: &mapreduce.ToWorker{}}
			bySession[c.Session] = p
		}
		err := o.contained(ctx, "preparing a unit", func() error { return o.prepare(ctx, t, c.Unit, texts[i], p) },
			"job", t.run.id, "unit", c.Unit.UnitId)
		if err != nil {
			o.failed(ctx, "preparing a unit", err, "job", t.run.id, "unit", c.Unit.UnitId)
			o.unprepared(t.run, s, c.Unit, err)
		}
	}
	for _, p := range bySession {
		p.flush()
	}
}

// prepare puts a unit into what its worker is sent.
func (o *Orchestrator) prepare(ctx context.Context, t *task, u *storagev1.Unit, text []byte, p *parcel) error {
	state, failed, err := o.repeated(ctx, t, u)
	if err != nil {
		return err
	}
	if failed != nil {
		o.reportFor(p.session, failed)
		return nil
	}
	a, pieces, err := o.assignment(ctx, t, u, text)
	if err != nil {
		return err
	}
	if state != nil {
		a.State = state
	}
	p.add(a, pieces)
	return nil
}

// holding returns the session that was given a claimed unit and still has it. It
// keeps what the unit is given.
func (b *board) holding(t *task, c jobs.Claimed, text []byte) *session {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.seated(t, c.Session)
	if s == nil {
		return nil
	}
	h := s.held[unitKey{t.run.id, mapreduce.UnitID(c.Unit.UnitId)}]
	if h == nil || h.attempt != int(c.Unit.Attempt) {
		return nil
	}
	s.keep(h, c.Unit, text)
	return s
}

// introduce tells s what it has to know of the job first, unless it was told
// before. Two lanes may have units for s: that the job is introduced, and that
// this is noted, is one act.
func (b *board) introduce(s *session, r *run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s.knows[r.id] != r.epoch {
		s.knows[r.id] = r.epoch
		s.out.put(&mapreduce.ToWorker{Jobs: []mapreduce.JobInfo{{Job: r.id, Stage: r.stages.name(r.stages.level), Spec: *r.spec}}})
	}
}

// unpreparedAfter is how long a unit rests whose input could not be read.
const unpreparedAfter = time.Second

// unprepared reports in the worker's name that a unit was not run, once the store
// had the time to recover: that is no fault of the unit's. What it works on being
// damaged is, and costs it an attempt, or it would come back for ever.
func (o *Orchestrator) unprepared(r *run, s *session, u *storagev1.Unit, why error) {
	report := mapreduce.Report{
		Job: r.id, Unit: mapreduce.UnitID(u.UnitId), Attempt: int(u.Attempt), Outcome: mapreduce.Returned,
	}
	if damaged(why) {
		report.Outcome, report.Errors = mapreduce.Errored, []string{"input of the unit: " + why.Error()}
	}
	o.notices.at(time.Now().Add(unpreparedAfter), func(context.Context) {
		o.reportFor(s, &report)
	})
}

// damaged reports whether what is stored is at fault, or the program, so that
// reading it again cannot help.
func damaged(err error) bool {
	kind := errs.KindOf(err)
	return kind == errs.DataLoss || kind == errs.Invalid || errors.Is(err, store.ErrCorrupt) || errors.Is(err, errPanic)
}

// A parcel is what goes to one worker, in messages of bounded size.
type parcel struct {
	session *session
	message *mapreduce.ToWorker
	size    int
}

func (p *parcel) add(a mapreduce.Assignment, pieces []mapreduce.InputPiece) {
	for _, piece := range pieces {
		p.message.Pieces = append(p.message.Pieces, piece)
		p.grow(len(piece.Data))
	}
	p.message.Assignments = append(p.message.Assignments, a)
	size := len(a.State) + 256
	if a.WakeCall != nil {
		size += len(a.WakeCall.Answer)
	}
	if a.Text != nil {
		size += len(a.Text.Content)
	}
	for _, in := range a.Inputs {
		size += len(in.Data) + 64
	}
	p.grow(size)
}

func (p *parcel) grow(n int) {
	if p.size += n; p.size >= messageBytes {
		p.flush()
	}
}

func (p *parcel) flush() {
	if m := p.message; len(m.Assignments)+len(m.Pieces) > 0 {
		p.session.out.put(m)
	}
	p.message, p.size = &mapreduce.ToWorker{}, 0
}

// texts reads what the claimed units work on, all together.
func (o *Orchestrator) texts(ctx context.Context, id mapreduce.JobID, claimed []jobs.Claimed) ([][]byte, error) {
	spans := make([]jobs.Span, len(claimed))
	for i, c := range claimed {
		if src := c.Unit.Source; src != nil {
			spans[i] = jobs.Span{SHA256: src.Sha256, Start: src.Start, End: src.End}
		}
	}
	texts, err := o.jobs.Texts(ctx, id, spans)
	if err != nil {
		return make([][]byte, len(claimed)), err
	}
	return texts, nil
}

func (o *Orchestrator) assignment(ctx context.Context, t *task, u *storagev1.Unit, text []byte) (mapreduce.Assignment, []mapreduce.InputPiece, error) {
	a := mapreduce.Assignment{
		Job: t.run.id, Unit: mapreduce.UnitID(u.UnitId), Attempt: int(u.Attempt), Kind: mapreduce.UnitKind(u.Kind),
		Level: int(u.Level), Stage: t.stages.name(u.Level), Depth: t.stages.depth(u.Level), Index: u.Index, Item: u.Item, Timeout: t.spec.UnitTimeout, Reserved: u.Reserved, Alone: u.Kills > 0,
	}
	if u.Attempt > 1 && t.run.calls() {
		var err error
		if a.State, err = o.jobs.State(ctx, t.run.id, a.Unit); err != nil {
			return a, nil, err
		}
	}
	if u.Woken != "" {
		var err error
		if a.WakeCall, err = o.jobs.WakeCall(ctx, t.run.id, a.Unit); err != nil {
			return a, nil, err
		}
	}
	if src := u.Source; src != nil {
		if text == nil && src.End > src.Start {
			var err error
			if text, err = o.jobs.Text(ctx, t.run.id, src.Sha256, src.Start, src.End); err != nil {
				return a, nil, err
			}
		}
		if a.Kind == mapreduce.KindDirect {
			l := &loader{a: &a}
			l.add(mapreduce.Input{Unit: a.Unit, First: u.Index, End: u.Index + 1}, text)
			return a, l.pieces, nil
		}
		a.Text = textOf(u, text)
	}
	if u.Inputs == nil {
		return a, nil, nil
	}
	pieces, err := o.inputs(ctx, t, u, &a)
	return a, pieces, err
}

func textOf(u *storagev1.Unit, content []byte) *mapreduce.Text {
	s := u.Source
	return &mapreduce.Text{
		Document: mapreduce.DocumentID(u.DocumentId), SHA256: s.Sha256, MediaType: s.MediaType, Metadata: s.Metadata,
		Content: content, CoreStart: int(s.CoreStart - s.Start), CoreEnd: int(s.CoreEnd - s.Start),
		ByteOffset: s.Start, CharOffset: s.CharOffset, ChunkIndex: int(s.ChunkIndex), Chunks: int(s.Chunks), Length: s.Length,
	}
}

// inputs reads the outputs that a unit takes, and the records that these only name:
// of a reduce those that it may merge, and of any other unit all. A unit that works
// on an element of an output is given that output for its citations alone. Together
// they may be more than a message holds: then they go ahead in pieces.
func (o *Orchestrator) inputs(ctx context.Context, t *task, u *storagev1.Unit, a *mapreduce.Assignment) ([]mapreduce.InputPiece, error) {
	stage := t.stages.at(u.Level)
	merges, element := true, false
	if stage != nil {
		_, _, element = stage.ListPath()
		merges = stage.Each == pipeline.EachGroup && stage.Output.Kind == pipeline.OutputRecords
	}
	l := &loader{a: a}
	var reduced []*output.Output
	err := o.eachInput(ctx, t.run.id, u, func(in *storagev1.Unit) error {
		input := mapreduce.Input{Unit: mapreduce.UnitID(in.UnitId), First: in.Index, End: in.Index + 1, Referred: element}
		if in.Inputs != nil {
			input.First, input.End = in.Inputs.MapFirst, in.Inputs.MapEnd
		}
		if mapreduce.UnitState(in.Status) != mapreduce.UnitComplete {
			input.Failed = true
			l.add(input, nil)
			return nil
		}
		data, err := o.jobs.Output(ctx, t.run.id, in)
		if err != nil {
			return err
		}
		if in.Calls > 0 { // which the trace may have captured
			if bare, err := output.WithoutCalls(data); err == nil { // else the reduce says so
				data = bare
			}
		}
		l.add(input, data)
		out, err := output.Decode(data)
		switch {
		case err != nil || in.Level == 0 || !named(out): // what is wrong the unit says
		case merges:
			reduced = append(reduced, out)
		default:
			return o.eachLeaf(ctx, t.run.id, in, func(leaf *storagev1.Unit, data []byte) error {
				l.add(mapreduce.Input{Unit: mapreduce.UnitID(leaf.UnitId), First: leaf.Index, End: leaf.Index + 1, Referred: true}, data)
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l.pieces, o.referred(ctx, t.run.id, u, reduced, l)
}

// eachLeaf visits the units of level 0, with their outputs, that a reduce of records
// stands for. A tree passes on only the names of records that it did not merge.
func (o *Orchestrator) eachLeaf(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, visit func(leaf *storagev1.Unit, data []byte) error) error {
	for from := u.Inputs.GetMapFirst(); from < u.Inputs.GetMapEnd(); {
		page, err := o.jobs.UnitsFrom(ctx, id, 0, from, 256)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, leaf := range page {
			if from = leaf.Index + 1; mapreduce.UnitState(leaf.Status) != mapreduce.UnitComplete || leaf.Index >= u.Inputs.GetMapEnd() {
				continue
			}
			data, err := o.jobs.Output(ctx, id, leaf)
			if err != nil {
				return err
			}
			if bare, err := output.WithoutCalls(data); err == nil { // else the unit says so
				data = bare
			}
			if err := visit(leaf, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// completed returns the output of a reduce with all records that it stands for.
func (o *Orchestrator) completed(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, out *output.Output) (*output.Output, error) {
	var parts []*output.Output
	err := o.eachLeaf(ctx, id, u, func(leaf *storagev1.Unit, data []byte) error {
		part, err := output.Decode(data)
		if err != nil {
			return errs.New(errs.DataLoss, "output of unit %s: %v", leaf.UnitId, err)
		}
		parts = append(parts, part)
		return nil
	})
	return out.Complete(parts), err
}

// named reports whether an output only names some of its records.
func named(o *output.Output) bool { return len(o.Open) > 0 || len(o.Entries) > 0 }

// referred adds the records that inputs name without holding them, where more
// than one input names their entity.
func (o *Orchestrator) referred(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, reduced []*output.Output, l *loader) error {
	if len(reduced) == 0 {
		return nil
	}
	_, s, err := o.stageOf(ctx, id, u)
	if err != nil {
		return err
	}
	wanted := output.Wanted(s, reduced, l.a.Kind == mapreduce.KindFinal)
	return o.someReferred(ctx, id, wanted, func(u *storagev1.Unit, _ *output.Output, data []byte) {
		l.add(mapreduce.Input{Unit: mapreduce.UnitID(u.UnitId), First: u.Index, End: u.Index + 1, Referred: true}, data)
	})
}

// someReferred visits the outputs with records that inputs name, with their
// encoding, as many of them as a unit is sent.
func (o *Orchestrator) someReferred(ctx context.Context, id mapreduce.JobID, wanted []output.Open, visit func(*storagev1.Unit, *output.Output, []byte)) error {
	more := 0 // bytes
	err := o.eachReferred(ctx, id, wanted, func(u *storagev1.Unit, out *output.Output) error {
		data, err := out.Encode()
		if err != nil {
			return err
		}
		visit(u, out, data)
		if more += len(data); more >= referredBytes {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// errEnough ends the reading of records that inputs name. Those that are not sent
// go on as names, and are merged when the result is read.
var errEnough = errors.New("enough was read")

// A loader gathers the inputs of an assignment.
type loader struct {
	a      *mapreduce.Assignment
	pieces []mapreduce.InputPiece
	total  int // bytes
}

func (l *loader) add(in mapreduce.Input, data []byte) {
	if l.total += len(data); l.total <= messageBytes/2 || len(data) == 0 {
		in.Data = data
		l.a.Inputs = append(l.a.Inputs, in)
		return
	}
	held := mapreduce.Held{Job: l.a.Job, Unit: l.a.Unit, Attempt: l.a.Attempt}
	for at := 0; at < len(data); at += pieceBytes {
		l.pieces = append(l.pieces, mapreduce.InputPiece{
			Held: held, Input: len(l.a.Inputs), Index: in.Pieces, Data: data[at:min(at+pieceBytes, len(data))],
		})
		in.Pieces++
	}
	l.a.Inputs = append(l.a.Inputs, in)
}

// eachInput visits the units that a reduce takes, in order.
func (o *Orchestrator) eachInput(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, visit func(*storagev1.Unit) error) error {
	for from := u.Inputs.First; from < u.Inputs.End; {
		page, err := o.jobs.Inputs(ctx, id, u, from, 256)
		if err != nil {
			return err
		}
		for _, in := range page {
			if err := visit(in); err != nil {
				return err
			}
			from = in.Index + 1
		}
		if len(page) == 0 {
			return nil
		}
	}
	return nil
}
