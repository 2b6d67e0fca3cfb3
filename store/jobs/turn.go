package jobs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// A Turn is what one transaction does for one job: it takes reports of ended
// attempts, and claims units for the slots they freed.
type Turn struct {
	Job     mapreduce.JobID
	Reports []TurnReport
	Claim   *Claim   // nil claims nothing
	Release []HeldID // claims whose units have all ended before
}

// A TurnReport is a report, with what was drawn for it outside the transaction.
type TurnReport struct {
	*mapreduce.Report
	Jitter  float64             // in [0,1): places the pause before the next attempt
	Session mapreduce.SessionID // that reports; empty is not compared
	// Broke says of a unit that was handed back that the stream of its worker broke
	// when it was handed out. That counts as a worker that the unit brought down.
	Broke bool
}

// The pause before another attempt is drawn between nothing and a bound that
// doubles with each failure: exponential backoff with full jitter.
const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// retryPause returns how long a unit waits after its n-th failure.
func (r TurnReport) retryPause(n int64) time.Duration {
	bound := maxBackoff
	if n < 8 {
		bound = min(bound, minBackoff<<(n-1))
	}
	return r.RetryAfter + time.Duration(r.Jitter*float64(bound))
}

// delayedRef returns how the unit sleeps after its n-th failure.
func (r TurnReport) delayedRef(n int64) *SleeperRef {
	return &SleeperRef{Sleeper{Unit: r.Unit}, r.retryPause(n)}
}

// parkedRef returns how the unit sleeps that r parks, nil if only a call wakes it.
func (r TurnReport) parkedRef() *SleeperRef {
	if r.Parking.WakeAfter <= 0 {
		return nil
	}
	return &SleeperRef{Sleeper{r.Unit, int64(r.Attempt)}, r.Parking.WakeAfter}
}

// A HeldID names one claim of a session.
type HeldID struct {
	Session mapreduce.SessionID
	Claim   string
}

// A Claim asks for units.
type Claim struct {
	ID         string // drawn once, whatever becomes of the transaction
	Seats      []WorkerSlots
	Candidates []Candidate
	Bounded    bool  // Tokens bounds what may be reserved
	Tokens     int64 // that may be reserved
	// Share is the part of the budget that belongs to a document; its chunks
	// divide it.
	Share int64
	// Slots and Calls are how many slots, of the job and of the fleet's calls,
	// this node must have been granted for all that will run then, and since when
	// others must have taken none. 0 needs none.
	Slots, Calls Share
}

// A Share is slots of which a node was told, and how often others had taken some
// of it at the time.
type Share struct{ Slots, Taken int64 }

// stillHeld reports whether a node that was granted g has the share still. That g has
// as many slots is not enough: while others took some, more claims than this one
// may have been under way.
func (s Share) stillHeld(g *storagev1.Grant) bool {
	return s.Slots == 0 || (g.Slots >= s.Slots && g.Taken == s.Taken)
}

// A WorkerSlots is a session with free slots.
type WorkerSlots struct {
	Session mapreduce.SessionID
	Epoch   int64
	Slots   int
}

// A Candidate is a unit that was seen waiting in a queue.
type Candidate struct {
	Unit  mapreduce.UnitID
	Class uint32
	Shard int64
	Seq   int64
}

// A TurnResult is what a turn came to.
type TurnResult struct {
	State    mapreduce.JobState // of the job; unknown if it is gone
	Level    int64
	Epoch    int64
	Verdicts []Settled // one for each report, in order
	Claimed  []Claimed
	Left     []Candidate // that may still be claimed: no seat or no tokens were left
	Need     int64       // tokens that the first unit needs for which none were left
	Seated   []bool      // which seats' sessions are still as they were
	// Overdrawn says that less was left of this node's grant than the claim was
	// told: other nodes took it for dead. It has to ask for its grant again.
	Overdrawn bool
	// Short says the same of slots: nothing was claimed, and this is what the
	// node has.
	Short        bool
	Slots, Calls Share
	JobError     string    // a failure that no unit of the job can survive
	Told         []WaitRef // reduces of a tree that were told of an input's end
}

// Settled is what became of a report.
type Settled struct {
	Verdict  mapreduce.Verdict
	State    mapreduce.UnitState // of the unit now
	Requeued *Candidate          // where the unit waits, if it may be claimed at once
	Sleeps   *SleeperRef         // how long it waits first, if it does not wait for a call alone
}

// Claimed is a unit that was claimed for a session.
type Claimed struct {
	Session mapreduce.SessionID
	Unit    *storagev1.Unit
}

// Turn carries out t. These things might happen:
//  1. nil: every verdict is durable, and every claim is;
//  2. an error: nothing that t asked for is known to have happened; Turn may be
//     called again with the same t.
func (j *TurnsPart) Turn(ctx context.Context, t *Turn) (*TurnResult, error) {
	var out *TurnResult
	err := j.db.update(ctx, failpoint.Turn, func(tx store.Tx) error {
		run := &turn{changes: newChanges(j.Records, tx, t.Job, nil), grants: j.grants, in: t, out: &TurnResult{}}
		out = run.out
		return run.runTurn(ctx)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// turn is one run of a Turn's transaction.
type turn struct {
	*changes
	grants grantRecords
	in     *Turn
	out    *TurnResult
}

// changes are what one transaction changes of the units of a job. It writes units
// as they change, and their counters and the checkpoint of what ended at the end.
type changes struct {
	*Records
	tx     store.Tx
	job    mapreduce.JobID
	ctl    *storagev1.Ctl
	counts map[count]int64
	ended  storagev1.Checkpoint
	told   []WaitRef // reduces of a tree that were told of an input's end
}

// newChanges returns the changes that tx makes to the units of a job that stands as
// ctl says, which may be nil if the job is gone.
func newChanges(r *Records, tx store.Tx, job mapreduce.JobID, ctl *storagev1.Ctl) *changes {
	return &changes{Records: r, tx: tx, job: job, ctl: ctl, counts: make(map[count]int64)}
}

type count struct {
	name  keys.Counter
	level int64
	node  mapreduce.NodeID
}

// add adds n to a counter at a level, in this node's stripe.
func (t *changes) add(c keys.Counter, level int64, n int64) { t.addFor(t.node, c, level, n) }

// addFor adds n to a counter at a level, in a node's stripe.
func (t *changes) addFor(node mapreduce.NodeID, c keys.Counter, level int64, n int64) {
	if n != 0 {
		t.counts[count{c, level, node}] += n
	}
}

func (t *turn) runTurn(ctx context.Context) error {
	own, reported, err := t.readInputs(ctx)
	if err != nil {
		return err
	}
	if err := t.decodeControl(own[0]); err != nil {
		return err
	}
	if err := t.finishAll(ctx, reported); err != nil {
		return err
	}
	if err := t.claimUnits(ctx, own[1:]); err != nil {
		return err
	}
	for _, h := range t.in.Release {
		t.tx.Clear(t.keys.Held(h.Session, h.Claim))
	}
	t.out.Told = t.told
	t.recordTurn()
	return nil
}

// readInputs reads what every turn reads serializably: what is its own, and the reported
// units. All together, if these are few: that saves the wait for another answer.
func (t *turn) readInputs(ctx context.Context) (own, reported [][]byte, err error) {
	ks := t.inputKeys()
	units := make([][]byte, len(t.in.Reports))
	for i, r := range t.in.Reports {
		units[i] = t.keys.Unit(t.job, r.Unit)
	}
	if len(units) < store.MinNear {
		values, err := t.tx.GetAll(ctx, append(ks, units...))
		if err != nil {
			return nil, nil, err
		}
		return values[:len(ks)], values[len(ks):], nil
	}
	if own, err = t.tx.GetAll(ctx, ks); err != nil {
		return nil, nil, err
	}
	reported, err = readNear(ctx, t.tx, units)
	return own, reported, err
}

// inputKeys lists a turn's own keys: the switch, and for a claim of each seat its
// session and whether the claim was made before, and what the node was granted.
// Another that takes it for dead changes that.
func (t *turn) inputKeys() [][]byte {
	ks := [][]byte{t.keys.Ctl(t.job)}
	if c := t.in.Claim; c != nil {
		for _, s := range c.Seats {
			ks = append(ks, t.keys.Session(s.Session), t.keys.Held(s.Session, c.ID))
		}
		ks = append(ks, t.keys.Doubt(t.node), t.keys.Grant(t.job, t.node))
		if c.Calls.Slots > 0 {
			ks = append(ks, t.keys.Grant(fleet, t.node))
		}
	}
	return ks
}

func (t *turn) decodeControl(value []byte) error {
	if value == nil {
		return nil
	}
	t.ctl = new(storagev1.Ctl)
	t.out.State = mapreduce.JobState(0)
	if err := decode(t.keys.Ctl(t.job), value, t.ctl); err != nil {
		return err
	}
	t.out.State = mapreduce.JobState(t.ctl.State)
	t.out.Level, t.out.Epoch = t.ctl.Level, t.ctl.Epoch
	return nil
}

// recordTurn writes the counters and the checkpoint of what was changed.
func (t *changes) recordTurn() {
	for c, n := range t.counts {
		if n != 0 {
			t.tx.Add(t.keys.Counter(t.job, c.name, c.level, c.node), n)
		}
	}
	if len(t.ended.CompletedUnits)+len(t.ended.FailedUnits)+len(t.ended.ReopenedUnits) > 0 {
		t.ended.Kind = uint32(mapreduce.EventFinished)
		if n := len(t.ended.ReopenedUnits); n > 0 {
			t.ended.Kind = uint32(mapreduce.EventRetried)
			t.ended.Message = fmt.Sprintf("%d reduces wait for inputs that are tried again", n)
		}
		t.ended.Level = t.ctl.Level
		t.addCheckpoint(t.tx, t.job, &t.ended)
	}
}

func (t *turn) finishAll(ctx context.Context, values [][]byte) error {
	units := make(map[mapreduce.UnitID]*storagev1.Unit, len(t.in.Reports))
	for i, r := range t.in.Reports {
		u, seen := units[r.Unit]
		if !seen && values[i] != nil {
			u = new(storagev1.Unit)
			if err := decode(t.keys.Unit(t.job, r.Unit), values[i], u); err != nil {
				return err
			}
		}
		units[r.Unit] = u
		s, err := t.finishUnit(ctx, u, r)
		if err != nil {
			return err
		}
		t.out.Verdicts = append(t.out.Verdicts, s)
	}
	return nil
}

// finishUnit applies one report to its unit. A nil unit is one that is not there.
func (t *turn) finishUnit(ctx context.Context, u *storagev1.Unit, r TurnReport) (Settled, error) {
	if t.ctl == nil || u == nil {
		return Settled{Verdict: mapreduce.Gone}, nil
	}
	s := Settled{State: mapreduce.UnitState(u.Status), Verdict: mapreduce.Stale}
	if !t.sameAttempt(u, r) {
		return s, nil
	}
	cancelled := mapreduce.JobState(t.ctl.State) == mapreduce.JobCancelled
	switch s.State {
	case mapreduce.UnitComplete, mapreduce.UnitFailed:
		if u.Session != "" { // set aside: the report comes too late, but what it spent is known now
			t.settleTokens(u, r.Report)
			u.Session, u.Claim, u.Started = "", "", false
			t.setUnit(t.tx, t.job, u)
			return s, nil
		}
		// This report's own earlier success, or another copy of it.
		s.Verdict = mapreduce.Accepted
		t.noteParent(u)
		return s, nil
	case mapreduce.UnitCancelled:
		s.Verdict = mapreduce.Gone
		if u.Session == "" {
			return s, nil // settled before
		}
	case mapreduce.Pending:
		if u.Session == "" {
			return t.repeatSettled(u, r), nil
		}
		t.dequeueUnit(t.tx, t.job, u)
		if u.Started && u.Kills > 0 { // the worker was given up for lost, and blamed on u: it lives
			u.Kills--
		}
	case mapreduce.Processing:
		t.add(keys.Running, u.Level, -1)
	default:
		return s, nil
	}
	t.settleTokens(u, r.Report)
	u.Session, u.Claim, u.Started = "", "", false
	put := u.Put
	u.Put = nil
	var err error
	if cancelled || s.State == mapreduce.UnitCancelled {
		s.Verdict, u.Status = mapreduce.Gone, uint32(mapreduce.UnitCancelled)
	} else {
		s.Verdict = mapreduce.Accepted
		err = t.concludeUnit(ctx, u, put, r, &s)
	}
	s.State = mapreduce.UnitState(u.Status)
	t.setUnit(t.tx, t.job, u)
	return s, err
}

// sameAttempt reports whether r is about u's attempt. Attempts are counted anew when a
// level is dropped and planned again; that a unit is another's now tells a
// report of the time before.
func (t *turn) sameAttempt(u *storagev1.Unit, r TurnReport) bool {
	return u.Attempt == int64(r.Attempt) && (r.Session == "" || u.Session == "" || u.Session == string(r.Session))
}

// repeatSettled returns what became of a report that was taken before: its unit was
// handed back, or failed and will be tried again.
func (t *turn) repeatSettled(u *storagev1.Unit, r TurnReport) Settled {
	s := Settled{Verdict: mapreduce.Accepted, State: mapreduce.Pending}
	if r.Outcome == mapreduce.Errored && r.Class == mapreduce.PermanentJob {
		t.out.JobError = jobError(r)
	}
	switch {
	case isClaimable(u):
		s.Requeued = candidateOf(u)
	case r.Outcome == mapreduce.Parked:
		s.Sleeps = r.parkedRef()
	default:
		s.Sleeps = r.delayedRef(max(1, u.Failures))
	}
	return s
}

func jobError(r TurnReport) string {
	if len(r.Errors) > 0 {
		return clipText(r.Errors[0])
	}
	return "a failure that no unit of the job can survive"
}

// settleTokens replaces what the attempt had reserved, or was charged for, by what it
// spent.
func (t *changes) settleTokens(u *storagev1.Unit, r *mapreduce.Report) {
	owner := mapreduce.NodeID(u.Node)
	if owner == "" {
		owner = t.node
	}
	t.addFor(owner, keys.Reserved, 0, -u.Reserved)
	t.addFor(owner, keys.Charged, 0, -u.Charged)
	t.addFor(owner, keys.TokensIn, 0, r.Tokens.In)
	t.addFor(owner, keys.TokensOut, 0, r.Tokens.Out)
	t.addFor(owner, keys.Cost, 0, r.CostMicros)
	u.Reserved, u.Charged = 0, 0
	u.TokensIn += r.Tokens.In
	u.TokensOut += r.Tokens.Out
	u.CostMicros += r.CostMicros
	u.Calls += int64(r.Calls)
	u.LatencyMicros += r.Latency.Microseconds()
	u.Tools += int64(r.Tools)
	u.ToolMicros += r.ToolTime.Microseconds()
	u.ElapsedMicros = r.Elapsed.Microseconds()
	t.addSavings(u, owner, r.Savings)
}

// concludeUnit decides what becomes of u, for which put says what was stored of its
// output.
func (t *turn) concludeUnit(ctx context.Context, u *storagev1.Unit, put *storagev1.Put, r TurnReport, s *Settled) error {
	if r.Outcome == mapreduce.Done && r.Length > 0 && !Whole(put, r.Report) {
		lost := *r.Report
		lost.Outcome, lost.Class = mapreduce.Errored, mapreduce.Retryable
		lost.Errors = []string{fmt.Sprintf("an output of %d bytes was reported, and is not stored: it has to be put whole before its report", r.Length)}
		r.Report = &lost
	}
	switch {
	case r.Outcome == mapreduce.Done:
		return t.completeUnit(ctx, u, r.Report)
	case r.Broke:
		return t.blameUnit(ctx, u, s)
	case r.Outcome == mapreduce.Returned:
		t.requeueUnit(u, s)
		return nil
	case r.Outcome == mapreduce.Parked:
		t.parkUnit(u, r.Parking)
		s.Sleeps = r.parkedRef()
		return nil
	case r.Class == mapreduce.PermanentJob:
		u.Errors = keepErrors(u.Errors, r.Errors)
		t.out.JobError = jobError(r)
		t.requeueUnit(u, s)
		return nil
	}
	u.Errors = keepErrors(u.Errors, r.Errors)
	u.Failures++
	if r.Class == mapreduce.PermanentUnit || u.Failures >= t.ctl.MaxAttempts {
		return t.failUnit(ctx, u)
	}
	s.Sleeps = r.delayedRef(u.Failures)
	t.delayUnit(u, s.Sleeps.For)
	return nil
}

// blameUnit counts a broken stream against the unit that was handed out, and sets the
// unit aside that does it again: else it would go round for ever, and take the
// other units of its workers with it.
func (t *turn) blameUnit(ctx context.Context, u *storagev1.Unit, s *Settled) error {
	if u.Kills++; u.Kills < maxKills {
		t.requeueUnit(u, s)
		return nil
	}
	u.Errors = keepErrors(u.Errors, []string{fmt.Sprintf(
		"set aside: the streams of %d workers broke when it was handed out, or they died while they ran it", u.Kills)})
	return t.failUnit(ctx, u)
}

func (t *turn) requeueUnit(u *storagev1.Unit, s *Settled) {
	t.enqueueUnit(t.tx, t.job, u, keys.ClassRequeued)
	s.Requeued = candidateOf(u)
}

// candidateOf returns where a unit waits.
func candidateOf(u *storagev1.Unit) *Candidate {
	return &Candidate{
		Unit: mapreduce.UnitID(u.UnitId), Class: u.Queue.Class, Shard: u.Queue.Shard, Seq: u.Queue.Seq,
	}
}

// delayUnit makes u wait before its next attempt. How long is told, not until when:
// each orchestrator times it from its own first sight.
func (t *changes) delayUnit(u *storagev1.Unit, d time.Duration) {
	u.Status = uint32(mapreduce.Pending)
	u.Queue = &storagev1.Queue{Class: keys.ClassDelayed, Seq: keys.Seq(u.Level, u.Index), Shard: u.Queue.GetShard()}
	t.tx.Set(t.keys.Delayed(t.job, mapreduce.UnitID(u.UnitId)), encode(&storagev1.Delay{Micros: d.Microseconds()}))
}

// completeUnit makes a unit complete with the output that r reports.
func (t *changes) completeUnit(ctx context.Context, u *storagev1.Unit, r *mapreduce.Report) error {
	u.Status = uint32(mapreduce.UnitComplete)
	u.Errors = keepErrors(nil, r.Errors)
	u.Result = &storagev1.Result{
		Attempt: u.Attempt, Inline: r.Output, Chunks: chunksOf(r.Length), Length: r.Length,
		Sha256: r.SHA256, Size: r.Size, Confidence: r.Confidence,
	}
	if r.Length == 0 {
		sum := sha256.Sum256(r.Output)
		u.Result.Length, u.Result.Sha256 = int64(len(r.Output)), sum[:]
	}
	if u.Woken != "" {
		t.tx.Clear(t.keys.Woken(t.job, mapreduce.UnitID(u.UnitId)))
	}
	if u.Attempt > 1 { // what earlier attempts had stored, nobody will read
		unit := mapreduce.UnitID(u.UnitId)
		t.tx.ClearRange(store.Range{
			Begin: t.keys.ResultChunk(t.job, unit, 0, 0), End: t.keys.ResultChunk(t.job, unit, u.Attempt, 0),
		})
	}
	t.add(keys.Completed, u.Level, 1)
	t.add(keys.Size, u.Level, r.Size)
	t.ended.CompletedUnits = append(t.ended.CompletedUnits, newOutcome(u, u.Result.Sha256, r.Tokens))
	if err := t.tellParent(ctx, u, -keys.OneLeft+keys.OneSurvivor); err != nil {
		return err
	}
	return t.accountUnit(ctx, u, true)
}

// failUnit makes a unit fail, and tells the reduce above it.
func (t *changes) failUnit(ctx context.Context, u *storagev1.Unit) error {
	u.Status, u.Put = uint32(mapreduce.UnitFailed), nil
	t.add(keys.Failed, u.Level, 1)
	t.tx.Set(t.keys.Failed(t.job, u.Level, mapreduce.UnitID(u.UnitId)), nil)
	t.tx.ClearRange(t.keys.Results(t.job, mapreduce.UnitID(u.UnitId)))
	t.ended.FailedUnits = append(t.ended.FailedUnits, newOutcome(u, nil, mapreduce.Tokens{In: u.TokensIn, Out: u.TokensOut}))
	if err := t.tellParent(ctx, u, -keys.OneLeft); err != nil {
		return err
	}
	return t.accountUnit(ctx, u, false)
}

func newOutcome(u *storagev1.Unit, sha []byte, spent mapreduce.Tokens) *storagev1.Outcome {
	return &storagev1.Outcome{
		Unit: u.UnitId, Attempt: u.Attempt, Sha256: sha, TokensIn: spent.In, TokensOut: spent.Out, Level: u.Level,
	}
}

// accountUnit enters the end of a map or parse unit in the ledger of documents and
// characters.
func (t *changes) accountUnit(ctx context.Context, u *storagev1.Unit, mapped bool) error {
	switch {
	case u.Level > 0:
		return nil
	case u.Level < 0:
		t.accountParse(u, mapped)
		return nil
	}
	documents, characters := keys.DocumentsMapped, keys.CharactersMapped
	if !mapped {
		documents, characters = keys.DocumentsFailed, keys.CharactersFailed
	}
	t.add(characters, 0, u.Source.GetCharEnd()-u.Source.GetCharStart())
	if u.Source.GetChunks() <= 1 {
		t.add(documents, 0, documentsOf(u))
		return nil
	}
	return t.accountChunk(ctx, u, mapped)
}

// documentsOf returns how many documents a unit takes that takes whole ones.
func documentsOf(u *storagev1.Unit) int64 { return max(1, u.Source.GetDocuments()) }

// accountParse enters the end of a parse unit: a document that could not be parsed has
// failed, and one without text is skipped; any other is mapped yet.
func (t *changes) accountParse(u *storagev1.Unit, ok bool) {
	switch {
	case !ok:
		t.add(keys.DocumentsFailed, 0, 1)
	case isTextless(u):
		t.add(keys.DocumentsSkipped, 0, 1)
		t.tx.Set(t.keys.Skipped(t.job, keys.Document(u.Index)), encode(&storagev1.Skipped{DocumentId: u.DocumentId, Reason: "no text"}))
	}
}

// isTextless reports whether a parse unit that is complete found no text.
func isTextless(u *storagev1.Unit) bool { return u.Result.GetLength() == 0 }

// accountChunk counts a chunk. The document itself ends with its last chunk.
func (t *changes) accountChunk(ctx context.Context, u *storagev1.Unit, mapped bool) error {
	key := t.keys.Tally(t.job, mapreduce.DocumentID(u.DocumentId))
	tally := new(storagev1.Tally)
	if _, err := read(ctx, t.tx, key, tally); err != nil {
		return err
	}
	tally.Chunks = u.Source.Chunks
	if mapped {
		tally.Complete++
	} else {
		tally.Failed++
	}
	switch {
	case tally.Complete+tally.Failed < tally.Chunks:
	case tally.Failed > 0:
		t.add(keys.DocumentsFailed, 0, 1)
	default:
		t.add(keys.DocumentsMapped, 0, 1)
	}
	t.tx.Set(key, encode(tally))
	return nil
}

// maxErrors bounds the errors that a unit's record keeps: the first, and the
// latest of the rest.
const maxErrors = 8

// keepErrors adds errors to those that a unit keeps, each of them clipped.
func keepErrors(old, more []string) []string {
	for _, e := range more {
		if len(old) == maxErrors {
			old = append(old[:1], old[2:]...)
		}
		old = append(old, clipText(e))
	}
	return old
}

// maxMessage bounds one message that a record keeps, in bytes. One that a value
// cannot hold would make its transaction fail for ever.
const maxMessage = 1 << 10

// clipText returns s as a record may hold it: short, and valid UTF-8.
func clipText(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// attemptStands reports whether a unit's attempt still stands, for writes made before
// its finish.
func attemptStands(u *storagev1.Unit, attempt int) bool {
	return u != nil && u.Attempt == int64(attempt) && u.Session != "" &&
		!mapreduce.UnitState(u.Status).Ended()
}
