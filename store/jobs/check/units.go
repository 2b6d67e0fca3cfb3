package check

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// checkUnits checks every unit with its entries in the indexes, its claim and its
// data, and sums them up.
func (k *jobCheck) checkUnits(ctx context.Context) error {
	var page []*storagev1.Unit
	err := k.WalkRange(ctx, k.id, k.Keys.Job(k.id).Units(), walk.PageOptions(), func(l *walk.Look, pairs []store.KeyValue) error {
		// A page that is read again begins anew.
		page = page[:0]
		for _, kv := range pairs {
			u := new(storagev1.Unit)
			if !l.Decode(kv.Key, kv.Value, u) {
				continue
			}
			if string(kv.Key) != string(k.Keys.Job(k.id).Unit(mapreduce.UnitID(u.UnitId))) {
				l.Find(kv.Key, "the record says it is of unit %q", u.UnitId)
				continue
			}
			page = append(page, u)
		}

		ctl, err := k.Jobs.Control(ctx, l, k.id)
		if err != nil {
			return err
		}
		around, err := k.readSurroundings(ctx, l, ctl, page)
		if err != nil {
			return err
		}

		for i, u := range page {
			around[i].checkUnit(l, k.id, ctl, u)
		}
		return nil
	}, func() error {
		for _, u := range page {
			k.sums.addUnit(u)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return (&dataCheck{k}).checkData(ctx)
}

// surroundings holds the records that must agree with a unit.
type surroundings struct {
	waits   [2]bool // in its queue, by class
	delayed bool
	parked  bool
	woken   bool // the call that woke it is there
	failed  bool
	order   []byte // the unit that has its place in the order
	session bool
	held    []byte
	above   []byte // the reduce that waits for it
	waiting []byte // what it waits for itself
}

const perUnit = 11 // keys of one unit's surroundings

func (k *jobCheck) readSurroundings(ctx context.Context, l *walk.Look, ctl *storagev1.Ctl, units []*storagev1.Unit) ([]surroundings, error) {
	ks := make([][]byte, 0, perUnit*len(units))
	for _, u := range units {
		name, shard := mapreduce.UnitID(u.UnitId), u.Queue.GetShard()
		seq := keys.Seq(u.Level, u.Index)
		// perUnit keys, in the order in which they are taken below.
		ks = append(ks,
			k.Keys.Queues(k.id).Ready(shard, keys.ClassRequeued, seq), k.Keys.Queues(k.id).Ready(shard, keys.ClassNew, seq),
			k.Keys.Queues(k.id).Delayed(name), k.Keys.Queues(k.id).Failed(u.Level, name), k.Keys.Job(k.id).Order(u.Level, u.Index),
			k.Keys.Nodes().Session(mapreduce.SessionID(u.Session)), k.Keys.Nodes().Held(mapreduce.SessionID(u.Session), u.Claim),
			k.Keys.Job(k.id).Unit(queue.ReduceAt(ctl, records.WaitRef{Level: u.Level + 1, Index: u.Parent - 1})), k.Keys.Queues(k.id).Wait(u.Level, u.Index),
			k.Keys.Queues(k.id).Parked(name), k.Keys.Queues(k.id).Woken(name))
	}

	values, err := l.GetAll(ctx, ks)
	if err != nil {
		return nil, err
	}

	all := make([]surroundings, len(units))
	for i, u := range units {
		v := values[perUnit*i:]
		all[i] = surroundings{
			waits:   [2]bool{string(v[0]) == u.UnitId, string(v[1]) == u.UnitId},
			delayed: v[2] != nil, failed: v[3] != nil, order: v[4], session: v[5] != nil, held: v[6], above: v[7], waiting: v[8],
			parked: v[9] != nil, woken: v[10] != nil,
		}
	}
	return all, nil
}

func (s *surroundings) checkUnit(l *walk.Look, id mapreduce.JobID, ctl *storagev1.Ctl, u *storagev1.Unit) {
	key := l.Keys.Job(id).Unit(mapreduce.UnitID(u.UnitId))
	state := mapreduce.UnitState(u.Status)

	s.checkQueued(l, key, ctl, u)

	if (state == mapreduce.UnitFailed) != s.failed {
		l.Find(key, "unit %s is %s, and is listed as failed: %t", u.UnitId, state, s.failed)
	}

	// The call is kept until the unit is complete or cancelled.
	if keeps := state != mapreduce.UnitComplete && state != mapreduce.UnitCancelled; keeps && u.Woken != "" && !s.woken {
		l.Find(key, "unit %s was woken by a call, and the answer to %q is not there; pause the job, and submit it again", u.UnitId, u.Woken)
	}

	if u.Level <= 0 && string(s.order) != u.UnitId {
		l.Find(key, "the place of unit %s in the order, level %d, index %d, holds %q", u.UnitId, u.Level, u.Index, s.order)
	}

	if ctl.TreeTop > 0 {
		s.inTree(l, key, ctl, u)
	}

	switch state {
	case mapreduce.Pending, mapreduce.UnitFailed, mapreduce.UnitCancelled:
	case mapreduce.Blocked:
		if u.Level < 1 || u.Session != "" || u.Result != nil || u.Level > ctl.TreeTop && ctl.Level >= 0 {
			l.Find(key, "unit %s of level %d waits for its inputs, and is no reduce of a tree, or has session %q or a result", u.UnitId, u.Level, u.Session)
		}
	case mapreduce.Processing:
		s.checkClaimed(l, key, id, ctl, u)
	case mapreduce.UnitComplete:
		if u.Session != "" || u.Result == nil || u.Result.Attempt != u.Attempt {
			l.Find(key, "unit %s is complete with attempt %d, and has the result of attempt %d", u.UnitId, u.Attempt, u.Result.GetAttempt())
		}
	default:
		l.Find(key, "unit %s is in no state that a unit has: %d", u.UnitId, u.Status)
	}

	checkNumbers(l, key, ctl, u)
}

// inTree checks that the unit has its place in the tree, and if it is a reduce
// that it waits as long as it has to.
func (s *surroundings) inTree(l *walk.Look, key []byte, ctl *storagev1.Ctl, u *storagev1.Unit) {
	if u.Level >= 0 && (u.Parent > 0) != (u.Level < ctl.TreeTop) {
		l.Find(key, "unit %s of level %d of %d is waited for by reduce %d", u.UnitId, u.Level, ctl.TreeTop, u.Parent-1)
	}

	above := new(storagev1.Unit)
	if u.Parent > 0 && (s.above == nil || !l.Decode(key, s.above, above) || above.Level != u.Level+1 ||
		u.Index < above.Inputs.GetFirst() || u.Index >= above.Inputs.GetEnd()) {
		l.Find(key, "unit %s is not an input of reduce %d of level %d, which is to wait for it", u.UnitId, u.Parent-1, u.Level+1)
	}

	if u.Level < 1 || u.Level > ctl.TreeTop {
		return
	}

	state, w := mapreduce.UnitState(u.Status), keys.Waiting(records.DecodeCount(s.waiting))
	// A unit that was cancelled while its inputs had not ended was blocked.
	blocked := state == mapreduce.Blocked || state == mapreduce.UnitCancelled && w < keys.LetGo
	if s.waiting == nil || blocked != (w < keys.LetGo) || !blocked && (w.Left() != 0 || w.Survivors() == 0 && state != mapreduce.UnitFailed) {
		l.Find(key, "unit %s is %s, and has %d inputs that have not ended and %d with an output; cancel and submit the job again",
			u.UnitId, state, w.Left(), w.Survivors())
	}
}

// checkQueued checks that a unit waits in one queue if it is pending, else in none.
func (s *surroundings) checkQueued(l *walk.Look, key []byte, ctl *storagev1.Ctl, u *storagev1.Unit) {
	if ctl.Sweeping {
		return // the queues of a cancelled job are cleared last
	}

	state, q := mapreduce.UnitState(u.Status), u.Queue
	want := [4]bool{}
	if state == mapreduce.Pending {
		if q == nil || q.Class > keys.ClassParked || q.Seq != keys.Seq(u.Level, u.Index) {
			l.Find(key, "unit %s is pending, and does not say where it waits", u.UnitId)
			return
		}
		want[q.Class] = true
	}

	if is := [4]bool{s.waits[0], s.waits[1], s.delayed, s.parked}; is != want {
		l.Find(key, "unit %s is %s: it has to wait as (requeued, new, delayed, parked) %v, and waits as %v; "+
			"pause the job, and submit it again", u.UnitId, state, want, is)
	}
}

// checkClaimed checks that a unit being processed is held by a session that lives.
func (s *surroundings) checkClaimed(l *walk.Look, key []byte, id mapreduce.JobID, ctl *storagev1.Ctl, u *storagev1.Unit) {
	if mapreduce.JobState(ctl.State) == mapreduce.JobCancelled {
		return // its workers may know, and have let go of it
	}

	if u.Session == "" || !s.session {
		l.Find(key, "unit %s is processed by session %q, which is not there; cancel and submit the job again", u.UnitId, u.Session)
		return
	}

	var held storagev1.Held
	if s.held != nil && !l.Decode(l.Keys.Nodes().Held(mapreduce.SessionID(u.Session), u.Claim), s.held, &held) {
		return
	}

	for _, h := range held.Units {
		if h.Job == string(id) && h.Unit == u.UnitId && h.Attempt == u.Attempt {
			return
		}
	}

	l.Find(key, "unit %s, attempt %d, is not in claim %q of session %q: when that is lost, it will not come back; "+
		"cancel and submit the job again", u.UnitId, u.Attempt, u.Claim, u.Session)
}

// checkNumbers checks a unit's counts and its place.
func checkNumbers(l *walk.Look, key []byte, ctl *storagev1.Ctl, u *storagev1.Unit) {
	state := mapreduce.UnitState(u.Status)
	if u.Attempt < 0 || u.Failures < 0 || u.Failures > u.Attempt || u.Kills < 0 || u.Kills > u.Attempt ||
		u.Returns < 0 || u.Parks < 0 || u.Returns+u.Parks > u.Attempt ||
		(u.Attempt == 0 && (state == mapreduce.Processing || state == mapreduce.UnitComplete || state == mapreduce.UnitFailed && ctl.TreeTop == 0)) {
		l.Find(key, "unit %s is %s with %d attempts, %d failures, %d lost workers; %d attempts were handed back, and %d parked it",
			u.UnitId, state, u.Attempt, u.Failures, u.Kills, u.Returns, u.Parks)
	}

	if u.Reserved < 0 || u.Charged < 0 || u.TokensIn < 0 || u.TokensOut < 0 || u.CostMicros < 0 {
		l.Find(key, "unit %s has reserved %d, is charged %d, has spent %d and %d tokens, and %d cost: none can be negative",
			u.UnitId, u.Reserved, u.Charged, u.TokensIn, u.TokensOut, u.CostMicros)
	}

	// A cancelled unit keeps its reservation until the report of its attempt settles it.
	holds := state == mapreduce.Processing || (state == mapreduce.UnitCancelled && u.Session != "")
	if u.Reserved > 0 && !holds {
		l.Find(key, "unit %s is %s, and %d of the budget are reserved for it", u.UnitId, state, u.Reserved)
	}

	if u.Level > records.OpenLevel(ctl) && u.Level > 0 && (u.Attempt > 0 || state == mapreduce.Processing) {
		l.Find(key, "unit %s of level %d was begun, while the job is at level %d", u.UnitId, u.Level, ctl.Level)
	}

	if p := u.Put; p != nil && (u.Session == "" || p.Stored < 0 || p.Stored > p.Length) {
		l.Find(key, "unit %s of session %q has stored %d of %d bytes of an output: only a session that holds it stores some, and no more than all",
			u.UnitId, u.Session, p.Stored, p.Length)
	}

	checkPlace(l, key, ctl, u)
}

// checkPlace checks that a unit is of a kind that its level has, and what it works
// on.
func checkPlace(l *walk.Look, key []byte, ctl *storagev1.Ctl, u *storagev1.Unit) {
	kind, ok := mapreduce.UnitKind(u.Kind), false
	switch {
	case u.Level < 0:
		ok = kind == mapreduce.KindParse
	case u.Level == 0:
		ok = kind == mapreduce.KindMap || kind == mapreduce.KindDirect
	case records.LevelAt(ctl, u.Level).GetResult():
		ok = kind == mapreduce.KindResult
	default:
		ok = kind == mapreduce.KindMap || kind == mapreduce.KindReduce || kind == mapreduce.KindFinal
	}

	s := u.Source
	if !ok || (u.Level <= 0) != (s != nil) || (u.Level > 0) != (u.Inputs != nil) {
		l.Find(key, "unit %s of level %d, a %s unit, has a source: %t, has inputs: %t", u.UnitId, u.Level, kind, s != nil, u.Inputs != nil)
	}

	// The core lies within the bytes of the unit, and these within the text.
	if s != nil && !(0 <= s.Start && s.Start <= s.CoreStart && s.CoreStart <= s.CoreEnd && s.CoreEnd <= s.End &&
		s.End <= s.Length && s.CharStart <= s.CharEnd && 0 <= s.ChunkIndex && s.ChunkIndex < max(1, s.Chunks)) {
		l.Find(key, "unit %s has bytes %d to %d of a text of %d, core %d to %d, chunk %d of %d",
			u.UnitId, s.Start, s.End, s.Length, s.CoreStart, s.CoreEnd, s.ChunkIndex, s.Chunks)
	}
}
