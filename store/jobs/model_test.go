package jobs_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A munit is a unit as the contract has it.
type munit struct {
	level    int64
	state    mapreduce.UnitState
	attempt  int64
	owner    mapreduce.SessionID // whose attempt still stands
	delayed  bool
	handle   string // parked under it
	woken    string // by the handle of the last call that woke it
	answer   string // of that call
	started  bool   // known to have been running in this attempt
	blamed   bool   // a worker was lost while it ran this attempt
	failures int64
	kills    int64
	spent    int64
	journal  string // its entries, each behind a line's end
	found    string // the texts of its evidence, the same
}

type mjob struct {
	id    mapreduce.JobID
	state mapreduce.JobState
	open  int64 // the highest level whose units may be claimed
	units map[string]*munit
	gone  int64 // spent by units that resumes dropped
	keeps bool  // journals of units that are complete
}

// sleeps reports whether a pending unit may not be claimed yet.
func (u *munit) sleeps() bool { return u.delayed || u.handle != "" }

// waiting counts the units that may be claimed.
func (m *mjob) waiting() (n int) {
	for _, u := range m.units {
		if u.state == mapreduce.Pending && !u.sleeps() && u.level <= m.open {
			n++
		}
	}
	return n
}

// An issue is an attempt that was handed out at some time.
type issue struct {
	job     mapreduce.JobID
	unit    *records.Unit
	session mapreduce.SessionID
}

func (i issue) held() protocol.Held {
	return protocol.Held{Job: i.job, Unit: i.unit.ID, Attempt: int(i.unit.Attempt)}
}

type msession struct {
	node  int
	epoch int64
}

// A machine draws operations of several nodes and sessions, and holds what they
// come to against the model.
type machine struct {
	*jobstest.World
	jobs     map[mapreduce.JobID]*mjob
	sessions map[mapreduce.SessionID]*msession // alive
	stale    []jobstest.Binding                // bindings that have ended
	issued   []issue
	deleted  int
}

func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func (m *machine) node(t *rapid.T) *jobs.Jobs {
	return m.Nodes[rapid.IntRange(0, len(m.Nodes)-1).Draw(t, "node")]
}

func (m *machine) pick(t *rapid.T) *mjob {
	if len(m.jobs) == 0 {
		m.submit(t)
	}
	return m.jobs[rapid.SampledFrom(sorted(m.jobs)).Draw(t, "job")]
}

func (m *machine) pickSession(t *rapid.T) mapreduce.SessionID {
	if len(m.sessions) == 0 {
		m.enter(t)
	}
	return rapid.SampledFrom(sorted(m.sessions)).Draw(t, "session")
}

func (m *machine) submit(t *rapid.T) {
	if len(m.jobs) >= 3 {
		return
	}
	docs := make([]jobstest.Document, rapid.IntRange(1, 6).Draw(t, "documents"))
	for i := range docs {
		docs[i] = jobstest.Document{ID: fmt.Sprintf("d%d", i), Text: fmt.Appendf(nil, "some text %d", i), Chunks: rapid.IntRange(1, 3).Draw(t, "chunks")}
		if docs[i].Parse = rapid.IntRange(0, 5).Draw(t, "parse") == 0; docs[i].Parse {
			docs[i].Chunks = 1
		}
	}
	j := m.node(t)
	s := jobstest.Spec()
	s.RequestID = mapreduce.RequestID(m.Name("request"))
	id := m.World.Submit(j, s, docs)
	m.jobs[id] = &mjob{id: id, units: make(map[string]*munit), keeps: rapid.Bool().Draw(t, "keeps")}
	m.adopt(id)
}

// adopt takes the units that the model has not seen, and the switch, from the
// store.
func (m *machine) adopt(id mapreduce.JobID) {
	k := m.jobs[id]
	ctl, err := m.Look.View.Control(m.Ctx, id)
	m.Must(err)
	k.state, k.open = mapreduce.JobState(ctl.State), ctl.OpenLevel()
	stored := m.stored(id)
	for name, u := range stored {
		if k.units[name] == nil {
			switch {
			case u.State == mapreduce.Pending && u.Attempt == 0:
			case u.ID == mapreduce.ResultUnit && u.State == mapreduce.UnitComplete && k.state == mapreduce.JobComplete:
				// A small result is stored by the transaction that ends its job: nobody claims it.
			default:
				m.Fatalf("new unit %s is %v", name, u)
			}
			k.units[name] = &munit{level: u.Level, state: u.State, attempt: u.Attempt}
		}
	}
	for name := range k.units {
		if stored[name] == nil {
			m.Fatalf("unit %s is gone", name)
		}
	}
}

func (m *machine) stored(id mapreduce.JobID) map[string]*records.Unit {
	ctl, err := m.Look.View.Control(m.Ctx, id)
	m.Must(err)
	all := make(map[string]*records.Unit)
	for level := int64(-1); level < int64(len(ctl.Levels)); level++ {
		for _, u := range m.Level(m.Look, id, level) {
			all[string(u.ID)] = u
		}
	}
	return all
}

func (m *machine) enter(t *rapid.T) {
	if len(m.sessions) >= 4 {
		return
	}
	n := rapid.IntRange(0, len(m.Nodes)-1).Draw(t, "node")
	s := m.Session(m.Nodes[n])
	m.sessions[s.ID] = &msession{n, s.Epoch}
}

func (m *machine) claim(t *rapid.T) {
	k, id := m.pick(t), m.pickSession(t)
	s := m.sessions[id]
	slots := rapid.IntRange(1, 4).Draw(t, "slots")
	units := m.World.Claim(m.Nodes[s.node], k.id, jobstest.Binding{ID: id, Epoch: s.epoch}, slots)
	want := 0
	if k.state.Running() {
		want = min(slots, k.waiting())
	}
	if len(units) != want {
		t.Fatalf("claimed %d units of %s, want %d", len(units), k.id, want)
	}
	for _, u := range units {
		mu := k.units[string(u.ID)]
		if mu.state != mapreduce.Pending || mu.sleeps() || u.Attempt != mu.attempt+1 {
			t.Fatalf("claimed %v, which is %+v", u, mu)
		}
		mu.state, mu.attempt, mu.owner, mu.blamed, mu.started = mapreduce.Processing, u.Attempt, id, false, false
		m.issued = append(m.issued, issue{k.id, u, id})
	}
}

// claimInVain claims for bindings that have ended.
func (m *machine) claimInVain(t *rapid.T) {
	if len(m.stale) == 0 {
		m.claim(t)
		return
	}
	k, s := m.pick(t), rapid.SampledFrom(m.stale).Draw(t, "binding")
	if units := m.World.Claim(m.node(t), k.id, s, 3); len(units) > 0 {
		t.Fatalf("a session that was given up claimed %v", units)
	}
}

func (m *machine) finish(t *rapid.T) {
	if len(m.issued) == 0 {
		m.claim(t) // so that there is something
		return
	}
	var turn queue.Turn
	var issues []issue
	for range rapid.IntRange(1, 4).Draw(t, "reports") {
		i := rapid.SampledFrom(m.issued).Draw(t, "attempt")
		if turn.Job == "" {
			turn.Job = i.job
		}
		if i.job != turn.Job {
			continue
		}
		issues = append(issues, i)
		turn.Reports = append(turn.Reports, queue.Report{Report: m.draw(t, i), Jitter: 0.5, Session: i.session})
	}
	res := m.Turn(m.node(t), &turn)
	failing := false
	for n, i := range issues {
		r := turn.Reports[n].Report
		want := m.expect(i, r)
		if got := res.Verdicts[n].Verdict; !slices.Contains(want, got) {
			t.Fatalf("report %+v of session %s: verdict %v, want one of %v", r, i.session, got, want)
		}
		failing = failing || r.Class == protocol.PermanentJob && res.Verdicts[n].Verdict == protocol.Accepted
	}
	if res.JobError != "" && !failing {
		t.Fatalf("job error %q out of nothing", res.JobError)
	}
}

func (m *machine) draw(t *rapid.T, i issue) *protocol.Report {
	switch rapid.IntRange(0, 9).Draw(t, "outcome") {
	case 0:
		return jobstest.Errored(i.job, i.unit, protocol.Retryable)
	case 1:
		return jobstest.Errored(i.job, i.unit, protocol.PermanentUnit)
	case 2:
		return jobstest.Errored(i.job, i.unit, protocol.PermanentJob)
	case 3:
		return jobstest.Returned(i.job, i.unit)
	case 4, 5:
		handle := rapid.SampledFrom([]string{"batch", "person"}).Draw(t, "handle")
		return jobstest.Parked(i.job, i.unit, handle, time.Duration(rapid.IntRange(0, 1).Draw(t, "minutes"))*time.Minute)
	}
	return jobstest.Done(i.job, i.unit)
}

// expect applies a report to the model and returns the verdicts that it may
// get.
func (m *machine) expect(i issue, r *protocol.Report) []protocol.Verdict {
	k := m.jobs[i.job]
	if k == nil || k.units[string(i.unit.ID)] == nil {
		return []protocol.Verdict{protocol.Gone}
	}
	u := k.units[string(i.unit.ID)]
	switch {
	case u.attempt != i.unit.Attempt || (u.owner != "" && u.owner != i.session):
		return []protocol.Verdict{protocol.Stale}
	case u.state == mapreduce.UnitCancelled && u.owner == "":
		return []protocol.Verdict{protocol.Gone}
	case u.owner == "":
		return []protocol.Verdict{protocol.Accepted}
	}
	u.spent += r.Tokens.Total()
	if u.state == mapreduce.Pending && u.blamed {
		u.kills--
	}
	u.owner, u.blamed = "", false
	if k.state == mapreduce.JobCancelled {
		u.state = mapreduce.UnitCancelled
		return []protocol.Verdict{protocol.Gone}
	}
	m.conclude(u, r)
	if u.state == mapreduce.UnitComplete && !k.keeps {
		u.journal = ""
	}
	return []protocol.Verdict{protocol.Accepted}
}

func (m *machine) conclude(u *munit, r *protocol.Report) {
	u.state = mapreduce.Pending
	switch {
	case r.Outcome == protocol.Done:
		u.state, u.answer = mapreduce.UnitComplete, ""
	case r.Outcome == protocol.Parked:
		u.handle = r.Parking.Handle
	case r.Outcome == protocol.Returned || r.Class == protocol.PermanentJob:
	default:
		u.failures++
		if u.delayed = true; r.Class == protocol.PermanentUnit || u.failures >= 3 {
			u.state, u.delayed = mapreduce.UnitFailed, false
		}
	}
}

// processing returns the attempts that a session holds.
func (m *machine) processing(id mapreduce.SessionID) []*munit {
	var all []*munit
	for _, k := range m.jobs {
		for _, u := range k.units {
			if u.owner == id && u.state == mapreduce.Processing {
				all = append(all, u)
			}
		}
	}
	return all
}

// rebind takes a session to a node, alive or given up for lost, with some of the
// attempts that it ever had.
func (m *machine) rebind(t *rapid.T) {
	if len(m.issued) == 0 {
		m.claim(t) // so that there is something
		return
	}
	id := rapid.SampledFrom(m.issued).Draw(t, "attempt").session
	var holding []protocol.Held
	kept := make(map[*munit]bool)
	for _, i := range m.issued {
		if i.session != id || !rapid.Bool().Draw(t, "holds") {
			continue
		}
		holding = append(holding, i.held())
		if k := m.jobs[i.job]; k != nil {
			u := k.units[string(i.unit.ID)]
			if u == nil || u.attempt != i.unit.Attempt || u.owner != id {
				continue
			}
			if u.state == mapreduce.Pending && k.state != mapreduce.JobCancelled {
				u.state = mapreduce.Processing
				if u.blamed {
					u.kills--
				}
				u.started, u.blamed = u.blamed, false
			}
			kept[u] = u.state == mapreduce.Processing
		}
	}
	for _, k := range m.jobs {
		for _, u := range k.units {
			if u.owner != id || u.state != mapreduce.Processing || kept[u] {
				continue
			}
			u.started = false
			if u.state = mapreduce.Pending; k.state == mapreduce.JobCancelled {
				u.state = mapreduce.UnitCancelled
			}
		}
	}
	if s := m.sessions[id]; s != nil {
		m.stale = append(m.stale, jobstest.Binding{ID: id, Epoch: s.epoch})
	}
	n := rapid.IntRange(0, len(m.Nodes)-1).Draw(t, "node")
	s, b := m.Bind(m.Nodes[n], id, holding...)
	m.sessions[id] = &msession{n, s.Epoch}
	if got, want := len(b.Kept), len(m.processing(id)); got != want {
		t.Fatalf("session %s keeps %d attempts, want %d", id, got, want)
	}
}

func (m *machine) expire(t *rapid.T) {
	id := m.pickSession(t)
	s := m.sessions[id]
	running := make(map[protocol.Held]bool)
	for _, k := range m.jobs {
		for _, name := range sorted(k.units) {
			u := k.units[name]
			if u.owner != id || u.state != mapreduce.Processing {
				continue
			}
			h := protocol.Held{Job: k.id, Unit: mapreduce.UnitID(name), Attempt: int(u.attempt)}
			if running[h] = rapid.Bool().Draw(t, "running"); running[h] || u.started {
				u.blamed, u.started = true, false
				u.kills++
			}
			if u.state = mapreduce.Pending; k.state == mapreduce.JobCancelled {
				u.state = mapreduce.UnitCancelled
			}
		}
	}
	j := m.node(t)
	for range 100 {
		loss, err := j.Sessions.Expire(m.Ctx, id, m.Nodes[s.node].Node(), s.epoch, running)
		m.Must(err)
		if loss.Done {
			break
		}
	}
	m.stale = append(m.stale, jobstest.Binding{ID: id, Epoch: s.epoch})
	delete(m.sessions, id)
}

func (m *machine) wakeup(t *rapid.T) {
	k := m.pick(t)
	j := m.node(t)
	refs, next, err := j.Queue.Sleepers(m.Ctx, k.id, "", 100)
	m.Must(err)
	if next != "" {
		t.Fatalf("more than 100 units are parked, behind %s", next)
	}
	var due []records.Sleeper
	for _, ref := range refs {
		due = append(due, ref.Sleeper)
		u := k.units[string(ref.Unit)]
		if ref.Attempt > 0 && (ref.Attempt != u.attempt || ref.For != time.Minute) {
			t.Fatalf("%+v sleeps, which is %+v", ref, u)
		}
		if u.state == mapreduce.Pending {
			u.delayed, u.handle = false, ""
		}
		// Timers of earlier waits end none of a later attempt.
		due = append(due, records.Sleeper{Unit: ref.Unit, Attempt: u.attempt - 1})
	}
	for name, u := range k.units {
		if u.delayed {
			t.Fatalf("unit %s backs off, and nobody is told", name)
		}
	}
	_, err = j.Queue.Wakeup(m.Ctx, k.id, due)
	m.Must(err)
}

// wake wakes a unit by a handle that it may be parked under, or may not.
func (m *machine) wake(t *rapid.T) {
	k := m.pick(t)
	name := rapid.SampledFrom(sorted(k.units)).Draw(t, "unit")
	u := k.units[name]
	handle := rapid.SampledFrom([]string{"batch", "person"}).Draw(t, "handle")
	answer := m.Name("answer")
	got, candidate, err := m.node(t).Queue.Wake(m.Ctx, k.id, mapreduce.UnitID(name), protocol.WakeCall{Handle: handle, Answer: []byte(answer)})
	switch {
	case u.handle == handle && u.state == mapreduce.Pending:
		u.handle, u.woken, u.answer = "", handle, answer
	case u.woken == handle:
	default:
		if errs.KindOf(err) != errs.NotFound || err == nil {
			t.Fatalf("waking %s by %q, which is %+v: %v", name, handle, u, err)
		}
		return
	}
	m.Must(err)
	if got.ID != mapreduce.UnitID(name) || (candidate != nil) != (u.state == mapreduce.Pending && !u.sleeps()) {
		t.Fatalf("waking %s by %q, which is %+v: returned %v, to be claimed at %v", name, handle, u, got, candidate)
	}
}

// answered returns the answer that attempts at a unit are given.
func (m *machine) answered(id mapreduce.JobID, name string) string {
	call, err := m.Look.View.WakeCall(m.Ctx, id, mapreduce.UnitID(name))
	m.Must(err)
	if call == nil {
		return ""
	}
	return string(call.Answer)
}

// handle returns what a stored unit is parked under.
func (m *machine) handle(id mapreduce.JobID, u *records.Unit) string {
	all, err := m.Look.View.Parkings(m.Ctx, id, []*records.Unit{u})
	m.Must(err)
	if p := all[u.ID]; p != nil {
		return p.Handle
	}
	return ""
}

func (m *machine) advance(t *rapid.T) {
	k := m.pick(t)
	m.World.Advance(m.node(t), k.id)
	m.adopt(k.id)
}

func (m *machine) pause(t *rapid.T) {
	k := m.pick(t)
	err := m.node(t).Lifecycle.Pause(m.Ctx, k.id, records.AnyEpoch, "asked for")
	if (err == nil) != (k.state.Running() || k.state == mapreduce.JobPaused) {
		t.Fatalf("pause of a job that is %v: %v", k.state, err)
	}
	if k.state.Running() {
		k.state = mapreduce.JobPaused
	}
}

func (m *machine) fail(t *rapid.T) {
	k := m.pick(t)
	m.Must(m.node(t).Lifecycle.Fail(m.Ctx, k.id, records.AnyEpoch, "it cannot go on"))
	if k.state.Running() {
		k.state = mapreduce.JobFailed
	}
}

func (m *machine) resume(t *rapid.T) {
	k := m.pick(t)
	err := m.node(t).Lifecycle.Resume(m.Ctx, k.id, mapreduce.Resume{})
	before := k.state
	if errs.KindOf(err) == errs.Unavailable && err != nil {
		m.retried(k, true) // a unit still runs: what was begun stands
		return
	}
	failures := false
	for _, u := range k.units {
		failures = failures || u.state == mapreduce.UnitFailed
	}
	ok := before != mapreduce.JobCancelled && (before != mapreduce.JobComplete || failures)
	if (err == nil) != ok && !(before == mapreduce.JobComplete && err == nil) {
		t.Fatalf("resume of a job that is %v, with failed units: %t: %v", before, failures, err)
	}
	if err == nil && !before.Running() {
		m.retried(k, false)
	}
}

// retried brings the model up to date with a resume: failed units wait again,
// and levels above may be gone.
func (m *machine) retried(k *mjob, partly bool) {
	stored := m.stored(k.id)
	for name, u := range k.units {
		now := stored[name]
		switch {
		case now == nil:
			if u.level < 1 || u.state == mapreduce.Processing {
				m.Fatalf("resume dropped %s, which was %+v", name, u)
			}
			k.gone += u.spent
			delete(k.units, name)
		case u.state == mapreduce.UnitFailed && now.State == mapreduce.Pending:
			u.state, u.failures, u.blamed = mapreduce.Pending, 0, false
		case u.state == mapreduce.UnitFailed && !partly:
			m.Fatalf("resume left %s failed", name)
		}
	}
	m.adopt(k.id)
}

func (m *machine) cancel(t *rapid.T) {
	k := m.pick(t)
	err := m.node(t).Lifecycle.Cancel(m.Ctx, k.id)
	ok := k.state == mapreduce.JobCancelled || k.state.CanBecome(mapreduce.JobCancelled)
	if (err == nil) != ok {
		t.Fatalf("cancel of a job that is %v: %v", k.state, err)
	}
	if ok {
		k.state = mapreduce.JobCancelled
	}
}

func (m *machine) sweep(t *rapid.T) {
	k := m.pick(t)
	j := m.node(t)
	var cursor []byte
	for swept := false; !swept; {
		var err error
		cursor, swept, err = j.Lifecycle.SweepCancelled(m.Ctx, k.id, cursor)
		m.Must(err)
	}
	if k.state != mapreduce.JobCancelled {
		return
	}
	for _, u := range k.units {
		if !u.state.Ended() {
			u.state, u.delayed, u.handle = mapreduce.UnitCancelled, false, ""
		}
		if u.state == mapreduce.UnitCancelled {
			u.answer = ""
		}
	}
}

func (m *machine) remove(t *rapid.T) {
	k := m.pick(t)
	err := m.node(t).Lifecycle.Delete(m.Ctx, k.id)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		err = nil // an earlier run of it deleted the job
	}
	if (err == nil) != (k.state.Ended() || k.state == mapreduce.JobPaused) {
		t.Fatalf("delete of a job that is %v: %v", k.state, err)
	}
	if err == nil {
		delete(m.jobs, k.id)
		m.deleted++
	}
}

func (m *machine) seal(t *rapid.T) {
	_, err := m.node(t).Audit.Seal(m.Ctx, m.pick(t).id)
	m.Must(err)
}

func (m *machine) check(t *rapid.T) {
	for _, id := range sorted(m.jobs) {
		k := m.jobs[id]
		spent := int64(0)
		stored := m.stored(id)
		for _, name := range sorted(k.units) {
			u, now := k.units[name], stored[name]
			if now == nil {
				t.Fatalf("unit %s of %s is gone", name, id)
			}
			got := munit{
				level: now.Level, state: now.State, attempt: now.Attempt,
				owner: now.Session, failures: now.Failures, kills: now.Kills, spent: now.Tokens.In + now.Tokens.Out,
				delayed: now.Delayed, blamed: u.blamed, started: u.started,
				handle: m.handle(id, now), woken: now.Woken, answer: m.answered(id, name), journal: m.journalOf(id, now), found: m.foundOf(id, now),
			}
			if u.state == mapreduce.UnitCancelled {
				u.journal, u.found = "", ""
			}
			if got != *u {
				t.Fatalf("unit %s of %s is %+v, want %+v", name, id, got, *u)
			}
			spent += u.spent
		}
		job, gone := m.Job(id), int64(0)
		if job.ParkedUnits != parkedOf(k) {
			t.Fatalf("job %s says that %d units are parked, want %d", id, job.ParkedUnits, parkedOf(k))
		}
		for _, s := range job.Superseded {
			gone += s.Tokens.Total()
		}
		if job.State != k.state || job.TotalTokens.Total() != spent+k.gone || gone != k.gone {
			t.Fatalf("job %s is %v with %d tokens spent, %d of them superseded; want %v with %d, %d of them superseded",
				id, job.State, job.TotalTokens.Total(), gone, k.state, spent+k.gone, k.gone)
		}
	}
	for _, f := range m.Findings() {
		t.Errorf("check: %s %s: %s", f.Job, f.Key, f.Message)
	}
}

func parkedOf(k *mjob) (n int64) {
	for _, u := range k.units {
		if u.handle != "" {
			n++
		}
	}
	return n
}

func runMachine(t *rapid.T, s, sound store.Store, after func()) {
	m := &machine{
		World: jobstest.NewWorld(t, s, 3), jobs: make(map[mapreduce.JobID]*mjob), sessions: make(map[mapreduce.SessionID]*msession),
	}
	m.Look = jobstest.NewWorld(t, sound, 1).Nodes[0]
	t.Repeat(map[string]func(*rapid.T){
		"submit": m.submit, "submit again": m.submit, "enter": m.enter, "claim": m.claim, "claim again": m.claim, "claim in vain": m.claimInVain,
		"finish": m.finish, "finish again": m.finish, "finish more": m.finish, "rebind": m.rebind, "expire": m.expire,
		"wakeup": m.wakeup, "wake": m.wake, "wake again": m.wake, "advance": m.advance, "advance again": m.advance, "pause": m.pause, "fail": m.fail, "resume": m.resume, "cancel": m.cancel,
		"sweep": m.sweep, "delete": m.remove, "keep": m.keep, "append": m.append, "find": m.findMore, "append again": m.append, "append more": m.append, "seal": m.seal, "": func(t *rapid.T) { after(); m.check(t) },
	})
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := jobstest.Open(t)
		runMachine(t, s, s, func() {})
	})
}

// Most transactions that write commit without knowing it, and run again: they
// recognise their own success.
func TestAgainstModelTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := jobstest.Open(t)
		f := fault.New(s, fault.Config{Seed: 1, Rates: fault.Rates{fault.UnknownCommitted: 0.6}})
		runMachine(t, f, s, f.Settle)
	})
}

func TestAgainstModelUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := jobstest.Open(t)
		seed := rapid.Uint64().Draw(t, "seed")
		rates := fault.Retryable(0.03)
		rates[fault.Rerun] = 0.2
		f := fault.New(s, fault.Config{Seed: seed, Rates: rates})
		runMachine(t, f, s, f.Settle)
	})
}
