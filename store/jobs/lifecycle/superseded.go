package lifecycle

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// When a resume drops a unit, the amounts that the unit has spent stay spent. The resume
// first moves them to the job's record. So the remaining units and the superseded amounts
// add up to what the job has spent, at any moment.

// A carrying is how far the spending of levels that are to be dropped was carried.
// It is of one epoch: in another, these levels may have been planned anew. Its zero
// value has carried nothing.
type carrying struct {
	epoch int64
	level int64
	from  []byte // key of the unit that is next; nil begins the level
}

// carrySpent moves what units have spent to the job's record: of the levels in begun from
// first on, beginning where at says. It returns how far it came, or nil if that was all.
// Later reports of these units settle nothing any more, so that nothing is spent unseen.
// The caller writes the switch, as all do that write the record.
func (rec writer) carrySpent(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, at carrying, first int64, begun []*storagev1.Level) (*carrying, error) {
	if at.epoch != ctl.Epoch {
		at = carrying{epoch: ctl.Epoch}
	}

	job := new(storagev1.Job)
	if _, err := records.Read(ctx, tx, rec.Keys.Job(id).Record(), job); err != nil {
		return nil, err
	}

	room := store.RangeOptions{Limit: records.StepUnits, Bytes: store.TargetTxSize}
	for at.level = max(at.level, first); at.level < int64(len(begun)); at.level, at.from = at.level+1, nil {
		r := rec.Units.KeysOf(id, begun[at.level])
		if at.from != nil {
			r.Begin = at.from
		}
		pairs, more, err := tx.GetRange(ctx, r, room)
		if err != nil {
			return nil, err
		}

		for _, kv := range pairs {
			if err := carryUnit(tx, job, first, kv); err != nil {
				return nil, err
			}
			room.Limit--
			room.Bytes -= len(kv.Key) + len(kv.Value)
		}

		// There is no room for more: the next step begins behind the last unit.
		if more || room.Limit <= 0 || room.Bytes <= 0 {
			at.from = store.Single(pairs[len(pairs)-1].Key).End
			tx.Set(rec.Keys.Job(id).Record(), records.Encode(job))
			return &at, nil
		}
	}

	tx.Set(rec.Keys.Job(id).Record(), records.Encode(job))
	return nil, nil
}

// carryUnit carries what one unit has spent, if its level is dropped.
func carryUnit(tx store.Tx, job *storagev1.Job, first int64, kv store.KeyValue) error {
	u := new(storagev1.Unit)
	if err := records.Decode(kv.Key, kv.Value, u); err != nil {
		return err
	}

	spent := spentBy(u)
	if u.Level < first || spent == nil && u.Session == "" {
		return nil
	}

	if spent != nil {
		addSuperseded(job, spent)
	}

	// The record of the job has it from here on: carried again, it would count twice.
	u.TokensIn, u.TokensOut, u.CostMicros, u.Savings = 0, 0, 0, nil
	u.Calls, u.LatencyMicros, u.Tools, u.ToolMicros, u.LargestPrompt = 0, 0, 0, 0, 0
	u.Session, u.Claim, u.Started, u.Charged = "", "", false, 0 // what was charged stays charged
	tx.Set(kv.Key, records.Encode(u))
	return nil
}

// spentBy returns what a unit has spent, nil if nothing.
func spentBy(u *storagev1.Unit) *storagev1.Spent {
	s := &storagev1.Spent{
		TokensIn: u.TokensIn, TokensOut: u.TokensOut, CostMicros: u.CostMicros,
		Calls: u.Calls, LatencyMicros: u.LatencyMicros, Tools: u.Tools, ToolMicros: u.ToolMicros, LargestPrompt: u.LargestPrompt, Savings: u.Savings,
	}
	if proto.Size(s) == 0 {
		return nil
	}
	s.Level, s.Units = u.Level, 1
	return s
}

// addSuperseded adds s to what is superseded of its level.
func addSuperseded(job *storagev1.Job, s *storagev1.Spent) {
	for _, sum := range job.Superseded {
		if sum.Level == s.Level {
			sum.Units += s.Units
			sum.TokensIn += s.TokensIn
			sum.TokensOut += s.TokensOut
			sum.CostMicros += s.CostMicros
			sum.Calls += s.Calls
			sum.LatencyMicros += s.LatencyMicros
			sum.Tools += s.Tools
			sum.ToolMicros += s.ToolMicros
			sum.LargestPrompt = max(sum.LargestPrompt, s.LargestPrompt)

			if s.Savings != nil {
				sum.Savings = records.StoredSavings(records.SavingsOf(sum.Savings).Add(records.SavingsOf(s.Savings)))
			}
			return
		}
	}

	job.Superseded = append(job.Superseded, s)
}
