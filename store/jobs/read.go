package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// Job returns a job with its counters.
func (j *ViewPart) Job(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	var job *mapreduce.Job
	err := j.db.view(ctx, func(tx store.Tx) (err error) {
		job, err = j.readJob(ctx, tx.Snapshot(), id)
		return err
	})
	return job, err
}

func (j jobReader) readJob(ctx context.Context, r store.Reader, id mapreduce.JobID) (*mapreduce.Job, error) {
	ctl, err := j.readControl(ctx, r, id)
	if err != nil {
		return nil, err
	}
	record := new(storagev1.Job)
	if _, err := read(ctx, r, j.keys.Job(id), record); err != nil {
		return nil, err
	}
	c, err := j.readCounters(ctx, r, id)
	if err != nil {
		return nil, err
	}
	seal, err := j.lastSeal(ctx, r, id)
	if err != nil {
		return nil, err
	}
	job := &mapreduce.Job{
		ID: id, Spec: SpecOf(record.Config), State: mapreduce.JobState(ctl.State), Phase: mapreduce.JobState(ctl.Phase),
		Level: int(ctl.Level), Epoch: ctl.Epoch, Error: ctl.Error,
		Created: time.UnixMicro(record.CreatedAtMicros).UTC(), Updated: time.UnixMicro(ctl.UpdatedAtMicros).UTC(),
		TotalUnits: totalUnits(ctl), CompletedUnits: c.sumLevels(keys.Completed), FailedUnits: c.sumLevels(keys.Failed),
		RunningUnits: c.sumLevels(keys.Running), ParkedUnits: c.sumLevels(keys.UnitsParked), CostMicros: c.sumLevels(keys.Cost),
		TotalTokens: mapreduce.Tokens{In: c.sumLevels(keys.TokensIn), Out: c.sumLevels(keys.TokensOut)},
		Savings:     c.totalSavings(),
		AuditHead:   hex.EncodeToString(seal.Hash),
	}
	for _, w := range record.Warnings {
		job.Warnings = append(job.Warnings, w.Text)
	}
	for _, s := range record.Superseded {
		job.Superseded = append(job.Superseded, spentOf(s))
	}
	job.Coverage = jobCoverage(record, c)
	if job.State == mapreduce.JobComplete {
		job.Phase = mapreduce.JobComplete
	}
	return job, nil
}

func jobCoverage(rec *storagev1.Job, c counters) mapreduce.Coverage {
	return mapreduce.Coverage{
		Documents: mapreduce.Ledger{
			Total: rec.Documents, Mapped: c.sumLevels(keys.DocumentsMapped), Failed: c.sumLevels(keys.DocumentsFailed),
			Skipped: rec.SkippedDocuments + c.sumLevels(keys.DocumentsSkipped),
		},
		Characters: mapreduce.Ledger{
			Total: rec.Characters + c.sumLevels(keys.CharactersParsed), Mapped: c.sumLevels(keys.CharactersMapped), Failed: c.sumLevels(keys.CharactersFailed),
		},
	}
}

// Ctl returns a job's switch as it is now.
func (j *ViewPart) Ctl(ctx context.Context, id mapreduce.JobID) (ctl *storagev1.Ctl, err error) {
	err = j.db.view(ctx, func(tx store.Tx) (err error) {
		ctl, err = j.readControl(ctx, tx.Snapshot(), id)
		return err
	})
	return ctl, err
}

// A Standing is what an orchestrator has to know of a job to run it, all of one
// version.
type Standing struct {
	Ctl      *storagev1.Ctl
	Record   *storagev1.Job
	Sleepers []SleeperRef // as Sleepers returns them
	// NextParked is where Sleepers should go on.
	NextParked mapreduce.UnitID
}

// maxSleepers is how many units of either kind are read with a job.
const maxSleepers = 1000

// Standing returns how a job stands.
func (j *ViewPart) Standing(ctx context.Context, id mapreduce.JobID) (*Standing, error) {
	standing := &Standing{}
	err := j.db.view(ctx, func(tx store.Tx) error {
		*standing = Standing{Ctl: new(storagev1.Ctl), Record: new(storagev1.Job)}
		ks := [][]byte{j.keys.Ctl(id), j.keys.Job(id)}
		values, err := tx.Snapshot().GetAll(ctx, ks)
		if err != nil {
			return err
		}
		if values[0] == nil || values[1] == nil {
			return notFound(id)
		}
		if err := errors.Join(decode(ks[0], values[0], standing.Ctl), decode(ks[1], values[1], standing.Record)); err != nil {
			return err
		}
		standing.Sleepers, standing.NextParked, err = j.queues.listSleepers(ctx, tx.Snapshot(), id, "", maxSleepers)
		return err
	})
	return standing, err
}

// Record returns a job's record for display.
func (j *ViewPart) Record(ctx context.Context, id mapreduce.JobID) (*storagev1.Job, error) {
	rec := new(storagev1.Job)
	err := j.db.view(ctx, func(tx store.Tx) error {
		rec.Reset()
		found, err := read(ctx, tx.Snapshot(), j.keys.Job(id), rec)
		if err == nil && !found {
			return notFound(id)
		}
		return err
	})
	return rec, err
}

// ListJobs returns a page of jobs, newest first.
func (j *ViewPart) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	page := &mapreduce.JobPage{}
	r := j.keys.RecentJobs()
	if q.PageToken != "" {
		end, err := base64.RawURLEncoding.DecodeString(q.PageToken)
		if err != nil || bytes.Compare(end, r.Begin) < 0 || bytes.Compare(end, r.End) > 0 {
			return nil, errs.Field("page_token", "is not one that a list returned")
		}
		r.End = end
	}
	for len(page.Jobs) < q.PageSize {
		next, more, err := j.listSome(ctx, r, q, page)
		if err != nil {
			return nil, err
		}
		if next != nil {
			r.End = next
		}
		if !more {
			return page, nil
		}
	}
	page.NextPageToken = base64.RawURLEncoding.EncodeToString(r.End)
	return page, nil
}

// listSome appends jobs of one short transaction; next is where it stopped.
func (j *ViewPart) listSome(ctx context.Context, r store.Range, q mapreduce.ListJobsQuery, page *mapreduce.JobPage) (next []byte, more bool, err error) {
	var found []*mapreduce.Job
	err = j.db.view(ctx, func(tx store.Tx) error {
		found, next = nil, nil
		s := tx.Snapshot()
		pairs, m, err := s.GetRange(ctx, r, store.RangeOptions{Limit: min(100, q.PageSize+1), Reverse: true})
		if err != nil {
			return err
		}
		more = m
		for _, kv := range pairs {
			if len(page.Jobs)+len(found) >= q.PageSize {
				more = true
				break
			}
			_, rest, err := j.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			rest.Skip()
			job, err := j.readJob(ctx, s, mapreduce.JobID(rest.Text()))
			if err != nil {
				return err
			}
			next = kv.Key
			if matchesQuery(q, job) {
				found = append(found, job)
			}
		}
		return nil
	})
	page.Jobs = append(page.Jobs, found...)
	return next, more, err
}

func matchesQuery(q mapreduce.ListJobsQuery, job *mapreduce.Job) bool {
	if q.Tenant != "" && q.Tenant != job.Spec.Tenant {
		return false
	}
	if slices.Contains(q.States, job.State) {
		return true
	}
	return len(q.States) == 0
}

// A RunRef is a job that may run.
type RunRef struct {
	Job      mapreduce.JobID
	Tenant   mapreduce.TenantID
	Priority int
	Epoch    int64
}

// Runs returns the jobs that may run.
func (j *ViewPart) Runs(ctx context.Context) (refs []RunRef, err error) {
	err = j.db.view(ctx, func(tx store.Tx) (err error) {
		refs, _, err = j.readRuns(ctx, tx, 0)
		return err
	})
	return refs, err
}

// readRuns returns so many of the jobs that may run, or with 0 all, and whether there are
// more.
func (j *Records) readRuns(ctx context.Context, tx store.Tx, limit int) (refs []RunRef, more bool, err error) {
	pairs, more, err := tx.Snapshot().GetRange(ctx, j.keys.Runs(), store.RangeOptions{Limit: limit})
	if err != nil {
		return nil, false, err
	}
	for _, kv := range pairs {
		_, rest, err := j.keys.Last(kv.Key)
		if err != nil {
			return nil, false, err
		}
		ref := RunRef{Tenant: mapreduce.TenantID(rest.Text()), Job: mapreduce.JobID(rest.Text())}
		if ref.Priority, ref.Epoch, err = parseRun(kv.Value); err != nil {
			return nil, false, corruptError(kv.Key, "%v", err)
		}
		refs = append(refs, ref)
	}
	return refs, more, nil
}

// A Stretch is a part of one of a job's queues: the entries of new work in
// [From, To), and before them what came back, if Returned is set. At most Limit
// entries are read; 0 means no bound.
type Stretch struct {
	Shard    int64
	From, To int64
	Returned bool
	Limit    int
}

// Scan returns the units that wait in a stretch of a job's queue, and whether
// there are more.
func (j *QueuesPart) Scan(ctx context.Context, id mapreduce.JobID, s Stretch) (found []Candidate, more bool, err error) {
	r := store.Range{Begin: j.keys.Ready(id, s.Shard, keys.ClassNew, s.From), End: j.keys.Ready(id, s.Shard, keys.ClassNew, s.To)}
	if s.Returned {
		r.Begin = j.keys.Ready(id, s.Shard, keys.ClassRequeued, 0)
	}
	err = j.db.view(ctx, func(tx store.Tx) error {
		found = found[:0]
		pairs, m, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: s.Limit})
		if err != nil {
			return err
		}
		more = m
		for _, kv := range pairs {
			c, err := j.readEntry(kv)
			if err != nil {
				return err
			}
			found = append(found, c)
		}
		return nil
	})
	return found, more, err
}

// Last returns where the last unit of a stretch waits, or -1 if none does.
func (j *QueuesPart) Last(ctx context.Context, id mapreduce.JobID, s Stretch) (seq int64, err error) {
	r := store.Range{Begin: j.keys.Ready(id, s.Shard, keys.ClassNew, s.From), End: j.keys.Ready(id, s.Shard, keys.ClassNew, s.To)}
	err = j.db.view(ctx, func(tx store.Tx) error {
		pairs, _, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: 1, Reverse: true})
		if err != nil || len(pairs) == 0 {
			seq = -1
			return err
		}
		c, err := j.readEntry(pairs[0])
		seq = c.Seq
		return err
	})
	return seq, err
}

// readEntry returns what an entry of a queue says.
func (j queueRecords) readEntry(kv store.KeyValue) (Candidate, error) {
	_, rest, err := j.keys.Last(kv.Key)
	if err != nil {
		return Candidate{}, err
	}
	rest.Skip()
	c := Candidate{Unit: mapreduce.UnitID(kv.Value), Shard: rest.Int(), Class: uint32(rest.Int()), Seq: rest.Int()}
	return c, rest.Err()
}

// Unit returns the record of a unit, or nil.
func (j *ViewPart) Unit(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID) (u *storagev1.Unit, err error) {
	err = j.db.view(ctx, func(tx store.Tx) (err error) {
		u, err = j.readUnit(ctx, tx.Snapshot(), id, name)
		return err
	})
	return u, err
}

// UnitsFrom returns up to limit units of a level with indexes from from on, in
// order. There may be fewer, but only at the end there are none. Parse units are
// level -1, map units level 0.
func (j *ViewPart) UnitsFrom(ctx context.Context, id mapreduce.JobID, level, from int64, limit int) ([]*storagev1.Unit, error) {
	return j.db.orderPage(ctx, id, level, from, limit)
}

// Inputs returns up to limit of the units whose outputs a unit takes, with indexes from
// from on, in order. There may be fewer, but only at the end there are none.
func (j *ViewPart) Inputs(ctx context.Context, id mapreduce.JobID, reduce *storagev1.Unit, from int64, limit int) ([]*storagev1.Unit, error) {
	return j.db.readFitting(ctx, limit, func(r store.Reader, most int) ([]*storagev1.Unit, error) {
		if reduce.Inputs.GetPicked() > 0 {
			return j.levels.readPicked(ctx, r, id, reduce, from, most)
		}
		return j.unitsIn(ctx, r, id, reduce.Inputs.GetLevel(), from, reduce.Inputs.GetEnd(), most)
	})
}

// maxAhead bounds the memory that is set aside before anything is read, in bytes:
// the length that a record tells may be wrong.
const maxAhead = 64 << 20

// newBuffer returns room for what is about to be read, of which a record says the length.
func newBuffer(length int64) []byte { return make([]byte, 0, min(max(length, 0), maxAhead)) }

// visitChunks visits the values of a range in order, and reads some at a time.
func (d *DB) visitChunks(ctx context.Context, r store.Range, visit func(value []byte) error) error {
	for {
		var pairs []store.KeyValue
		var more bool
		err := d.view(ctx, func(tx store.Tx) (err error) {
			pairs, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: chunksAtOnce})
			return err
		})
		if err != nil {
			return err
		}
		for _, kv := range pairs {
			if err := visit(kv.Value); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		r.Begin = store.Single(pairs[len(pairs)-1].Key).End
	}
}

// chunksAtOnce is how many chunks are read, and held, at a time: 512 KiB.
const chunksAtOnce = 8

// Output returns the published output of a unit.
func (j *ContentPart) Output(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit) ([]byte, error) {
	res := u.GetResult()
	if res.GetChunks() == 0 {
		return res.GetInline(), nil
	}
	data := newBuffer(res.Length)
	err := j.OutputParts(ctx, id, u, func(part []byte) error {
		data = append(data, part...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// OutputParts calls visit with the published output of a unit, part after part,
// and holds no more than some chunks of it at a time. That the whole is damaged it
// may find out only after the last part.
func (j *ContentPart) OutputParts(ctx context.Context, id mapreduce.JobID, u *storagev1.Unit, visit func(part []byte) error) error {
	res := u.GetResult()
	if res.GetChunks() == 0 {
		return visit(res.GetInline())
	}
	r := j.keys.Result(id, mapreduce.UnitID(u.UnitId), res.Attempt)
	if res.Length <= 0 || res.Length > mapreduce.MaxOutput || res.Chunks != chunksOf(res.Length) {
		return corruptError(r.Begin, "result of unit %s of job %s, attempt %d: %d bytes in %d chunks", u.UnitId, id, res.Attempt, res.Length, res.Chunks)
	}
	return j.hashedParts(ctx, r, res.Length, res.Sha256, visit, func() string {
		return fmt.Sprintf("the output of unit %s of job %s, attempt %d", u.UnitId, id, res.Attempt)
	})
}

// hashedParts visits chunks that together have a length and a hash. It visits no
// more than these bytes, whatever is there.
func (j *ContentPart) hashedParts(ctx context.Context, r store.Range, length int64, sha []byte, visit func([]byte) error, what func() string) error {
	sum, got := sha256.New(), int64(0)
	damaged := func(how string) error {
		return errs.New(errs.DataLoss, "%s, stored from key %x on, is damaged: %s; submit the document again: %w", what(), r.Begin, how, store.ErrCorrupt)
	}
	err := j.db.visitChunks(ctx, r, func(part []byte) error {
		sum.Write(part)
		if got += int64(len(part)); got > length {
			return damaged(fmt.Sprintf("there are more than its %d bytes", length))
		}
		return visit(part)
	})
	switch {
	case err != nil:
		return err
	case got != length:
		return damaged(fmt.Sprintf("%d of its %d bytes are there", got, length))
	case !bytes.Equal(sum.Sum(nil), sha):
		return damaged("its hash differs")
	}
	return nil
}

// Reported returns the output that a report tells of, as far as it is stored: that
// of an attempt that nothing was published of yet.
func (j *ContentPart) Reported(ctx context.Context, r *mapreduce.Report) ([]byte, error) {
	return j.Output(ctx, r.Job, &storagev1.Unit{UnitId: string(r.Unit), Result: &storagev1.Result{
		Attempt: int64(r.Attempt), Inline: r.Output, Chunks: chunksOf(r.Length), Length: r.Length, Sha256: r.SHA256,
	}})
}

// Text returns bytes [start, end) of a document's text.
func (j *ContentPart) Text(ctx context.Context, id mapreduce.JobID, sha []byte, start, end int64) ([]byte, error) {
	if start >= end {
		return nil, nil
	}
	data := newBuffer(end - start)
	err := j.TextParts(ctx, id, TextRange{SHA256: sha, Start: start, End: end}, func(part []byte) error {
		data = append(data, part...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// A TextRange is bytes [Start, End) of the text with a hash.
type TextRange struct {
	SHA256     []byte
	Start, End int64
	Length     int64 // of the whole text; if the range is all of it, its hash is checked. 0 if not known
}

// TextParts calls visit with bytes of a text, part after part, and holds no more
// than some chunks of it at a time. That the whole is damaged it may find out only
// after the last part.
func (j *ContentPart) TextParts(ctx context.Context, id mapreduce.JobID, t TextRange, visit func(part []byte) error) error {
	if t.Start >= t.End {
		return nil
	}
	what := func() string { return fmt.Sprintf("text %x of job %s", t.SHA256, id) }
	from := t.Start / store.ChunkSize
	r := j.keys.Blob(id, t.SHA256, from, (t.End+store.ChunkSize-1)/store.ChunkSize)
	if t.Start == 0 && t.End == t.Length {
		return j.hashedParts(ctx, r, t.Length, t.SHA256, visit, what)
	}
	at := from * store.ChunkSize
	err := j.db.visitChunks(ctx, r, func(chunk []byte) error {
		begin, end := max(t.Start-at, 0), min(t.End-at, int64(len(chunk)))
		at += int64(len(chunk))
		if begin >= end {
			return nil
		}
		return visit(chunk[begin:end:end])
	})
	if err == nil && at < t.End {
		err = errs.New(errs.DataLoss, "%s, stored from key %x on, is cut short: byte %d to %d are missing; submit the document again: %w", what(), r.Begin, at, t.End, store.ErrCorrupt)
	}
	return err
}

// MaxTexts is how many texts Texts reads at once, of which each may be of one
// chunk: 4 MiB.
const MaxTexts = 64

// Texts returns short ranges of texts, all read together. A range that spreads
// over chunks, or for which there was no room, is nil: read it by Text.
func (j *ContentPart) Texts(ctx context.Context, id mapreduce.JobID, spans []TextRange) ([][]byte, error) {
	texts := make([][]byte, len(spans))
	var ks [][]byte
	var at []int
	for i, s := range spans {
		chunk := s.Start / store.ChunkSize
		if s.Start >= s.End || (s.End-1)/store.ChunkSize != chunk || len(ks) == MaxTexts {
			continue
		}
		ks = append(ks, j.keys.BlobChunk(id, s.SHA256, chunk))
		at = append(at, i)
	}
	if len(ks) == 0 {
		return texts, nil
	}
	err := j.db.view(ctx, func(tx store.Tx) error {
		values, err := tx.Snapshot().GetAll(ctx, ks)
		if err != nil {
			return err
		}
		for n, v := range values {
			s := spans[at[n]]
			from := s.Start % store.ChunkSize
			if end := from + s.End - s.Start; end <= int64(len(v)) {
				texts[at[n]] = v[from:end:end]
			}
		}
		return nil
	})
	return texts, err
}

// FirstFailed returns a unit that failed, of the lowest level, or nil.
func (j *ViewPart) FirstFailed(ctx context.Context, id mapreduce.JobID) (u *storagev1.Unit, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		u = nil
		s := tx.Snapshot()
		pairs, _, err := s.GetRange(ctx, j.keys.FailedAll(id), store.RangeOptions{Limit: 1})
		if err != nil || len(pairs) == 0 {
			return err
		}
		_, rest, err := j.keys.Last(pairs[0].Key)
		if err != nil {
			return err
		}
		rest.Skip()
		rest.Skip()
		u, err = j.readUnit(ctx, s, id, mapreduce.UnitID(rest.Text()))
		return err
	})
	return u, err
}

// State returns what an earlier attempt's agent left to go on with.
func (j *ContentPart) State(ctx context.Context, id mapreduce.JobID, u mapreduce.UnitID) ([]byte, error) {
	var data []byte
	err := j.db.visitChunks(ctx, j.keys.State(id, u), func(chunk []byte) error {
		data = append(data, chunk...)
		return nil
	})
	return data, err
}

// Skipped returns documents of a job that were left out, from the n-th on, at
// most limit.
func (j *ViewPart) Skipped(ctx context.Context, id mapreduce.JobID, n int64, limit int) ([]SkippedAt, error) {
	var skipped []SkippedAt
	err := j.db.view(ctx, func(tx store.Tx) error {
		skipped = nil
		r := j.keys.SkippedAll(id)
		r.Begin = j.keys.Skipped(id, n)
		pairs, _, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: limit})
		if err != nil {
			return err
		}
		for _, kv := range pairs {
			var s storagev1.Skipped
			if err := decode(kv.Key, kv.Value, &s); err != nil {
				return err
			}
			_, rest, err := j.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			rest.Skip()
			doc := mapreduce.SkippedDocument{Document: mapreduce.DocumentID(s.DocumentId), Reason: s.Reason}
			skipped = append(skipped, SkippedAt{rest.Int(), doc})
		}
		return nil
	})
	return skipped, err
}

// UnitOf returns the domain's form of a stored unit, without its output.
func UnitOf(job mapreduce.JobID, u *storagev1.Unit) *mapreduce.Unit {
	src := u.GetSource()
	return &mapreduce.Unit{
		ID: mapreduce.UnitID(u.UnitId), Job: job, Document: mapreduce.DocumentID(u.DocumentId),
		Kind: mapreduce.UnitKind(u.Kind), Level: int(u.Level), Index: u.Index, State: mapreduce.UnitState(u.Status),
		Attempts: int(u.Attempt), Failures: int(u.Failures), Share: u.Share,
		Tokens: mapreduce.Tokens{In: u.TokensIn, Out: u.TokensOut}, CostMicros: u.CostMicros,
		Elapsed: time.Duration(u.ElapsedMicros) * time.Microsecond, Errors: u.Errors,
		Journal: journalOf(u), Savings: savingsOf(u.Savings),
		ChunkIndex: int(src.GetChunkIndex()), Chunks: int(src.GetChunks()),
		Start: src.GetCharStart(), End: src.GetCharEnd(), Confidence: u.GetResult().GetConfidence(),
	}
}

// SpecOf returns the domain's form of a stored spec.
func SpecOf(s *storagev1.Spec) mapreduce.JobSpec {
	if s == nil {
		s = new(storagev1.Spec)
	}
	return mapreduce.JobSpec{
		Tenant: mapreduce.TenantID(s.GetTenant()), RequestID: mapreduce.RequestID(s.GetRequestId()),
		Pipeline: s.GetPipeline(), Definition: s.GetPipelineDefinition(), Provider: s.GetProvider(), Model: s.GetModel(), Schema: s.GetSchema(), Vars: s.GetVars(), Models: s.GetModels(),
		Parallelism: int(s.GetParallelism()), MaxTokensPerUnit: int(s.GetMaxTokensPerUnit()),
		ChunkOverlap: int(s.GetChunkOverlap()), Priority: int(s.GetPriority()),
		ReduceContextLimit: int(s.GetReduceContextLimit()), ReduceBatchSize: int(s.GetReduceBatchSize()),
		Budget: s.GetBudget(), ReduceShare: s.GetReduceShare(),
		OnError: mapreduce.OnError(s.GetOnError()), OnBreaker: mapreduce.OnBreaker(s.GetOnBreaker()),
		MaxAttempts: int(s.GetMaxAttempts()), UnitTimeout: time.Duration(s.GetUnitTimeoutMicros()) * time.Microsecond,
		BreakerThreshold: int(s.GetBreakerThreshold()), BreakerTimeout: time.Duration(s.GetBreakerTimeoutMicros()) * time.Microsecond,
		CheckpointInterval: int(s.GetCheckpointInterval()), Capture: mapreduce.Capture(s.GetCapture()),
		Cache: s.GetCache(), Replay: mapreduce.JobID(s.GetReplay()),
		Strategy: mapreduce.Strategy(s.GetStrategy()), ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		PromptOverhead: s.PromptOverhead, ReservedOutput: s.ReservedOutput, Estimator: s.Estimator,
	}
}

// StoredSpec returns the stored form of a spec.
func StoredSpec(s *mapreduce.JobSpec) *storagev1.Spec {
	return &storagev1.Spec{
		Tenant: string(s.Tenant), RequestId: string(s.RequestID), Pipeline: s.Pipeline, PipelineDefinition: s.Definition, Provider: s.Provider, Models: s.Models,
		Model: s.Model, Schema: s.Schema, Vars: s.Vars, Parallelism: int64(s.Parallelism),
		MaxTokensPerUnit: int64(s.MaxTokensPerUnit), ChunkOverlap: int64(s.ChunkOverlap), Priority: int64(s.Priority),
		ReduceContextLimit: int64(s.ReduceContextLimit), ReduceBatchSize: int64(s.ReduceBatchSize),
		Budget: s.Budget, ReduceShare: s.ReduceShare, OnError: uint32(s.OnError), OnBreaker: uint32(s.OnBreaker),
		MaxAttempts: int64(s.MaxAttempts), UnitTimeoutMicros: s.UnitTimeout.Microseconds(),
		BreakerThreshold: int64(s.BreakerThreshold), BreakerTimeoutMicros: s.BreakerTimeout.Microseconds(),
		CheckpointInterval: int64(s.CheckpointInterval), Capture: uint32(s.Capture), Cache: s.Cache, Replay: string(s.Replay),
		Strategy: uint32(s.Strategy), ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		PromptOverhead: s.PromptOverhead, ReservedOutput: s.ReservedOutput, Estimator: s.Estimator,
	}
}
