package jobs

import (
	"strconv"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

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
}

// toStored returns the level as it is stored.
func (l *Level) toStored() *storagev1.Level {
	return &storagev1.Level{
		Units: l.Units, Stage: int64(l.Stage), Depth: int64(l.Depth), Source: l.Source, Prefix: l.Prefix, Unit: string(l.Unit),
		Phase: uint32(l.Phase),
	}
}

// levelFrom returns what a stored level says.
func levelFrom(l *storagev1.Level) Level {
	return Level{
		Units: l.GetUnits(), Stage: int(l.GetStage()), Depth: int(l.GetDepth()), Source: l.GetSource(),
		Prefix: l.GetPrefix(), Unit: mapreduce.UnitID(l.GetUnit()),
		Phase: mapreduce.JobState(l.GetPhase()),
	}
}

// LevelOf returns a level that is planned; the zero Level if it is not, and for
// the parse units, which are level -1.
func LevelOf(ctl *storagev1.Ctl, level int64) Level { return levelFrom(levelAt(ctl, level)) }

// Levels returns how many levels are planned, the parse units not counted.
func Levels(ctl *storagev1.Ctl) int64 { return int64(len(ctl.Levels)) }

// levelAt returns a level that is planned, or nil.
func levelAt(ctl *storagev1.Ctl, level int64) *storagev1.Level {
	if level < 0 || level >= int64(len(ctl.Levels)) {
		return nil
	}
	return ctl.Levels[level]
}

// unitsOf returns how many units of a level are planned.
func unitsOf(ctl *storagev1.Ctl, level int64) int64 {
	if level < 0 {
		return ctl.ParseUnits
	}
	return levelAt(ctl, level).GetUnits()
}

// unitAt returns the id of a unit of a level other than 0.
func unitAt(l *storagev1.Level, index int64) mapreduce.UnitID {
	if l.GetUnit() != "" {
		return mapreduce.UnitID(l.Unit)
	}
	return mapreduce.UnitID(l.GetPrefix() + strconv.FormatInt(index, 10))
}

// isBundle reports whether level 0 has a single unit that takes all documents.
func isBundle(ctl *storagev1.Ctl) bool { return levelAt(ctl, 0).GetUnit() != "" }

// OpenLevel returns the highest level whose units may be claimed: of a tree that
// was planned at once any that is not blocked, once its level 0 may be claimed.
func OpenLevel(ctl *storagev1.Ctl) int64 {
	if ctl.Level < 0 {
		return ctl.Level
	}
	return max(ctl.Level, ctl.TreeTop)
}
