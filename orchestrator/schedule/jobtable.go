package schedule

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// A jobTable is the jobs on a scheduler, and what is counted over them: there may be
// thousands of jobs, and each unit that ends may change what they may ask of a model. The
// scheduler's mu guards it.
type jobTable struct {
	byID    map[mapreduce.JobID]*Job
	uses    map[string]*modelUse       // by model
	asking  map[string]int             // running jobs that ask models, by provider
	busy    map[mapreduce.TenantID]int // units that workers of this node have and have not reported
	calling int64                      // units that call models, which this node holds
}

// A modelUse is what the jobs on the scheduler have to do with a model.
type modelUse struct {
	jobs   map[mapreduce.JobID]*Job
	asking int   // of these jobs ask it
	held   int64 // units that this node holds of those whose first model it is
	spare  int64 // units that this node holds of the others, which may fall over to it
}

func newJobTable() *jobTable {
	return &jobTable{
		byID: make(map[mapreduce.JobID]*Job), uses: make(map[string]*modelUse),
		asking: make(map[string]int), busy: make(map[mapreduce.TenantID]int),
	}
}

// find returns a job, or nil.
func (t *jobTable) find(id mapreduce.JobID) *Job { return t.byID[id] }

// getOrAdd returns a job, a new one if there is none.
func (t *jobTable) getOrAdd(id mapreduce.JobID) *Job {
	j := t.byID[id]
	if j == nil {
		j = &Job{ID: id, Reserving: make(chan struct{}, 1)}
		t.byID[id] = j
	}
	return j
}

// change has how change whose a job is, what it asks, or whether it may run. The units of a
// job that are held count by all of these.
func (t *jobTable) change(j *Job, how func()) {
	held, reported := j.held, j.reported
	t.addHeld(j, -held)
	t.addReported(j, -reported)
	t.leaveModels(j)

	how()

	t.enterModels(j)
	t.addHeld(j, held)
	t.addReported(j, reported)
}

// stop ends the claims of a job's units here.
func (t *jobTable) stop(j *Job) {
	t.addAsking(j, -1)
	j.running = false
	j.queue.Forget()
}

// remove forgets a job of which nothing is held.
func (t *jobTable) remove(j *Job) {
	t.leaveModels(j)
	delete(t.byID, j.ID)
}

// enterModels counts a job, whose spec has been set and whose units are not counted, among
// those of its models.
func (t *jobTable) enterModels(j *Job) {
	j.models = j.spec.ModelNames()
	j.model = j.models[0]

	for _, name := range j.models {
		u := t.uses[name]
		if u == nil {
			u = &modelUse{jobs: make(map[mapreduce.JobID]*Job)}
			t.uses[name] = u
		}
		u.jobs[j.ID] = j
		if j.asks {
			u.asking++
		}
	}

	t.addAsking(j, 1)
}

// leaveModels takes a job whose units are not counted off those of its models, if it has
// any.
func (t *jobTable) leaveModels(j *Job) {
	if len(j.models) == 0 {
		return
	}

	t.addAsking(j, -1)
	for _, name := range j.models {
		u := t.uses[name]
		delete(u.jobs, j.ID)
		if j.asks {
			u.asking--
		}
		if len(u.jobs) == 0 {
			delete(t.uses, name)
		}
	}

	j.model, j.models = "", nil
}

// addAsking counts a job, if it may run and asks models, n times more among those of its
// provider.
func (t *jobTable) addAsking(j *Job, n int) {
	if !j.running || !j.asks {
		return
	}
	provider := j.spec.Provider
	if t.asking[provider] += n; t.asking[provider] == 0 {
		delete(t.asking, provider)
	}
}

// addHeld notes that this node holds n units more of j, or fewer.
func (t *jobTable) addHeld(j *Job, n int) {
	j.held += n
	t.addBusy(j, n)
	if j.usesFleetCalls() {
		t.calling += int64(n)
	}

	for i, name := range j.models {
		if i == 0 {
			t.uses[name].held += int64(n)
		} else {
			t.uses[name].spare += int64(n)
		}
	}
}

// addReported notes that n units more of those that this node holds of j, or fewer, have
// been reported, so that their slots are free.
func (t *jobTable) addReported(j *Job, n int) {
	j.reported += n
	t.addBusy(j, -n)
}

// forgetHeld notes that this node does not hold a unit of j any more.
func (t *jobTable) forgetHeld(j *Job, h *workers.Attempt) {
	t.addHeld(j, -1)
	if h.IsReported() {
		t.addReported(j, -1)
	}
}

func (t *jobTable) addBusy(j *Job, n int) {
	if t.busy[j.tenant] += n; t.busy[j.tenant] == 0 {
		delete(t.busy, j.tenant)
	}
}

// busyUnits returns how many units of a tenant are in slots of this node's workers, or
// wait there.
func (t *jobTable) busyUnits(tenant mapreduce.TenantID) int { return t.busy[tenant] }

// ofModel returns the jobs of a model.
func (t *jobTable) ofModel(name string) map[mapreduce.JobID]*Job {
	if u := t.uses[name]; u != nil {
		return u.jobs
	}
	return nil
}

// askedModels returns the models that jobs here ask.
func (t *jobTable) askedModels() (names []string) {
	for name, u := range t.uses {
		if u.asking > 0 {
			names = append(names, name)
		}
	}
	return names
}

// isAsked reports whether a job here asks a model.
func (t *jobTable) isAsked(name string) bool {
	u := t.uses[name]
	return u != nil && u.asking > 0
}

// heldOf counts the units that this node holds of the jobs whose first model it is.
func (t *jobTable) heldOf(name string) int64 {
	if u := t.uses[name]; u != nil {
		return u.held
	}
	return 0
}

// spareOf counts the units that this node holds of the jobs that may fall over to a model.
func (t *jobTable) spareOf(name string) int64 {
	if u := t.uses[name]; u != nil {
		return u.spare
	}
	return 0
}

// hasWaiting reports whether a running job of a model has units waiting, or may have.
func (t *jobTable) hasWaiting(model string) bool {
	for _, j := range t.ofModel(model) {
		if j.running && !j.queue.IsEmpty() {
			return true
		}
	}
	return false
}

// heldBy counts what a session holds of the jobs of a model.
func (t *jobTable) heldBy(session *workers.Session, model string) (n int64) {
	for h := range session.Attempts() {
		if j := t.byID[h.Job]; j != nil && slices.Contains(j.models, model) {
			n++
		}
	}
	return n
}

// longestTimeout returns the longest timeout of the units that a session holds.
func (t *jobTable) longestTimeout(session *workers.Session) (most time.Duration) {
	for h := range session.Attempts() {
		if j := t.byID[h.Job]; j != nil && j.spec != nil {
			most = max(most, j.spec.UnitTimeout)
		}
	}
	return most
}

// running returns the jobs that may run.
func (t *jobTable) running() (ids []mapreduce.JobID) {
	for id, j := range t.byID {
		if j.running {
			ids = append(ids, id)
		}
	}
	return ids
}

// runningCalls returns the running jobs whose units make calls that the fleet counts.
func (t *jobTable) runningCalls() (ids []mapreduce.JobID) {
	for id, j := range t.byID {
		if j.running && j.usesFleetCalls() {
			ids = append(ids, id)
		}
	}
	return ids
}
