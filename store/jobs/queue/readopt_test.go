package queue_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
)

// A worker that was given up and comes back may hold more than one record of
// what it holds can name.
func TestManyUnitsAreTakenBack(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	docs := jobstest.Texts(250)
	for i := range docs {
		docs[i].ID = fmt.Sprintf("%s/%05d", strings.Repeat("d", 500), i)
	}
	id := w.Submit(j, jobstest.Spec(), docs)
	s := w.Session(j)
	var holding []protocol.Held
	for len(holding) < len(docs) {
		for _, u := range w.Claim(j, id, s, 50) {
			holding = append(holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
		}
	}
	jobstest.WentBack(t, w.Expire(j, s), len(docs))
	s, b := w.Bind(j, s.ID, holding...)
	if len(b.Kept) != len(docs) || len(b.Drop) != 0 {
		t.Fatalf("%d units were taken back and %d not, want all %d", len(b.Kept), len(b.Drop), len(docs))
	}
	// What is recorded of them is all there: lost again, they all go back.
	jobstest.WentBack(t, w.Expire(j, s), len(docs))
	if job := w.Job(id); job.RunningUnits != 0 {
		t.Errorf("%d units did not go back", job.RunningUnits)
	}
}

// A worker that comes back is given no more of what it held than its tenant may run, of all
// its jobs together.
func TestUnitsOfSeveralJobsKeepToTheQuota(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	j.SetRules(func(mapreduce.TenantID) mapreduce.TenantRule {
		return mapreduce.TenantRule{Quota: mapreduce.Quota{Calls: 2}}
	})
	s, other := w.Session(j), w.Session(j)
	var holding []protocol.Held
	for range 2 {
		id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
		u := w.Claim(j, id, s, 1)[0]
		holding = append(holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
	}
	jobstest.WentBack(t, w.Expire(j, s), 2)
	if n := len(w.Claim(j, w.Submit(j, jobstest.Spec(), jobstest.Texts(2)), other, 1)); n != 1 {
		t.Fatalf("%d units run beside, want 1", n)
	}
	if _, b := w.Bind(j, s.ID, holding...); len(b.Kept) != 1 {
		t.Errorf("%d units were taken back; want 1, as 2 may run and 1 does", len(b.Kept))
	}
}

// A worker that comes back goes on with what it had lost as far as its job has slots: those that its node has
// and does not use, and those that no node has.
func TestUnitsTakenBackHaveSlots(t *testing.T) {
	for name, tt := range map[string]struct {
		granted int64 // to the node, of two
		idle    queue.Idle
		kept    int
	}{
		"all are used":              {2, queue.Idle{}, 0},
		"one is idle":               {2, queue.Idle{Slots: 1, Of: queue.Share{Slots: 2}}, 1},
		"one was idle":              {2, queue.Idle{Slots: 1, Of: queue.Share{Slots: 2, Taken: 1}}, 0},
		"nobody has one":            {1, queue.Idle{}, 1},
		"one is idle, and one free": {1, queue.Idle{Slots: 1, Of: queue.Share{Slots: 1}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j, sp := w.Nodes[0], jobstest.Spec()
			sp.Parallelism = 2
			id := w.Submit(j, sp, jobstest.Texts(4))
			s := w.Session(j)
			hello := &protocol.Hello{Session: s.ID, Slots: 4}
			for _, u := range w.Claim(j, id, s, 2) {
				hello.Holding = append(hello.Holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
			}
			jobstest.WentBack(t, w.Expire(j, s), 2)
			_, err := j.Grants.Grant(w.Ctx, id, nodes.GrantRequest{Slots: tt.granted, Parallelism: 2})
			w.Must(err)

			b, err := j.Sessions.Bind(w.Ctx, hello, "", s.Epoch+10, map[mapreduce.JobID]queue.Idle{id: tt.idle})
			w.Must(err)
			if len(b.Kept) != tt.kept || len(b.Drop) != 2-tt.kept {
				t.Errorf("%d units are kept and %d dropped, want %d kept", len(b.Kept), len(b.Drop), tt.kept)
			}
			w.Healthy()
		})
	}
}

// A worker that comes back goes on with what it had lost as far as there are calls of models: of those that its node
// has and does not use, and of those that no node has. A job whose units call none needs none.
func TestUnitsTakenBackHaveCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		granted int64 // to the node, of two
		calls   *queue.Calls
		slots   int // of the worker
		kept    int
	}{
		"no call is needed":         {granted: 2, kept: 2},
		"all are used":              {granted: 2, calls: &queue.Calls{Limit: 2}},
		"one is idle":               {granted: 2, calls: &queue.Calls{Idle: 1, Of: queue.Share{Slots: 2}, Limit: 2}, kept: 1},
		"others have taken it":      {granted: 2, calls: &queue.Calls{Idle: 1, Of: queue.Share{Slots: 2, Taken: 1}, Limit: 2}},
		"nobody has one":            {granted: 1, calls: &queue.Calls{Limit: 2}, kept: 1},
		"one is idle, and one free": {granted: 1, calls: &queue.Calls{Idle: 1, Of: queue.Share{Slots: 1}, Limit: 2}, kept: 2},
		"one of two runs at once":   {granted: 1, calls: &queue.Calls{Limit: 2}, slots: 1, kept: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(4))
			s := w.Session(j)
			hello := &protocol.Hello{Session: s.ID, Slots: cmp.Or(tt.slots, 4)}
			for _, u := range w.Claim(j, id, s, 2) {
				hello.Holding = append(hello.Holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
			}
			jobstest.WentBack(t, w.Expire(j, s), 2)
			_, err := j.Grants.FleetSlots(w.Ctx, nodes.CallsRequest{Most: tt.granted, Need: tt.granted, Limit: 2})
			w.Must(err)

			b, err := j.Sessions.Bind(w.Ctx, hello, "", s.Epoch+10, map[mapreduce.JobID]queue.Idle{id: {Calls: tt.calls}})
			w.Must(err)
			if len(b.Kept) != tt.kept || len(b.Drop) != 2-tt.kept {
				t.Errorf("%d units are kept and %d dropped, want %d kept", len(b.Kept), len(b.Drop), tt.kept)
			}

			// What was free is the node's now, so that nobody else takes it.
			if tt.calls == nil {
				return
			}
			g, err := j.Grants.FleetSlots(w.Ctx, nodes.CallsRequest{Keep: 2, Limit: 2})
			w.Must(err)
			if used := int64(min(tt.kept, hello.Slots)) - tt.calls.Idle; used > 0 && g.Kept < tt.granted+used {
				t.Errorf("the node has %d calls, and its units may make %d more than the %d it had", g.Kept, used, tt.granted)
			}
			w.Healthy()
		})
	}
}

// Units of a list have items, which can be large. However large those are together that a
// lost worker held, they go back: if they did not, no server would start again.
func TestUnitsWithLargeItemsGoBack(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	docs := withLargeItems(400)
	id := w.Submit(j, jobstest.Spec(), docs)
	s := w.Session(j)
	for held := 0; held < len(docs); {
		held += len(w.Claim(j, id, s, 50))
	}
	jobstest.WentBack(t, w.Expire(j, s), len(docs))
	if job := w.Job(id); job.RunningUnits != 0 {
		t.Errorf("%d units did not go back", job.RunningUnits)
	}
	w.Healthy()
}

// withLargeItems returns documents with items as large as those of a list can be.
func withLargeItems(n int) []jobstest.Document {
	docs := jobstest.Texts(n)
	for i := range docs {
		docs[i].Item = bytes.Repeat([]byte{'7'}, lifecycle.MaxItem)
	}
	return docs
}

// However large the items and the errors of units that failed are together, all of them are
// tried again.
func TestUnitsWithLargeItemsAreTriedAgain(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	docs := withLargeItems(400)
	why := slices.Repeat([]string{strings.Repeat("why ", 256)}, 8)
	id := w.Submit(j, jobstest.Spec(), docs)
	s := w.Session(j)
	for failed := 0; failed < len(docs); {
		units := w.Claim(j, id, s, 50)
		for _, u := range units {
			w.Report(j, &protocol.Report{Job: id, Unit: u.ID, Attempt: int(u.Attempt), Outcome: protocol.Errored, Class: protocol.PermanentUnit, Errors: why})
		}
		failed += len(units)
	}
	w.Advance(j, id)
	if job := w.Job(id); job.FailedUnits != int64(len(docs)) || !job.State.Ended() {
		t.Fatalf("%d units failed, and the job is %v", job.FailedUnits, job.State)
	}
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if job := w.Job(id); job.FailedUnits != 0 || job.State.Ended() {
		t.Errorf("after the resume %d units have failed, and the job is %v", job.FailedUnits, job.State)
	}
	w.Healthy()
}

// A unit that a worker names twice is taken back once.
func TestUnitsNamedTwice(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	s := w.Session(j)
	u := w.Claim(j, id, s, 1)[0]
	h := protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}
	for range 2 { // what the session has, and then what it has lost
		if _, b := w.Bind(j, s.ID, h, h); len(b.Kept) != 1 || len(b.Drop) != 0 {
			t.Errorf("%d units are kept and %d dropped, want the one", len(b.Kept), len(b.Drop))
		}
		if n := w.Job(id).RunningUnits; n != 1 {
			t.Errorf("%d units run, want 1", n)
		}
		w.Healthy()
		epoch, _, err := j.Nodes.Epoch(w.Ctx, s.ID)
		w.Must(err)
		jobstest.WentBack(t, w.Expire(j, jobstest.Binding{ID: s.ID, Epoch: epoch}), 1)
	}
}

// A bind that comes after a later one of its session changes nothing, on whichever node.
func TestBindsOfASessionInTheWrongOrder(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	s := w.Session(j)
	u := w.Claim(j, id, s, 1)[0]
	for _, late := range w.Nodes {
		_, err := late.Sessions.Bind(w.Ctx, &protocol.Hello{Session: s.ID, Slots: 10}, "", s.Epoch-1, nil)
		if errs.KindOf(err) != errs.Aborted {
			t.Errorf("an older bind on %s: error %v", late.Node(), err)
		}
	}
	if v := w.Report(j, jobstest.Done(id, u)).Verdict; v != protocol.Accepted {
		t.Errorf("the verdict on what the session holds is %v", v)
	}
	if epoch, node, err := j.Nodes.Epoch(w.Ctx, s.ID); err != nil || epoch != s.Epoch || node != j.Node() {
		t.Errorf("the session is at epoch %d of %s (error %v), want %d of %s", epoch, node, err, s.Epoch, j.Node())
	}
}

// Of two that give back what a lost session held, each may go on with what the other has
// begun, and neither is told that all is done before it is.
func TestTwoExpireASession(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	docs := jobstest.Texts(1100)
	for i := range docs {
		docs[i].ID = fmt.Sprintf("%05d", i)
	}
	id := w.Submit(a, jobstest.Spec(), docs)
	s := w.Session(a)
	for n := 0; n < len(docs); {
		n += len(w.Claim(a, id, s, 50))
	}
	if n := w.Job(id).RunningUnits; n != int64(len(docs)) {
		t.Fatalf("%d units run, want %d", n, len(docs))
	}
	first, err := a.Sessions.Expire(w.Ctx, s.ID, a.Node(), s.Epoch, nil)
	w.Must(err)
	epoch, node, err := b.Nodes.Epoch(w.Ctx, s.ID)
	w.Must(err)
	back := first.Units
	for i, done := 0, first.Done; ; i++ {
		if left := w.Job(id).RunningUnits; done != (left == 0) {
			t.Fatalf("after %d steps it is done: %v, and %d units run", i+1, done, left)
		}
		if done {
			break
		}
		j, at, as := b, node, epoch
		if i > 0 {
			j, at, as = a, a.Node(), s.Epoch
		}
		loss, err := j.Sessions.Expire(w.Ctx, s.ID, at, as, nil)
		w.Must(err)
		back, done = back+loss.Units, loss.Done
	}
	jobstest.WentBack(t, back, len(docs))
}
