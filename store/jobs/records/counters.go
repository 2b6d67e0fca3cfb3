package records

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// Counters are a job's counters, over all stripes.
type Counters map[CounterAt]int64

// A CounterAt is a counter at a level of a job.
type CounterAt struct {
	Name  keys.Counter
	Level int64
}

// LevelProgress says what became of the units of a level.
type LevelProgress struct {
	Parses    bool // they parse documents, and belong to no stage
	Stage     int  // index in the stages of the pipeline
	Units     int64
	Completed int64
	Failed    int64 // for good
}

// ByLevel returns what became of the units of each level of the job's stages, in order.
// The units that parse documents come first, if there are any.
func (c Counters) ByLevel(ctl *storagev1.Ctl) []LevelProgress {
	var all []LevelProgress
	add := func(level int64, p LevelProgress) {
		p.Completed, p.Failed = c[CounterAt{keys.Completed, level}], c[CounterAt{keys.Failed, level}]
		all = append(all, p)
	}

	if ctl.ParseUnits > 0 {
		add(-1, LevelProgress{Parses: true, Units: ctl.ParseUnits})
	}
	for level, l := range ctl.Levels[:CountStageLevels(ctl)] {
		p := LevelProgress{Stage: int(l.Stage), Units: l.Units}

		if level == 0 {
			// Units of documents that were parsed by now are not in the control record yet.
			p.Units += c.MappedEarly(ctl)
		}
		add(int64(level), p)
	}

	return all
}

// MappedEarly returns how many units of level 0 there are beyond those that the control
// record counts: while documents are parsed, units come with each that is text.
func (c Counters) MappedEarly(ctl *storagev1.Ctl) int64 {
	if ctl.Level >= 0 || !ctl.MapEarly {
		return 0
	}
	return ctl.StagedUnits + c[CounterAt{keys.Inserted, 0}] - UnitsOf(ctl, 0)
}

// SumUnits returns a counter of units, summed over all levels of the job's stages.
func (c Counters) SumUnits(ctl *storagev1.Ctl, name keys.Counter) int64 {
	n := c.SumLevels(name)
	for level := CountStageLevels(ctl); level < CountLevels(ctl); level++ {
		n -= c[CounterAt{name, level}]
	}
	return n
}

// SumLevels returns a counter, summed over all levels.
func (c Counters) SumLevels(name keys.Counter) (n int64) {
	for at, v := range c {
		if at.Name == name {
			n += v
		}
	}
	return n
}

// Counters reads all counters of a job, summed over all stripes.
func (rec *JobRecords) Counters(ctx context.Context, r store.Reader, id mapreduce.JobID) (Counters, error) {
	pairs, _, err := r.GetRange(ctx, rec.keys.Job(id).Counters(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	all := make(Counters)
	for _, kv := range pairs {
		at, _, err := rec.CounterKey(kv.Key)
		if err != nil {
			return nil, err
		}
		all[at] += DecodeCount(kv.Value)
	}

	return all, nil
}

// CounterKey returns which counter a key is, and whose stripe.
func (rec *JobRecords) CounterKey(key []byte) (CounterAt, mapreduce.NodeID, error) {
	_, rest, err := rec.keys.Last(key)
	if err != nil {
		return CounterAt{}, "", err
	}
	rest.Skip() // the job
	at := CounterAt{keys.Counter(rest.Int()), rest.Int()}
	return at, mapreduce.NodeID(rest.Text()), rest.Err()
}

// Counter reads one counter at one level, over all stripes.
func (rec *JobRecords) Counter(ctx context.Context, r store.Reader, id mapreduce.JobID, c keys.Counter, level int64) (int64, error) {
	pairs, _, err := r.GetRange(ctx, rec.keys.Job(id).CounterStripes(c, level), store.RangeOptions{})
	n := int64(0)
	for _, kv := range pairs {
		n += DecodeCount(kv.Value)
	}
	return n, err
}

// TotalSavings are those of a job.
func (c Counters) TotalSavings() mapreduce.Savings {
	return mapreduce.Savings{
		Answers: c.SumLevels(keys.Answered), AnswerMicros: c.SumLevels(keys.AnswersSaved),
		CacheWrite: c.SumLevels(keys.CacheWritten), CacheRead: c.SumLevels(keys.CacheRead), PromptMicros: c.SumLevels(keys.PromptsSaved),
	}
}
