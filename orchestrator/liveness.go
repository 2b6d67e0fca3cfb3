package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/supervise"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
)

// A nodeSighting is what was last seen of another orchestrator: its count, and since
// when, on this process's own clock that runs while the store answers.
type nodeSighting struct {
	count int64
	since time.Duration
}

// beatLoop shows that this orchestrator lives, and watches the others: one whose
// count has not moved for two beats may be dead, and one whose count has not
// moved for the lease is, on this process's own clock and while the store was
// healthy. No other clock has a say, and on this one rests only how soon.
func (o *Orchestrator) beatLoop(ctx context.Context) {
	seen := make(map[mapreduce.NodeID]nodeSighting)
	count, answered := int64(1), time.Now()
	supervise.CallEvery(ctx, o.config.Beat, func() {
		count++
		begun := time.Now()
		signs, err := o.signOfLife(ctx, count)
		now := time.Now()
		if err != nil {
			o.supervisor.LogFailure(ctx, "giving a sign of life", err)
			o.supervisor.NoteStoreAway(now)
			return
		}
		o.supervisor.NoteStoreWorks()
		o.keepPace(now.Sub(begun))
		o.supervisor.NoteAnswer(now)
		if now.Sub(answered) > 2*o.config.Lease {
			clear(seen) // nobody could show life for long: everyone gets a full lease again
		}
		answered = now
		if signs.Seen {
			o.seeRuns(signs.Runs)
		}
		o.nodesGone(signs.Beats)
		delete(signs.Beats, o.jobs.Node())
		o.watchNodes(seen, signs.Beats, o.supervisor.StoreUptime())
	})
}

// patience is how long a sign of life may take before the store counts as away. A
// cluster that does not answer says nothing, and has no time-out of its own.
const patience = 5 * time.Second

// errAway says that a store does not answer.
var errAway = fmt.Errorf("no answer for %v: %w", patience, store.ErrProcessBehind)

func (o *Orchestrator) signOfLife(ctx context.Context, count int64) (*jobs.Signs, error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, errAway)
	defer stop()
	return o.jobs.Beat(ctx, count)
}

// noteKnownNodes notes who else there may be: until one is known to be dead, it lives.
func (o *Orchestrator) noteKnownNodes(beats map[mapreduce.NodeID]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.liveNodes, o.knownNodes = len(beats)-1, beats
}

// seeRuns notes the jobs that may run, as a beat has seen them.
func (o *Orchestrator) seeRuns(refs []jobs.RunRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs, o.runsSeen = refs, true
}

// seenRuns returns the jobs that may run: what the last beat has seen, but that
// only once, and without it reads them.
func (o *Orchestrator) seenRuns(ctx context.Context) ([]jobs.RunRef, error) {
	o.mu.Lock()
	refs, seen := o.runs, o.runsSeen
	o.runs, o.runsSeen = nil, false
	o.mu.Unlock()
	if seen {
		return refs, nil
	}
	return o.jobs.Runs(ctx)
}

// nodesGone sees to the trees of all jobs when an orchestrator is no more: what
// units had ended there, it may not have told anybody.
func (o *Orchestrator) nodesGone(beats map[mapreduce.NodeID]int64) {
	o.mu.Lock()
	gone := false
	for node := range o.knownNodes {
		_, there := beats[node]
		gone = gone || !there
	}
	o.knownNodes = maps.Clone(beats)
	o.mu.Unlock()
	if !gone {
		return
	}
	for _, id := range o.inheritAll() {
		o.signals.MarkDue(id)
	}
}

// inheritAll has all trees looked at as a whole, and returns the jobs.
func (o *Orchestrator) inheritAll() []mapreduce.JobID {
	ids := o.scheduler.runningJobs()
	for _, id := range ids {
		o.signals.RequestTreeLook(id)
	}
	return ids
}

// watchNodes notes the counts of other orchestrators, and those that are silent.
func (o *Orchestrator) watchNodes(seen map[mapreduce.NodeID]nodeSighting, beats map[mapreduce.NodeID]int64, now time.Duration) {
	silent := make(map[mapreduce.NodeID]nodeSighting)
	alive, rank := 0, 0
	for node, n := range beats {
		s, known := seen[node]
		if !known || s.count != n {
			s = nodeSighting{n, now}
			seen[node] = s
		}
		quiet := now - s.since
		if quiet < o.config.Lease {
			alive++
			if node < o.jobs.Node() {
				rank++
			}
		}
		if quiet > o.config.Beat*3/2 { // two beats, were clocks and the store exact
			silent[node] = s
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.liveNodes, o.rank, o.silentNodes = alive, rank, silent
	for node := range o.suspects {
		if _, still := silent[node]; !still {
			delete(o.suspects, node) // it was only slow, or is forgotten
		}
	}
	if len(silent) > 0 {
		o.nodesSuspected.Wake()
	}
}

// failoverLoop sees to what silent orchestrators have left. It is not done between two
// signs of life, as there may be much of it.
func (o *Orchestrator) failoverLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.nodesSuspected.C():
		}
		o.mu.Lock()
		silent := maps.Clone(o.silentNodes)
		o.mu.Unlock()
		for node, s := range silent {
			_, err := o.suspectNode(ctx, node, s.count)
			o.supervisor.LogFailure(ctx, "doubting an orchestrator; trying again", err, "node", node)
		}
		for node, s := range silent {
			if o.silentFor(s) >= o.config.Lease && o.stillQuiet(node, s) {
				err := o.takeOverNode(ctx, node, s.count)
				o.supervisor.LogFailure(ctx, "taking over from an orchestrator; trying again", err, "node", node)
			}
		}
	}
}

// suspectNode has what a silent orchestrator was granted and does not use given to
// those who need it. Its workers have the lease to turn up.
func (o *Orchestrator) suspectNode(ctx context.Context, node mapreduce.NodeID, count int64) (*jobs.Doubt, error) {
	d, err := o.jobs.Doubt(ctx, node, count, newID())
	if err != nil || d == nil {
		return nil, err
	}
	o.mu.Lock()
	before := o.suspects[node]
	o.suspects[node] = d
	o.mu.Unlock()
	if before == nil {
		o.log.Info("orchestrator is silent; what it does not use is free", "node", node, "holds", d.All)
	}
	if before == nil || before.ID != d.ID || !maps.Equal(before.Held, d.Held) {
		o.scheduler.callsChange()
		for _, id := range o.scheduler.runningJobs() {
			o.signals.MarkDue(id)
		}
	}
	return d, nil
}

// takeOverExclusive takes over what earlier runs left on a store that only this
// orchestrator can use. Workers of theirs that may still live get the grace
// period to connect here.
func (o *Orchestrator) takeOverExclusive(ctx context.Context) error {
	beats, err := o.jobs.Beats(ctx)
	if err != nil {
		return err
	}
	for node, count := range beats {
		if node == o.jobs.Node() {
			continue
		}
		d, err := o.suspectNode(ctx, node, count)
		if err != nil {
			return err
		}
		if err := o.abandonOf(ctx, node); err != nil {
			return err
		}
		if err := o.takeOver(ctx, node, count, d, false); err != nil { // which forgets it
			return err
		}
	}
	return nil
}

// takeOverNode takes over what a dead orchestrator left.
func (o *Orchestrator) takeOverNode(ctx context.Context, node mapreduce.NodeID, count int64) error {
	d, err := o.suspectNode(ctx, node, count)
	if err != nil || d == nil {
		return err
	}
	o.log.Warn("orchestrator is dead; taking over", "node", node)
	if err := o.abandonOf(ctx, node); err != nil {
		return err
	}
	return o.takeOver(ctx, node, count, d, true)
}

// takeOver expires the sessions that a dead node had. now says that they have
// had the time to connect elsewhere.
func (o *Orchestrator) takeOver(ctx context.Context, node mapreduce.NodeID, count int64, d *jobs.Doubt, now bool) error {
	waiting := 0
	var after mapreduce.SessionID
	for {
		page, more, err := o.jobs.Sessions(ctx, after, 500)
		if err != nil {
			return err
		}
		for _, s := range page {
			after = s.Session
			switch {
			case s.Node != node && !s.Expiring():
			case now || s.Embedded || s.Expiring():
				if err := o.expireSession(ctx, s, nil); err != nil {
					return err
				}
			default:
				waiting++
			}
		}
		if !more {
			break
		}
	}
	if waiting > 0 {
		o.takeOverLater(node, count, d)
		return nil
	}
	if err := o.jobs.Forget(ctx, node, count, d); err != nil {
		return err
	}
	o.scheduler.callsChange()
	for _, id := range o.scheduler.runningJobs() {
		o.signals.MarkDue(id) // all that it was granted is free
	}
	return nil
}

// takeOverLater expires the sessions of a dead node that are left after the
// grace period.
func (o *Orchestrator) takeOverLater(node mapreduce.NodeID, count int64, d *jobs.Doubt) {
	o.supervisor.AfterGrace(o.config.Grace, func(ctx context.Context) {
		if err := o.takeOver(ctx, node, count, d, true); err != nil {
			o.supervisor.LogFailure(ctx, "taking over from an orchestrator; trying again", err, "node", node)
			o.takeOverLater(node, count, d)
		}
	})
}

// expireAfter expires a session unless it is taken up again within d.
func (o *Orchestrator) expireAfter(s jobs.SessionRef, running map[mapreduce.Held]bool, d time.Duration) {
	o.supervisor.AfterGrace(d, func(ctx context.Context) {
		if err := o.expireSession(ctx, s, running); err != nil && ctx.Err() == nil {
			o.supervisor.LogFailure(ctx, "expiring a session; trying again", err, "session", s.Session)
			o.expireAfter(s, running, time.Second)
		}
	})
}

func (o *Orchestrator) expireSession(ctx context.Context, s jobs.SessionRef, running map[mapreduce.Held]bool) error {
	units := 0
	for {
		loss, err := o.jobs.Expire(ctx, s.Session, s.Node, s.Epoch, running)
		if err != nil {
			o.inheritAll() // it may have happened nevertheless
			return err
		}
		units += loss.Units
		for _, id := range loss.Jobs {
			o.signals.NoteEndedInputs(id, loss.Told[id])
			o.scheduler.rereadQueue(id)
			o.signals.MarkDue(id)
			o.signals.NotifyWatchers(id)
		}
		for _, h := range loss.SetAside {
			o.log.Error("unit set aside: its workers died while they ran it", "job", h.Job, "unit", h.Unit)
		}
		if loss.Done {
			break
		}
	}
	if err := o.settleSlots(ctx, s); err != nil {
		return err
	}
	if units > 0 {
		o.log.Warn("worker lost", "session", s.Session, "units", units)
	}
	return nil
}

// settleSlots stops counting what a session held that was given up, or has gone
// elsewhere: then its slots went with it, and how many are left here is read
// anew first. If it was here since, that is not over.
func (o *Orchestrator) settleSlots(ctx context.Context, ref jobs.SessionRef) error {
	b := o.scheduler
	b.mu.Lock()
	s := b.away[ref.Session]
	if s != nil && s.epoch > ref.Epoch {
		s = nil
	}
	held := make(map[mapreduce.JobID]bool)
	if s != nil {
		for key := range s.held {
			held[key.job] = true
		}
	}
	b.mu.Unlock()
	for job := range held {
		_, _, err := o.requestGrant(ctx, job, func() (jobs.GrantRequest, bool) { return jobs.GrantRequest{}, true })
		if errs.KindOf(err) == errs.NotFound && err != nil {
			continue
		}
		if err != nil {
			return err
		}
		o.signals.MarkDue(job)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s != nil {
		b.letGo(s)
	}
	return nil
}

// abandonOf removes submissions that a dead node had under way.
func (o *Orchestrator) abandonOf(ctx context.Context, node mapreduce.NodeID) error {
	refs, err := o.jobs.Ingests(ctx)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ref.Node != node {
			continue
		}
		if err := o.jobs.Abandon(ctx, ref.Job); err != nil {
			return err
		}
	}
	return nil
}

// wakeLoop looks for work whenever another orchestrator says that there is some.
// The watch is armed before the look, so that nothing falls in between.
func (o *Orchestrator) wakeLoop(ctx context.Context) {
	for ctx.Err() == nil {
		armed, stop := context.WithCancel(ctx)
		woken, err := o.jobs.Watch(armed)
		o.scheduler.lookAtAll()
		for _, id := range o.scheduler.primingJobs() {
			o.signals.MarkDue(id)
		}
		if err == nil {
			err = o.refreshJobs(ctx, o.jobs.Runs)
		}
		if err == nil && !o.isOnlyNode() {
			o.scheduler.callsChange()
			err = o.fleetSlots(ctx)
		}
		if err != nil {
			o.supervisor.LogFailure(ctx, "looking for work; trying again", err)
			woken = nil
		}
		t := time.NewTimer(supervise.WithJitter(15 * time.Second)) // polls look as well
		select {
		case <-woken:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		stop()
	}
}

// pollLoop is the net under everything that is otherwise told.
func (o *Orchestrator) pollLoop(ctx context.Context) {
	supervise.CallEvery(ctx, supervise.WithJitter(o.config.Poll), func() {
		o.endSilentStreams()
		o.supervisor.LogFailure(ctx, "looking for work", o.refreshJobs(ctx, o.seenRuns))
		o.scheduler.callsPoll(o.isOnlyNode())
		o.supervisor.LogFailure(ctx, "asking for the fleet's slots", o.fleetSlots(ctx))
		for _, id := range o.turnOf(polled) {
			o.scheduler.rereadQueue(id)
			o.signals.MarkDue(id)
			o.supervisor.LogFailure(ctx, "looking for units that sleep", o.findSleepers(ctx, id), "job", id)
			o.supervisor.LogFailure(ctx, "pausing a job", o.pauseStuck(ctx, id), "job", id)
		}
	})
}

// polled is how many jobs one poll looks at, so that it does not take longer the
// more there are.
const polled = 256

// turnOf returns up to n of the jobs on the scheduler that may run, others each time.
func (o *Orchestrator) turnOf(n int) []mapreduce.JobID {
	ids := o.scheduler.runningJobs()
	slices.Sort(ids)
	if len(ids) <= n {
		return ids
	}
	at, found := slices.BinarySearch(ids, o.polledLast)
	if found {
		at++
	}
	ids = append(ids[at:], ids[:at]...)[:n]
	o.polledLast = ids[n-1]
	return ids
}

// runningJobs returns the jobs on the scheduler that may run.
func (b *scheduler) runningJobs() []mapreduce.JobID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []mapreduce.JobID
	for id, r := range b.runs {
		if r.running {
			ids = append(ids, id)
		}
	}
	return ids
}

// refreshJobs puts the jobs that may run on the scheduler, and has those looked at that
// may not any more. What it acts on it reads again: those that look returns may be a
// beat old.
func (o *Orchestrator) refreshJobs(ctx context.Context, look func(context.Context) ([]jobs.RunRef, error)) error {
	refs, err := look(ctx)
	if err != nil {
		return err
	}
	runs := make(map[mapreduce.JobID]bool, len(refs))
	for _, ref := range refs {
		runs[ref.Job] = true
		if !o.isOwnJob(ref.Job) || o.scheduler.hasJobEpoch(ref.Job, ref.Epoch) {
			continue
		}
		if err := o.refreshJob(ctx, ref.Job); err != nil && errs.KindOf(err) != errs.NotFound { // deleted meanwhile
			return err
		}
	}
	for _, id := range o.scheduler.runningJobs() {
		if !runs[id] {
			o.signals.MarkDue(id)
		}
	}
	return nil
}

// refreshJob brings one job on the scheduler up to date.
func (o *Orchestrator) refreshJob(ctx context.Context, id mapreduce.JobID) error {
	st, err := o.jobs.Standing(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case !o.isOwnJob(id):
	case !mapreduce.JobState(st.Ctl.State).Running():
		o.signals.MarkDue(id) // it may be that a cancel has begun and is not done
	case !o.scheduler.hasJobEpoch(id, st.Ctl.Epoch):
		o.scheduleJob(ctx, id, st, nil, nil)
	}
	return nil
}

// scheduleJob puts a job on the scheduler, compiled if it is not yet. waiting are the
// units that wait, if these are known and all there are.
func (o *Orchestrator) scheduleJob(ctx context.Context, id mapreduce.JobID, st *jobs.Standing, compiled *jobspec.Compiled, waiting []jobs.Candidate) {
	spec := jobs.SpecOf(st.Record.Config)
	if compiled == nil {
		var err error
		compiled, err = o.specs.Compiled(id, &spec)
		o.supervisor.LogFailure(ctx, "reading the pipeline of a job", err, "job", id) // whose units cannot be checked
	}
	stages := jobspec.NewStages(compiled, st.Ctl)
	if stage := stages.Current(); stage != nil {
		spec = jobspec.ForStage(spec, stage)
	}
	spec.Budget = st.Ctl.Budget
	share := int64(0)
	if n := st.Record.Documents - st.Record.SkippedDocuments; n > 0 {
		share = spec.Budget / n
	}
	if o.usesPriming(st.Ctl, &spec) {
		o.scheduler.startPriming(id)
	}
	o.scheduler.putJob(id, st.Ctl, &spec, stages, o.config.Provider(spec.Provider).Models, share, waiting)
	if st.Ctl.TreeTop > 0 {
		o.signals.RequestTreeLook(id)
	}
	o.signals.MarkDue(id)
	for _, ref := range st.Sleepers {
		o.scheduleWakeUp(id, ref)
	}
	o.scheduler.sleepersSeen(id, st.NextParked)
}

// isOwnJob reports whether this orchestrator runs a job.
func (o *Orchestrator) isOwnJob(id mapreduce.JobID) bool {
	if o.config.Adopt {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ownJobs[id]
}

// markOwnJob makes a job one that this orchestrator runs.
func (o *Orchestrator) markOwnJob(id mapreduce.JobID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ownJobs[id] = true
}

// sleepersPage is how many units that back off, and how many parked ones, one poll
// of a job looks at.
const sleepersPage = 1000

// findSleepers times the units of a job that back off, and further ones of those that
// are parked, from now for those that are seen for the first time.
func (o *Orchestrator) findSleepers(ctx context.Context, id mapreduce.JobID) error {
	refs, next, err := o.jobs.Sleepers(ctx, id, o.scheduler.sleepersAfter(id), sleepersPage)
	if err != nil {
		return err
	}
	o.scheduler.sleepersSeen(id, next)
	for _, ref := range refs {
		o.scheduleWakeUp(id, ref)
	}
	return nil
}

// sleepersAfter returns behind which parked unit of a job to go on looking.
func (b *scheduler) sleepersAfter(id mapreduce.JobID) mapreduce.UnitID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		return r.parkedAfter
	}
	return ""
}

// sleepersSeen notes behind which parked unit of a job to go on looking.
func (b *scheduler) sleepersSeen(id mapreduce.JobID, next mapreduce.UnitID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.runs[id]; r != nil {
		r.parkedAfter = next
	}
}

// scheduleWakeUp wakes a unit when it has slept long enough from now, unless that is seen to
// already.
func (o *Orchestrator) scheduleWakeUp(id mapreduce.JobID, ref jobs.SleeperRef) {
	o.signals.SleepUntil(time.Now().Add(ref.For), notify.Sleeper{Job: id, Sleeper: ref.Sleeper})
}

// wakeBatch is how many units are woken in one transaction.
const wakeBatch = 200

// wakeUnits puts units that have slept long enough into their queue.
func (o *Orchestrator) wakeUnits(ctx context.Context, id mapreduce.JobID, units []jobs.Sleeper) {
	for batch := range slices.Chunk(units, wakeBatch) {
		woken, err := o.jobs.Wakeup(ctx, id, batch)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			o.supervisor.LogFailure(ctx, "waking units; trying again", err, "job", id, "units", len(batch))
			for _, s := range batch {
				o.scheduleWakeUp(id, jobs.SleeperRef{Sleeper: s, For: time.Second})
			}
		}
		o.scheduler.enqueueCandidates(id, woken)
	}
}
