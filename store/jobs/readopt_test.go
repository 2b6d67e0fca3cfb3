package jobs_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// A worker that was given up and comes back may hold more than one record of
// what it holds can name.
func TestManyUnitsAreTakenBack(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	docs := texts(250)
	for i := range docs {
		docs[i].id = fmt.Sprintf("%s/%05d", strings.Repeat("d", 500), i)
	}
	id := w.submit(j, spec(), docs)
	s := w.session(j)
	var holding []mapreduce.Held
	for len(holding) < len(docs) {
		for _, u := range w.claim(j, id, s, 50) {
			holding = append(holding, mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
		}
	}
	wentBack(t, w.expire(j, s), len(docs))
	s, b := w.bind(j, s.id, holding...)
	if len(b.Kept) != len(docs) || len(b.Drop) != 0 {
		t.Fatalf("%d units were taken back and %d not, want all %d", len(b.Kept), len(b.Drop), len(docs))
	}
	// What is recorded of them is all there: lost again, they all go back.
	wentBack(t, w.expire(j, s), len(docs))
	if job := w.job(id); job.RunningUnits != 0 {
		t.Errorf("%d units did not go back", job.RunningUnits)
	}
}

// A worker that comes back is given no more of what it held than its tenant may run, of all
// its jobs together.
func TestUnitsOfSeveralJobsKeepToTheQuota(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	j.SetRules(func(mapreduce.TenantID) mapreduce.TenantRule {
		return mapreduce.TenantRule{Quota: mapreduce.Quota{Calls: 2}}
	})
	s, other := w.session(j), w.session(j)
	var holding []mapreduce.Held
	for range 2 {
		id := w.submit(j, spec(), texts(2))
		u := w.claim(j, id, s, 1)[0]
		holding = append(holding, mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
	}
	wentBack(t, w.expire(j, s), 2)
	if n := len(w.claim(j, w.submit(j, spec(), texts(2)), other, 1)); n != 1 {
		t.Fatalf("%d units run beside, want 1", n)
	}
	if _, b := w.bind(j, s.id, holding...); len(b.Kept) != 1 {
		t.Errorf("%d units were taken back; want 1, as 2 may run and 1 does", len(b.Kept))
	}
}

// Units of a list have items, which can be large. However large those are together that a
// lost worker held, they go back: if they did not, no server would start again.
func TestUnitsWithLargeItemsGoBack(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	docs := withLargeItems(400)
	id := w.submit(j, spec(), docs)
	s := w.session(j)
	for held := 0; held < len(docs); {
		held += len(w.claim(j, id, s, 50))
	}
	wentBack(t, w.expire(j, s), len(docs))
	if job := w.job(id); job.RunningUnits != 0 {
		t.Errorf("%d units did not go back", job.RunningUnits)
	}
	w.healthy()
}

// withLargeItems returns documents with items as large as those of a list can be.
func withLargeItems(n int) []document {
	docs := texts(n)
	for i := range docs {
		docs[i].item = bytes.Repeat([]byte{'7'}, lifecycle.MaxItem)
	}
	return docs
}

// However large the items and the errors of units that failed are together, all of them are
// tried again.
func TestUnitsWithLargeItemsAreTriedAgain(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	docs := withLargeItems(400)
	why := slices.Repeat([]string{strings.Repeat("why ", 256)}, 8)
	id := w.submit(j, spec(), docs)
	s := w.session(j)
	for failed := 0; failed < len(docs); {
		units := w.claim(j, id, s, 50)
		for _, u := range units {
			w.report(j, &mapreduce.Report{Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: mapreduce.Errored, Class: mapreduce.PermanentUnit, Errors: why})
		}
		failed += len(units)
	}
	w.advance(j, id)
	if job := w.job(id); job.FailedUnits != int64(len(docs)) || !job.State.Ended() {
		t.Fatalf("%d units failed, and the job is %v", job.FailedUnits, job.State)
	}
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	if job := w.job(id); job.FailedUnits != 0 || job.State.Ended() {
		t.Errorf("after the resume %d units have failed, and the job is %v", job.FailedUnits, job.State)
	}
	w.healthy()
}

// A unit that a worker names twice is taken back once.
func TestUnitsNamedTwice(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2))
	s := w.session(j)
	u := w.claim(j, id, s, 1)[0]
	h := mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}
	for range 2 { // what the session has, and then what it has lost
		if _, b := w.bind(j, s.id, h, h); len(b.Kept) != 1 || len(b.Drop) != 0 {
			t.Errorf("%d units are kept and %d dropped, want the one", len(b.Kept), len(b.Drop))
		}
		if n := w.job(id).RunningUnits; n != 1 {
			t.Errorf("%d units run, want 1", n)
		}
		w.healthy()
		epoch, _, err := j.Nodes.Epoch(w.ctx, s.id)
		w.must(err)
		wentBack(t, w.expire(j, binding{s.id, epoch}), 1)
	}
}

// A bind that comes after a later one of its session changes nothing, on whichever node.
func TestBindsOfASessionInTheWrongOrder(t *testing.T) {
	w := newWorld(t, open(t), 2)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(1))
	s := w.session(j)
	u := w.claim(j, id, s, 1)[0]
	for _, late := range w.nodes {
		_, err := late.Sessions.Bind(w.ctx, &mapreduce.Hello{Session: s.id, Slots: 10}, "", s.epoch-1)
		if errs.KindOf(err) != errs.Aborted {
			t.Errorf("an older bind on %s: error %v", late.Node(), err)
		}
	}
	if v := w.report(j, done(id, u)).Verdict; v != mapreduce.Accepted {
		t.Errorf("the verdict on what the session holds is %v", v)
	}
	if epoch, node, err := j.Nodes.Epoch(w.ctx, s.id); err != nil || epoch != s.epoch || node != j.Node() {
		t.Errorf("the session is at epoch %d of %s (error %v), want %d of %s", epoch, node, err, s.epoch, j.Node())
	}
}

// Of two that give back what a lost session held, each may go on with what the other has
// begun, and neither is told that all is done before it is.
func TestTwoExpireASession(t *testing.T) {
	w := newWorld(t, open(t), 2)
	a, b := w.nodes[0], w.nodes[1]
	docs := texts(1100)
	for i := range docs {
		docs[i].id = fmt.Sprintf("%05d", i)
	}
	id := w.submit(a, spec(), docs)
	s := w.session(a)
	for n := 0; n < len(docs); {
		n += len(w.claim(a, id, s, 50))
	}
	if n := w.job(id).RunningUnits; n != int64(len(docs)) {
		t.Fatalf("%d units run, want %d", n, len(docs))
	}
	first, err := a.Sessions.Expire(w.ctx, s.id, a.Node(), s.epoch, nil)
	w.must(err)
	epoch, node, err := b.Nodes.Epoch(w.ctx, s.id)
	w.must(err)
	back := first.Units
	for i, done := 0, first.Done; ; i++ {
		if left := w.job(id).RunningUnits; done != (left == 0) {
			t.Fatalf("after %d steps it is done: %v, and %d units run", i+1, done, left)
		}
		if done {
			break
		}
		j, at, as := b, node, epoch
		if i > 0 {
			j, at, as = a, a.Node(), s.epoch
		}
		loss, err := j.Sessions.Expire(w.ctx, s.id, at, as, nil)
		w.must(err)
		back, done = back+loss.Units, loss.Done
	}
	wentBack(t, back, len(docs))
}

// expire has a node put back all units of a lost session, and returns how many it says
// those were.
func (w *world) expire(j *jobs.Jobs, s binding) (back int) {
	w.Helper()
	for {
		loss, err := j.Sessions.Expire(w.ctx, s.id, j.Node(), s.epoch, nil)
		w.must(err)
		if back += loss.Units; loss.Done {
			return back
		}
	}
}

// wentBack checks how many units were said to have been put back. On a cluster a step
// whose commit was not seen counts only what its next try did.
func wentBack(t *testing.T, n, want int) {
	t.Helper()
	if _, cluster := driver.Cluster(t); n > want || n < want && !cluster {
		t.Errorf("%d units are said to have gone back, want %d", n, want)
	}
}
