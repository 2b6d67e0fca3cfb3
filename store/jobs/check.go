package jobs

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/tuple"
)

// Check reads the whole store and calls found with each invariant that does not
// hold, and with a line of Severity Info for each job. It may run while the
// service does: it reads in short transactions, of which each sees a record and
// all that has to agree with it at one moment, and compares sums only if they
// stood still meanwhile. Its memory does not grow with the store. Damage does not
// end it: it says what cannot be read, and goes on with the rest. An error of
// found ends it.
//
// What outputs say it does not know: see CheckWith.
func (j *Jobs) Check(ctx context.Context, found func(mapreduce.Finding) error) error {
	return j.CheckWith(ctx, nil, found)
}

// CheckWith does the same, and calls verify with each output.
func (j *Jobs) CheckWith(ctx context.Context, verify Verify, found func(mapreduce.Finding) error) error {
	c := &checker{Jobs: j, emit: found, verify: verify}
	if err := c.files(ctx); err != nil {
		return err
	}
	for _, s := range []step{
		{"jobs", c.eachJob},
		{"sessions of workers", c.sessions},
		{"claims of workers", c.claims},
		{"submissions under way", c.ingests},
		{"list of jobs by time", c.recents},
		{"list of requests", c.requests},
		{"list of jobs that run", c.runs},
		{"answers of models", c.answers},
		{"key space", c.space},
	} {
		if err := c.readable("", s.what, s.check(ctx)); err != nil {
			return err
		}
	}
	return c.say(mapreduce.Finding{Message: fmt.Sprintf("%d jobs checked, %d findings", c.jobs, c.wrongs)})
}

// A Verify says what is wrong with the output of a complete unit, or nil; or it
// returns an error if that cannot be told.
type Verify func(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, data []byte) (why, err error)

// A step checks a part of a store or of a job.
type step struct {
	what  string
	check func(context.Context) error
}

// checkPage bounds the pairs of one transaction of a check.
const checkPage = 200

// A checker is one run of Check.
type checker struct {
	*Jobs
	emit   func(mapreduce.Finding) error
	verify Verify
	jobs   int
	wrongs int
	torn   bool // something of the job that is checked cannot be read
	failed int  // looks that did, lately: the next looks at fewer things
}

func (c *checker) say(f mapreduce.Finding) error {
	if f.Severity == mapreduce.Wrong {
		c.wrongs++
	}
	return c.emit(f)
}

// A look is one transaction of a check. Its findings count when it ends well.
type look struct {
	store.Reader
	*checker
	job    mapreduce.JobID
	found  []mapreduce.Finding
	failed int // of this look and of those before it
}

// most returns how many of n things this look has time for.
func (l *look) most(n int) int { return fewer(n, 1, l.failed) }

// look runs fn, which may run again, in a transaction that only reads.
func (c *checker) look(ctx context.Context, job mapreduce.JobID, fn func(l *look) error) error {
	var l *look
	failed := c.failed
	err := c.db.View(ctx, func(tx store.Tx) error {
		l = &look{Reader: tx.Snapshot(), checker: c, job: job, failed: failed}
		failed++
		return fn(l)
	})
	if err != nil {
		return err
	}
	c.failed = max(0, l.failed-1)
	for _, f := range l.found {
		if err := c.say(f); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) wrong(key []byte, format string, args ...any) {
	l.found = append(l.found, mapreduce.Finding{
		Severity: mapreduce.Wrong, Job: l.job, Key: keyName(key), Message: fmt.Sprintf(format, args...),
	})
}

// keyName returns a key as people can read it.
func keyName(key []byte) string {
	if key == nil {
		return ""
	}
	if t, err := tuple.Unpack(key); err == nil {
		return t.String()
	}
	return fmt.Sprintf("%x", key)
}

// decode reports whether value is an encoded m, and finds fault if not.
func (l *look) decode(key, value []byte, m proto.Message) bool {
	if err := proto.Unmarshal(value, m); err != nil {
		l.wrong(key, "the value cannot be decoded: %v; restore it from a backup, or delete the job", err)
		return false
	}
	return true
}

// get decodes the value of key into m, and reports whether there is a good one.
func (l *look) get(ctx context.Context, key []byte, m proto.Message) (bool, error) {
	value, err := l.Get(ctx, key)
	if err != nil || value == nil {
		return false, err
	}
	return l.decode(key, value, m), nil
}

// pages are the bounds of a page of most walks.
func pages() store.RangeOptions {
	return store.RangeOptions{Limit: checkPage, Bytes: store.TargetTxSize}
}

// eachJob checks all jobs, by their records for display.
func (c *checker) eachJob(ctx context.Context) error {
	var ids []mapreduce.JobID
	return c.walk(ctx, "", c.keys.Jobs(), pages(), func(_ *look, page []store.KeyValue) error {
		ids = ids[:0]
		for _, kv := range page {
			_, rest, err := c.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			ids = append(ids, mapreduce.JobID(rest.Text()))
		}
		return nil
	}, func() error {
		for _, id := range ids {
			if err := c.job(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// job checks one job.
func (c *checker) job(ctx context.Context, id mapreduce.JobID) error {
	k := &jobCheck{checker: c, id: id, sums: newSums()}
	var err error
	c.torn = false
	k.before, err = k.standing(ctx, true)
	if err = c.readable(id, "record, switch or counters, without which it cannot be checked,", err); err != nil {
		return err
	}
	if k.before == nil {
		return nil // deleted since it was listed, or said to be broken
	}
	c.jobs++
	for _, s := range k.steps() {
		err := k.readable(id, s.what, s.check(ctx))
		if err != nil && errs.KindOf(err) == errs.NotFound {
			return nil // deleted meanwhile
		}
		if err != nil {
			return err
		}
	}
	return k.summary()
}

func (k *jobCheck) steps() []step {
	return []step{
		{"units, and what belongs to them", k.units},
		{"queues", k.queues},
		{"units that back off", k.delayed},
		{"parked units", k.parked},
		{"calls that woke units", k.woken},
		{"list of failed units", k.failures},
		{"order of the documents", k.order},
		{"results", k.results},
		{"states of agents", k.states},
		{"tallies of documents", k.tallies},
		{"documents that were left out", k.skipped},
		{"plans of levels", k.plans},
		{"what reduces wait for", k.waiting},
		{"grants", k.grants},
		{"inputs of reduces", k.inputs},
		{"inputs that reduces picked", k.picks},
		{"ledger of completions", k.ledger},
		{"audit chain", k.chain},
		{"sums", k.compareWhole},
	}
}

// compareWhole compares sums, if everything that goes into them could be read.
func (k *jobCheck) compareWhole(ctx context.Context) error {
	if k.torn {
		return nil
	}
	return k.compare(ctx)
}

func (k *jobCheck) summary() error {
	note := ""
	if k.torn {
		note = " could be read; its sums were not compared"
	} else if !k.still {
		note = "; it moved meanwhile, so that its sums were not compared"
	}
	s := k.sums
	return k.say(mapreduce.Finding{Job: k.id, Message: fmt.Sprintf(
		"%s: %d units, %d complete, %d failed, %d results of %d bytes, %d texts of %d bytes, %d checkpoints, %d seals%s",
		mapreduce.JobState(k.before.ctl.State), s.total(), s.ended(mapreduce.UnitComplete), s.ended(mapreduce.UnitFailed),
		s.results, s.resultBytes, s.texts, s.textBytes, s.checkpoints, s.seals, note)})
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

// cancelled reports whether the job's units may be on their way to their end.
func (s *standingOf) cancelled() bool {
	return mapreduce.JobState(s.ctl.State) == mapreduce.JobCancelled
}

// finished reports whether the job is complete, and no resume has begun.
func (s *standingOf) finished() bool {
	return mapreduce.JobState(s.ctl.State) == mapreduce.JobComplete && !s.ctl.Resuming
}

// listed reports whether a job has to be listed to run: it may make claims, or
// a cancel has units left to end.
func listed(ctl *storagev1.Ctl) bool {
	return mapreduce.JobState(ctl.State).Running() || ctl.Sweeping
}

// standing reads where the job stands, and with first checks what has to agree
// with its switch. It returns nil if the job is gone.
func (k *jobCheck) standing(ctx context.Context, first bool) (*standingOf, error) {
	var s *standingOf
	err := k.look(ctx, k.id, func(l *look) error {
		s = nil
		now := &standingOf{ctl: new(storagev1.Ctl), rec: new(storagev1.Job)}
		values, err := l.GetAll(ctx, [][]byte{k.keys.Job(k.id), k.keys.Ctl(k.id)})
		if err != nil {
			return err
		}
		switch {
		case values[0] == nil && values[1] == nil:
			return nil
		case values[0] == nil || values[1] == nil:
			if first {
				l.wrong(k.keys.Job(k.id), "a job has a record and a switch, or neither; remove what is left of this one")
			}
			return nil
		case !l.decode(k.keys.Job(k.id), values[0], now.rec) || !l.decode(k.keys.Ctl(k.id), values[1], now.ctl):
			return nil
		}
		now.raw = values[1]
		if now.stripes, err = k.stripes(ctx, l); err != nil {
			return err
		}
		if now.plan, err = l.Get(ctx, k.keys.Plan(k.id, max(1, Levels(now.ctl)))); err != nil {
			return err
		}
		s = now
		if !first {
			return nil
		}
		return k.switches(ctx, l, s)
	})
	return s, err
}

// switches checks what is written in one transaction with the switch.
func (k *jobCheck) switches(ctx context.Context, l *look, s *standingOf) error {
	ctl, rec := s.ctl, s.rec
	run, recent := k.keys.Run(mapreduce.TenantID(ctl.Tenant), k.id), k.keys.Recent(rec.CreatedAtMicros, k.id)
	idem := k.keys.Idem(mapreduce.TenantID(ctl.Tenant), mapreduce.RequestID(rec.Config.GetRequestId()))
	values, err := l.GetAll(ctx, [][]byte{run, recent, idem, k.keys.Ingest(k.id)})
	if err != nil {
		return err
	}
	state := mapreduce.JobState(ctl.State)
	if state == mapreduce.JobUnknown || state > mapreduce.JobPaused {
		l.wrong(k.keys.Ctl(k.id), "no job state has the number %d", ctl.State)
	}
	if rec.JobId != string(k.id) || rec.Status != ctl.State || rec.Error != ctl.Error {
		l.wrong(k.keys.Job(k.id), "the record says job %q is %s, the switch says it is %s; pause and resume it, or delete it",
			rec.JobId, mapreduce.JobState(rec.Status), state)
	}
	if rec.TotalUnits != totalUnits(ctl) && !ctl.Resuming {
		l.wrong(k.keys.Job(k.id), "the record says %d units, the switch %d", rec.TotalUnits, totalUnits(ctl))
	}
	if listed(ctl) != (values[0] != nil) {
		l.wrong(run, "the job is %s, and is listed to run: %t; pause and resume it", state, values[0] != nil)
	}
	if values[0] != nil && !bytes.Equal(values[0], runValue(ctl)) {
		l.wrong(run, "the job is listed to run as %q, and not as %q; pause and resume it", values[0], runValue(ctl))
	}
	if values[1] == nil {
		l.wrong(recent, "the job is not listed by its time")
	}
	if rec.Config.GetRequestId() != "" && string(values[2]) != string(k.id) {
		l.wrong(idem, "the request that submitted the job leads to %q", values[2])
	}
	if values[3] != nil {
		l.wrong(k.keys.Ingest(k.id), "the job is there, and its submission still under way")
	}
	return nil
}
