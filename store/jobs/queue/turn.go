package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Turns takes reports of ended attempts and claims units, and lets go reduces whose inputs have ended.
type Turns struct {
	db *records.DB
	Records
	nodes nodes.Records
}

// NewTurns returns the operations on the records of db.
func NewTurns(db *records.DB) *Turns {
	return &Turns{db, Records{db.Records()}, nodes.Records{Records: db.Records()}}
}

// A Turn is what one transaction does for one job: it takes reports of ended
// attempts, and claims units for the slots they freed.
type Turn struct {
	Job     mapreduce.JobID
	Reports []Report
	Claim   *Claim   // nil claims nothing
	Release []HeldID // claims whose units have all ended before

	// Claiming is told of the units that the turn is about to claim, so that what is needed
	// of them can be read while the transaction commits. Each run of the transaction that
	// claims any calls it, so the last call is of those that are claimed. It may be nil.
	Claiming func([]Claimed)
}

// A Report is a report with the random values that were drawn for it outside of the
// transaction.
type Report struct {
	*protocol.Report
	Jitter  float64             // in [0,1): places the pause before the next attempt
	Session mapreduce.SessionID // that reports; empty is not compared
	// Broke says of a unit that was handed back that the stream of its worker broke
	// when it was handed out. That counts as an attempt that failed.
	Broke bool
	// Overdue says that it was made in the worker's name, for the worker did not report in
	// time. What the worker may still report of the attempt comes too late.
	Overdue bool

	unspent int64 // of what the attempt had reserved; set by the turn
}

// The pause before another attempt is drawn between nothing and a bound that
// doubles with each failure: exponential backoff with full jitter.
const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// A unit whose attempts end without a result or a failure goes on, as often as honest
// workers may have to hand it back, or wait for something outside. After freeEnds of
// these it pauses longer each time, so that no worker keeps the store busy with it; and
// after maxReturns or maxParks of them the attempt counts as one that failed.
const (
	freeEnds   = 100
	maxReturns = 1000
	maxParks   = 10_000
)

// retryPause returns how long a unit waits after its n-th failure.
func (r Report) retryPause(n int64) time.Duration {
	bound := maxBackoff
	if n < 8 {
		bound = min(bound, minBackoff<<(n-1))
	}
	return r.RetryAfter + time.Duration(r.Jitter*float64(bound))
}

// delayedRef returns how the unit sleeps after its n-th failure.
func (r Report) delayedRef(n int64) *records.SleeperRef {
	return &records.SleeperRef{Sleeper: records.Sleeper{Unit: r.Unit}, For: r.retryPause(n)}
}

// returnedRef returns how a unit sleeps that was handed back this many times, nil if it may
// be claimed at once.
func (r Report) returnedRef(returns int64) *records.SleeperRef {
	if returns <= freeEnds {
		return nil
	}
	return r.delayedRef(returns - freeEnds)
}

// parking returns how r parks its unit. Parks is how often it was parked, this time
// counted: a unit that parks too often waits longer.
func (r Report) parking(parks int64) *mapreduce.Parking {
	p := *r.Parking
	if p.WakeAfter > 0 && parks > freeEnds {
		p.WakeAfter = max(p.WakeAfter, r.retryPause(parks-freeEnds))
	}
	return &p
}

// parkedRef returns how the unit sleeps that r parks, nil if only a call wakes it.
func (r Report) parkedRef(p *mapreduce.Parking) *records.SleeperRef {
	if p.WakeAfter <= 0 {
		return nil
	}
	return &records.SleeperRef{Sleeper: records.Sleeper{Unit: r.Unit, Attempt: int64(r.Attempt), Handle: p.Handle}, For: p.WakeAfter}
}

// A HeldID names one claim of a session.
type HeldID struct {
	Session mapreduce.SessionID
	Claim   string
}

// A Claim asks for units.
type Claim struct {
	ID         string // drawn once, whatever becomes of the transaction
	Workers    []WorkerSlots
	Candidates []records.Candidate
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

// A Share is the number of slots that a node was granted, and how often other nodes had
// taken slots from it at that time.
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

// A Result is the result of a turn.
type Result struct {
	State    mapreduce.JobState // of the job; unknown if it is gone
	Level    int64
	MapEarly bool // documents are parsed, and those that are text may be mapped
	Epoch    int64
	Verdicts []Settled // one for each report, in order
	Claimed  []Claimed
	Left     []records.Candidate // that may still be claimed: no slot or no tokens were left
	Need     int64               // tokens that the first unit needs for which none were left
	Bound    []bool              // by worker of the claim: its session is still as it was
	// Overdrawn says that less was left of this node's grant than the claim
	// assumes: other nodes took it for dead. It has to ask for its grant again.
	Overdrawn bool
	// Short says the same of slots: nothing was claimed, and this is what the
	// node has.
	Short        bool
	Slots, Calls Share
	// Full says that units of Left were not claimed because as many units of the job's
	// tenant run as may.
	Full bool
	// JobError is a failure that was reported and that no unit of the job can survive.
	// Nothing was claimed then, and the caller has to fail the job.
	JobError string
	Told     []records.WaitRef  // reduces of a tree an input of which has ended
	Charges  []mapreduce.Charge // what attempts took, of those that are settled now
	Tenant   mapreduce.TenantID // whose the job is, if it is not gone
}

// Settled is what became of a report.
type Settled struct {
	Verdict  protocol.Verdict
	State    mapreduce.UnitState // of the unit now
	Requeued *records.Candidate  // where the unit waits, if it may be claimed at once
	Sleeps   *records.SleeperRef // how long it waits first, if it does not wait for a call alone
	Alone    bool                // the unit ran in a process of its own: workers were lost that ran it
	Kept     int64               // of what the attempt had reserved, for a line that is to be answered by a batch
}

// Claimed is a unit that was claimed for a session.
type Claimed struct {
	Session mapreduce.SessionID
	Unit    *records.Unit
}

// FinishAndClaim carries out t. These things might happen:
//  1. nil: every verdict is durable, and every claim is;
//  2. an error: nothing that t asked for is known to have happened; FinishAndClaim may
//     be called again with the same t.
func (st *Turns) FinishAndClaim(ctx context.Context, t *Turn) (*Result, error) {
	var out *Result
	err := st.db.Update(ctx, failpoint.Turn, func(tx store.Tx) error {
		run := &turn{Changes: NewChanges(st.db.Records(), tx, t.Job, nil), nodes: st.nodes, in: t, out: &Result{}}
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
	*Changes
	nodes nodes.Records
	in    *Turn
	out   *Result

	candidates *store.Near // the candidates' units, if they were read with the turn's own keys
}

func (t *turn) runTurn(ctx context.Context) error {
	units := t.reportedKeys()
	own, reported, err := t.readInputs(ctx, units)
	if err != nil {
		return err
	}

	if err := t.decodeControl(own[0]); err != nil {
		return err
	}

	// Reports come before the claim: after one that no unit of the job can survive, nothing
	// is claimed.
	if err := t.finishAll(ctx, units, reported); err != nil {
		return err
	}
	if err := t.claimUnits(ctx, own[1:]); err != nil {
		return err
	}
	if t.in.Claiming != nil && len(t.out.Claimed) > 0 {
		t.in.Claiming(t.out.Claimed)
	}

	for _, h := range t.in.Release {
		t.Tx.Clear(t.Keys.Nodes().Held(h.Session, h.Claim))
	}

	t.out.Told, t.out.Charges, t.out.Tenant = t.Told, t.Charges(), t.Tenant()
	t.Record()
	return nil
}

// readInputs reads what every turn reads serializably: its own keys, and the reported
// units by their keys.
func (t *turn) readInputs(ctx context.Context, units [][]byte) (own, reported [][]byte, err error) {
	ks := t.inputKeys()

	// Few keys are read together, which saves the wait for a second answer.
	if len(units) < store.MinNear {
		values, err := t.readTogether(ctx, slices.Concat(ks, units))
		if err != nil {
			return nil, nil, err
		}
		return values[:len(ks)], values[len(ks):], nil
	}

	if own, err = t.Tx.GetAll(ctx, ks); err != nil {
		return nil, nil, err
	}

	reported, err = records.ReadNear(ctx, t.Tx, units)
	return own, reported, err
}

// readTogether reads keys serializably, and with them the candidates that can be read early.
// Those are read by snapshot: only the ones that the claim takes are to conflict.
func (t *turn) readTogether(ctx context.Context, ks [][]byte) ([][]byte, error) {
	early := t.earlyCandidates()
	if len(early) == 0 {
		return t.Tx.GetAll(ctx, ks)
	}

	near, err := store.GetApart(ctx, t.Tx.Snapshot(), slices.Concat(ks, early))
	if err != nil {
		return nil, err
	}

	near.AddConflicts(t.Tx, func(place int) bool { return place < len(ks) })
	t.candidates = near.After(len(ks))
	return near.Values[:len(ks)], nil
}

// earlyCandidates lists the keys of the candidates that can be read with the turn's own keys.
// These are few, and there is a slot for each of them, so that few are read in vain; and no
// report comes before them that may change them.
func (t *turn) earlyCandidates() [][]byte {
	c := t.in.Claim
	if c == nil || len(t.in.Reports) > 0 || len(c.Candidates) >= store.MinNear {
		return nil
	}

	slots := 0
	for _, w := range c.Workers {
		slots += w.Slots
	}
	if len(c.Candidates) > slots {
		return nil
	}

	return t.candidateKeys()
}

// reportedKeys lists the keys of the reported units.
func (t *turn) reportedKeys() [][]byte {
	ks := make([][]byte, len(t.in.Reports))
	for i, r := range t.in.Reports {
		ks[i] = t.Keys.Job(t.Job).Unit(r.Unit)
	}
	return ks
}

// inputKeys lists a turn's own keys: the switch, and for a claim the session of each
// worker, whether the claim was made before, and what the node was granted. Another node
// that takes this one for dead changes the last.
func (t *turn) inputKeys() [][]byte {
	ks := [][]byte{t.Keys.Job(t.Job).Ctl()}
	if c := t.in.Claim; c != nil {
		for _, s := range c.Workers {
			ks = append(ks, t.Keys.Nodes().Session(s.Session), t.Keys.Nodes().Held(s.Session, c.ID))
		}

		ks = append(ks, t.Keys.Nodes().Doubt(t.Node), t.Keys.Nodes().Grant(mapreduce.JobScope(t.Job), t.Node))
		if c.Calls.Slots > 0 {
			ks = append(ks, t.Keys.Nodes().Grant(mapreduce.FleetScope(), t.Node))
		}
	}

	return ks
}

func (t *turn) decodeControl(value []byte) error {
	if value == nil {
		return nil
	}

	t.Ctl = new(storagev1.Ctl)
	t.out.State = mapreduce.JobState(0)
	if err := records.Decode(t.Keys.Job(t.Job).Ctl(), value, t.Ctl); err != nil {
		return err
	}

	t.out.State = mapreduce.JobState(t.Ctl.State)
	t.out.Level, t.out.Epoch = t.Ctl.Level, t.Ctl.Epoch
	t.out.MapEarly = t.Ctl.MapEarly && t.Ctl.Level < 0
	return nil
}

// finishAll applies the reports to their units, which have these keys and values.
func (t *turn) finishAll(ctx context.Context, ks, values [][]byte) error {
	units := make(map[mapreduce.UnitID]*storagev1.Unit, len(t.in.Reports))
	t.out.Verdicts = make([]Settled, 0, len(t.in.Reports))

	for i, r := range t.in.Reports {
		// A unit may be reported twice in a turn: the later report sees what the earlier
		// one made of it.
		u, seen := units[r.Unit]
		if !seen && values[i] != nil {
			u = new(storagev1.Unit)
			if err := records.Decode(ks[i], values[i], u); err != nil {
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
func (t *turn) finishUnit(ctx context.Context, u *storagev1.Unit, r Report) (Settled, error) {
	if t.Ctl == nil || u == nil {
		return Settled{Verdict: protocol.Gone}, nil
	}

	s := Settled{State: mapreduce.UnitState(u.Status), Verdict: protocol.Stale}
	if !t.sameAttempt(u, r) {
		return s, nil
	}

	cancelled := mapreduce.JobState(t.Ctl.State) == mapreduce.JobCancelled
	switch s.State {
	case mapreduce.UnitComplete, mapreduce.UnitFailed:
		if u.Session != "" { // set aside by an earlier version: the report comes too late, but what it spent is known now
			t.SettleTokens(u, r.Report)
			u.Session, u.Claim, u.Started = "", "", false
			t.Units.Set(t.Tx, t.Job, u)
			return s, nil
		}

		// This report's own earlier success, or another copy of it.
		s.Verdict = protocol.Accepted
		t.NoteParent(u)
		return s, nil
	case mapreduce.UnitCancelled:
		s.Verdict = protocol.Gone
		if u.Session == "" {
			return s, nil // settled before
		}
	case mapreduce.Pending:
		if u.Session == "" {
			return t.repeatSettled(u, r), nil
		}
		t.Units.Dequeue(t.Tx, t.Job, u)
		if u.Started && u.Kills > 0 { // the worker was given up for lost while it ran u: it lives
			u.Kills--
		}
	case mapreduce.Processing:
		t.Add(keys.Running, u.Level, -1)
	default:
		return s, nil
	}

	// The report ends its attempt: what it spent is settled, and the session lets go of the
	// unit.
	r.unspent = max(0, u.Reserved-r.Charged(records.CurrencyOf(t.Ctl), u.Reserved))
	t.SettleTokens(u, r.Report)
	u.Session, u.Claim, u.Started = "", "", false
	put := u.Put
	u.Put = nil
	t.Units.ClearPartEvidence(t.Tx, t.Job, u)

	var err error
	if cancelled || s.State == mapreduce.UnitCancelled {
		s.Verdict = protocol.Gone
		err = t.WithdrawLine(ctx, u)
		t.CancelUnit(u)
	} else {
		s.Verdict = protocol.Accepted
		err = t.concludeUnit(ctx, u, put, r, &s)
	}

	s.State, s.Alone = mapreduce.UnitState(u.Status), u.Kills >= records.LostBeforeAlone
	if waits := s.State == mapreduce.Pending || s.State == mapreduce.UnitFailed; waits && !r.Overdue { // a resume has a failed one wait
		u.Reporter = string(r.Session)
	}

	t.Units.Set(t.Tx, t.Job, u)
	return s, err
}

// sameAttempt reports whether r is about u's attempt, from the session that holds it, or,
// of a unit that waits, from the one whose report put it back. When a level is dropped and
// planned again, attempts are counted anew: a report from before is recognised by its
// session, which does not hold the unit now.
func (t *turn) sameAttempt(u *storagev1.Unit, r Report) bool {
	if u.Attempt != int64(r.Attempt) {
		return false
	}
	owner := u.Session
	if owner == "" && mapreduce.UnitState(u.Status) != mapreduce.Pending {
		return true // it has ended, and no report changes it
	}
	return r.Session == "" || string(r.Session) == cmp.Or(owner, u.Reporter)
}

// repeatSettled returns what became of a report that was taken before: its unit was
// handed back, or failed and will be tried again.
func (t *turn) repeatSettled(u *storagev1.Unit, r Report) Settled {
	s := Settled{Verdict: protocol.Accepted, State: mapreduce.Pending}

	// The node that was to fail the job may have died before it did.
	if r.Outcome == protocol.Errored && r.Class == protocol.PermanentJob {
		t.out.JobError = jobError(r)
	}

	switch {
	case records.IsClaimable(u):
		s.Requeued = records.CandidateOf(u)
	case r.Outcome == protocol.Parked && u.Parks > 0:
		s.Sleeps = r.parkedRef(r.parking(u.Parks))
		if r.Parking.Line != nil {
			s.Kept = u.Line.GetReserved()
		}
	case r.Outcome == protocol.Returned && u.Returns > 0:
		s.Sleeps = r.returnedRef(u.Returns)
	default:
		s.Sleeps = r.delayedRef(max(1, u.Failures))
	}

	return s
}

func jobError(r Report) string {
	if len(r.Errors) > 0 {
		return records.ClipText(r.Errors[0])
	}
	return "a unit failed for a reason that would make every unit of the job fail"
}

// concludeUnit decides what becomes of u, for which put says what was stored of its
// output.
func (t *turn) concludeUnit(ctx context.Context, u *storagev1.Unit, put *storagev1.Put, r Report, s *Settled) error {
	// Without its output the attempt is no success: it counts as one that failed.
	if r.Outcome == protocol.Done && r.Length > 0 && !records.Whole(put, r.Report) {
		lost := *r.Report
		lost.Outcome, lost.Class = protocol.Errored, protocol.Retryable
		lost.Errors = []string{fmt.Sprintf("an output of %d bytes was reported, and is not stored: it has to be put whole before its report", r.Length)}
		r.Report = &lost
	}

	switch {
	case r.Outcome == protocol.Done:
		return t.CompleteUnit(ctx, u, r.Report)
	case r.Broke:
		return t.failAttempt(ctx, u, r, r.Errors, s) // else it would go round for ever, and break other workers' streams
	case r.Outcome == protocol.Returned:
		return t.returnUnit(ctx, u, r, s)
	case r.Outcome == protocol.Parked:
		return t.parkUnit(ctx, u, r, s)
	case r.Class == protocol.PermanentJob:
		u.Errors = records.KeepErrors(u.Errors, r.Errors)
		t.out.JobError = jobError(r)
		t.requeueUnit(u, s)
		return nil
	}
	return t.failAttempt(ctx, u, r, r.Errors, s)
}

// returnUnit has a unit wait that was handed back.
func (t *turn) returnUnit(ctx context.Context, u *storagev1.Unit, r Report, s *Settled) error {
	u.Returns++
	if u.Returns >= maxReturns {
		return t.failAttempt(ctx, u, r, []string{fmt.Sprintf("workers handed it back %d times", u.Returns)}, s)
	}
	if s.Sleeps = r.returnedRef(u.Returns); s.Sleeps != nil {
		t.DelayUnit(u, s.Sleeps.For)
		return nil
	}
	t.requeueUnit(u, s)
	return nil
}

// parkUnit has a unit wait for something outside.
func (t *turn) parkUnit(ctx context.Context, u *storagev1.Unit, r Report, s *Settled) error {
	u.Parks++
	if u.Parks >= maxParks {
		return t.failAttempt(ctx, u, r, []string{fmt.Sprintf("it was parked %d times without a result", u.Parks)}, s)
	}
	p := r.parking(u.Parks)

	// The batch may have answered while the unit was on its way here.
	if p.Line != nil {
		waits, err := t.openLine(ctx, u, p, r.unspent, s)
		if err != nil {
			return err
		}
		if !waits {
			t.requeueUnit(u, s)
			return nil
		}
	}

	t.ParkUnit(u, p)
	s.Sleeps = r.parkedRef(p)
	return nil
}

// failAttempt has a unit back off whose attempt failed, or fail if that was the last.
func (t *turn) failAttempt(ctx context.Context, u *storagev1.Unit, r Report, why []string, s *Settled) error {
	u.Errors = records.KeepErrors(u.Errors, why)
	u.Failures++
	u.Returns, u.Parks, u.Lasting = 0, 0, r.Class == protocol.PermanentUnit
	if r.Class == protocol.PermanentUnit || u.Failures >= t.Ctl.MaxAttempts {
		return t.FailUnit(ctx, u)
	}
	s.Sleeps = r.delayedRef(u.Failures)
	t.DelayUnit(u, s.Sleeps.For)
	return nil
}

func (t *turn) requeueUnit(u *storagev1.Unit, s *Settled) {
	t.Units.Enqueue(t.Tx, t.Job, u, keys.ClassRequeued)
	s.Requeued = records.CandidateOf(u)
}
