package transfer

import (
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

const maxWanting = 4 // units for which it is found out at once which records are named

// An inputReader reads what units take: outputs of others, or documents, as their assignments and
// their blobs have them. Its methods are safe for concurrent use.
type inputReader struct {
	jobs    *jobs.Jobs
	specs   *jobspec.Finder
	lookups chan struct{} // full while so many reduces' records are looked for
}

// send writes what a unit takes: the outputs of others, or the documents of a
// direct unit. No more than some chunks of it are held at a time.
func (all *inputReader) send(ctx context.Context, id mapreduce.JobID, u *records.Unit, w *rangeWriter) error {
	return all.each(ctx, id, u, all.visitorOf(id), func(in *records.Unit, h *payload.InputHeader) error {
		if w.skipBytes(h.Size()) {
			return nil
		}
		head, err := h.Append(nil)
		if err == nil {
			err = w.write(head)
		}
		if err != nil || w.skipBytes(h.Length) {
			return err
		}
		return all.parts(ctx, id, u, in, w.write)
	})
}

// parts reads the data of an input of u. What a direct unit takes is its own
// text; what others take of it is its output.
func (all *inputReader) parts(ctx context.Context, id mapreduce.JobID, u, in *records.Unit, visit func([]byte) error) error {
	if src := in.Source; in == u {
		return all.jobs.Content.TextParts(ctx, id, content.TextRange{SHA256: src.SHA256, Start: src.Start, End: src.End, Length: src.Length}, visit)
	}
	return all.jobs.Content.OutputParts(ctx, id, in, visit)
}

// each visits the inputs of a unit in order, with the header of each. The
// input of a direct unit is its own. A unit that works on an element of an output is
// given that output for its citations alone. One that reads records and merges none
// is given, behind each output of a tree, all that this only names; one that merges
// asks for what it needs: see sendReferred. The units that it takes are visited by inputs.
func (all *inputReader) each(ctx context.Context, id mapreduce.JobID, u *records.Unit, inputs InputVisitor, visit func(*records.Unit, *payload.InputHeader) error) error {
	if src := u.Source; outputs.IsBundle(u) {
		return visit(u, &payload.InputHeader{
			Unit: u.ID, First: u.Index, End: u.Index + 1, Length: src.End - src.Start, SHA256: src.SHA256,
		})
	}
	if u.Inputs == nil {
		return nil
	}

	merges, element, err := all.readsAs(ctx, id, u)
	if err != nil {
		return err
	}
	return inputs(ctx, u, func(in *records.Unit) error {
		h, err := headerOf(in)
		if err != nil {
			return err
		}

		h.Referred = element
		if in.Inputs != nil {
			h.First, h.End = in.Inputs.MapFirst, in.Inputs.MapEnd
		}

		if err := visit(in, h); err != nil || h.Failed || merges || in.Level == 0 {
			return err
		}

		// Behind an output that only names records come the outputs that hold them.
		if only, err := all.onlyNames(ctx, id, in); err != nil || !only {
			return err
		}

		return outputs.EachLeaf(ctx, all.jobs.Reader(), id, in, func(leaf *records.Unit) error {
			h, err := headerOf(leaf)
			if err != nil {
				return err
			}
			h.Referred = true
			return visit(leaf, h)
		})
	})
}

// An InputVisitor visits the units that a unit takes, in order.
type InputVisitor func(ctx context.Context, u *records.Unit, visit func(*records.Unit) error) error

// visitorOf returns what visits the inputs of units of a job, each for itself.
func (all *inputReader) visitorOf(id mapreduce.JobID) InputVisitor {
	return func(ctx context.Context, u *records.Unit, visit func(*records.Unit) error) error {
		return outputs.EachInput(ctx, all.jobs.Reader(), id, u, visit)
	}
}

// headerOf returns the header of a unit's output, unless its record tells of one that
// cannot be.
func headerOf(u *records.Unit) (*payload.InputHeader, error) {
	h := &payload.InputHeader{Unit: u.ID, First: u.Index, End: u.Index + 1}
	if h.Failed = u.State != mapreduce.UnitComplete; h.Failed {
		return h, nil
	}

	res := u.Published()
	h.Calls, h.Length, h.SHA256 = u.CallSums.Calls > 0, res.Length, res.SHA256
	if h.Length < 0 || h.Length > protocol.MaxOutput || res.Chunks == 0 && h.Length != int64(len(res.Inline)) {
		return nil, errs.New(errs.DataLoss, "output of unit %s: a length of %d, in %d chunks", u.ID, h.Length, res.Chunks)
	}
	return h, nil
}

// readsAs says how a unit reads outputs: whether it merges records of them, and
// whether it works on an element of one.
func (all *inputReader) readsAs(ctx context.Context, id mapreduce.JobID, u *records.Unit) (merges, element bool, err error) {
	stage, _, err := all.specs.StageOf(ctx, id, u)
	if err != nil || stage == nil {
		return true, false, err
	}
	_, _, element = stage.ListPath()
	return stage.Each == pipeline.EachGroup && stage.Output.Kind == pipeline.OutputRecords, element, nil
}

// onlyNames reports whether the output of a unit only names some of its records. It
// is held for that, as those of a few units are at a time.
func (all *inputReader) onlyNames(ctx context.Context, id mapreduce.JobID, u *records.Unit) (bool, error) {
	leave, err := all.awaitLookup(ctx)
	if err != nil {
		return false, err
	}
	defer leave()

	release, err := holdOutput(ctx, u)
	if err != nil {
		return false, err
	}
	defer release()

	data, err := all.jobs.Content.Output(ctx, id, u)
	if err != nil {
		return false, err
	}

	out, err := output.Decode(data)
	return err == nil && outputs.NamesRecordsOnly(out), nil // what is wrong the unit says
}

// decodedOutput is about how many times its length an output takes that is decoded.
const decodedOutput = 3

// holdOutput waits for room for the output of a unit, decoded.
func holdOutput(ctx context.Context, u *records.Unit) (release func(), err error) {
	return memory.HoldFor(ctx, decodedOutput*u.Published().Length)
}

// awaitLookup waits until there is room to hold outputs and find out which records
// they name.
func (all *inputReader) awaitLookup(ctx context.Context) (leave func(), err error) {
	select {
	case all.lookups <- struct{}{}:
		return func() { <-all.lookups }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sendReferred writes the records that the inputs of a unit which merges name without
// holding them, where more than one input names their entity. While it waits for the
// worker it holds the output of one unit.
func (all *inputReader) sendReferred(ctx context.Context, id mapreduce.JobID, u *records.Unit, w *rangeWriter) error {
	wanted, err := all.neededRecords(ctx, id, u)
	if err != nil || len(wanted) == 0 {
		return err
	}

	return outputs.SomeReferred(ctx, all.jobs.Reader(), id, wanted, func(u *records.Unit, _ *output.Output, data []byte) error {
		release, err := memory.HoldFor(ctx, int64(len(data)))
		if err != nil {
			return err
		}
		defer release()

		sum := sha256.Sum256(data)
		h := &payload.InputHeader{
			Unit: u.ID, First: u.Index, End: u.Index + 1, Referred: true,
			Length: int64(len(data)), SHA256: sum[:],
		}

		head, err := h.Append(nil)
		if err == nil {
			err = w.write(head)
		}
		if err == nil {
			err = w.write(data)
		}
		return err
	})
}

// neededRecords returns which records the inputs of a unit name that it needs; none if it
// merges none. All of these inputs are held for that, of a few units at a time.
func (all *inputReader) neededRecords(ctx context.Context, id mapreduce.JobID, u *records.Unit) ([]output.Open, error) {
	if merges, _, err := all.readsAs(ctx, id, u); err != nil || !merges {
		return nil, err
	}

	leave, err := all.awaitLookup(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	// All inputs are compared with each other, so their room is given back at the end.
	var releases []func()
	defer func() {
		for _, release := range releases {
			release()
		}
	}()

	var reduced []*output.Output
	err = outputs.EachInput(ctx, all.jobs.Reader(), id, u, func(in *records.Unit) error {
		if in.Level == 0 || in.State != mapreduce.UnitComplete {
			return nil
		}
		release, err := holdOutput(ctx, in)
		if err != nil {
			return err
		}
		releases = append(releases, release)
		data, err := all.jobs.Content.Output(ctx, id, in)
		if err != nil {
			return err
		}
		if out, err := output.Decode(data); err == nil && outputs.NamesRecordsOnly(out) { // what is wrong the unit says
			reduced = append(reduced, out)
		}
		return nil
	})

	if err != nil || len(reduced) == 0 {
		return nil, err
	}

	_, s, err := all.specs.StageOf(ctx, id, u)
	if err != nil {
		return nil, err
	}
	return output.Wanted(s, reduced, u.Kind == mapreduce.KindFinal), nil
}
