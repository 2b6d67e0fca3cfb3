package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// JobRecords are the records of jobs: how each stands and what it was submitted as, its
// counters and its events, and the lists that it is in.
type JobRecords struct {
	keys    *keys.Space
	node    mapreduce.NodeID
	clock   *Clock
	tenants *Tenants
}

// IsListed reports whether a job has to be listed to run: it may make claims, or
// a cancel has units left to end.
func IsListed(ctl *storagev1.Ctl) bool {
	return mapreduce.JobState(ctl.State).Running() || ctl.Sweeping
}

// WriteControl writes a changed control record with its epoch raised, the record for
// display, the list of jobs that run, and the event with a message.
func (rec *JobRecords) WriteControl(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, message string) error {
	return rec.WriteControlWith(ctx, tx, id, ctl, &storagev1.Checkpoint{Message: message})
}

// WriteControlWith is WriteControl for a change whose event says more.
func (rec *JobRecords) WriteControlWith(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, c *storagev1.Checkpoint) error {
	ctl.UpdatedAtMicros = rec.clock.NowMicros()
	if err := rec.tenants.ChargeState(ctx, tx, id, ctl); err != nil {
		return err
	}

	ctl.Epoch++
	if mapreduce.JobState(ctl.State).Running() {
		ctl.Phase = ctl.State
	}

	if IsListed(ctl) { // also the job that was paused: a cancel that is not done has to be seen to
		rec.SetRun(tx, id, ctl)
	} else {
		tx.Clear(rec.keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Run(id))
	}

	tx.Set(rec.keys.Job(id).Ctl(), Encode(ctl))
	c.Kind, c.State, c.Level, c.Epoch = uint32(mapreduce.EventState), ctl.State, ctl.Level, ctl.Epoch
	nameCaller(ctx, c)
	rec.AddCheckpoint(tx, id, c)

	rec.WakeOthers(tx)
	return rec.UpdateRecord(ctx, tx, id, ctl)
}

// UpdateRecord brings the job's record up to date. A seal may write the record of a job that
// has ended too, and what it writes must not be lost. The counters are read by
// snapshot: they are for people here. A record that is damaged stays so, and does not
// keep the job from ending.
func (rec *JobRecords) UpdateRecord(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) error {
	job := new(storagev1.Job)
	_, err := Read(ctx, tx, rec.keys.Job(id).Record(), job)
	if errors.Is(err, store.ErrCorrupt) && !mapreduce.JobState(ctl.State).Running() {
		return nil
	}
	if err != nil {
		return err
	}

	c, err := rec.Counters(ctx, tx.Snapshot(), id)
	if err != nil {
		return err
	}

	job.Status, job.UpdatedAtMicros, job.Error = ctl.State, ctl.UpdatedAtMicros, ctl.Error
	job.TotalUnits = TotalUnits(ctl)
	job.CompletedUnits = c.SumUnits(ctl, keys.Completed)
	job.TotalTokens = c.SumLevels(keys.TokensIn) + c.SumLevels(keys.TokensOut)
	tx.Set(rec.keys.Job(id).Record(), Encode(job))

	if job.CreatedAtMicros > 0 {
		rec.List(tx, id, ctl, job.CreatedAtMicros)
	}
	return nil
}

// List enters a job, with its state, into the lists of jobs by the time of their submission.
func (rec *JobRecords) List(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, created int64) {
	state := []byte{byte(ctl.State)}
	tx.Set(rec.keys.Recent(created, id), state)
	tx.Set(rec.keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Job(created, id), state)
}

// ListedState returns the state that a list of jobs has of one, given its entry; false if an
// earlier version wrote the entry, which has none.
func ListedState(entry []byte) (mapreduce.JobState, bool) {
	if len(entry) != 1 {
		return 0, false
	}
	return mapreduce.JobState(entry[0]), true
}

// TotalUnits returns how many units of a job's stages are planned, the parse units
// counted.
func TotalUnits(ctl *storagev1.Ctl) int64 {
	n := ctl.ParseUnits
	for _, l := range ctl.Levels[:CountStageLevels(ctl)] {
		n += l.Units
	}
	return n
}

// AnyEpoch lets a change of a job be made whatever happened to the job before.
const AnyEpoch = 0

// WrongState returns the error of a change that a job in a state does not allow.
func WrongState(verb string, id mapreduce.JobID, s mapreduce.JobState) error {
	return &errs.Error{
		Kind: errs.Precondition, Reason: "JOB_STATE",
		Message: fmt.Sprintf("cannot %s job %s: it is %s", verb, id, s),
	}
}

// UnitsRunning is the reason of the error with which Resume says that it has to
// wait.
const UnitsRunning = "UNITS_RUNNING"

// Resumed is the message of the event that ends a resume: what came before it
// in the ledger may have been dropped since.
const Resumed = "resumed"

// LastSeal returns the last seal of a job, an empty one if there is none.
func (rec *JobRecords) LastSeal(ctx context.Context, r store.Reader, id mapreduce.JobID) (*storagev1.Seal, error) {
	seal := new(storagev1.Seal)
	pairs, _, err := r.GetRange(ctx, rec.keys.Job(id).Seals(), store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil || len(pairs) == 0 {
		return seal, err
	}
	return seal, Decode(pairs[0].Key, pairs[0].Value, seal)
}

// Control returns the control record of a job, or errs.NotFound.
func (rec *JobRecords) Control(ctx context.Context, r store.Reader, id mapreduce.JobID) (*storagev1.Ctl, error) {
	ctl := new(storagev1.Ctl)
	found, err := Read(ctx, r, rec.keys.Job(id).Ctl(), ctl)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, NotFound(id)
	}
	return ctl, nil
}

// NotFound returns the error of a job that is not there.
func NotFound(id mapreduce.JobID) error {
	return &errs.Error{
		Kind: errs.NotFound, Reason: "JOB_NOT_FOUND",
		Message: fmt.Sprintf("no job has the id %q; `coditect mapreduce list` shows those there are", id),
	}
}

// WakeOthers lets other orchestrators know that there is something to see.
func (rec *JobRecords) WakeOthers(tx store.Tx) { tx.Add(rec.keys.Wake(), 1) }

// AddCheckpoint records a change of the job in its ledger.
func (rec *JobRecords) AddCheckpoint(tx store.Tx, id mapreduce.JobID, c *storagev1.Checkpoint) {
	c.TimestampMicros = rec.clock.NowMicros()
	c.Node = string(rec.node)
	key, offset := rec.keys.Job(id).NextCheckpoint()
	tx.SetVersionstampedKey(key, offset, Encode(c))
}

// nameCaller notes in an event whose call has caused it.
func nameCaller(ctx context.Context, c *storagev1.Checkpoint) {
	if by, found := mapreduce.ActorOf(ctx); found {
		c.Principal, c.Tenant = by.Name, string(by.Tenant)
	}
}

// AddCalled is AddCheckpoint for an event that a call may have caused: it names the
// principal of ctx.
func (rec *JobRecords) AddCalled(ctx context.Context, tx store.Tx, id mapreduce.JobID, c *storagev1.Checkpoint) {
	nameCaller(ctx, c)
	rec.AddCheckpoint(tx, id, c)
}

// WarningSuffix is what a message says of warnings.
func WarningSuffix(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return "; warning: " + strings.Join(texts, "; warning: ")
}

// RecordWarnings stores the warnings of a level in the job's record. They replace the
// warnings of this level and of those above it.
func (rec *JobRecords) RecordWarnings(ctx context.Context, tx store.Tx, id mapreduce.JobID, level int64, texts []string) error {
	job := new(storagev1.Job)
	if _, err := Read(ctx, tx, rec.keys.Job(id).Record(), job); err != nil {
		return err
	}

	before := len(job.Warnings)
	job.Warnings = slices.DeleteFunc(job.Warnings, func(w *storagev1.Warning) bool { return w.Level >= level })
	for _, text := range texts {
		job.Warnings = append(job.Warnings, &storagev1.Warning{Level: level, Text: ClipText(text)})
	}

	if before > 0 || len(texts) > 0 {
		tx.Set(rec.keys.Job(id).Record(), Encode(job))
	}
	return nil
}

// A RunRef is a job that may run.
type RunRef struct {
	Job      mapreduce.JobID
	Tenant   mapreduce.TenantID
	Priority int
	Epoch    int64
}

// Runs returns so many of the jobs that may run, or with 0 all, and whether there are
// more.
func (rec *JobRecords) Runs(ctx context.Context, tx store.Tx, limit int) (refs []RunRef, more bool, err error) {
	pairs, more, err := tx.Snapshot().GetRange(ctx, rec.keys.AllTenants().Runs(), store.RangeOptions{Limit: limit})
	if err != nil {
		return nil, false, err
	}

	for _, kv := range pairs {
		_, rest, err := rec.keys.Last(kv.Key)
		if err != nil {
			return nil, false, err
		}

		ref := RunRef{Tenant: mapreduce.TenantID(rest.Text()), Job: mapreduce.JobID(rest.Text())}
		if ref.Priority, ref.Epoch, err = ParseRun(kv.Value); err != nil {
			return nil, false, CorruptError(kv.Key, "%v", err)
		}
		refs = append(refs, ref)
	}
	return refs, more, nil
}

// SetRun lists a job to run.
func (rec *JobRecords) SetRun(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) {
	tx.Set(rec.keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Run(id), RunValue(ctl))
}

// RunValue is what an orchestrator has to know to see whether a job that may run
// has changed.
func RunValue(ctl *storagev1.Ctl) []byte { return fmt.Appendf(nil, "%d %d", ctl.Priority, ctl.Epoch) }

// ParseRun returns what a value of the list of jobs that run says.
func ParseRun(value []byte) (priority int, epoch int64, err error) {
	p, e, _ := strings.Cut(string(value), " ")
	if priority, err = strconv.Atoi(p); err != nil {
		return 0, 0, err
	}
	epoch, err = strconv.ParseInt(e, 10, 64)
	return priority, epoch, err
}

// listEnd lists a job that has ended, by its tenant, and by when it is to be deleted if it
// has a time of its own.
func (rec *JobRecords) listEnd(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) {
	tx.Set(rec.keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Ended(ctl.EndedMicros, id), nil)
	if ctl.KeepMicros > 0 {
		tx.Set(rec.keys.Expiry().Job(ctl.EndedMicros+ctl.KeepMicros, id), nil)
	}
}

// UnlistEnd takes a job out of the lists of those that have ended.
func (rec *JobRecords) UnlistEnd(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) {
	if ctl.EndedMicros == 0 {
		return
	}
	tx.Clear(rec.keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Ended(ctl.EndedMicros, id))
	if ctl.KeepMicros > 0 {
		tx.Clear(rec.keys.Expiry().Job(ctl.EndedMicros+ctl.KeepMicros, id))
	}
}
