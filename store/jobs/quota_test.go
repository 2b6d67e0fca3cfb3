package jobs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/staging"
	"github.com/coditect/mapreduce/store/keys"
)

var quotaKills = flag.Int("quota.kills", 100, "how many nodes are killed while they work for tenants with quotas")

// quotaOfA is what tenant a may use while nodes are killed: little, so that each quota is
// met again and again. Tenant b may use what it likes.
var quotaOfA = mapreduce.Quota{
	Jobs: 8, UnendedJobs: 4, WaitingUnits: 20, StoredBytes: 900, TokensPerDay: 60_000, Calls: 2,
}

var limitsOfA = map[keys.Used]int64{
	keys.UsedJobs: quotaOfA.Jobs, keys.UsedUnended: quotaOfA.UnendedJobs, keys.UsedUnits: quotaOfA.WaitingUnits,
	keys.UsedBytes: quotaOfA.StoredBytes, keys.UsedTokens: quotaOfA.TokensPerDay, keys.UsedCalls: quotaOfA.Calls,
}

func quotaRules(t mapreduce.TenantID) mapreduce.TenantRule {
	if t == "a" {
		return mapreduce.TenantRule{Quota: quotaOfA}
	}
	return mapreduce.TenantRule{Keep: 100 * time.Microsecond} // of the clock of the test, whose every look is 1 µs
}

// errKilled is what a node that is killed panics with.
var errKilled = errors.New("killed")

// A fleetOf is nodes that work at the same time, and are killed.
type fleetOf struct {
	t     *testing.T
	store store.Store
	space *keys.Space
	micro atomic.Int64
	names atomic.Int64
	kills atomic.Int64

	refused, met sync.Map // quotas by their names: refused, and jobs by what became of them

	mu   sync.Mutex // guards the variables below
	jobs []mapreduce.JobID
	lost []bindingOf // sessions of nodes that were killed
}

// A bindingOf is a session that a node has bound.
type bindingOf struct {
	jobstest.Binding
	node mapreduce.NodeID
}

// now is on one day, however long the test takes.
func (f *fleetOf) now() time.Time {
	return time.UnixMicro(1_700_000_000_000_000 + f.micro.Add(1))
}

func (f *fleetOf) name(kind string) string { return fmt.Sprintf("%s-%06d", kind, f.names.Add(1)) }

// open returns the records as a node writes them.
func (f *fleetOf) open(node string) *jobs.Jobs {
	j := jobs.New(store.NewDB(f.store, store.Config{MaxBackoff: time.Millisecond}), f.space, mapreduce.NodeID(node), f.now)
	j.SetRules(quotaRules)
	return j
}

// An actor is a node that does what comes to its mind until it is killed.
type actor struct {
	*fleetOf
	*rand.Rand
	j       *jobs.Jobs
	binding bindingOf
	held    []*protocol.Report // of units that it runs
}

// life is one node from its start to its death.
func (f *fleetOf) life(ctx context.Context, seed uint64) {
	a := &actor{fleetOf: f, Rand: rand.New(rand.NewPCG(seed, 1)), j: f.open(f.name("node"))}
	fatal := int64(a.IntN(120)) + 1
	passed := int64(0)
	a.j.SetHook(func(failpoint.Point) {
		for range a.IntN(200) { // others read what this transaction has read, before it commits
			runtime.Gosched()
		}
		if passed++; passed == fatal {
			panic(errKilled)
		}
	})
	defer func() {
		if why := recover(); why != nil && why != error(errKilled) {
			panic(why)
		}
		f.kills.Add(1)
		f.mu.Lock()
		defer f.mu.Unlock()
		if a.binding.ID != "" {
			f.lost = append(f.lost, a.binding)
		}
	}()
	if err := a.bind(ctx); err != nil {
		f.note("bind", err)
	}
	for ctx.Err() == nil && passed < fatal {
		a.act(ctx)
	}
}

func (a *actor) bind(ctx context.Context) error {
	s := jobstest.Binding{ID: mapreduce.SessionID(a.name("session")), Epoch: a.now().UnixMicro()}
	a.binding = bindingOf{s, a.j.Node()}
	_, err := a.j.Sessions.Bind(ctx, &protocol.Hello{Session: s.ID, Slots: 10}, "", s.Epoch, nil)
	return err
}

// note notes an error that quotas and races explain, and any other as a failure.
func (f *fleetOf) note(what string, err error) {
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errs.ReasonOf(err) == mapreduce.QuotaExceeded:
		f.refused.Store(what, err.Error())
	case slices.Contains([]errs.Kind{errs.NotFound, errs.Precondition, errs.Aborted, errs.Unavailable}, errs.KindOf(err)):
	default:
		f.t.Errorf("%s: %v", what, err)
	}
}

func (a *actor) act(ctx context.Context) {
	id := a.pick()
	switch n := a.IntN(100); {
	case n < 14 || id == "":
		a.note("submit", a.submit(ctx))
	case n < 60:
		a.note("work", a.work(ctx, id))
	case n < 75:
		a.note("advance", a.advance(ctx, id))
	case n < 79:
		a.note("cancel", a.cancel(ctx, id))
	case n < 83:
		a.note("pause", a.j.Lifecycle.Pause(ctx, id, records.AnyEpoch, "for a while"))
	case n < 89:
		a.note("resume", a.j.Lifecycle.Resume(ctx, id, mapreduce.Resume{Budget: int64(a.IntN(3)) * 2000}))
	case n < 92:
		a.note("delete", a.j.Lifecycle.Delete(ctx, id))
	case n < 96:
		a.note("retention", a.expire(ctx))
	default:
		a.note("take over", a.takeOver(ctx, a.IntN(2) == 0))
	}
}

func (a *actor) pick() mapreduce.JobID {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 {
		return ""
	}
	return a.jobs[a.IntN(len(a.jobs))]
}

// submit submits some documents for one of the tenants. What is refused, it gives up.
func (a *actor) submit(ctx context.Context) error {
	s := jobstest.Spec()
	s.Tenant = mapreduce.TenantID([]string{"a", "a", "b"}[a.IntN(3)])
	s.Budget = int64(1+a.IntN(4)) * 1000
	if a.IntN(3) == 0 {
		s.Budget = 0
	}
	id := mapreduce.JobID(a.name("job"))
	if err := a.j.Submit.Begin(ctx, id, s); err != nil {
		return err
	}
	p := &staging.Publication{Spec: s, Shards: 1, Level: jobstest.MapLevel}
	for n, d := range jobstest.Texts(1 + a.IntN(8)) {
		b := jobstest.Batch(d, int64(n), 1)
		if err := a.j.Submit.Stage(ctx, id, &b); err != nil {
			return errors.Join(err, a.j.Submit.Abandon(ctx, id))
		}
		p.Documents++
		p.Map += int64(len(b.Units))
		p.Characters += int64(len(d.Text))
	}
	if a.IntN(10) == 0 {
		return a.j.Submit.Abandon(ctx, id)
	}
	if _, err := a.j.Submit.Publish(ctx, id, p); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = append(a.jobs, id)
	return nil
}

// work reports what runs of a job, and claims more of it.
func (a *actor) work(ctx context.Context, id mapreduce.JobID) error {
	t := &queue.Turn{Job: id}
	a.held = slices.DeleteFunc(a.held, func(r *protocol.Report) bool {
		if r.Job != id || a.IntN(4) == 0 {
			return false
		}
		t.Reports = append(t.Reports, queue.Report{Report: r, Session: a.binding.ID})
		return true
	})
	found, _, err := a.j.Queue.Scan(ctx, id, queue.Stretch{To: keys.Seq(20, 0), Returned: true})
	if err != nil {
		return err
	}
	if len(found) > 0 {
		t.Claim = &queue.Claim{
			ID: a.name("claim"), Workers: []queue.WorkerSlots{{Session: a.binding.ID, Epoch: a.binding.Epoch, Slots: 1 + a.IntN(6)}}, Candidates: found,
		}
	}
	res, err := a.j.Turns.FinishAndClaim(ctx, t)
	if err != nil {
		return err
	}
	if res.Full {
		a.refused.Store("claim", true)
	}
	for _, c := range res.Claimed {
		r := jobstest.Done(id, c.Unit)
		switch a.IntN(12) {
		case 0:
			r = jobstest.Errored(id, c.Unit, protocol.PermanentUnit)
		case 1:
			r = jobstest.Returned(id, c.Unit)
		}
		a.held = append(a.held, r)
	}
	return nil
}

// advance plans the next level of a job whose level has ended, or ends the job.
func (a *actor) advance(ctx context.Context, id mapreduce.JobID) error {
	s, err := a.j.Levels.Status(ctx, id)
	if err != nil || !s.State.Running() || !s.Ended() {
		return err
	}
	switch {
	case s.Completed == 0:
		return a.j.Lifecycle.Fail(ctx, id, records.AnyEpoch, "all failed")
	case jobstest.RootOf(s):
		a.met.Store("complete", true)
		return a.j.Levels.CompleteWith(ctx, id, s.Epoch, []byte("the result"))
	}
	next := jobstest.NextOf(s)
	for finished := false; !finished && err == nil; {
		_, finished, err = a.j.Levels.PlanStep(ctx, id, next)
	}
	return err
}

func (a *actor) cancel(ctx context.Context, id mapreduce.JobID) error {
	if err := a.j.Lifecycle.Cancel(ctx, id); err != nil {
		return err
	}
	return sweepJob(ctx, a.j, id)
}

// expire deletes jobs whose time is over, until it is done or killed.
func (a *actor) expire(ctx context.Context) error {
	all, err := a.j.Lifecycle.Expired(ctx)
	for _, e := range all {
		if err == nil {
			err = a.j.Lifecycle.DeleteExpired(ctx, e)
			a.met.Store("expired", true)
		}
	}
	return err
}

func sweepJob(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID) error {
	var cursor []byte
	for done := false; !done; {
		var err error
		if cursor, done, err = j.Lifecycle.SweepCancelled(ctx, id, cursor); err != nil {
			return err
		}
	}
	return nil
}

// takeOver puts back what the session of a node that was killed held; or has its worker
// come back here, and go on.
func (a *actor) takeOver(ctx context.Context, back bool) error {
	a.mu.Lock()
	if len(a.lost) == 0 {
		a.mu.Unlock()
		return nil
	}
	s := a.lost[a.IntN(len(a.lost))]
	a.mu.Unlock()
	for {
		loss, err := a.j.Sessions.Expire(ctx, s.ID, s.node, s.Epoch, nil)
		if err != nil {
			return err
		}
		if loss.Done {
			break
		}
	}
	if err := a.giveUpSubmissions(ctx, s.node); err != nil {
		return err
	}
	a.mu.Lock() // only now: if this node is killed before, another one does all of it
	a.lost = slices.DeleteFunc(a.lost, func(l bindingOf) bool { return l == s })
	a.mu.Unlock()
	if !back {
		return nil
	}
	var holding []protocol.Held // more than it ever had
	for _, id := range a.all() {
		for n := range 8 {
			for attempt := range 3 {
				holding = append(holding, protocol.Held{Job: id, Unit: mapreduce.UnitID(fmt.Sprintf("doc-%05d", n)), Attempt: attempt + 1})
			}
		}
	}
	epoch := a.now().UnixMicro()
	_, err := a.j.Sessions.Bind(ctx, &protocol.Hello{Session: s.ID, Slots: 10, Holding: holding[max(0, len(holding)-200):]}, "", epoch, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = append(a.lost, bindingOf{jobstest.Binding{ID: s.ID, Epoch: epoch}, a.j.Node()})
	return err
}

// giveUpSubmissions gives up what a dead node had under way. If nobody did, the quotas of
// tenant a would soon be used up by it, and no claim would be refused any more.
func (a *actor) giveUpSubmissions(ctx context.Context, dead mapreduce.NodeID) error {
	refs, err := a.j.Submit.Ingests(ctx, "")
	for _, r := range refs {
		if err == nil && r.Node == dead {
			err = a.j.Submit.Abandon(ctx, r.Job)
		}
	}
	return err
}

func (f *fleetOf) all() []mapreduce.JobID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.jobs)
}

// uses returns what tenant a uses, by the counters.
func (f *fleetOf) uses(ctx context.Context) (map[keys.Used]int64, error) {
	var all map[keys.Used]int64
	err := store.NewDB(f.store, store.Config{}).View(ctx, func(tx store.Tx) error {
		all = make(map[keys.Used]int64)
		pairs, _, err := tx.Snapshot().GetRange(ctx, f.space.AllTenants().Uses(), store.RangeOptions{})
		for _, kv := range pairs {
			t, what, _, err := f.space.AllTenants().UseAt(kv.Key)
			if err != nil {
				return err
			}
			if t == "a" {
				all[what] += records.DecodeCount(kv.Value)
			}
		}
		return err
	})
	return all, err
}

// watch checks again and again that no quota is exceeded.
func (f *fleetOf) watch(ctx context.Context) (looks int) {
	for ; ctx.Err() == nil; looks++ {
		all, err := f.uses(ctx)
		if err != nil && ctx.Err() == nil {
			f.t.Errorf("reading what is used: %v", err)
		}
		for what, limit := range limitsOfA {
			if n := all[what]; n < 0 || n > limit {
				f.t.Errorf("%d is used of %d, of which there may be %d", n, what, limit)
				return looks
			}
		}
	}
	return looks
}

// enough reports whether as many nodes were killed as are to be, and met all that they
// are to meet. What they meet is chance; where it does not come, the test fails in the end.
func (f *fleetOf) enough() bool {
	kills := f.kills.Load()
	_, submit := f.refused.Load("submit")
	_, claim := f.refused.Load("claim")
	_, expired := f.met.Load("expired")
	return kills >= int64(*quotaKills) && (submit && claim && expired || kills >= 20*int64(*quotaKills))
}

// However nodes are killed, between any two transactions and at any point of each, what
// tenants use is counted to the last one: never more than a quota allows, and nothing is
// left when the jobs are gone.
func TestQuotasAreExactUnderKills(t *testing.T) {
	testenv.Raced(t)

	f := &fleetOf{t: t, store: jobstest.Open(t), space: keys.New()}
	ctx, stop := context.WithCancel(t.Context())
	var nodes, watcher sync.WaitGroup
	looks := 0
	watcher.Go(func() { looks = f.watch(ctx) })
	for n := range 4 {
		nodes.Go(func() {
			for i := uint64(0); !f.enough() && !t.Failed(); i++ {
				f.life(ctx, uint64(n)<<32|i)
			}
		})
	}
	nodes.Wait()
	stop()
	watcher.Wait()
	if _, ok := f.refused.Load("submit"); !ok {
		t.Error("no submission was refused: nothing was tested")
	}
	if _, ok := f.refused.Load("claim"); !ok {
		t.Error("no claim was refused: nothing was tested")
	}
	if _, ok := f.met.Load("expired"); !ok {
		t.Error("no job was deleted whose time was over: nothing was tested")
	}
	t.Logf("%d kills, %d jobs, %d looks", f.kills.Load(), f.names.Load(), looks)
	f.settle()
}

// settle ends what killed nodes left, checks the counters, deletes all jobs, and checks
// that nothing is left of what they used.
func (f *fleetOf) settle() {
	ctx, t := f.t.Context(), f.t
	j := f.open("last")
	must := func(what string, err error) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for _, s := range f.lost {
		for {
			loss, err := j.Sessions.Expire(ctx, s.ID, s.node, s.Epoch, nil)
			must("expire", err)
			if loss.Done {
				break
			}
		}
	}
	refs, err := j.Submit.Ingests(ctx, "")
	must("submissions", err)
	f.sound(j, len(refs) > 0)
	for _, r := range refs {
		must("abandon", j.Submit.Abandon(ctx, r.Job))
	}
	f.sound(j, false)
	for {
		page, err := j.View.List(ctx, mapreduce.ListJobsQuery{PageSize: 1000})
		must("list", err)
		if len(page.Jobs) == 0 {
			break
		}
		for _, job := range page.Jobs {
			err := j.Lifecycle.Cancel(ctx, job.ID)
			if errs.KindOf(err) != errs.Precondition {
				must("cancel", err)
			}
			must("sweep", sweepJob(ctx, j, job.ID))
			must("delete", j.Lifecycle.Delete(ctx, job.ID))
		}
	}
	f.sound(j, false)
	left, err := f.uses(ctx)
	must("uses", err)
	for what, n := range left {
		if n != 0 && what != keys.UsedTokens && what != keys.UsedTokensDropped {
			t.Errorf("%d of %d is used, and no job is left", n, what)
		}
	}
	if left[keys.UsedTokens] != left[keys.UsedTokensDropped] {
		t.Errorf("%d tokens are used, and jobs that are gone account for %d", left[keys.UsedTokens], left[keys.UsedTokensDropped])
	}
}

// sound checks that a check of the store finds nothing wrong. Submissions of nodes that are
// dead are no wonder.
func (f *fleetOf) sound(j *jobs.Jobs, submissions bool) {
	f.t.Helper()
	err := j.Check.Run(f.t.Context(), func(found mapreduce.Finding) error {
		if found.Severity == mapreduce.Wrong && !submissions {
			f.t.Errorf("check: %s %s: %s", found.Job, found.Key, found.Message)
		}
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
}

// What is asked for twice, because the outcome of a commit was not known, is counted once.
func TestUseIsCountedOnce(t *testing.T) {
	broken := fault.New(jobstest.Open(t), fault.Config{})
	w := jobstest.NewWorld(t, broken, 1)
	j := w.Nodes[0]
	j.SetRules(quotaRules)
	s := jobstest.Spec()
	s.Tenant, s.Budget = "a", 1000
	f := &fleetOf{t: t, store: w.Store, space: w.Space}
	used := func(jobs, unended, units, bytes, tokens int64) {
		t.Helper()
		got, err := f.uses(t.Context())
		want := map[keys.Used]int64{keys.UsedJobs: jobs, keys.UsedUnended: unended, keys.UsedUnits: units, keys.UsedBytes: bytes, keys.UsedTokens: tokens}
		for what, n := range want {
			if got[what] != n || err != nil {
				t.Errorf("%d of %d is used, want %d (%v)", got[what], what, n, err)
			}
		}
	}
	doubt := func(what string, do func() error) {
		t.Helper()
		broken.FailNext(fault.UnknownCommitted)
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	id := mapreduce.JobID("job-1")
	doubt("begin", func() error { return j.Submit.Begin(w.Ctx, id, s) })
	used(0, 0, 0, 0, 0)
	d := jobstest.Texts(1)[0]
	b := jobstest.Batch(d, 0, 1)
	doubt("stage", func() error { return j.Submit.Stage(w.Ctx, id, &b) })
	size := int64(len(d.Text))
	used(0, 0, 1, size, 0)
	doubt("publish", func() error {
		_, err := j.Submit.Publish(w.Ctx, id, &staging.Publication{Spec: s, Shards: 1, Level: jobstest.MapLevel, Map: 1, Documents: 1, Characters: size})
		return err
	})
	used(1, 1, 1, size, 1000)
	doubt("cancel", func() error { return j.Lifecycle.Cancel(w.Ctx, id) })
	used(1, 0, 1, size, 0)
	doubt("sweep", func() error { return sweepJob(w.Ctx, j, id) })
	used(1, 0, 0, size, 0)
	doubt("delete", func() error { return j.Lifecycle.Delete(w.Ctx, id) })
	used(0, 0, 0, 0, 0)
	w.Healthy()
}

// A submission that goes no further costs no other its place, and what it would take is not
// used when it is given up. One that comes too late is refused when it is published.
func TestHalfOpenSubmissions(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	j.SetRules(func(mapreduce.TenantID) mapreduce.TenantRule {
		return mapreduce.TenantRule{Quota: mapreduce.Quota{Jobs: 1, UnendedJobs: 1, TokensPerDay: 1000}}
	})
	s := jobstest.Spec()
	s.Tenant, s.Budget = "a", 1000
	stage := func(id mapreduce.JobID) *staging.Publication {
		p, err := w.Stage(j, id, s, 1, jobstest.Texts(1))
		w.Must(err)
		return p
	}
	half, late := stage("job-half"), stage("job-late")
	_, err := j.Submit.Publish(w.Ctx, "job-whole", stage("job-whole"))
	w.Must(err)

	if _, err := j.Submit.Publish(w.Ctx, "job-late", late); errs.KindOf(err) != errs.Exhausted || errs.ReasonOf(err) != mapreduce.QuotaExceeded {
		t.Errorf("a second job is published: %v", err)
	}
	w.Must(j.Submit.Abandon(w.Ctx, "job-half", "job-late"))
	if found := w.Sound(); len(found) > 0 {
		t.Errorf("doctor finds %q", found)
	}
	if err := j.Submit.Begin(w.Ctx, "job-next", s); errs.ReasonOf(err) != mapreduce.QuotaExceeded {
		t.Errorf("a submission begins for which there is no place: %v", err)
	}
	w.Must(j.Lifecycle.Cancel(w.Ctx, "job-whole"))
	w.Must(sweepJob(w.Ctx, j, "job-whole"))
	w.Must(j.Lifecycle.Delete(w.Ctx, "job-whole"))
	if _, err := j.Submit.Publish(w.Ctx, "job-half", half); err == nil {
		t.Error("a submission that was given up becomes a job")
	}
	_, err = j.Submit.Publish(w.Ctx, "job-last", stage("job-last"))
	w.Must(err)
	w.Healthy()
}

// What is refused says whose quota it was, how much is used and was asked for, and when to
// try again where that helps.
func TestWhatQuotasSay(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	quota := mapreduce.Quota{}
	j.SetRules(func(mapreduce.TenantID) mapreduce.TenantRule { return mapreduce.TenantRule{Quota: quota} })
	s := jobstest.Spec()
	s.Tenant, s.Budget = "a", 100
	w.Submit(j, s, jobstest.Texts(3))
	for _, tt := range []struct {
		quota mapreduce.Quota
		want  string
		waits bool
	}{
		{mapreduce.Quota{Jobs: 1}, `tenant "a" has a quota (jobs) of 1, uses 1, and asks for 1 more: delete jobs that are no longer needed`, false},
		{mapreduce.Quota{UnendedJobs: 1}, `tenant "a" has a quota (unended_jobs) of 1, uses 1, and asks for 1 more: wait until one of the jobs has ended, or cancel one`, true},
		{mapreduce.Quota{WaitingUnits: 3}, `tenant "a" has a quota (waiting_units) of 3, uses 3, and asks for 1 more: wait until units have ended`, true},
		{mapreduce.Quota{StoredBytes: 60}, `tenant "a" has a quota (stored_bytes) of 60, uses 54, and asks for 18 more: delete jobs that are no longer needed`, false},
		{mapreduce.Quota{TokensPerDay: 199}, `tenant "a" has a quota (tokens_per_day) of 199, uses 100, and asks for 100 more: set a smaller budget, or wait for the next day`, true},
		{mapreduce.Quota{TokensPerDay: 99}, `tenant "a" has a quota (tokens_per_day) of 99, uses 100, and asks for 100 more: set a smaller budget, or wait for the next day`, false},
	} {
		quota = tt.quota
		_, err := w.Stage(j, mapreduce.JobID(w.Name("job")), s, 1, jobstest.Texts(1))
		known, ok := errors.AsType[*errs.Error](err)
		if !ok || known.Kind != errs.Exhausted || known.Reason != mapreduce.QuotaExceeded || known.Message != tt.want || (known.RetryAfter > 0) != tt.waits {
			t.Errorf("%+v: %v\nwant %s, waiting helps: %t", tt.quota, err, tt.want, tt.waits)
		}
	}
}

// Jobs go that ended longer ago than they are kept: by the rule of their tenant or their own
// time, whichever is shorter. The log of the tenant says so, and no other job is touched.
func TestRetention(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	j.SetRules(func(t mapreduce.TenantID) mapreduce.TenantRule {
		return map[mapreduce.TenantID]mapreduce.TenantRule{"a": {Keep: time.Hour}, "b": {}}[t]
	})
	submit := func(tenant mapreduce.TenantID, keep time.Duration, run bool) mapreduce.JobID {
		s := jobstest.Spec()
		s.Tenant, s.Keep = tenant, keep
		id := w.Submit(j, s, jobstest.Texts(2))
		if run {
			w.Run(j, id)
		}
		return id
	}
	byRule, byOwn := submit("a", 0, true), submit("a", time.Minute, true)
	longer, ofB, ownOfB, runs := submit("a", 48*time.Hour, true), submit("b", 0, true), submit("b", time.Minute, true), submit("a", time.Minute, false)
	gone := func(after time.Duration, want ...mapreduce.JobID) {
		t.Helper()
		w.Micro += after.Microseconds()
		expired, err := j.Lifecycle.Expired(w.Ctx)
		w.Must(err)
		var got []mapreduce.JobID
		for _, e := range expired {
			got = append(got, e.Job)
			w.Must(j.Lifecycle.DeleteExpired(w.Ctx, e))
			w.Must(j.Lifecycle.DeleteExpired(w.Ctx, e)) // another node has found it, too
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("after %v: %v expired, want %v", after, got, want)
		}
		w.Healthy()
	}
	if at := w.Job(byOwn).DeleteAfter.Sub(w.Job(byOwn).Ended); at != time.Minute {
		t.Errorf("a job that is to be kept a minute goes after %v", at)
	}
	if at := w.Job(longer).DeleteAfter.Sub(w.Job(longer).Ended); at != time.Hour {
		t.Errorf("a job that is to be kept longer than its tenant's goes after %v", at)
	}
	if job := w.Job(ofB); !job.DeleteAfter.IsZero() || job.Ended.IsZero() {
		t.Errorf("a job of a tenant that keeps all goes at %v", job.DeleteAfter)
	}
	gone(0)
	gone(time.Minute, byOwn, ownOfB)
	gone(time.Hour, byRule, longer)
	gone(1000 * time.Hour)
	for _, id := range []mapreduce.JobID{ofB, runs} {
		w.Job(id)
	}
	page, err := w.Look.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Tenant: "a", Verify: true, PageSize: 10})
	w.Must(err)
	if len(page.Checkpoints) != 3 || len(page.Seals) != 3 {
		t.Fatalf("the log of a has %d entries, want 3", len(page.Checkpoints))
	}
	if d := page.Checkpoints[0].Deleted; d.Job != byOwn || d.Rule != "the job was to be kept for 1m0s" || d.State != mapreduce.JobComplete {
		t.Errorf("the first entry is of %+v", d)
	}
	if d := page.Checkpoints[1].Deleted; d.Rule != "jobs of the tenant are kept for 1h0m0s" {
		t.Errorf("the second entry is of %+v", d)
	}
}

// A job that goes on after it was found is not deleted.
func TestAJobThatGoesOnIsKept(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	j.SetRules(func(mapreduce.TenantID) mapreduce.TenantRule { return mapreduce.TenantRule{Keep: time.Hour} })
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	w.Must(j.Lifecycle.Fail(w.Ctx, id, records.AnyEpoch, "for a test"))
	w.Micro += 2 * time.Hour.Microseconds()
	expired, err := j.Lifecycle.Expired(w.Ctx)
	w.Must(err)
	if len(expired) != 1 {
		t.Fatalf("%d expired, want 1", len(expired))
	}
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Must(j.Lifecycle.DeleteExpired(w.Ctx, expired[0]))
	w.Must(j.Lifecycle.Fail(w.Ctx, id, records.AnyEpoch, "again"))
	w.Must(j.Lifecycle.DeleteExpired(w.Ctx, expired[0]))
	if got := w.Job(id); !got.Ended.Equal(got.Updated) {
		t.Errorf("it ended at %v, and was changed at %v", got.Ended, got.Updated)
	}
	w.Healthy()
}

// Every event that a call has caused names its principal, and no other event does.
func TestEventsNamePrincipals(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	as := func(name string) {
		w.Ctx = mapreduce.WithActor(t.Context(), mapreduce.Principal{Name: name, Tenant: "a"})
	}
	s := jobstest.Spec()
	s.Tenant = "a"
	as("dns:ann")
	id := w.Submit(j, s, jobstest.Texts(1))
	as("dns:bob")
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "lunch"))
	as("dns:cid")
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Ctx = mapreduce.WithCaller(t.Context(), mapreduce.Principal{Name: "dns:worker"}) // whose report ends it
	w.Run(j, id)
	as("dns:dan")
	_, err := j.Audit.Seal(w.Ctx, id)
	w.Must(err)
	page, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, Verify: true, PageSize: 100})
	w.Must(err)
	var got []string
	for _, c := range page.Checkpoints {
		if c.Principal != "" {
			got = append(got, fmt.Sprintf("%s %s %s", c.Kind, c.Principal, c.Tenant))
		}
	}
	want := []string{"submitted dns:ann a", "state dns:bob a", "state dns:cid a"}
	if !slices.Equal(got, want) {
		t.Errorf("events by call: %q, want %q", got, want)
	}
	w.Must(j.Lifecycle.Delete(w.Ctx, id))
	page, err = j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Tenant: "a", Verify: true, PageSize: 100})
	w.Must(err)
	if len(page.Checkpoints) != 1 || page.Checkpoints[0].Principal != "dns:dan" || page.Checkpoints[0].Deleted.Job != id || page.Checkpoints[0].Deleted.Seals == 0 {
		t.Errorf("the log has %+v", page.Checkpoints)
	}
	w.Write(func(tx store.Tx) {
		entry := w.Get(w.Space.Tenant("a").LogEntry(1))
		entry[len(entry)/2] ^= 1
		tx.Set(w.Space.Tenant("a").LogEntry(1), entry)
	})
	if len(w.Findings()) == 0 {
		t.Error("a changed entry of a log is not found")
	}
}
