package transfer

import (
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// putJournal appends entries to the journal of the unit whose attempt a session holds:
// the store's transaction sees to it that it does.
func (t *Transfers) putJournal(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	held, j := t.scheduler.Sessions.FindUnit(session, q.Held)
	if held == nil {
		return nil, notHeld(q)
	}

	spec, err := t.grants.SpecOf(ctx, j)
	if err != nil {
		return nil, err
	}

	data, err := CollectPut(&q.Blob, protocol.MaxJournalAppend, "what is put of a journal", next)
	if err != nil {
		return nil, err
	}

	entries, err := splitEntries(data, q.Attempt)
	if err != nil {
		return nil, err
	}

	a := &content.JournalAppend{
		Held: q.Held, Session: session.ID, First: q.Blob.FirstEntry, Entries: entries,
		Kept: spec.Capture == mapreduce.CaptureFull,
	}

	err = t.supervisor.RetryStoreCall(ctx, "appending to the journal of a unit", func() error { return t.jobs.Content.AppendJournal(ctx, a) })
	if err != nil {
		return nil, err
	}

	return &protocol.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// splitEntries takes entries apart that an attempt has sent, and refuses those that are
// none, or another attempt's.
func splitEntries(data []byte, attempt int) ([][]byte, error) {
	entries, err := journal.Split(data)
	if err != nil {
		return nil, errs.Field("blob", "%v", err)
	}

	for i, raw := range entries {
		e, err := journal.Decode(raw)
		switch {
		case err != nil:
			return nil, errs.Field("blob", "entry %d: %v", i, err)
		case e.Attempt != attempt:
			return nil, errs.Field("blob", "entry %d is of attempt %d, and comes from attempt %d", i, e.Attempt, attempt)
		case len(raw) > protocol.MaxJournalEntry:
			return nil, errs.Field("blob", "entry %d has %d bytes; at most %d are kept", i, len(raw), protocol.MaxJournalEntry)
		}
	}
	return entries, nil
}

// journalOf returns the journal that an attempt at a unit goes on from, as it is sent,
// and how many of its entries are the unit's own. In a job that repeats another the
// other unit's entries come first; if that unit failed there, a report says how.
func (t *Transfers) journalOf(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, u *records.Unit) (data []byte, own int, failed *protocol.Report, err error) {
	if spec.Replay != "" && u.Level >= 0 {
		was, err := t.jobs.View.Unit(ctx, spec.Replay, u.ID)
		if err != nil {
			return nil, 0, nil, err
		}
		// A unit that failed there fails here as well, and runs no attempt.
		if was != nil && was.State == mapreduce.UnitFailed {
			return nil, 0, &protocol.Report{
				Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Errored,
				Class: protocol.PermanentUnit, Errors: was.Errors,
			}, nil
		}

		if data, _, err = t.appendJournal(ctx, data, spec.Replay, was); err != nil {
			return nil, 0, nil, err
		}
	}

	data, own, err = t.appendJournal(ctx, data, id, u)
	return data, own, nil, err
}

// appendJournal appends the journal of a unit, which may be nil, to data, and returns how
// many entries it has.
func (t *Transfers) appendJournal(ctx context.Context, data []byte, id mapreduce.JobID, u *records.Unit) ([]byte, int, error) {
	entries, err := t.jobs.Content.Journal(ctx, id, u)
	for _, raw := range entries {
		data = journal.AppendEntry(data, raw)
	}
	return data, len(entries), err
}

// sendJournal writes the journal that an attempt at a unit goes on from.
func (t *Transfers) sendJournal(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	held, j := t.scheduler.Sessions.FindUnit(session, q.Held)
	if held == nil {
		return notHeld(q)
	}

	spec, err := t.grants.SpecOf(ctx, j)
	if err != nil {
		return err
	}

	data, _, _, err := t.journalOf(ctx, q.Job, spec, u)
	if err != nil {
		return err
	}

	if len(data) == 0 {
		return errs.New(errs.NotFound, "no attempt at unit %s has remembered anything", q.Unit)
	}
	return w.write(data)
}
