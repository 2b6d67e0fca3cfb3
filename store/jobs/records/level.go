package records

import (
	"bytes"
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// KeysOf returns the range of the records of a level's units, of a level other
// than 0.
func (rec *UnitRecords) KeysOf(id mapreduce.JobID, l *storagev1.Level) store.Range {
	if l.Unit != "" {
		return store.Single(rec.keys.Job(id).Unit(mapreduce.UnitID(l.Unit)))
	}
	return rec.keys.Job(id).NumberedUnits(l.Prefix)
}

// DropLevel clears a level above 0: its units, their results and queue entries,
// and its counters. The ids of its units share a prefix, so that takes a few range
// clears however many there are.
func (rec *UnitRecords) DropLevel(tx store.Tx, id mapreduce.JobID, level int64, l *storagev1.Level, shards int64) {
	tx.ClearRange(rec.KeysOf(id, l))

	// The only unit of a level has an id of its own; the units of other levels share a
	// prefix.
	if unit := mapreduce.UnitID(l.Unit); unit != "" {
		tx.Clear(rec.keys.Queues(id).Delayed(unit))
		tx.Clear(rec.keys.Queues(id).Parked(unit))
		tx.Clear(rec.keys.Queues(id).Woken(unit))
		tx.ClearRange(rec.keys.Outputs(id).Results(unit))
		tx.ClearRange(rec.keys.Outputs(id).Journal(unit))
		tx.ClearRange(rec.keys.Outputs(id).EvidenceOf(unit))
		rec.ClearAsked(tx, id, unit, nil)
	} else {
		tx.ClearRange(rec.keys.Outputs(id).NumberedResults(l.Prefix))
		tx.ClearRange(rec.keys.Queues(id).NumberedDelayed(l.Prefix))
		tx.ClearRange(rec.keys.Queues(id).NumberedParked(l.Prefix))
		tx.ClearRange(rec.keys.Queues(id).NumberedWoken(l.Prefix))
		tx.ClearRange(rec.keys.Outputs(id).NumberedJournals(l.Prefix))
		tx.ClearRange(rec.keys.Outputs(id).NumberedEvidence(l.Prefix))
		tx.ClearRange(rec.keys.Batches(id).NumberedAsked(l.Prefix))
		tx.ClearRange(rec.keys.Batches(id).NumberedReplies(l.Prefix))
	}

	tx.ClearRange(rec.keys.Queues(id).FailedLevel(level))
	tx.ClearRange(rec.keys.Plans(id).PicksLevel(level))
	tx.ClearRange(rec.keys.Queues(id).WaitLevel(level))
	tx.Clear(rec.keys.Plans(id).Cursor(level))

	for shard := range shards {
		tx.ClearRange(rec.keys.Queues(id).ReadyLevel(shard, keys.ClassRequeued, level))
		tx.ClearRange(rec.keys.Queues(id).ReadyLevel(shard, keys.ClassNew, level))
	}

	for _, c := range []keys.Counter{keys.Completed, keys.Failed, keys.Size, keys.Running, keys.UnitsParked, keys.LinesOpen} {
		tx.ClearRange(rec.keys.Job(id).CounterStripes(c, level))
	}
}

// A Level describes one level of a job: the units of a stage, or those of one
// depth of the tree of a stage that reduces groups. Level 0 takes documents, and
// the ids of its units are in the order of the input; the ids of the units of
// other levels follow from Prefix or Unit.
type Level struct {
	Units  int64              // planned
	Stage  int                // index in the stages of the pipeline
	Depth  int                // in the stage's tree, from 1 on; 0 if the stage has no tree
	Source int64              // the level whose outputs its units take
	Prefix string             // of the ids of its units, before their index
	Unit   mapreduce.UnitID   // the id of its only unit; takes the place of Prefix
	Phase  mapreduce.JobState // of the job while its units run
	Result bool               // its only unit assembles the result of the job
}

// ToStored returns the level as it is stored.
func (l *Level) ToStored() *storagev1.Level {
	return &storagev1.Level{
		Units: l.Units, Stage: int64(l.Stage), Depth: int64(l.Depth), Source: l.Source, Prefix: l.Prefix, Unit: string(l.Unit),
		Phase: uint32(l.Phase), Result: l.Result,
	}
}

// LevelFrom returns what a stored level says.
func LevelFrom(l *storagev1.Level) Level {
	return Level{
		Units: l.GetUnits(), Stage: int(l.GetStage()), Depth: int(l.GetDepth()), Source: l.GetSource(),
		Prefix: l.GetPrefix(), Unit: mapreduce.UnitID(l.GetUnit()),
		Phase: mapreduce.JobState(l.GetPhase()), Result: l.GetResult(),
	}
}

// CountLevels returns how many levels are planned, the parse units not counted.
func CountLevels(ctl *storagev1.Ctl) int64 { return int64(len(ctl.Levels)) }

// CountStageLevels returns how many of the levels are of the pipeline's stages: all but
// the one that assembles the result.
func CountStageLevels(ctl *storagev1.Ctl) int64 {
	n := CountLevels(ctl)
	if LevelAt(ctl, n-1).GetResult() {
		n--
	}
	return n
}

// AtResult reports whether a job has come to the level that assembles its result.
func AtResult(ctl *storagev1.Ctl) bool { return LevelAt(ctl, ctl.Level).GetResult() }

// LevelAt returns a level that is planned, or nil.
func LevelAt(ctl *storagev1.Ctl, level int64) *storagev1.Level {
	if level < 0 || level >= int64(len(ctl.Levels)) {
		return nil
	}
	return ctl.Levels[level]
}

// UnitsOf returns how many units of a level are planned.
func UnitsOf(ctl *storagev1.Ctl, level int64) int64 {
	if level < 0 {
		return ctl.ParseUnits
	}
	return LevelAt(ctl, level).GetUnits()
}

// UnitAt returns the id of a unit of a level other than 0.
func UnitAt(l *storagev1.Level, index int64) mapreduce.UnitID {
	if l.GetUnit() != "" {
		return mapreduce.UnitID(l.Unit)
	}
	return mapreduce.UnitID(l.GetPrefix() + strconv.FormatInt(index, 10))
}

// IsBundle reports whether level 0 has a single unit that takes all documents.
func IsBundle(ctl *storagev1.Ctl) bool { return LevelAt(ctl, 0).GetUnit() != "" }

// OpenLevel returns the highest level whose units may be claimed: of a tree that
// was planned at once any that is not blocked, once its level 0 may be claimed; and
// level 0 while documents are parsed, if the others need not wait for these.
func OpenLevel(ctl *storagev1.Ctl) int64 { return openLevel(ctl.Level, ctl.TreeTop, ctl.MapEarly) }

func openLevel(level, treeTop int64, mapEarly bool) int64 {
	switch {
	case level >= 0:
		return max(level, treeTop)
	case mapEarly:
		return 0
	}
	return level
}

// A WaitRef is a reduce of a tree that waits for its inputs.
type WaitRef struct{ Level, Index int64 }

// WaitRef returns the reduce whose inputs a key counts.
func (rec *UnitRecords) WaitRef(key []byte) (WaitRef, error) {
	_, rest, err := rec.keys.Last(key)
	if err != nil {
		return WaitRef{}, err
	}
	rest.Skip() // the job
	at := WaitRef{Level: rest.Int(), Index: rest.Int()}
	return at, rest.Err()
}

// SetOutput stores chunks of an output of an attempt, which begin at a byte of it: a
// multiple of store.ChunkSize.
func (rec *UnitRecords) SetOutput(tx store.Tx, id mapreduce.JobID, unit mapreduce.UnitID, attempt, start int64, data []byte) {
	for i := 0; i < len(data); i += store.ChunkSize {
		chunk := data[i:min(i+store.ChunkSize, len(data))]
		tx.Set(rec.keys.Outputs(id).ResultChunk(unit, attempt, (start+int64(i))/store.ChunkSize), bytes.Clone(chunk))
	}
}
