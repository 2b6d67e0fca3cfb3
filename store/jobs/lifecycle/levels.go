package lifecycle

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// LevelRecords reads and writes what is planned of a level inside a transaction of its caller.
type LevelRecords struct{ *records.Records }

// Levels plans the levels of jobs, and says how far they are.
type Levels struct {
	db *records.DB
	LevelRecords
}

// NewLevels returns the operations on the records of db.
func NewLevels(db *records.DB) *Levels { return &Levels{db, LevelRecords{db.Records()}} }

// A Status is how far a job's level is.
type Status struct {
	State     mapreduce.JobState
	Epoch     int64
	Level     int64 // -1 while documents are parsed, 0 while they are mapped
	MapEarly  bool  // while documents are parsed, those that are text may be mapped
	Units     int64 // planned in this level
	Completed int64
	Failed    int64
	Parked    int64 // wait for something outside
	Size      int64 // tokens of the outputs
	// Completed and Size of the level whose outputs this one takes, if there is one.
	SourceCompleted, SourceSize int64
	Planned                     []records.Level // levels, from 0 on
	AtResult                    bool            // the level is the one that assembles the result
	TreeTop                     int64           // the last of the levels that were planned at once with their tree; 0 if there is no such tree
	Failures                    int64           // of all levels, if the job is to fail fast
	FailFast                    bool
	Sweeping                    bool
	Next                        int64 // grows with each step in which some node plans the next level, if this one has ended
}

// InTree reports whether the level above this one is planned, as part of a tree
// that was planned at once.
func (s *Status) InTree() bool { return s.Level >= 0 && s.Level < s.TreeTop }

// Ended reports whether no unit of the level can move any more.
func (s *Status) Ended() bool { return s.Completed+s.Failed >= s.Units }

// Waits reports whether units of the level are left, and all of them wait for something
// outside.
func (s *Status) Waits() bool { return s.Parked > 0 && s.Completed+s.Failed+s.Parked >= s.Units }

// Status reads how far a job is, without writing anything. The counters
// are as new as the latest commit that was acknowledged before the call.
func (l *Levels) Status(ctx context.Context, id mapreduce.JobID) (*Status, error) {
	var s *Status
	err := l.db.View(ctx, func(tx store.Tx) error {
		ctl, err := l.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}

		s = &Status{
			State: mapreduce.JobState(ctl.State), Epoch: ctl.Epoch, Level: ctl.Level,
			FailFast: ctl.FailFast, Sweeping: ctl.Sweeping, MapEarly: ctl.MapEarly, TreeTop: ctl.TreeTop, AtResult: records.AtResult(ctl),
		}
		for _, level := range ctl.Levels {
			s.Planned = append(s.Planned, records.LevelFrom(level))
		}

		if s.FailFast {
			all, err := l.Jobs.Counters(ctx, tx, id)
			if err != nil {
				return err
			}
			s.Failures = all.SumLevels(keys.Failed)
		}

		s.Units = records.UnitsOf(ctl, ctl.Level)
		source := int64(-2) // a level that no job has
		if ctl.Level > 0 {
			source = records.LevelAt(ctl, ctl.Level).GetSource()
		}

		for _, c := range []struct {
			name  keys.Counter
			level int64
			to    *int64
		}{
			{keys.Completed, ctl.Level, &s.Completed},
			{keys.Failed, ctl.Level, &s.Failed},
			{keys.UnitsParked, ctl.Level, &s.Parked},
			{keys.Size, ctl.Level, &s.Size},
			{keys.Completed, source, &s.SourceCompleted},
			{keys.Size, source, &s.SourceSize},
		} {
			if *c.to, err = l.Jobs.Counter(ctx, tx, id, c.name, c.level); err != nil {
				return err
			}
		}

		if !s.Ended() {
			return nil
		}

		var next storagev1.Plan // or the first, and the others of a tree
		_, err = records.Read(ctx, tx, l.Keys.Plans(id).Cursor(max(1, s.Level+1)), &next)
		s.Next = plannedSoFar(&next)
		return err
	})
	return s, err
}

// Sizes returns how many units of a level have an output, and the tokens of
// all outputs.
func (l *Levels) Sizes(ctx context.Context, id mapreduce.JobID, level int64) (completed, tokens int64, err error) {
	err = l.db.View(ctx, func(tx store.Tx) error {
		if completed, err = l.Jobs.Counter(ctx, tx, id, keys.Completed, level); err != nil {
			return err
		}
		tokens, err = l.Jobs.Counter(ctx, tx, id, keys.Size, level)
		return err
	})
	return completed, tokens, err
}

// Complete ends a job whose result is assembled.
func (l *Levels) Complete(ctx context.Context, id mapreduce.JobID, epoch int64) error {
	return l.db.ChangeControl(ctx, failpoint.Complete, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if ctl.Epoch != epoch || !mapreduce.JobState(ctl.State).Running() || !records.AtResult(ctl) {
			return "", false, nil
		}
		ctl.State = uint32(mapreduce.JobComplete)
		return "complete", true, nil
	})
}

// A Dissolve says what becomes of a unit of all documents that is staged and was never
// claimed. The zero value says that it stays, if there is one.
type Dissolve struct {
	Staged   bool // it goes: its documents have got units of their own
	KeepText bool // its text stays, as one of these units has the same
}

// StartMapping turns a job whose units are all inserted to level 0, which is as
// first says but for the number of its units.
func (l *Levels) StartMapping(ctx context.Context, id mapreduce.JobID, epoch int64, first records.Level, dissolve Dissolve) error {
	return l.db.ChangeControl(ctx, failpoint.Map, id, func(tx store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		// Another node may have done it, or the job was changed since it was seen.
		if ctl.Epoch != epoch || ctl.Level >= 0 || !mapreduce.JobState(ctl.State).Running() {
			return "", false, nil
		}

		inserted, err := l.Jobs.Counter(ctx, tx, id, keys.Inserted, 0)
		if err != nil {
			return "", false, err
		}

		if dissolve.Staged {
			if err := l.removeDirect(ctx, tx, id, ctl, dissolve.KeepText); err != nil {
				return "", false, err
			}
		}

		first.Units = ctl.StagedUnits + inserted
		ctl.Level, ctl.State = 0, uint32(first.Phase)
		ctl.Levels = []*storagev1.Level{first.ToStored()}
		return "level 0: " + plural.Count(first.Units, "unit"), true, nil
	})
}
