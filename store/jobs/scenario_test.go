package jobs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

func TestDeleteLeavesNothing(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	s := spec()
	s.RequestID = "r"
	id := w.submit(j, s, append(texts(4), document{id: "cut", text: []byte("a text in parts"), chunks: 3}))
	u := w.claim(j, id, w.session(j), 1)[0]
	w.remember(j, id, u, 0, "x")
	w.report(j, parked(id, u, "person", 0))
	_, _, err := j.Queue.Wake(w.ctx, id, u.ID, mapreduce.WakeCall{Handle: "person", Answer: []byte("yes")})
	w.must(err)
	other := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, parked(id, other, "batch", time.Hour))
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "asked for"))
	if n := w.job(id).ParkedUnits; n != 1 {
		t.Errorf("%d units are parked, want 1", n)
	}
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	_, err = j.Queue.Wakeup(w.ctx, id, []records.Sleeper{{Unit: other.ID, Attempt: other.Attempt}})
	w.must(err)
	w.run(j, id)
	_, err = j.Audit.Seal(w.ctx, id)
	w.must(err)
	if err := j.Lifecycle.Delete(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	for _, kv := range w.all() {
		if bytes.Contains(kv.Key, []byte("log")) {
			continue // that it was there
		}
		if bytes.Contains(kv.Key, []byte(id)) || bytes.Contains(kv.Value, []byte(id)) && !bytes.Contains(kv.Key, []byte("held")) {
			t.Errorf("left: %q = %q", kv.Key, kv.Value)
		}
	}
	w.healthy()
}

func TestLargeLevelIsPlannedByManyNodes(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	w := newWorld(t, open(t), 3)
	id := w.submit(w.nodes[0], spec(), texts(5000))
	status := w.mapAll(w.nodes[0], id)
	next, steps := nextOf(status), 0
	for finished := false; !finished; steps++ {
		var err error
		_, finished, err = w.nodes[steps%3].Levels.PlanStep(w.ctx, id, next)
		w.must(err)
		if steps == 2 { // in the middle of it
			w.healthy()
			w.must(w.nodes[1].Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
			w.must(w.nodes[2].Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
			status, err = w.nodes[0].Levels.Status(w.ctx, id)
			w.must(err)
			next = nextOf(status)
		}
	}
	if job := w.job(id); steps < 4 || job.TotalUnits != 5000+1667 || job.Level != 1 {
		t.Errorf("after %d steps %d units, level %d", steps, job.TotalUnits, job.Level)
	}
	w.run(w.nodes[1], id)
	if job := w.job(id); job.State != mapreduce.JobComplete {
		t.Errorf("job is %v", job.State)
	}
	w.healthy()
}

func TestResumeDropsALevelPlannedInPart(t *testing.T) {
	testenv.SlowOnFDB(t)

	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2000))
	s := w.session(j)
	bad := w.claim(j, id, s, 1)[0]
	w.report(j, errored(id, bad, mapreduce.PermanentUnit))
	status := w.mapAll(j, id)
	if _, finished, err := j.Levels.PlanStep(w.ctx, id, nextOf(status)); err != nil || finished {
		t.Fatalf("planned at once: %t, %v", finished, err)
	}
	w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.healthy()
	if u := w.unit(id, "reduce_L1_0"); u != nil {
		t.Errorf("left of the level: %v", u)
	}
	w.run(j, id)
	if job := w.job(id); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
		t.Errorf("job is %v with %d failed units", job.State, job.FailedUnits)
	}
	w.healthy()
}

func TestChainShowsTampering(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	w.run(j, id)
	w.seal(j, id, 4)
	w.must(j.Audit.Verify(w.ctx, id))
	var all []store.KeyValue
	r := w.space.Job(id).Checkpoints()
	for _, kv := range w.all() {
		if bytes.Compare(kv.Key, r.Begin) > 0 && bytes.Compare(kv.Key, r.End) < 0 {
			all = append(all, kv)
		}
	}
	for name, change := range map[string]func(tx store.Tx){
		"changed": func(tx store.Tx) { tx.Set(all[1].Key, all[2].Value) },
		"removed": func(tx store.Tx) { tx.Clear(all[1].Key) },
		"inserted": func(tx store.Tx) {
			tx.Set(w.space.Job(id).Checkpoint(store.Versionstamp{0, 0, 0, 0, 0, 0, 0, 1}), all[1].Value)
		},
		"swapped": func(tx store.Tx) { tx.Set(all[1].Key, all[2].Value); tx.Set(all[2].Key, all[1].Value) },
	} {
		w.write(change)
		if err := j.Audit.Verify(w.ctx, id); errs.KindOf(err) != errs.DataLoss {
			t.Errorf("checkpoint %s: %v", name, err)
		}
		w.write(func(tx store.Tx) {
			tx.ClearRange(r)
			for _, kv := range all {
				tx.Set(kv.Key, kv.Value)
			}
		})
		w.must(j.Audit.Verify(w.ctx, id))
	}
}

// completions returns how many units of the pipeline's stages a checkpoint completed.
func completions(c *mapreduce.Checkpoint) (n int) {
	for _, ref := range c.Completed {
		if ref.Unit != mapreduce.ResultUnit {
			n++
		}
	}
	return n
}

func TestEventsByPages(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(9))
	w.run(j, id)
	_, err := j.Audit.Seal(w.ctx, id)
	w.must(err)
	completed, seals := 0, 0
	for token, first := "", true; first || token != ""; first = false {
		page, err := j.Audit.List(w.ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 2, PageToken: token})
		w.must(err)
		for _, c := range page.Checkpoints {
			completed += completions(c)
		}
		seals += len(page.Seals)
		token = page.NextPageToken
	}
	if want := int(w.job(id).CompletedUnits); completed != want || seals != 1 {
		t.Errorf("%d completions under %d seals, want %d under 1", completed, seals, want)
	}
	for _, token := range []string{"abcd", "xyz", strings.Repeat("00", 10), strings.Repeat("00", 19)} {
		if _, err := j.Audit.List(w.ctx, mapreduce.ListEventsQuery{Job: id, PageToken: token}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s, a token of no list: %v", token, err)
		}
	}
}

// However many seals a job has, each page has those that end in it, and none is left out
// between two pages.
func TestManySealsByPages(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(1))
	changes := 0
	for range 600 {
		w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "for a while"))
		_, err := j.Audit.Seal(w.ctx, id)
		w.must(err)
		w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
		if changes += 2; changes%8 == 0 {
			continue // the next seal covers both
		}
		_, err = j.Audit.Seal(w.ctx, id)
		w.must(err)
	}
	for _, size := range []int{7, 1000, 5000} {
		var seals []*mapreduce.Seal
		listed, sealed := 0, 0
		for token, first := "", true; first || token != ""; first = false {
			page, err := j.Audit.List(w.ctx, mapreduce.ListEventsQuery{Job: id, PageSize: size, PageToken: token})
			w.must(err)
			listed, token = listed+len(page.Checkpoints), page.NextPageToken
			for _, s := range page.Seals {
				sealed += s.Count
				if !slices.ContainsFunc(page.Checkpoints, func(c *mapreduce.Checkpoint) bool { return c.ID == s.Last }) {
					t.Fatalf("pages of %d: seal %d does not end in its page", size, s.Number)
				}
			}
			seals = append(seals, page.Seals...)
		}
		for i, s := range seals {
			if s.Number != int64(i+1) {
				t.Fatalf("pages of %d: seal %d comes as number %d", size, s.Number, i+1)
			}
		}
		if len(seals) < 1000 || listed <= changes || sealed != listed-1 { // all but the last resume
			t.Errorf("pages of %d: %d seals of %d checkpoints, and %d were listed", size, len(seals), sealed, listed)
		}
	}
	w.must(j.Audit.Verify(w.ctx, id))
}

// The marks of a job are those of its checkpoints in one order, whoever wrote them,
// and whenever they were sealed.
func TestProgressIsMarkedOnceAnInterval(t *testing.T) {
	w := newWorld(t, open(t), 2)
	s := spec()
	s.CheckpointInterval = 4
	id := w.submit(w.nodes[0], s, texts(30))
	worker := w.session(w.nodes[0])
	for i := 0; ; i++ {
		units := w.claim(w.nodes[0], id, worker, 1+i%6)
		if len(units) == 0 {
			break
		}
		turn := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: worker.id, Claim: units[0].Claim}}}
		for _, u := range units {
			turn.Reports = append(turn.Reports, queue.Report{Report: done(id, u)})
		}
		w.turn(w.nodes[0], turn)
		if i%3 == 0 {
			_, err := w.nodes[i%2].Audit.Seal(w.ctx, id)
			w.must(err)
		}
	}
	w.run(w.nodes[0], id)
	for n := 1; n > 0; {
		var err error
		n, err = w.nodes[0].Audit.Seal(w.ctx, id)
		w.must(err)
	}
	var want, got []mapreduce.ProgressMark
	var sum mapreduce.ProgressMark
	for token, first := "", true; first || token != ""; first = false {
		page, err := w.nodes[1].Audit.List(w.ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 2, PageToken: token})
		w.must(err)
		for _, c := range page.Checkpoints {
			before := sum.Completed
			sum.Completed += int64(completions(c))
			sum.Tokens = sum.Tokens.Add(c.Tokens)
			if before/4 < sum.Completed/4 {
				want = append(want, sum)
			}
			if c.Progress != nil {
				got = append(got, *c.Progress)
			}
		}
		token = page.NextPageToken
	}
	if diff := cmp.Diff(int64(w.job(id).CompletedUnits), sum.Completed); diff != "" {
		t.Errorf("completions of the job and of its ledger (-job +ledger):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 7 {
		t.Errorf("%d marks (-want +got):\n%s", len(want), diff)
	}
	w.write(func(tx store.Tx) { // who claims more progress
		seal := new(storagev1.Seal)
		w.must(proto.Unmarshal(w.get(w.space.Job(id).Seal(2)), seal))
		seal.Progress.TokensOut++
		value, err := proto.Marshal(seal)
		w.must(err)
		tx.Set(w.space.Job(id).Seal(2), value)
	})
	if err := w.nodes[0].Audit.Verify(w.ctx, id); errs.KindOf(err) != errs.DataLoss {
		t.Errorf("progress that was changed: %v", err)
	}
}

// Jobs are listed newest first, in pages of any size, all of them or a tenant's alone; a
// job that is deleted is in no list.
func TestListPages(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	want := make(map[mapreduce.TenantID][]mapreduce.JobID) // of "", all
	tenants := []mapreduce.TenantID{"a", "b", "ab"}
	for i := range 9 {
		sp := spec()
		sp.Tenant = tenants[i%len(tenants)]
		id := w.submit(j, sp, texts(1))
		if i == 3 {
			w.must(j.Lifecycle.Cancel(w.ctx, id))
			_, _, err := j.Lifecycle.SweepCancelled(w.ctx, id, nil)
			w.must(err)
			w.must(j.Lifecycle.Delete(w.ctx, id))
			continue
		}
		for _, of := range []mapreduce.TenantID{"", sp.Tenant} {
			want[of] = append([]mapreduce.JobID{id}, want[of]...)
		}
	}
	for _, of := range append(tenants, "", "nobody") {
		for size := 1; size <= 9; size++ {
			var got []mapreduce.JobID
			for token, first := "", true; first || token != ""; first = false {
				page, err := j.View.List(w.ctx, mapreduce.ListJobsQuery{Tenant: of, PageSize: size, PageToken: token})
				w.must(err)
				for _, job := range page.Jobs {
					got = append(got, job.ID)
				}
				token = page.NextPageToken
			}
			if !slices.Equal(got, want[of]) {
				t.Errorf("of %q by pages of %d: %v, want %v", of, size, got, want[of])
			}
		}
	}
}

func TestDocumentsOfOneIDAreRefused(t *testing.T) {
	a := func(chunks int, parse bool) document {
		return document{id: "same", text: []byte("a text of some length"), chunks: chunks, parse: parse}
	}
	for name, docs := range map[string][2]document{
		"whole": {a(1, false), a(1, false)}, "cut": {a(2, false), a(3, false)}, "whole and cut": {a(1, false), a(2, false)},
		"cut and parsed": {a(2, false), a(1, true)}, "parsed": {a(1, true), a(1, true)},
	} {
		w := newWorld(t, open(t), 1)
		_, err := w.stage(w.nodes[0], "job", spec(), 1, []document{docs[0], texts(1)[0], docs[1]})
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "documents 1 and 3") {
			t.Errorf("%s: %v", name, err)
		}
		w.must(w.nodes[0].Submit.Abandon(w.ctx, "job"))
		for _, kv := range w.all() {
			if bytes.Contains(kv.Key, []byte("job")) {
				t.Errorf("%s: left: %q", name, kv.Key)
			}
		}
	}
}

func TestPublishTwiceAndOneRequest(t *testing.T) {
	w := newWorld(t, open(t), 2)
	s := spec()
	s.RequestID = "request"
	first, err := w.stage(w.nodes[0], "job-a", s, 1, texts(2))
	w.must(err)
	second, err := w.stage(w.nodes[1], "job-b", s, 1, texts(2))
	w.must(err)
	for range 2 {
		if won, err := w.nodes[0].Submit.Publish(w.ctx, "job-a", first); err != nil || won != "job-a" {
			t.Fatalf("publish: %s, %v", won, err)
		}
	}
	if won, err := w.nodes[1].Submit.Publish(w.ctx, "job-b", second); err != nil || won != "job-a" {
		t.Fatalf("publish again: %s, %v", won, err)
	}
	if err := w.nodes[1].Submit.Begin(w.ctx, "job-a", s); errs.KindOf(err) != errs.Exists {
		t.Errorf("a taken id: %v", err)
	}
	w.must(w.nodes[1].Submit.Abandon(w.ctx, "job-b"))
	w.healthy()
}

func TestLateReports(t *testing.T) {
	w := newWorld(t, open(t), 2)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(3))
	s := w.session(j)
	units := w.claim(j, id, s, 2)
	lose := func(s binding) {
		_, err := w.nodes[1].Sessions.Expire(w.ctx, s.id, j.Node(), s.epoch, nil)
		w.must(err)
	}
	lose(s)
	if got := w.report(j, done(id, units[0])).Verdict; got != mapreduce.Accepted {
		t.Errorf("late finish of a requeued unit: %v", got)
	}
	other := w.session(j)
	if again := w.claim(j, id, other, 3); len(again) != 2 {
		t.Fatalf("claimed %d units, want the one that was given up and the third", len(again))
	}
	if got := w.report(j, done(id, units[1])).Verdict; got != mapreduce.Stale {
		t.Errorf("late finish of a reclaimed unit: %v", got)
	}
	w.healthy()
	before := w.job(id).TotalTokens
	held := w.unit(id, string(units[1].ID))
	w.must(j.Lifecycle.Cancel(w.ctx, id))
	_, swept, err := j.Lifecycle.SweepCancelled(w.ctx, id, nil)
	if err != nil || !swept {
		t.Fatalf("swept: %t, %v", swept, err)
	}
	for range 2 {
		if got := w.report(j, done(id, held)).Verdict; got != mapreduce.Gone {
			t.Errorf("late finish of a cancelled unit: %v", got)
		}
	}
	if after := w.job(id).TotalTokens; after.Total()-before.Total() != 6 {
		t.Errorf("a late finish of a cancelled unit spent %v", after.Total()-before.Total())
	}
	w.healthy()
}

// inDoubt takes a turn of node-0 that nobody knows the result of, because of kind.
// What the store below fails by itself, before that, is tried again.
func (w *world) inDoubt(f *fault.Store, kind fault.Kind, turn *queue.Turn) {
	w.Helper()
	once := jobs.New(store.NewDB(f, store.Config{MaxAttempts: 1}), w.space, w.nodes[0].Node(), time.Now)
	for {
		f.FailNext(kind)
		_, err := once.Turns.FinishAndClaim(w.ctx, turn)
		f.Heal()
		if store.MaybeCommitted(err) {
			return
		}
		if !store.Retryable(err) {
			w.Fatalf("turn: %v", err)
		}
	}
}

// A claim whose commit lands after its session was given up must not take units
// with it.
func TestClaimThatLandsLate(t *testing.T) {
	s := open(t)
	f := fault.New(s, fault.Config{LateAfter: 1})
	w := newWorld(t, f, 2)
	w.look = newWorld(t, s, 1).nodes[0]
	id := w.submit(w.nodes[0], spec(), texts(3))
	binding := w.session(w.nodes[0])
	claim := w.claimOf(w.nodes[0], id, binding, 3)
	w.inDoubt(f, fault.TimedOutLate, &queue.Turn{Job: id, Claim: claim})
	_, err := w.nodes[1].Sessions.Expire(w.ctx, binding.id, "node-0", binding.epoch, nil)
	w.must(err)
	f.Settle()
	for { // if the claim landed first, its units are given back
		loss, err := w.nodes[1].Sessions.Expire(w.ctx, binding.id, "node-0", binding.epoch, nil)
		w.must(err)
		if loss.Done {
			break
		}
	}
	w.healthy()
	if n := len(w.waiting(w.nodes[1], id)); n != 3 {
		t.Errorf("%d units wait, want 3", n)
	}
}

// A unit is handed back by a commit whose result is unknown, and is another's
// before the report comes again: that report is refused, counts nothing twice,
// and leaves the other alone.
func TestHandBackInDoubt(t *testing.T) {
	s := open(t)
	f := fault.New(s, fault.Config{})
	w := newWorld(t, f, 2)
	w.look = newWorld(t, s, 1).nodes[0]
	id := w.submit(w.nodes[0], spec(), texts(1))
	first := w.claim(w.nodes[0], id, w.session(w.nodes[0]), 1)[0]
	report := returned(id, first)
	report.Tokens = mapreduce.Tokens{In: 3}
	w.inDoubt(f, fault.UnknownCommitted, &queue.Turn{Job: id, Reports: []queue.Report{{Report: report}}})
	if got := w.report(w.nodes[0], report).Verdict; got != mapreduce.Accepted {
		t.Errorf("the report that comes again while the unit waits: %v", got)
	}
	second := w.claim(w.nodes[1], id, w.session(w.nodes[1]), 1)[0]
	if got := w.report(w.nodes[0], report).Verdict; got != mapreduce.Stale {
		t.Errorf("the report that comes again while the unit is another's: %v", got)
	}
	if got := w.report(w.nodes[1], done(id, second)).Verdict; got != mapreduce.Accepted {
		t.Errorf("the other's report: %v", got)
	}
	if got := w.job(id).TotalTokens.Total(); got != 9 {
		t.Errorf("%d tokens, want the 3 and 6 that were spent", got)
	}
	w.healthy()
}

// claims and finishes of one unit, as porcupine sees them: the state is the
// attempt, negative once it is complete.
var unitModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := make(map[string][]porcupine.Operation)
		for _, o := range history {
			by[o.Input.(call).unit] = append(by[o.Input.(call).unit], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range by {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(register), input.(call), output.(int64)
		switch {
		case in.claim:
			return !s.busy && !s.complete && out == s.attempt+1, register{out, true, false}
		case in.give:
			ok := s.busy && s.attempt == in.attempt
			return ok, register{s.attempt, false, false}
		}
		ok := s.busy && s.attempt == in.attempt
		return ok, register{s.attempt, false, true}
	},
}

type register struct {
	attempt        int64
	busy, complete bool
}

type call struct {
	unit        string
	claim, give bool
	attempt     int64
}

// However clients claim, finish and hand back under faults, each attempt of each
// unit is claimed once and ends once.
func TestClaimsAreLinearizable(t *testing.T) {
	testenv.Raced(t)

	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { claimsAreLinearizable(t, seed) })
	}
}

func claimsAreLinearizable(t *testing.T, seed uint64) {
	s := open(t)
	f := fault.New(s, fault.Config{Seed: seed, Rates: fault.Retryable(0.02)})
	w := newWorld(t, f, 3)
	w.look = newWorld(t, s, 1).nodes[0]
	id := w.submit(w.nodes[0], spec(), texts(12))
	var mu sync.Mutex // guards history
	var history []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range 6 {
		db := store.NewDB(f, store.Config{})
		j := jobs.New(db, w.space, w.nodes[client%3].Node(), time.Now)
		binding := w.session(j)
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		wg.Go(func() {
			for n := range 40 {
				from := time.Since(start).Nanoseconds()
				var found []records.Candidate
				for shard := range int64(2) {
					part, _, err := j.Queue.Scan(w.ctx, id, queue.Stretch{Shard: shard, To: keys.Seq(1, 0), Returned: true})
					if err != nil {
						t.Error(err)
						return
					}
					found = append(found, part...)
				}
				res, err := j.Turns.FinishAndClaim(w.ctx, &queue.Turn{Job: id, Claim: &queue.Claim{
					ID:      fmt.Sprintf("c-%d-%d", client, n),
					Workers: []queue.WorkerSlots{{Session: binding.id, Epoch: binding.epoch, Slots: 2}}, Candidates: found,
				}})
				if err != nil {
					t.Error(err)
					return
				}
				turn := &queue.Turn{Job: id}
				var ops []porcupine.Operation
				to := time.Since(start).Nanoseconds()
				for _, c := range res.Claimed {
					u := c.Unit
					ops = append(ops, porcupine.Operation{ClientId: client, Input: call{unit: string(u.ID), claim: true}, Call: from, Output: u.Attempt, Return: to})
					give := random.IntN(4) > 0
					r := done(id, u)
					if give {
						r = returned(id, u)
					}
					turn.Reports = append(turn.Reports, queue.Report{Report: r})
				}
				from = time.Since(start).Nanoseconds()
				doubts := db.Stats().Unknown.Load()
				out, err := j.Turns.FinishAndClaim(w.ctx, turn)
				if err != nil {
					t.Error(err)
					return
				}
				to = time.Since(start).Nanoseconds()
				for i, r := range turn.Reports {
					// After a commit that may have been done, a unit that
					// was handed back may be another's before its report
					// is tried again. The history says whether it was
					// handed back.
					doubt := r.Outcome == mapreduce.Returned && db.Stats().Unknown.Load() > doubts
					if v := out.Verdicts[i].Verdict; v != mapreduce.Accepted && (v != mapreduce.Stale || !doubt) {
						t.Errorf("verdict %v on %+v", out.Verdicts[i], r.Report)
					}
					in := call{unit: string(r.Unit), give: r.Outcome == mapreduce.Returned, attempt: int64(r.Attempt)}
					ops = append(ops, porcupine.Operation{ClientId: client, Input: in, Call: from, Output: int64(0), Return: to})
				}
				mu.Lock()
				history = append(history, ops...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.Heal()
	f.Settle()
	if len(history) < 20 {
		t.Fatalf("only %d operations", len(history))
	}
	if got := porcupine.CheckOperationsTimeout(unitModel, history, 5*time.Minute); got != porcupine.Ok {
		t.Errorf("history of %d operations: %v", len(history), got)
	}
	w.healthy()
}

// However nodes ask, claim, spend, take over and die, what they were granted is
// within the budget, and what they used is within what they were granted.
func TestBudgetIsNeverOverspent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, open(t), 3)
		sp := spec()
		sp.Budget = rapid.Int64Range(20, 300).Draw(t, "budget")
		id := w.submit(w.nodes[0], sp, texts(20))
		bindings := make([]binding, 3)
		for i := range bindings {
			bindings[i] = w.session(w.nodes[i])
		}
		var running []*records.Unit
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				ask := nodes.GrantRequest{Tokens: rapid.Int64Range(0, 60).Draw(t, "tokens"), Slots: 5, Parallelism: 10, Alone: rapid.Bool().Draw(t, "alone")}
				if rapid.IntRange(0, 3).Draw(t, "doubted") == 0 {
					other := w.nodes[(i+1)%3].Node()
					ask.Doubts = map[mapreduce.NodeID]*nodes.Doubt{other: w.doubt(w.nodes[i], other)}
				}
				_, err := w.nodes[i].Grants.Grant(w.ctx, id, ask)
				w.must(err)
			},
			"claim": func(t *rapid.T) { // what the node believes may be out of date
				i := rapid.IntRange(0, 2).Draw(t, "node")
				c := w.claimOf(w.nodes[i], id, bindings[i], 3)
				c.Bounded, c.Tokens = true, rapid.Int64Range(0, 100).Draw(t, "believed")
				for _, got := range w.turn(w.nodes[i], &queue.Turn{Job: id, Claim: c}).Claimed {
					running = append(running, got.Unit)
				}
			},
			"finish": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing runs")
				}
				u := rapid.SampledFrom(running).Draw(t, "unit")
				w.report(w.nodes[rapid.IntRange(0, 2).Draw(t, "node")], done(id, u))
			},
			"expire": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				_, err := w.nodes[i].Sessions.Expire(w.ctx, bindings[i].id, w.nodes[i].Node(), bindings[i].epoch, nil)
				w.must(err)
				bindings[i] = w.session(w.nodes[i])
			},
			"rebind": func(t *rapid.T) { // a session goes to another node, with all that it holds
				i, to := rapid.IntRange(0, 2).Draw(t, "session"), rapid.IntRange(0, 2).Draw(t, "node")
				var holding []mapreduce.Held
				for _, u := range running {
					holding = append(holding, mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
				}
				s, _ := w.bind(w.nodes[to], bindings[i].id, holding...)
				bindings[to] = s
				if to != i {
					bindings[i] = w.session(w.nodes[i])
				}
			},
			"reserve": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing runs")
				}
				u := rapid.SampledFrom(running).Draw(t, "unit")
				held := mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}
				_, err := w.nodes[rapid.IntRange(0, 2).Draw(t, "node")].Grants.Reserve(w.ctx, []nodes.Reservation{
					{Held: held, Tokens: rapid.Int64Range(10, 60).Draw(t, "tokens")},
				})
				w.must(err)
			},
			"return": func(t *rapid.T) {
				_, err := w.nodes[rapid.IntRange(0, 2).Draw(t, "node")].Grants.Return(w.ctx, id)
				w.must(err)
			},
			"": func(t *rapid.T) {
				granted, used := int64(0), int64(0)
				for _, kv := range w.all() {
					var g storagev1.Grant
					r := w.space.Nodes().Grants(mapreduce.JobScope(id))
					if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 && proto.Unmarshal(kv.Value, &g) == nil {
						granted += g.Tokens
					}
				}
				if granted > sp.Budget {
					t.Fatalf("%d tokens are granted, of %d", granted, sp.Budget)
				}
				for _, n := range w.nodes {
					for _, c := range []keys.Counter{keys.TokensIn, keys.TokensOut, keys.Reserved, keys.Charged} {
						used += w.number(w.space.Job(id).Counter(c, 0, n.Node()))
					}
				}
				if used > granted {
					t.Fatalf("%d tokens are spent, reserved or charged, of %d that were granted", used, granted)
				}
				for _, f := range w.findings() {
					t.Errorf("check: %s: %s", f.Key, f.Message)
				}
			},
		})
	})
}
