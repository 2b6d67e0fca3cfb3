package batches_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/batches"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A waiter is a job whose units wait for batches.
type waiter struct {
	*jobstest.World
	j    *jobs.Jobs
	id   mapreduce.JobID
	s    jobstest.Binding
	mark int
}

// shop is the tenant of such jobs.
const shop = mapreduce.TenantID("shop")

// kept is what of a unit's reservation stays while it waits for a batch.
const kept = 6

func newWaiter(t *testing.T, units int) *waiter {
	w := &waiter{World: jobstest.NewWorld(t, jobstest.Open(t), 2)}
	w.j = w.Nodes[0]
	spec := jobstest.Spec()
	spec.Tenant = shop
	w.id = w.Submit(w.j, spec, jobstest.Texts(units))
	w.s = w.Session(w.j)
	return w
}

// reserved returns what of the budget is reserved by all units.
func (w *waiter) reserved() int64 {
	return w.Number(keys.New().Job(w.id).Counter(keys.Reserved, 0, w.j.Node()))
}

func key(u mapreduce.UnitID) []byte { return jobstest.KeyOf("line of " + string(u)) }

func (w *waiter) put(u *records.Unit, s jobstest.Binding, key []byte) error {
	request, err := json.Marshal("asked by " + string(u.ID))
	w.Must(err)
	held := protocol.Held{Job: w.id, Unit: u.ID, Attempt: int(u.Attempt)}
	return w.j.Batches.PutLine(w.Ctx, held, s.ID, &protocol.Line{
		Key: key, Provider: "scripted", Model: "m", Request: request, Size: 10, Tokens: 10,
	})
}

// park has an attempt put its line and end.
func (w *waiter) park(u *records.Unit) {
	w.Helper()
	w.Must(w.put(u, w.s, key(u.ID)))
	r := jobstest.Parked(w.id, u, protocol.LineHandle(key(u.ID)), 0)
	r.Parking.Line, r.Parking.Kept = key(u.ID), kept
	if got := w.Report(w.j, r); got.Verdict != protocol.Accepted || got.State != mapreduce.Pending {
		w.Fatalf("parking %s came to %+v", u.ID, got)
	}
}

// plan makes a batch of all lines that wait.
func (w *waiter) plan() protocol.Batch {
	w.Helper()
	w.mark++
	res, err := w.j.Batches.Plan(w.Ctx, w.id, fmt.Sprintf("mark%016d", w.mark), true, nil)
	w.Must(err)
	s, err := w.j.Batches.Look(w.Ctx, w.id)
	w.Must(err)
	if !res.Changed || len(s.Batches) == 0 {
		w.Fatalf("no batch was made: %+v, %+v", res, s)
	}
	return s.Batches[len(s.Batches)-1].Batch
}

func (w *waiter) take(b protocol.Batch, s jobstest.Binding) bool {
	w.Helper()
	_, taken, err := w.j.Batches.Take(w.Ctx, w.id, b.Number, s.ID, s.Epoch)
	w.Must(err)
	return taken
}

func (w *waiter) report(b protocol.Batch, s jobstest.Binding, r protocol.BatchReport) (*batches.Result, error) {
	r.Mark = b.Mark
	res, err := w.j.Batches.Report(w.Ctx, w.id, b.Number, s.ID, batches.Account{}, &r)
	if err == nil && len(res.Charges) > 0 && res.Tenant != shop {
		w.Errorf("%d charges are those of the tenant %q, want %q", len(res.Charges), res.Tenant, shop)
	}
	return res, err
}

// create takes a batch to where its vendor has it.
func (w *waiter) create(b protocol.Batch) {
	w.Helper()
	if !w.take(b, w.s) {
		w.Fatalf("the batch %d cannot be had", b.Number)
	}
	for _, r := range []protocol.BatchReport{{State: protocol.BatchCreating}, {State: protocol.BatchCreated, Vendor: "b_1"}} {
		_, err := w.report(b, w.s, r)
		w.Must(err)
	}
}

func answered(n int64) protocol.LineReply {
	return protocol.LineReply{
		Number: n, Outcome: protocol.LineSucceeded, Response: json.RawMessage(`{"n":1}`), Tokens: mapreduce.Tokens{In: 30, Out: 5}, CostMicros: 7, Unpriced: 2,
	}
}

// What a batch answers is settled once, whoever says it how often, and the unit that waited for it goes on
// with it. Nothing of it is left when the unit is complete.
func TestLineIsAnsweredOnce(t *testing.T) {
	w := newWaiter(t, 2)
	units := w.Claim(w.j, w.id, w.s, 2)
	for _, u := range units {
		w.park(u)
	}
	w.Healthy()

	now := w.Unit(w.id, string(units[0].ID))
	if now.Reserved != 0 || now.Session != "" || !now.Parked {
		t.Errorf("the unit that waits is %+v", now)
	}
	if _, err := w.j.Batches.Reply(w.Ctx, protocol.Held{Job: w.id, Unit: units[0].ID, Attempt: 1}, key(units[0].ID)); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("what became of a line that is not answered: %v", err)
	}

	b := w.plan()
	if b.Lines != 2 || b.State != protocol.BatchPlanned {
		t.Fatalf("the batch is %+v", b)
	}
	var lines []protocol.BatchLine
	visit := func(l protocol.BatchLine) error { lines = append(lines, l); return nil }
	if err := w.j.Batches.Lines(w.Ctx, w.id, b.Number, w.s.ID, visit); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a session that does not see to the batch reads what it asks: %v", err)
	}
	w.take(b, w.s)
	w.Must(w.j.Batches.Lines(w.Ctx, w.id, b.Number, w.s.ID, visit))
	if len(lines) != 2 || string(lines[1].Request) != fmt.Sprintf("%q", "asked by "+string(units[1].ID)) {
		t.Fatalf("its lines are %v", lines)
	}
	w.create(b)
	w.Healthy()

	for i := range 3 { // the answer to the first report may be lost
		res, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}})
		w.Must(err)
		if want := i == 0; (len(res.Woken) == 1) != want {
			t.Errorf("report %d woke %v", i, res.Woken)
		}
	}
	now = w.Unit(w.id, string(units[0].ID))
	if now.Tokens != (mapreduce.Tokens{In: 31, Out: 6}) || now.CostMicros != 7 || now.CallSums.Calls != 1 || now.Parked {
		t.Errorf("the unit whose line was answered is %+v", now)
	}
	w.Healthy()

	// The other line has no result: it is told so, and the batch is gone.
	res, err := w.report(b, w.s, protocol.BatchReport{Over: true, Rest: protocol.LineExpired})
	w.Must(err)
	if len(res.Woken) != 1 {
		t.Errorf("the end of the batch woke %v", res.Woken)
	}
	if res.Ended == nil || res.Ended.Model != "scripted/m" || res.Ended.Took <= 0 {
		t.Errorf("the batch has ended as %+v", res.Ended)
	}

	// What lines cost counts under the tier of batches, and the rest of the attempts under no known one.
	sums, err := w.j.View.Costs(w.Ctx, &mapreduce.CostQuery{By: []mapreduce.CostDimension{mapreduce.ByModel, mapreduce.ByTier}})
	w.Must(err)
	spent := []mapreduce.CostRow{
		{Group: []string{"", ""}, Charge: mapreduce.Charge{Tokens: mapreduce.Tokens{In: 2, Out: 2}, Unpriced: 4}},
		{Group: []string{"scripted/m", "batch"}, Charge: mapreduce.Charge{Calls: 1, Tokens: mapreduce.Tokens{In: 30, Out: 5}, CostMicros: 7, Unpriced: 2}},
	}
	if diff := cmp.Diff(spent, sums.Rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s, err := w.j.Batches.Look(w.Ctx, w.id); err != nil || len(s.Batches)+s.Waiting > 0 {
		t.Errorf("what is left of batches: %+v, %v", s, err)
	}
	if ids, err := w.j.Batches.Batching(w.Ctx); err != nil || len(ids) > 0 {
		t.Errorf("jobs with batches: %v, %v", ids, err)
	}
	if _, err := w.report(b, w.s, protocol.BatchReport{Over: true}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("another report of it: %v", err)
	}

	again := w.Claim(w.j, w.id, w.s, 2)
	for i, want := range []protocol.LineOutcome{protocol.LineSucceeded, protocol.LineExpired} {
		var reply protocol.LineReply
		data, err := w.j.Batches.Reply(w.Ctx, protocol.Held{Job: w.id, Unit: units[i].ID}, key(units[i].ID))
		w.Must(err)
		w.Must(json.Unmarshal(data, &reply))
		if reply.Outcome != want {
			t.Errorf("unit %d is told %+v, want %s", i, reply, want)
		}
	}
	for _, u := range again {
		w.Report(w.j, jobstest.Done(w.id, u))
	}
	w.Healthy()
	for _, u := range units {
		if v := w.Value(keys.New().Batches(w.id).Asked(u.ID)); v != nil {
			t.Errorf("what %s has asked is kept when it is complete", u.ID)
		}
	}
}

// What an answer took that does not say it counts as all that was reserved for its line, at a price that is not
// known.
func TestUnmeasuredAnswerHasNoPrice(t *testing.T) {
	w := newWaiter(t, 1)
	w.park(w.Claim(w.j, w.id, w.s, 1)[0])
	b := w.plan()
	w.create(b)
	_, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{{Outcome: protocol.LineSucceeded, Response: json.RawMessage(`{"n":1}`), Unmeasured: true}}})
	w.Must(err)

	sums, err := w.j.View.Costs(w.Ctx, &mapreduce.CostQuery{Models: []string{"scripted/m"}})
	w.Must(err)
	if diff := cmp.Diff(mapreduce.Charge{Calls: 1, Tokens: mapreduce.Tokens{In: kept}, Unpriced: kept}, sums.Sum); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Healthy()
}

// A unit that waits keeps of its reservation what its line may cost, and gives back the rest; the line
// gives back what it did not cost.
func TestWaitingKeepsReservation(t *testing.T) {
	w := newWaiter(t, 1)
	u := w.Claim(w.j, w.id, w.s, 1)[0]
	reserved := u.Reserved
	if reserved <= kept+2 {
		t.Fatalf("units of these jobs reserve %d", reserved)
	}
	w.park(u)
	if got := w.reserved(); got != kept {
		t.Errorf("%d are reserved while it waits, want %d", got, kept)
	}

	// Somebody wakes it before its time: the line stays paid for, and the attempt has a reservation of its own.
	_, _, err := w.j.Queue.Wake(w.Ctx, w.id, u.ID, protocol.WakeCall{Handle: protocol.LineHandle(key(u.ID))})
	w.Must(err)
	u = w.Claim(w.j, w.id, w.s, 1)[0]
	if got := w.reserved(); got != kept+u.Reserved {
		t.Errorf("%d are reserved while it runs beside its line, want %d", got, kept+u.Reserved)
	}
	w.Healthy()
	if err := w.put(u, w.s, jobstest.KeyOf("another")); errs.KindOf(err) != errs.Precondition {
		t.Errorf("another line beside one that is open: %v", err)
	}
	w.park(u)
	if got := w.reserved(); got != kept {
		t.Errorf("%d are reserved when it waits again, want %d", got, kept)
	}

	b := w.plan()
	w.create(b)
	_, err = w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}})
	w.Must(err)
	if got := w.reserved(); got != 0 {
		t.Errorf("%d are reserved when it was answered", got)
	}
	w.Healthy()
}

// A batch that its vendor gave up before it began is made again, and one of which something is paid for is not.
func TestGivenUpBatchIsMadeAgain(t *testing.T) {
	w := newWaiter(t, 2)
	for _, u := range w.Claim(w.j, w.id, w.s, 2) {
		w.park(u)
	}
	b := w.plan()
	w.create(b)
	again := protocol.BatchReport{State: protocol.BatchPlanned, Trouble: "too much waits"}
	_, err := w.report(b, w.s, again)
	w.Must(err)
	s, err := w.j.Batches.Look(w.Ctx, w.id)
	w.Must(err)
	if got := s.Batches[0]; got.State != protocol.BatchPlanned || got.Vendor != "" || got.Tries != 1 || got.Trouble != again.Trouble {
		t.Errorf("the batch is %+v", got)
	}
	w.Healthy()

	w.create(b)
	_, err = w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}})
	w.Must(err)
	if _, err = w.report(b, w.s, again); errs.KindOf(err) != errs.Invalid {
		t.Errorf("a batch of which a line was answered is to be made again: %v", err)
	}
	w.Healthy()
}

// What is wrong with a batch while its vendor has it stays with it until something else is, and its units say so.
func TestTroubleOfABatchIsKept(t *testing.T) {
	w := newWaiter(t, 2)
	for _, u := range w.Claim(w.j, w.id, w.s, 2) {
		w.park(u)
	}
	b := w.plan()
	w.create(b)
	for _, r := range []protocol.BatchReport{{Trouble: "it is overdue"}, {Done: 1}} {
		_, err := w.report(b, w.s, r)
		w.Must(err)
		s, err := w.j.Batches.Look(w.Ctx, w.id)
		w.Must(err)
		if got := s.Batches[0]; got.State != protocol.BatchCreated || got.Trouble != "it is overdue" || !strings.HasSuffix(got.WaitNote(), " done): it is overdue") {
			t.Errorf("the batch is %+v, and units say %q", got, got.WaitNote())
		}
	}
	w.Healthy()
}

// A unit that was woken before its time and ended without a batch takes its line back.
func TestEndedUnitWaitsForNoBatch(t *testing.T) {
	for name, end := range map[string]func(w *waiter, u *records.Unit){
		"complete": func(w *waiter, u *records.Unit) { w.Report(w.j, jobstest.Done(w.id, u)) },
		"cancelled": func(w *waiter, u *records.Unit) {
			w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
			w.Report(w.j, jobstest.Done(w.id, u))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter(t, 2)
			u := w.Claim(w.j, w.id, w.s, 1)[0]
			w.park(u)
			_, _, err := w.j.Queue.Wake(w.Ctx, w.id, u.ID, protocol.WakeCall{Handle: protocol.LineHandle(key(u.ID))})
			w.Must(err)
			for _, again := range w.Claim(w.j, w.id, w.s, 2) {
				if again.ID == u.ID {
					end(w, again)
				} else {
					w.Report(w.j, jobstest.Done(w.id, again))
				}
			}
			if got := w.reserved(); got != 0 {
				t.Errorf("%d are reserved when it has ended", got)
			}
			if s, err := w.j.Batches.Look(w.Ctx, w.id); err != nil || s.Waiting > 0 {
				t.Errorf("what waits for a batch: %+v, %v", s, err)
			}
			w.Healthy()
		})
	}
}

// One living session sees to a batch. When it is dead another may, and its reports change nothing any more.
func TestOneSessionSeesToABatch(t *testing.T) {
	w := newWaiter(t, 1)
	w.park(w.Claim(w.j, w.id, w.s, 1)[0])
	b := w.plan()
	other := w.Session(w.j)
	if !w.take(b, w.s) || w.take(b, other) || !w.take(b, w.s) {
		t.Error("two living sessions see to a batch, or none")
	}
	if _, err := w.report(b, other, protocol.BatchReport{State: protocol.BatchCreating}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a report of a session that does not see to it: %v", err)
	}
	w.create(b)

	holder := func() mapreduce.SessionID {
		s, err := w.j.Batches.Look(w.Ctx, w.id)
		w.Must(err)
		return s.Batches[0].Session
	}
	if got := holder(); got != w.s.ID {
		t.Errorf("%q sees to the batch, want %q", got, w.s.ID)
	}
	w.Expire(w.j, w.s)
	if got := holder(); got != "" {
		t.Errorf("%q sees to the batch, and is dead", got)
	}
	if !w.take(b, other) {
		t.Fatal("nobody sees to the batch of a dead session")
	}
	if _, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a report of the dead session: %v", err)
	}
	_, err := w.report(b, other, protocol.BatchReport{State: protocol.BatchCreated, Vendor: "b_2"})
	if errs.KindOf(err) != errs.Invalid {
		t.Errorf("the batch got another id: %v", err)
	}
	_, err = w.report(b, other, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}, Over: true})
	w.Must(err)
	w.Healthy()
}

// A cancelled job gives back what lines reserved that are in no batch, and keeps what may still be paid for.
func TestCancelKeepsWhatIsPaidFor(t *testing.T) {
	w := newWaiter(t, 2)
	units := w.Claim(w.j, w.id, w.s, 1)
	w.park(units[0])
	b := w.plan()
	w.create(b)
	second := w.Claim(w.j, w.id, w.s, 1)
	w.park(second[0])

	w.Must(w.j.Lifecycle.Cancel(w.Ctx, w.id))
	_, _, err := w.j.Lifecycle.SweepCancelled(w.Ctx, w.id, nil)
	w.Must(err)
	w.Healthy()
	s, err := w.j.Batches.Look(w.Ctx, w.id)
	w.Must(err)
	if s.Waiting != 0 || len(s.Batches) != 1 {
		t.Errorf("after the cancel there are %+v", s)
	}
	if err := w.j.Lifecycle.Delete(w.Ctx, w.id); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("deleting the job while its batch is open: %v", err)
	}

	_, err = w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(0)}, Over: true})
	w.Must(err)
	if job := w.Job(w.id); job.TotalTokens.In != 32 || job.CostMicros != 7 {
		t.Errorf("the job has spent %+v and %d", job.TotalTokens, job.CostMicros)
	}
	w.Healthy()
	w.Must(w.j.Lifecycle.Delete(w.Ctx, w.id))
	for _, kv := range w.All() {
		if name, _, _ := keys.New().Last(kv.Key); name == "asked" || name == "batch" || name == "reply" || name == "batching" || name == "batchline" || name == "batchable" {
			t.Errorf("the key %x is left", kv.Key)
		}
	}
}

// Every step may run twice, for its first answer may have been lost.
func TestStepsMayRunTwice(t *testing.T) {
	s := fault.New(jobstest.Open(t), fault.Config{Seed: 1, Rates: fault.Rates{fault.Rerun: 0.5}})
	w := &waiter{World: jobstest.NewWorld(t, s, 1)}
	w.j = w.Nodes[0]
	spec := jobstest.Spec()
	spec.Tenant = shop
	w.id = w.Submit(w.j, spec, jobstest.Texts(5))
	w.s = w.Session(w.j)
	for _, u := range w.Claim(w.j, w.id, w.s, 5) {
		w.park(u)
	}
	b := w.plan()
	w.create(b)
	for i := range int64(4) {
		_, err := w.report(b, w.s, protocol.BatchReport{Replies: []protocol.LineReply{answered(i)}})
		w.Must(err)
	}
	_, err := w.report(b, w.s, protocol.BatchReport{Over: true})
	w.Must(err)
	if job := w.Job(w.id); job.TotalTokens.In != 5+4*30 || job.CostMicros != 4*7 {
		t.Errorf("the job has spent %+v and %d", job.TotalTokens, job.CostMicros)
	}
	w.Healthy()
}

// The check of a store finds units that wait for nothing, and batches whose lines are gone.
func TestCheckFindsStrayLines(t *testing.T) {
	for name, damage := range map[string]func(w *waiter, b protocol.Batch, tx store.Tx){
		"a unit waits for no batch": func(w *waiter, b protocol.Batch, tx store.Tx) { tx.Clear(keys.New().Batches(w.id).Line(b.Number, 0)) },
		"a unit that does not wait": func(w *waiter, _ protocol.Batch, tx store.Tx) {
			tx.Set(keys.New().Batches(w.id).Batchable("doc-00001"), nil)
		},
		"a batch that is no record": func(w *waiter, b protocol.Batch, tx store.Tx) { tx.Set(keys.New().Batches(w.id).Batch(b.Number), nil) },
		"a line of a unit that ends": func(w *waiter, b protocol.Batch, tx store.Tx) {
			tx.Set(keys.New().Batches(w.id).Line(b.Number, 7), []byte("doc-00001"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiter(t, 2)
			w.park(w.Claim(w.j, w.id, w.s, 1)[0])
			b := w.plan()
			w.create(b)
			w.Healthy()
			w.Write(func(tx store.Tx) { damage(w, b, tx) })
			wrong := 0
			for _, f := range w.Findings() {
				if f.Severity > mapreduce.Info {
					wrong++
				}
			}
			if wrong == 0 {
				t.Error("nothing was found")
			}
		})
	}
}
