package transfer

import (
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// The functions of this file put what a unit works on into its assignment. What is larger than
// the room that is left there they announce as a blob, which the worker gets.

// AssignWakeCall adds the call that woke a unit to its assignment. What people have decided about its values may be too
// large for that: then it is announced as a blob.
func (t *Transfers) AssignWakeCall(ctx context.Context, a *protocol.Assignment, u *records.Unit) (err error) {
	if u.Woken == "" {
		return nil
	}
	if a.WakeCall, err = t.jobs.View.WakeCall(ctx, a.Job, a.Unit); err != nil {
		return err
	}

	answer, err := t.wakeAnswer(ctx, a.Job, u, a.WakeCall)
	if err != nil || answer == nil {
		return err
	}
	announceBlob(a, protocol.BlobWakeAnswer, answer)
	return nil
}

// announceBlob adds a blob of this content to an assignment.
func announceBlob(a *protocol.Assignment, kind protocol.BlobKind, data []byte) {
	sum := sha256.Sum256(data)
	a.Blobs = append(a.Blobs, protocol.Blob{Kind: kind, SHA256: sum[:], Length: int64(len(data))})
}

// AssignJournal adds what earlier attempts have done to an assignment. Of a unit that failed in
// the job that this one repeats it returns a report instead.
func (t *Transfers) AssignJournal(ctx context.Context, a *protocol.Assignment, spec *mapreduce.JobSpec, u *records.Unit, room int) (failed *protocol.Report, err error) {
	remembered, own, failed, err := t.journalOf(ctx, a.Job, spec, u)
	if err != nil || failed != nil {
		return failed, err
	}

	a.JournalEntries = own
	if len(remembered) <= room {
		a.Journal = remembered
		return nil, nil
	}
	announceBlob(a, protocol.BlobJournal, remembered)
	return nil, nil
}

// AssignEvidence announces what tools have brought to earlier attempts, if that is
// anything.
func (t *Transfers) AssignEvidence(ctx context.Context, a *protocol.Assignment, spec *mapreduce.JobSpec, stage *pipeline.Stage, u *records.Unit) error {
	if stage == nil || len(stage.Tools) == 0 {
		return nil
	}

	list, own, err := t.evidenceOf(ctx, a.Job, spec, u)
	if err != nil || len(list) == 0 {
		return err
	}

	a.EvidenceItems = own
	announceBlob(a, protocol.BlobEvidenceList, list)
	return nil
}

// AssignText adds the text of a unit to its assignment. It is read unless it is at hand.
func (t *Transfers) AssignText(ctx context.Context, a *protocol.Assignment, u *records.Unit, text []byte, room int) (err error) {
	src := u.Source
	switch size := src.End - src.Start; {
	case size > int64(room):
		a.Blobs = append(a.Blobs, protocol.Blob{Kind: protocol.BlobText, SHA256: src.SHA256, Length: src.Length, Start: src.Start, End: src.End})
		text = nil
	case text == nil && size > 0:
		text, err = t.jobs.Content.Text(ctx, a.Job, src.SHA256, src.Start, src.End)
	}
	a.Text = textOf(u, text)
	return err
}

func textOf(u *records.Unit, content []byte) *protocol.Text {
	s := u.Source
	return &protocol.Text{
		Document: u.Document, SHA256: s.SHA256, MediaType: s.MediaType, Metadata: s.Metadata,
		Content: content, CoreStart: int(s.CoreStart - s.Start), CoreEnd: int(s.CoreEnd - s.Start),
		ByteOffset: s.Start, CharOffset: s.CharOffset, ChunkIndex: int(s.ChunkIndex), Chunks: int(s.Chunks), Length: s.Length,
	}
}

// AssignInputs adds what a unit takes to its assignment. It returns the units that it takes,
// with their outputs, if it added these.
func (t *Transfers) AssignInputs(ctx context.Context, a *protocol.Assignment, u *records.Unit, visit InputVisitor, room int) (taken []*records.Unit, err error) {
	if u.Inputs == nil && !outputs.IsBundle(u) { // as of most units
		return nil, nil
	}

	type input struct {
		unit   *records.Unit
		header *payload.InputHeader
	}
	var inputs []input // as long as they fit
	var total int64
	err = t.inputs.each(ctx, a.Job, u, visit, func(in *records.Unit, h *payload.InputHeader) error {
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
		one, err := t.inputs.read(ctx, a.Job, u, in.unit, in.header)
		if err != nil {
			return nil, err
		}
		if u.Inputs != nil && in.unit.Level == u.Inputs.Level { // else a merged output below it only names it
			taken = append(taken, in.unit.WithOutput(one.Data))
		}

		if in.header.Calls { // which the trace may have captured
			if bare, err := payload.WithoutCalls(one.Data); err == nil { // else the reduce says so
				one.Data = bare
			}
		}
		a.Inputs = append(a.Inputs, one)
	}
	return taken, nil
}

// read returns an input of u, with its data.
func (all *inputReader) read(ctx context.Context, id mapreduce.JobID, u, in *records.Unit, h *payload.InputHeader) (protocol.Input, error) {
	one := protocol.Input{Unit: h.Unit, First: h.First, End: h.End, Failed: h.Failed, Referred: h.Referred}
	if h.Failed {
		return one, nil
	}
	err := all.parts(ctx, id, u, in, func(part []byte) error {
		one.Data = append(one.Data, part...)
		return nil
	})
	return one, err
}
