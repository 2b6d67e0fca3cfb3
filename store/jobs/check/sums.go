package check

import (
	"bytes"
	"context"
	"maps"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/view"
	"github.com/coditect/mapreduce/store/keys"
)

// A stripe is one node's part of a counter.
type stripe struct {
	records.CounterAt
	node mapreduce.NodeID
}

// readStripes reads all counters of the job.
func (k *jobCheck) readStripes(ctx context.Context, l *walk.Look) (map[stripe]int64, error) {
	pairs, _, err := l.GetRange(ctx, k.Keys.Job(k.id).Counters(), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	all := make(map[stripe]int64, len(pairs))
	for _, kv := range pairs {
		at, node, err := k.Jobs.CounterKey(kv.Key)
		if err != nil || len(kv.Value) != 8 || at.Name < keys.Completed || at.Name > keys.LastCounter {
			l.Find(kv.Key, "this is no counter: %x", kv.Value)
			continue
		}
		all[stripe{at, node}] = records.DecodeCount(kv.Value)
	}

	return all, nil
}

// sums holds the sums over the records of a job.
type sums struct {
	units   map[int64]map[mapreduce.UnitState]int64 // by level and state
	counted map[records.CounterAt]int64             // what the counters have to be
	holds   map[stripe]int64                        // reserved and charged, by node
	chars   int64                                   // of all map units
	chunks  [2]int64                                // of cut documents: complete, failed
	tallied [2]int64
	granted int64
	lines   int64             // listed as waiting for a batch, or in one
	waiting map[int64]waitSum // by level

	results, resultBytes, texts, textBytes int64
	checkpoints, seals                     int64
	resumed                                bool        // what came before may have been dropped
	complete                               *multiset   // units that are complete
	recorded                               *multiset   // completions in the ledger
	decided                                decisionSum // events of decisions in the ledger
}

// A waitSum is what all reduces of a level wait for.
type waitSum struct{ reduces, left, survivors int64 }

func newSums() *sums {
	return &sums{
		waiting: make(map[int64]waitSum),
		units:   make(map[int64]map[mapreduce.UnitState]int64), counted: make(map[records.CounterAt]int64),
		holds: make(map[stripe]int64), complete: new(multiset), recorded: new(multiset),
	}
}

func (s *sums) sumStates() (n int64) {
	for level := range s.units {
		n += s.countLevel(level)
	}
	return n
}

func (s *sums) countLevel(level int64) (n int64) {
	for _, m := range s.units[level] {
		n += m
	}
	return n
}

func (s *sums) countEnded(state mapreduce.UnitState) (n int64) {
	for _, states := range s.units {
		n += states[state]
	}
	return n
}

func (s *sums) add(c keys.Counter, level, n int64) {
	s.counted[records.CounterAt{Name: c, Level: level}] += n
}

// addUnit enters a unit in the sums.
func (s *sums) addUnit(u *storagev1.Unit) {
	state := mapreduce.UnitState(u.Status)
	if s.units[u.Level] == nil {
		s.units[u.Level] = make(map[mapreduce.UnitState]int64)
	}
	s.units[u.Level][state]++

	if u.Submitted && !state.Ended() {
		s.add(keys.UnitsWaiting, 0, 1)
	}

	switch state {
	case mapreduce.Pending:
		if records.IsParked(u) {
			s.add(keys.UnitsParked, u.Level, 1)
		}
	case mapreduce.Processing:
		s.add(keys.Running, u.Level, 1)
	case mapreduce.UnitComplete:
		s.add(keys.Completed, u.Level, 1)
		s.add(keys.Size, u.Level, u.Result.GetSize())
		s.complete.put(u.UnitId, u.Attempt, 1)
	case mapreduce.UnitFailed:
		s.add(keys.Failed, u.Level, 1)
	}

	s.addSpent(u.TokensIn, u.TokensOut, u.CostMicros, u.Calls, u.Savings)
	s.add(keys.Claimed, 0, u.Attempt)
	// What is reserved and charged is counted by the node whose grant holds it.
	s.holds[stripe{records.CounterAt{Name: keys.Reserved, Level: 0}, mapreduce.NodeID(u.Node)}] += u.Reserved
	s.holds[stripe{records.CounterAt{Name: keys.Charged, Level: 0}, mapreduce.NodeID(u.Node)}] += u.Charged
	if u.Line != nil {
		s.holds[stripe{records.CounterAt{Name: keys.Reserved, Level: 0}, mapreduce.NodeID(u.Line.Node)}] += u.Line.Reserved
	}
	if u.Line != nil && !u.Line.Answered {
		s.add(keys.LinesOpen, u.Level, 1)
	}

	s.addCoverage(u, state)
}

// addSpent enters what a unit has spent, or units had that are superseded.
func (s *sums) addSpent(in, out, cost, calls int64, savings *storagev1.Savings) {
	s.add(keys.TokensIn, 0, in)
	s.add(keys.TokensOut, 0, out)
	s.add(keys.Cost, 0, cost)
	s.add(keys.Calls, 0, calls)
	for c, n := range records.SavingsByCounter(savings) {
		s.add(c, 0, n)
	}
}

// addCoverage enters a unit in the ledger of documents and characters.
func (s *sums) addCoverage(u *storagev1.Unit, state mapreduce.UnitState) {
	complete, failed := state == mapreduce.UnitComplete, state == mapreduce.UnitFailed
	if u.Level < 0 && failed {
		s.add(keys.DocumentsFailed, 0, 1)
		s.add(keys.BytesFailed, 0, u.Source.GetLength())
	}
	if u.Level < 0 && complete && queue.IsTextless(u) {
		s.add(keys.DocumentsSkipped, 0, 1)
		s.add(keys.BytesSkipped, 0, u.Source.GetLength())
	}

	if u.Level != 0 {
		return
	}

	chars := u.Source.GetCharEnd() - u.Source.GetCharStart()
	s.chars += chars
	cut := u.Source.GetChunks() > 1
	switch {
	case complete && cut:
		// Documents that are cut are counted by their tallies.
		s.chunks[0]++
	case failed && cut:
		s.chunks[1]++
	case complete:
		s.add(keys.DocumentsMapped, 0, queue.DocumentsOf(u))
	case failed:
		s.add(keys.DocumentsFailed, 0, queue.DocumentsOf(u))
	}

	if complete {
		s.add(keys.CharactersMapped, 0, chars)
	} else if failed {
		s.add(keys.CharactersFailed, 0, chars)
	}
}

// addTally enters a cut document.
func (s *sums) addTally(t *storagev1.Tally) {
	s.tallied[0] += t.Complete
	s.tallied[1] += t.Failed
	documents := max(1, t.Documents)
	switch {
	case t.Complete+t.Failed < t.Chunks:
	case t.Failed > 0:
		s.add(keys.DocumentsFailed, 0, documents)
	default:
		s.add(keys.DocumentsMapped, 0, documents)
	}
}

// compareSums holds the sums against the counters and the switch, if nothing moved
// while they were made. Whatever moves a unit moves a counter that does not move
// back, or the switch, or the cursor of planning.
func (k *jobCheck) compareSums(ctx context.Context) error {
	after, err := k.readStanding(ctx, false)
	if err != nil || after == nil {
		return err
	}

	b := k.before
	k.still = bytes.Equal(b.raw, after.raw) && bytes.Equal(b.plan, after.plan) && maps.Equal(b.stripes, after.stripes) &&
		proto.Equal(b.rec, after.rec) // to which a resume carries what units had spent
	if !k.still {
		return nil
	}

	// What a resume carried off stays spent.
	for _, s := range b.rec.Superseded {
		k.sums.addSpent(s.TokensIn, s.TokensOut, s.CostMicros, s.Calls, s.Savings)
	}
	if err := k.findUnrecorded(ctx); err != nil {
		return err
	}

	return k.Look(ctx, k.id, func(l *walk.Look) error {
		c := &comparison{jobCheck: k, look: l}
		c.compareCounters()
		c.compareLevels()
		c.compareCoverage()
		c.compareLines()
		return nil
	})
}

// A comparison holds the sums of a job, of which nothing moved, against what is stored.
type comparison struct {
	*jobCheck
	look *walk.Look
}

func (c *comparison) compareCounters() {
	is := make(map[records.CounterAt]int64)
	for at, n := range c.before.stripes {
		is[at.CounterAt] += n
	}
	want := c.sums.counted
	all := maps.Clone(want)
	maps.Copy(all, is)

	for at := range all {
		got := is[at]
		switch at.Name {
		case keys.Reserved, keys.Charged, keys.Inserted, keys.CharactersParsed:
			continue // below
		case keys.Claimed:
			if c.sums.resumed && got >= want[at] {
				continue // attempts of dropped units were begun
			}
		case keys.TokensIn, keys.TokensOut, keys.Cost:
			if c.mayLackSpent() && got >= want[at] {
				continue // what dropped units had spent stays spent
			}
		case keys.Calls:
			if got <= want[at] || c.mayLackSpent() {
				continue // earlier versions counted calls of units alone
			}
		case keys.Answered, keys.AnswersSaved, keys.CacheWritten, keys.CacheRead, keys.PromptsSaved:
			if c.mayLackSpent() {
				continue // and what they saved, saved
			}
		}

		if got != want[at] {
			c.look.Find(c.Keys.Job(c.id).CounterStripes(at.Name, at.Level).Begin,
				"counter %s of level %d is %d, the units come to %d", counterName(at.Name), at.Level, got, want[at])
		}
	}

	for at, n := range c.before.stripes {
		lacks := at.Name == keys.Reserved && n != c.sums.holds[at] || at.Name == keys.Charged && n < c.sums.holds[at]
		if lacks {
			c.look.Find(c.Keys.Job(c.id).Counter(at.Name, at.Level, at.node), "counter %s of node %s is %d, its units come to %d",
				counterName(at.Name), at.node, n, c.sums.holds[at])
		}
	}

	for at, n := range c.sums.holds {
		if _, there := c.before.stripes[at]; !there && n != 0 {
			c.look.Find(c.Keys.Job(c.id).Counter(at.Name, at.Level, at.node), "counter %s of node %s is missing, its units come to %d",
				counterName(at.Name), at.node, n)
		}
	}

	if budget := c.before.ctl.Budget; budget > 0 && c.sums.granted > budget && !c.sums.resumed {
		c.look.Find(c.Keys.Nodes().Grants(mapreduce.JobScope(c.id)).Begin, "%d tokens are granted, of a budget of %d", c.sums.granted, budget)
	}
}

// mayLackSpent reports whether what dropped units had spent may be nowhere but in the
// counters: the job was submitted before that was kept.
func (c *comparison) mayLackSpent() bool { return c.sums.resumed && !c.before.rec.Carried }

func counterName(c keys.Counter) string {
	names := [...]string{
		"", "completed", "failed", "running", "size", "tokens in", "tokens out", "reserved", "charged", "cost",
		"documents mapped", "documents failed", "characters mapped", "characters failed", "claimed",
		"characters parsed", "inserted", "documents skipped",
		"answered", "answers saved", "cache written", "cache read", "prompts saved", "parked", "waiting", "bytes failed", "bytes skipped", "lines open", "calls",
	}
	return names[c]
}

// compareLevels compares the stored units with the planned units.
func (c *comparison) compareLevels() {
	ctl := c.before.ctl
	key := c.Keys.Job(c.id).Ctl()

	planned, parsed := int64(0), int64(0)
	for at, n := range c.before.stripes {
		switch at.Name {
		case keys.Inserted:
			planned += n
		case keys.CharactersParsed:
			parsed += n
		}
	}

	want := map[int64]int64{-1: ctl.ParseUnits, 0: ctl.StagedUnits + planned}
	for level := int64(1); level < records.CountLevels(ctl); level++ {
		want[level] = ctl.Levels[level].Units
	}

	if c.before.plan != nil {
		var p storagev1.Plan
		if records.Decode(key, c.before.plan, &p) == nil {
			want[p.Level] = p.Planned
			for i, done := range p.Levels {
				want[int64(i)+1] = done.Units
			}
		}
	}

	// Levels that have units and were never planned are compared too.
	for level := range c.sums.units {
		want[level] += 0
	}

	for level, n := range want {
		if got := c.sums.countLevel(level); got != n {
			c.look.Find(key, "level %d has %d units, and %d were planned", level, got, n)
		}
	}

	if ctl.TreeTop > 0 {
		c.compareWaits()
	}

	if ctl.Level >= 0 && records.UnitsOf(ctl, 0) != want[0] {
		c.look.Find(key, "the control record says that the job has %d map units, but %d were staged or parsed", records.UnitsOf(ctl, 0), want[0])
	}

	if chars := c.before.rec.Characters + parsed; c.sums.chars != chars {
		c.look.Find(c.Keys.Job(c.id).Record(), "the map units have %d characters, the record and what was parsed %d", c.sums.chars, chars)
	}

	c.checkEnds(key)
}

// compareWaits compares what the reduces of each level wait for with how the units of
// the level below stand.
func (c *comparison) compareWaits() {
	for level := int64(1); level <= c.before.ctl.TreeTop; level++ {
		states := c.sums.units[level-1]
		left := c.sums.countLevel(level-1) - states[mapreduce.UnitComplete] - states[mapreduce.UnitFailed]
		w := c.sums.waiting[level]
		if w.left != left || w.survivors != states[mapreduce.UnitComplete] || w.reduces != c.sums.countLevel(level) {
			c.look.Find(c.Keys.Queues(c.id).WaitLevel(level).Begin, "%d reduces of level %d wait for %d units and have %d outputs; there are %d, %d units have not ended, and %d have an output",
				w.reduces, level, w.left, w.survivors, c.sums.countLevel(level), left, states[mapreduce.UnitComplete])
		}
	}
}

// checkEnds checks that every unit which must have ended has ended.
func (c *comparison) checkEnds(key []byte) {
	ctl, s := c.before.ctl, c.sums
	open := func(level int64) int64 {
		states := s.units[level]
		return s.countLevel(level) - states[mapreduce.UnitComplete] - states[mapreduce.UnitFailed] - states[mapreduce.UnitCancelled]
	}

	// In a job that has ended all units must have; in any other those below its level.
	all := c.before.isFinished() || (c.before.isCancelled() && !ctl.Sweeping)
	for level := range s.units {
		if n := open(level); n > 0 && (level < ctl.Level || all) {
			c.look.Find(key, "%d units of level %d have not ended, while the job is %s at level %d",
				n, level, mapreduce.JobState(ctl.State), ctl.Level)
		}
	}

	last := records.CountLevels(ctl) - 1
	if c.before.isFinished() && (last != ctl.Level || !records.AtResult(ctl) || records.UnitsOf(ctl, last) != 1 || s.units[last][mapreduce.UnitComplete] != 1) {
		c.look.Find(key, "the job is complete, and the unit that assembles its result is not; submit it again")
	}
}

// compareCoverage checks the ledger of documents and characters.
func (c *comparison) compareCoverage() {
	if c.sums.chunks != c.sums.tallied {
		c.look.Find(c.Keys.Job(c.id).Tallies().Begin, "chunks of cut documents complete and failed are %v, the tallies come to %v",
			c.sums.chunks, c.sums.tallied)
	}

	// The sums of coverage agree only once the job has ended.
	if !c.before.isFinished() {
		return
	}

	counters := make(records.Counters)
	for at, n := range c.before.stripes {
		counters[at.CounterAt] += n
	}
	ledger := view.JobCoverage(c.before.rec, counters)

	if d := ledger.Documents; d.Mapped+d.Failed+d.Skipped != d.Total {
		c.look.Find(c.Keys.Job(c.id).Record(), "of %d documents %d are mapped, %d failed and %d skipped: the sum differs",
			d.Total, d.Mapped, d.Failed, d.Skipped)
	}
	if d := ledger.Characters; d.Mapped+d.Failed != d.Total {
		c.look.Find(c.Keys.Job(c.id).Record(), "of %d characters %d are mapped and %d failed: the sum differs", d.Total, d.Mapped, d.Failed)
	}
}
