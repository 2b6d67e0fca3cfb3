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
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

func TestDeleteLeavesNothing(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	s := jobstest.Spec()
	s.RequestID = "r"
	id := w.Submit(j, s, append(jobstest.Texts(4), jobstest.Document{ID: "cut", Text: []byte("a text in parts"), Chunks: 3}))
	u := w.Claim(j, id, w.Session(j), 1)[0]
	w.Remember(j, id, u, 0, "x")
	w.Report(j, jobstest.Parked(id, u, "person", 0))
	_, _, err := j.Queue.Wake(w.Ctx, id, u.ID, protocol.WakeCall{Handle: "person", Answer: []byte("yes")})
	w.Must(err)
	other := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Parked(id, other, "batch", time.Hour))
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "asked for"))
	if n := w.Job(id).ParkedUnits; n != 1 {
		t.Errorf("%d units are parked, want 1", n)
	}
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	_, err = j.Queue.Wakeup(w.Ctx, id, []records.Sleeper{{Unit: other.ID, Attempt: other.Attempt}})
	w.Must(err)
	w.Run(j, id)
	_, err = j.Audit.Seal(w.Ctx, id)
	w.Must(err)
	if err := j.Lifecycle.Delete(w.Ctx, id); err != nil {
		t.Fatal(err)
	}
	for _, kv := range w.All() {
		if bytes.Contains(kv.Key, []byte("log")) {
			continue // that it was there
		}
		if bytes.Contains(kv.Key, []byte(id)) || bytes.Contains(kv.Value, []byte(id)) && !bytes.Contains(kv.Key, []byte("held")) {
			t.Errorf("left: %q = %q", kv.Key, kv.Value)
		}
	}
	w.Healthy()
}

func TestLargeLevelIsPlannedByManyNodes(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	w := jobstest.NewWorld(t, jobstest.Open(t), 3)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(5000))
	status := w.MapAll(w.Nodes[0], id)
	next, steps := jobstest.NextOf(status), 0
	for finished := false; !finished; steps++ {
		var err error
		_, finished, err = w.Nodes[steps%3].Levels.PlanStep(w.Ctx, id, next)
		w.Must(err)
		if steps == 2 { // in the middle of it
			w.Healthy()
			w.Must(w.Nodes[1].Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
			w.Must(w.Nodes[2].Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
			status, err = w.Nodes[0].Levels.Status(w.Ctx, id)
			w.Must(err)
			next = jobstest.NextOf(status)
		}
	}
	if job := w.Job(id); steps < 4 || job.TotalUnits != 5000+1667 || job.Level != 1 {
		t.Errorf("after %d steps %d units, level %d", steps, job.TotalUnits, job.Level)
	}
	w.Run(w.Nodes[1], id)
	if job := w.Job(id); job.State != mapreduce.JobComplete {
		t.Errorf("job is %v", job.State)
	}
	w.Healthy()
}

func TestResumeDropsALevelPlannedInPart(t *testing.T) {
	testenv.SlowOnFDB(t)

	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2000))
	s := w.Session(j)
	bad := w.Claim(j, id, s, 1)[0]
	w.Report(j, jobstest.Errored(id, bad, protocol.PermanentUnit))
	status := w.MapAll(j, id)
	if _, finished, err := j.Levels.PlanStep(w.Ctx, id, jobstest.NextOf(status)); err != nil || finished {
		t.Fatalf("planned at once: %t, %v", finished, err)
	}
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Healthy()
	if u := w.Unit(id, "reduce_L1_0"); u != nil {
		t.Errorf("left of the level: %v", u)
	}
	w.Run(j, id)
	if job := w.Job(id); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
		t.Errorf("job is %v with %d failed units", job.State, job.FailedUnits)
	}
	w.Healthy()
}

func TestChainShowsTampering(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	w.Run(j, id)
	w.Seal(j, id, 4)
	w.Must(j.Audit.Verify(w.Ctx, id))
	var all []store.KeyValue
	r := w.Space.Job(id).Checkpoints()
	for _, kv := range w.All() {
		if bytes.Compare(kv.Key, r.Begin) > 0 && bytes.Compare(kv.Key, r.End) < 0 {
			all = append(all, kv)
		}
	}
	for name, change := range map[string]func(tx store.Tx){
		"changed": func(tx store.Tx) { tx.Set(all[1].Key, all[2].Value) },
		"removed": func(tx store.Tx) { tx.Clear(all[1].Key) },
		"inserted": func(tx store.Tx) {
			tx.Set(w.Space.Job(id).Checkpoint(store.Versionstamp{0, 0, 0, 0, 0, 0, 0, 1}), all[1].Value)
		},
		"swapped": func(tx store.Tx) { tx.Set(all[1].Key, all[2].Value); tx.Set(all[2].Key, all[1].Value) },
	} {
		w.Write(change)
		if err := j.Audit.Verify(w.Ctx, id); errs.KindOf(err) != errs.DataLoss {
			t.Errorf("checkpoint %s: %v", name, err)
		}
		w.Write(func(tx store.Tx) {
			tx.ClearRange(r)
			for _, kv := range all {
				tx.Set(kv.Key, kv.Value)
			}
		})
		w.Must(j.Audit.Verify(w.Ctx, id))
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
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	w.Run(j, id)
	_, err := j.Audit.Seal(w.Ctx, id)
	w.Must(err)
	completed, seals := 0, 0
	for token, first := "", true; first || token != ""; first = false {
		page, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 2, PageToken: token})
		w.Must(err)
		for _, c := range page.Checkpoints {
			completed += completions(c)
		}
		seals += len(page.Seals)
		token = page.NextPageToken
	}
	if want := int(w.Job(id).CompletedUnits); completed != want || seals != 1 {
		t.Errorf("%d completions under %d seals, want %d under 1", completed, seals, want)
	}
	for _, token := range []string{"abcd", "xyz", strings.Repeat("00", 10), strings.Repeat("00", 19)} {
		if _, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, PageToken: token}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s, a token of no list: %v", token, err)
		}
	}
}

// However many seals a job has, each page has those that end in it, and none is left out
// between two pages.
func TestManySealsByPages(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	changes := 0
	for range 600 {
		w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
		_, err := j.Audit.Seal(w.Ctx, id)
		w.Must(err)
		w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
		if changes += 2; changes%8 == 0 {
			continue // the next seal covers both
		}
		_, err = j.Audit.Seal(w.Ctx, id)
		w.Must(err)
	}
	for _, size := range []int{7, 1000, 5000} {
		var seals []*mapreduce.Seal
		listed, sealed := 0, 0
		for token, first := "", true; first || token != ""; first = false {
			page, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, PageSize: size, PageToken: token})
			w.Must(err)
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
	w.Must(j.Audit.Verify(w.Ctx, id))
}

// The marks of a job are those of its checkpoints in one order, whoever wrote them,
// and whenever they were sealed.
func TestProgressIsMarkedOnceAnInterval(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	s := jobstest.Spec()
	s.CheckpointInterval = 4
	id := w.Submit(w.Nodes[0], s, jobstest.Texts(30))
	worker := w.Session(w.Nodes[0])
	for i := 0; ; i++ {
		units := w.Claim(w.Nodes[0], id, worker, 1+i%6)
		if len(units) == 0 {
			break
		}
		turn := &queue.Turn{Job: id, Release: []queue.HeldID{{Session: worker.ID, Claim: units[0].Claim}}}
		for _, u := range units {
			turn.Reports = append(turn.Reports, queue.Report{Report: jobstest.Done(id, u)})
		}
		w.Turn(w.Nodes[0], turn)
		if i%3 == 0 {
			_, err := w.Nodes[i%2].Audit.Seal(w.Ctx, id)
			w.Must(err)
		}
	}
	w.Run(w.Nodes[0], id)
	for n := 1; n > 0; {
		var err error
		n, err = w.Nodes[0].Audit.Seal(w.Ctx, id)
		w.Must(err)
	}
	var want, got []mapreduce.ProgressMark
	var sum mapreduce.ProgressMark
	for token, first := "", true; first || token != ""; first = false {
		page, err := w.Nodes[1].Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 2, PageToken: token})
		w.Must(err)
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
	if diff := cmp.Diff(int64(w.Job(id).CompletedUnits), sum.Completed); diff != "" {
		t.Errorf("completions of the job and of its ledger (-job +ledger):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 7 {
		t.Errorf("%d marks (-want +got):\n%s", len(want), diff)
	}
	w.Write(func(tx store.Tx) { // who claims more progress
		seal := new(storagev1.Seal)
		w.Must(proto.Unmarshal(w.Get(w.Space.Job(id).Seal(2)), seal))
		seal.Progress.TokensOut++
		value, err := proto.Marshal(seal)
		w.Must(err)
		tx.Set(w.Space.Job(id).Seal(2), value)
	})
	if err := w.Nodes[0].Audit.Verify(w.Ctx, id); errs.KindOf(err) != errs.DataLoss {
		t.Errorf("progress that was changed: %v", err)
	}
}

// Jobs are listed newest first, in pages of any size, all of them or a tenant's alone; a
// job that is deleted is in no list.
func TestListPages(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	want := make(map[mapreduce.TenantID][]mapreduce.JobID) // of "", all
	tenants := []mapreduce.TenantID{"a", "b", "ab"}
	for i := range 9 {
		sp := jobstest.Spec()
		sp.Tenant = tenants[i%len(tenants)]
		id := w.Submit(j, sp, jobstest.Texts(1))
		if i == 3 {
			w.Must(j.Lifecycle.Cancel(w.Ctx, id))
			_, _, err := j.Lifecycle.SweepCancelled(w.Ctx, id, nil)
			w.Must(err)
			w.Must(j.Lifecycle.Delete(w.Ctx, id))
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
				page, err := j.View.List(w.Ctx, mapreduce.ListJobsQuery{Tenant: of, PageSize: size, PageToken: token})
				w.Must(err)
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
	a := func(chunks int, parse bool) jobstest.Document {
		return jobstest.Document{ID: "same", Text: []byte("a text of some length"), Chunks: chunks, Parse: parse}
	}
	for name, docs := range map[string][2]jobstest.Document{
		"whole": {a(1, false), a(1, false)}, "cut": {a(2, false), a(3, false)}, "whole and cut": {a(1, false), a(2, false)},
		"cut and parsed": {a(2, false), a(1, true)}, "parsed": {a(1, true), a(1, true)},
	} {
		w := jobstest.NewWorld(t, jobstest.Open(t), 1)
		_, err := w.Stage(w.Nodes[0], "job", jobstest.Spec(), 1, []jobstest.Document{docs[0], jobstest.Texts(1)[0], docs[1]})
		if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), "documents 1 and 3") {
			t.Errorf("%s: %v", name, err)
		}
		w.Must(w.Nodes[0].Submit.Abandon(w.Ctx, "job"))
		for _, kv := range w.All() {
			if bytes.Contains(kv.Key, []byte("job")) {
				t.Errorf("%s: left: %q", name, kv.Key)
			}
		}
	}
}

func TestPublishTwiceAndOneRequest(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	s := jobstest.Spec()
	s.RequestID = "request"
	first, err := w.Stage(w.Nodes[0], "job-a", s, 1, jobstest.Texts(2))
	w.Must(err)
	second, err := w.Stage(w.Nodes[1], "job-b", s, 1, jobstest.Texts(2))
	w.Must(err)
	for range 2 {
		if won, err := w.Nodes[0].Submit.Publish(w.Ctx, "job-a", first); err != nil || won != "job-a" {
			t.Fatalf("publish: %s, %v", won, err)
		}
	}
	if won, err := w.Nodes[1].Submit.Publish(w.Ctx, "job-b", second); err != nil || won != "job-a" {
		t.Fatalf("publish again: %s, %v", won, err)
	}
	if err := w.Nodes[1].Submit.Begin(w.Ctx, "job-a", s); errs.KindOf(err) != errs.Exists {
		t.Errorf("a taken id: %v", err)
	}
	w.Must(w.Nodes[1].Submit.Abandon(w.Ctx, "job-b"))
	w.Healthy()
}

func TestLateReports(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	s := w.Session(j)
	units := w.Claim(j, id, s, 2)
	lose := func(s jobstest.Binding) {
		_, err := w.Nodes[1].Sessions.Expire(w.Ctx, s.ID, j.Node(), s.Epoch, nil)
		w.Must(err)
	}
	lose(s)
	if got := w.Report(j, jobstest.Done(id, units[0])).Verdict; got != protocol.Accepted {
		t.Errorf("late finish of a requeued unit: %v", got)
	}
	other := w.Session(j)
	if again := w.Claim(j, id, other, 3); len(again) != 2 {
		t.Fatalf("claimed %d units, want the one that was given up and the third", len(again))
	}
	if got := w.Report(j, jobstest.Done(id, units[1])).Verdict; got != protocol.Stale {
		t.Errorf("late finish of a reclaimed unit: %v", got)
	}
	w.Healthy()
	before := w.Job(id).TotalTokens
	held := w.Unit(id, string(units[1].ID))
	w.Must(j.Lifecycle.Cancel(w.Ctx, id))
	_, swept, err := j.Lifecycle.SweepCancelled(w.Ctx, id, nil)
	if err != nil || !swept {
		t.Fatalf("swept: %t, %v", swept, err)
	}
	for range 2 {
		if got := w.Report(j, jobstest.Done(id, held)).Verdict; got != protocol.Gone {
			t.Errorf("late finish of a cancelled unit: %v", got)
		}
	}
	if after := w.Job(id).TotalTokens; after.Total()-before.Total() != 6 {
		t.Errorf("a late finish of a cancelled unit spent %v", after.Total()-before.Total())
	}
	w.Healthy()
}

// inDoubt takes a turn of node-0 that nobody knows the result of, because of kind.
// What the store below fails by itself, before that, is tried again.
func inDoubt(w *jobstest.World, f *fault.Store, kind fault.Kind, turn *queue.Turn) {
	w.Helper()
	once := jobs.New(store.NewDB(f, store.Config{MaxAttempts: 1}), w.Space, w.Nodes[0].Node(), time.Now)
	for {
		f.FailNext(kind)
		_, err := once.Turns.FinishAndClaim(w.Ctx, turn)
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
	s := jobstest.Open(t)
	f := fault.New(s, fault.Config{LateAfter: 1})
	w := jobstest.NewWorld(t, f, 2)
	w.Look = jobstest.NewWorld(t, s, 1).Nodes[0]
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(3))
	binding := w.Session(w.Nodes[0])
	claim := w.ClaimOf(w.Nodes[0], id, binding, 3)
	inDoubt(w, f, fault.TimedOutLate, &queue.Turn{Job: id, Claim: claim})
	_, err := w.Nodes[1].Sessions.Expire(w.Ctx, binding.ID, "node-0", binding.Epoch, nil)
	w.Must(err)
	f.Settle()
	for { // if the claim landed first, its units are given back
		loss, err := w.Nodes[1].Sessions.Expire(w.Ctx, binding.ID, "node-0", binding.Epoch, nil)
		w.Must(err)
		if loss.Done {
			break
		}
	}
	w.Healthy()
	if n := len(w.Waiting(w.Nodes[1], id)); n != 3 {
		t.Errorf("%d units wait, want 3", n)
	}
}

// A unit is handed back by a commit whose result is unknown, and is another's
// before the report comes again: that report is refused, counts nothing twice,
// and leaves the other alone.
func TestHandBackInDoubt(t *testing.T) {
	s := jobstest.Open(t)
	f := fault.New(s, fault.Config{})
	w := jobstest.NewWorld(t, f, 2)
	w.Look = jobstest.NewWorld(t, s, 1).Nodes[0]
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(1))
	first := w.Claim(w.Nodes[0], id, w.Session(w.Nodes[0]), 1)[0]
	report := jobstest.Returned(id, first)
	report.Tokens = mapreduce.Tokens{In: 3}
	inDoubt(w, f, fault.UnknownCommitted, &queue.Turn{Job: id, Reports: []queue.Report{{Report: report}}})
	if got := w.Report(w.Nodes[0], report).Verdict; got != protocol.Accepted {
		t.Errorf("the report that comes again while the unit waits: %v", got)
	}
	second := w.Claim(w.Nodes[1], id, w.Session(w.Nodes[1]), 1)[0]
	if got := w.Report(w.Nodes[0], report).Verdict; got != protocol.Stale {
		t.Errorf("the report that comes again while the unit is another's: %v", got)
	}
	if got := w.Report(w.Nodes[1], jobstest.Done(id, second)).Verdict; got != protocol.Accepted {
		t.Errorf("the other's report: %v", got)
	}
	if got := w.Job(id).TotalTokens.Total(); got != 9 {
		t.Errorf("%d tokens, want the 3 and 6 that were spent", got)
	}
	w.Healthy()
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
	s := jobstest.Open(t)
	f := fault.New(s, fault.Config{Seed: seed, Rates: fault.Retryable(0.02)})
	w := jobstest.NewWorld(t, f, 3)
	w.Look = jobstest.NewWorld(t, s, 1).Nodes[0]
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(12))
	var mu sync.Mutex // guards history
	var history []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range 6 {
		db := store.NewDB(f, store.Config{})
		j := jobs.New(db, w.Space, w.Nodes[client%3].Node(), time.Now)
		binding := w.Session(j)
		random := rand.New(rand.NewPCG(seed, uint64(client)))
		wg.Go(func() {
			for n := range 40 {
				from := time.Since(start).Nanoseconds()
				var found []records.Candidate
				for shard := range int64(2) {
					part, _, err := j.Queue.Scan(w.Ctx, id, queue.Stretch{Shard: shard, To: keys.Seq(1, 0), Returned: true})
					if err != nil {
						t.Error(err)
						return
					}
					found = append(found, part...)
				}
				res, err := j.Turns.FinishAndClaim(w.Ctx, &queue.Turn{Job: id, Claim: &queue.Claim{
					ID:      fmt.Sprintf("c-%d-%d", client, n),
					Workers: []queue.WorkerSlots{{Session: binding.ID, Epoch: binding.Epoch, Slots: 2}}, Candidates: found,
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
					r := jobstest.Done(id, u)
					if give {
						r = jobstest.Returned(id, u)
					}
					turn.Reports = append(turn.Reports, queue.Report{Report: r})
				}
				from = time.Since(start).Nanoseconds()
				doubts := db.Stats().Unknown.Load()
				out, err := j.Turns.FinishAndClaim(w.Ctx, turn)
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
					doubt := r.Outcome == protocol.Returned && db.Stats().Unknown.Load() > doubts
					if v := out.Verdicts[i].Verdict; v != protocol.Accepted && (v != protocol.Stale || !doubt) {
						t.Errorf("verdict %v on %+v", out.Verdicts[i], r.Report)
					}
					in := call{unit: string(r.Unit), give: r.Outcome == protocol.Returned, attempt: int64(r.Attempt)}
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
	w.Healthy()
}

// However nodes ask, claim, spend, take over and die, what they were granted is
// within the budget, and what they used is within what they were granted, be it in tokens or in money.
func TestBudgetIsNeverOverspent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := jobstest.NewWorld(t, jobstest.Open(t), 3)
		sp := jobstest.Spec()
		sp.Budget = rapid.Int64Range(20, 300).Draw(t, "budget")
		sp.BudgetIn = rapid.SampledFrom([]mapreduce.Currency{mapreduce.InTokens, mapreduce.InDollars}).Draw(t, "currency")
		id := w.Submit(w.Nodes[0], sp, jobstest.Texts(20))
		bindings := make([]jobstest.Binding, 3)
		for i := range bindings {
			bindings[i] = w.Session(w.Nodes[i])
		}
		var running []*records.Unit
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				ask := nodes.GrantRequest{Tokens: rapid.Int64Range(0, 60).Draw(t, "tokens"), Slots: 5, Parallelism: 10, Alone: rapid.Bool().Draw(t, "alone")}
				if rapid.IntRange(0, 3).Draw(t, "doubted") == 0 {
					other := w.Nodes[(i+1)%3].Node()
					ask.Doubts = map[mapreduce.NodeID]*nodes.Doubt{other: w.Doubt(w.Nodes[i], other)}
				}
				_, err := w.Nodes[i].Grants.Grant(w.Ctx, id, ask)
				w.Must(err)
			},
			"claim": func(t *rapid.T) { // what the node believes may be out of date
				i := rapid.IntRange(0, 2).Draw(t, "node")
				c := w.ClaimOf(w.Nodes[i], id, bindings[i], 3)
				c.Bounded, c.Tokens = true, rapid.Int64Range(0, 100).Draw(t, "believed")
				for _, got := range w.Turn(w.Nodes[i], &queue.Turn{Job: id, Claim: c}).Claimed {
					running = append(running, got.Unit)
				}
			},
			"finish": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing runs")
				}
				u := rapid.SampledFrom(running).Draw(t, "unit")
				rep := jobstest.Done(id, u)
				if rapid.Bool().Draw(t, "fails") {
					rep = jobstest.Errored(id, u, protocol.Retryable)
				}
				// What the other currency counts bounds nothing.
				spent := rapid.Int64Range(0, jobstest.Estimate).Draw(t, "spent")
				rep.Tokens, rep.CostMicros = mapreduce.Tokens{In: spent}, 1000
				if sp.BudgetIn == mapreduce.InDollars {
					rep.Tokens, rep.CostMicros = mapreduce.Tokens{In: 1000}, spent
				}
				rep.Unmeasured = rapid.Bool().Draw(t, "unmeasured")
				w.Report(w.Nodes[rapid.IntRange(0, 2).Draw(t, "node")], rep)
			},
			"expire": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "node")
				_, err := w.Nodes[i].Sessions.Expire(w.Ctx, bindings[i].ID, w.Nodes[i].Node(), bindings[i].Epoch, nil)
				w.Must(err)
				bindings[i] = w.Session(w.Nodes[i])
			},
			"rebind": func(t *rapid.T) { // a session goes to another node, with all that it holds
				i, to := rapid.IntRange(0, 2).Draw(t, "session"), rapid.IntRange(0, 2).Draw(t, "node")
				var holding []protocol.Held
				for _, u := range running {
					holding = append(holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
				}
				s, _ := w.Bind(w.Nodes[to], bindings[i].ID, holding...)
				bindings[to] = s
				if to != i {
					bindings[i] = w.Session(w.Nodes[i])
				}
			},
			"reserve": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("nothing runs")
				}
				u := rapid.SampledFrom(running).Draw(t, "unit")
				held := protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}
				_, err := w.Nodes[rapid.IntRange(0, 2).Draw(t, "node")].Grants.Reserve(w.Ctx, []nodes.Reservation{
					{Held: held, Tokens: rapid.Int64Range(10, 60).Draw(t, "tokens")},
				})
				w.Must(err)
			},
			"return": func(t *rapid.T) {
				back := nodes.GiveBack{Slots: rapid.Int64Range(0, 3).Draw(t, "slots"), ID: w.Name("give")}
				_, err := w.Nodes[rapid.IntRange(0, 2).Draw(t, "node")].Grants.Return(w.Ctx, id, back)
				w.Must(err)
			},
			"": func(t *rapid.T) {
				granted, used := int64(0), int64(0)
				for _, kv := range w.All() {
					var g storagev1.Grant
					r := w.Space.Nodes().Grants(mapreduce.JobScope(id))
					if bytes.Compare(kv.Key, r.Begin) >= 0 && bytes.Compare(kv.Key, r.End) < 0 && proto.Unmarshal(kv.Value, &g) == nil {
						granted += g.Tokens
					}
				}
				if granted > sp.Budget {
					t.Fatalf("%s are granted, of %d", sp.BudgetIn.Text(granted), sp.Budget)
				}
				for _, n := range w.Nodes {
					for _, c := range records.BudgetCounters(sp.BudgetIn) {
						used += w.Number(w.Space.Job(id).Counter(c, 0, n.Node()))
					}
				}
				if used > granted {
					t.Fatalf("%s are spent, reserved or charged, of %d that were granted", sp.BudgetIn.Text(used), granted)
				}
				for _, f := range w.Findings() {
					t.Errorf("check: %s: %s", f.Key, f.Message)
				}
			},
		})
	})
}
