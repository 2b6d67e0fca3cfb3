// Package check reads a whole store and says what in it does not agree.
package check

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Run reads the whole store and calls found with each invariant that does not
// hold, and with a line of Severity Info for each job. It may run while the
// service does: it reads in short transactions, of which each sees a record and
// all that has to agree with it at one moment, and compares sums only if they
// stood still meanwhile. Its memory does not grow with the store. Damage does not
// end it: it says what cannot be read, and goes on with the rest. An error of
// found ends it.
//
// It does not look into outputs: RunWith does.
func (st *Store) Run(ctx context.Context, found func(mapreduce.Finding) error) error {
	return st.RunWith(ctx, nil, found)
}

// RunWith is Run, and also calls verify with each output.
func (st *Store) RunWith(ctx context.Context, verify Verify, found func(mapreduce.Finding) error) error {
	c := &checker{Store: st, Walker: walk.New(st.db, found), verify: verify}

	if err := c.CheckFiles(ctx); err != nil {
		return err
	}

	for _, s := range c.listSteps() {
		if err := c.ReportDamage("", s.What, s.Check(ctx)); err != nil {
			return err
		}
	}

	message := plural.Count(c.jobs, "job") + " checked, " + plural.Count(c.Wrongs, "finding")
	if c.jobs == 0 && c.Wrongs == 0 { // else jobs may be there that cannot be read
		message = "there were no jobs to check, 0 findings"
	}
	return c.Emit(mapreduce.Finding{Message: message})
}

// listSteps returns the steps of a check of a whole store.
func (c *checker) listSteps() []walk.Step {
	return slices.Concat([]walk.Step{
		{What: "jobs", Check: func(ctx context.Context) error { return c.EachJob(ctx, c.Keys.Jobs(), c.checkJob) }},
		{What: "sessions of workers", Check: c.checkSessions},
		{What: "claims of workers", Check: c.checkClaims},
		{What: "submissions under way", Check: c.checkIngests},
		{What: "list of jobs by time", Check: c.checkRecents},
		{What: "lists of tenants' jobs", Check: c.checkTenantJobs},
		{What: "list of requests", Check: c.checkRequests},
		{What: "list of jobs that run", Check: c.checkRuns},
		{What: "rooms of batches", Check: c.checkRooms},
	}, c.tenants.Steps(c.Walker), []walk.Step{
		{What: "key space", Check: c.checkSpace},
	})
}

// A Verify says what is wrong with the output of a complete unit, or nil; or it
// returns an error if that cannot be found out.
type Verify func(ctx context.Context, id mapreduce.JobID, u *records.Unit, data []byte) (why, err error)

// A checker is one run of a check.
type checker struct {
	*Store
	*walk.Walker
	verify Verify
	jobs   int
}

// deleteRemoves is the advice that findings give about entries below a job that should not be there.
const deleteRemoves = "`coditect mapreduce delete` of the job removes it"

// checkJob checks one job.
func (c *checker) checkJob(ctx context.Context, id mapreduce.JobID) error {
	k := &jobCheck{checker: c, id: id, sums: newSums()}
	var err error
	c.Torn = false

	k.before, err = k.readStanding(ctx, true)
	if err = c.ReportDamage(id, "record, control record or counters, without which it cannot be checked,", err); err != nil {
		return err
	}
	if k.before == nil {
		return nil // deleted since it was listed, or said to be broken
	}

	c.jobs++
	for _, s := range k.listSteps() {
		err := k.ReportDamage(id, s.What, s.Check(ctx))
		if err != nil && errs.KindOf(err) == errs.NotFound {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
	}

	return k.emitSummary()
}

func (k *jobCheck) listSteps() []walk.Step {
	index, data := &indexCheck{k}, &dataCheck{k}

	// Units come first, for they fill the sums, which are compared last.
	return []walk.Step{
		{What: "units, and what belongs to them", Check: k.checkUnits},
		{What: "queues", Check: index.checkQueues},
		{What: "units that back off", Check: index.checkDelayed},
		{What: "parked units", Check: index.checkParked},
		{What: "calls that woke units", Check: index.checkWoken},
		{What: "units that wait for a batch", Check: index.checkBatchable},
		{What: "lines of batches", Check: index.checkLines},
		{What: "batches", Check: k.checkBatches},
		{What: "list of failed units", Check: index.checkFailures},
		{What: "order of the documents", Check: index.checkOrder},
		{What: "results", Check: k.checkResults},
		{What: "journals of units", Check: data.checkJournals},
		{What: "evidence of units", Check: data.checkEvidences},
		{What: "tallies of documents", Check: k.checkTallies},
		{What: "documents that were left out", Check: k.countSkipped},
		{What: "plans of levels", Check: k.checkPlans},
		{What: "what reduces wait for", Check: k.sumWaits},
		{What: "grants", Check: k.checkGrants},
		{What: "inputs of reduces", Check: k.checkInputs},
		{What: "inputs that reduces picked", Check: k.checkPicks},
		{What: "ledger of completions", Check: k.checkLedger},
		{What: "audit chain", Check: k.checkSeals},
		{What: "decisions about values", Check: data.checkDecisions},
		{What: "records that are reviewed", Check: data.checkReviewing},
		{What: "causes of failed units", Check: data.checkCauses},
		{What: "record of the submission", Check: k.checkSubmitted},
		{What: "sums", Check: k.compareWhole},
	}
}

// compareWhole compares sums, if everything that goes into them could be read.
func (k *jobCheck) compareWhole(ctx context.Context) error {
	if k.Torn {
		return nil
	}
	return k.compareSums(ctx)
}

func (k *jobCheck) emitSummary() error {
	note := ""
	if k.Torn {
		note = " could be read; its sums were not compared"
	} else if !k.still {
		note = "; it moved meanwhile, so that its sums were not compared"
	}

	s := k.sums
	return k.Emit(mapreduce.Finding{Job: k.id, Message: fmt.Sprintf(
		"%s: %s, %d complete, %d failed, %s of %s, %s of %s, %s, %s%s",
		mapreduce.JobState(k.before.ctl.State), plural.Count(s.sumStates(), "unit"), s.countEnded(mapreduce.UnitComplete), s.countEnded(mapreduce.UnitFailed),
		plural.Count(s.results, "result"), plural.Count(s.resultBytes, "byte"), plural.Count(s.texts, "text"), plural.Count(s.textBytes, "byte"),
		plural.Count(s.checkpoints, "checkpoint"), plural.Count(s.seals, "seal"), note)})
}

// A jobCheck is the check of one job.
type jobCheck struct {
	*checker
	id     mapreduce.JobID
	before *standingOf
	still  bool // nothing moved while it was checked
	sums   *sums
}

// A standingOf is where a job stood at one moment.
type standingOf struct {
	ctl     *storagev1.Ctl
	rec     *storagev1.Job
	raw     []byte // of ctl
	stripes map[stripe]int64
	plan    []byte // cursor of the level that is being planned
}

// isCancelled reports whether the job's units may be on their way to their end.
func (s *standingOf) isCancelled() bool {
	return mapreduce.JobState(s.ctl.State) == mapreduce.JobCancelled
}

// isFinished reports whether the job is complete, and no resume has begun.
func (s *standingOf) isFinished() bool {
	return mapreduce.JobState(s.ctl.State) == mapreduce.JobComplete && !s.ctl.Resuming
}

// readStanding reads the state of the job. With first it also checks the records that must
// agree with the control record. It returns nil if the job is gone.
func (k *jobCheck) readStanding(ctx context.Context, first bool) (*standingOf, error) {
	var s *standingOf
	err := k.Look(ctx, k.id, func(l *walk.Look) error {
		s = nil
		now := &standingOf{ctl: new(storagev1.Ctl), rec: new(storagev1.Job)}
		values, err := l.GetAll(ctx, [][]byte{k.Keys.Job(k.id).Record(), k.Keys.Job(k.id).Ctl()})
		if err != nil {
			return err
		}

		switch {
		case values[0] == nil && values[1] == nil:
			return nil
		case values[0] == nil || values[1] == nil:
			if first {
				l.Find(k.Keys.Job(k.id).Record(), "a job has both a record and a control record, or neither; this one has only one of them; "+walk.WholeOnly)
			}
			return nil
		case !l.Decode(k.Keys.Job(k.id).Record(), values[0], now.rec) || !l.Decode(k.Keys.Job(k.id).Ctl(), values[1], now.ctl):
			// decode has reported it.
			return nil
		}

		now.raw = values[1]
		if now.stripes, err = k.readStripes(ctx, l); err != nil {
			return err
		}
		if now.plan, err = l.Get(ctx, k.Keys.Plans(k.id).Cursor(max(1, records.CountLevels(now.ctl)))); err != nil {
			return err
		}

		s = now
		if !first {
			return nil
		}
		return k.checkControl(ctx, l, s)
	})
	return s, err
}

// checkControl checks what is written in one transaction with the switch.
func (k *jobCheck) checkControl(ctx context.Context, l *walk.Look, s *standingOf) error {
	ctl, rec := s.ctl, s.rec
	tenant := mapreduce.TenantID(ctl.Tenant)
	run, recent := k.Keys.Tenant(tenant).Run(k.id), k.Keys.Recent(rec.CreatedAtMicros, k.id)
	idem := k.Keys.Tenant(tenant).Request(mapreduce.RequestID(rec.Config.GetRequestId()))
	listed := k.Keys.Tenant(tenant).Job(rec.CreatedAtMicros, k.id)
	ended := k.Keys.Tenant(tenant).Ended(ctl.EndedMicros, k.id)
	values, err := l.GetAll(ctx, [][]byte{run, recent, idem, k.Keys.Job(k.id).Ingest(), listed, ended})
	if err != nil {
		return err
	}

	state := mapreduce.JobState(ctl.State)
	if state == mapreduce.JobUnknown || state > mapreduce.JobPaused {
		l.Find(k.Keys.Job(k.id).Ctl(), "no job state has the number %d", ctl.State)
	}

	if rec.JobId != string(k.id) || rec.Status != ctl.State || rec.Error != ctl.Error {
		l.Find(k.Keys.Job(k.id).Record(), "the record says that job %q is %s, its control record says that it is %s; pause and resume it, or delete it",
			rec.JobId, mapreduce.JobState(rec.Status), state)
	}
	if rec.TotalUnits != records.TotalUnits(ctl) && !ctl.Resuming {
		l.Find(k.Keys.Job(k.id).Record(), "the record says that the job has %d units, its control record says %d", rec.TotalUnits, records.TotalUnits(ctl))
	}

	if records.IsListed(ctl) != (values[0] != nil) {
		l.Find(run, "the job is %s, and is listed to run: %t; pause and resume it", state, values[0] != nil)
	}

	// Entries that earlier versions wrote have no state.
	for i, at := range map[int][]byte{1: recent, 4: listed} {
		if said, known := records.ListedState(values[i]); known && said != state {
			l.Find(at, "the job is %s, and is listed as %s; pause and resume it, or delete it", state, said)
		}
	}

	if values[0] != nil && !bytes.Equal(values[0], records.RunValue(ctl)) {
		l.Find(run, "the job is listed to run as %q, and not as %q; pause and resume it", values[0], records.RunValue(ctl))
	}
	if values[1] == nil {
		l.Find(recent, "the job is not listed by its time")
	}
	if values[4] == nil {
		l.Find(listed, "the job is not in the list of its tenant %q", tenant)
	}

	if has := ctl.EndedMicros > 0; has != state.Ended() || has != ctl.Use.GetEnded() || has != (values[5] != nil) {
		l.Find(ended, "the job is %s; it is noted to have ended: %t, and listed so: %t; resume and cancel it, or delete it", state, has, values[5] != nil)
	}

	if rec.Config.GetRequestId() != "" && string(values[2]) != string(k.id) {
		l.Find(idem, "the request that submitted the job must lead to it, and leads to %q", values[2])
	}
	if values[3] != nil {
		l.Find(k.Keys.Job(k.id).Ingest(), "the job exists, but its submission is listed as still under way")
	}
	return nil
}
