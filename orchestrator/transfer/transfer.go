// Package transfer carries what is too large for the messages of a session between workers
// and the store: texts, inputs and outputs of units, their journals and evidence, and answers
// of models. What is not too large it puts into the assignment of a unit. It knows sessions and
// no streams: those are package dispatch's.
package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/records"
)

const (
	bufferedBytes = 64 << 10               // of a blob that is written in small pieces
	transferPause = 200 * time.Millisecond // before one that was refused is tried again
)

// A Config says how Transfers work. All of it must be set.
type Config struct {
	AnswerBytes int64         // of answers of models that are kept, of a tenant
	AnswerAge   time.Duration // that they are kept for
}

// Transfers carry what is too large for the messages of a session. They put into an
// assignment what is not. Their methods are safe for concurrent use.
type Transfers struct {
	config     Config
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	specs      *jobspec.Finder
	supervisor *cluster.Supervisor
	inputs     *inputReader
}

// New returns transfers of the sessions on a scheduler.
func New(j *jobs.Jobs, scheduler *schedule.Scheduler, grants *grant.Manager, specs *jobspec.Finder, s *cluster.Supervisor, c Config) *Transfers {
	return &Transfers{
		config: c, jobs: j, scheduler: scheduler, grants: grants, specs: specs, supervisor: s,
		inputs: &inputReader{jobs: j, specs: specs, lookups: make(chan struct{}, maxWanting)},
	}
}

// Get passes on a blob of a unit whose attempt a session holds, as protocol.Blobs.GetBlob
// does.
func (t *Transfers) Get(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, take func([]byte) error) error {
	if !t.scheduler.Sessions.HoldsAttempt(session, q.Held) {
		return notHeld(q)
	}

	w := &rangeWriter{start: q.Blob.Start, end: q.Blob.End, take: take}
	err := t.sendBlob(ctx, session, q, w)
	if err == nil {
		err = w.flushBuffer()
	}
	return transferError(ctx, q, err)
}

func notHeld(q *protocol.BlobRequest) error {
	return errs.New(errs.Precondition, "session %s does not hold attempt %d of unit %s", q.Session, q.Attempt, q.Unit)
}

// sendBlob writes a blob of the unit that a request names.
func (t *Transfers) sendBlob(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, w *rangeWriter) error {
	switch q.Blob.Kind {
	case protocol.BlobAnswer:
		return t.sendAnswer(ctx, session, q, w)
	case protocol.BlobLineReply:
		return t.sendReply(ctx, q, w)
	}

	u, err := t.jobs.View.Unit(ctx, q.Job, q.Unit)
	if err != nil {
		return err
	}
	switch {
	case u == nil:
		return notHeld(q)
	case q.Blob.Kind == protocol.BlobText:
		return t.sendText(ctx, q, u, w)
	case q.Blob.Kind == protocol.BlobOriginal:
		return t.sendOriginal(ctx, q, u, w)
	case q.Blob.Kind == protocol.BlobInputs:
		return t.inputs.send(ctx, q.Job, u, w)
	case q.Blob.Kind == protocol.BlobReferred && u.Inputs != nil:
		return t.inputs.sendReferred(ctx, q.Job, u, w)
	case q.Blob.Kind == protocol.BlobJournal:
		return t.sendJournal(ctx, session, q, u, w)
	case q.Blob.Kind == protocol.BlobWakeAnswer:
		return t.sendWakeAnswer(ctx, q, u, w)
	case q.Blob.Kind == protocol.BlobEvidence:
		return t.sendEvidence(ctx, session, q, u, w)
	case q.Blob.Kind == protocol.BlobEvidenceList:
		return t.sendEvidenceList(ctx, session, q, u, w)
	}
	return errs.Field("blob.kind", "unit %s has no blob of kind %d that can be got", q.Unit, q.Blob.Kind)
}

// Put stores a blob of a session, as protocol.Blobs.PutBlob does.
func (t *Transfers) Put(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (stored *protocol.BlobStored, err error) {
	switch q.Blob.Kind {
	case protocol.BlobOutput:
		stored, err = t.putOutput(ctx, q, next)
	case protocol.BlobAnswer:
		stored, err = t.putAnswer(ctx, session, q, next)
	case protocol.BlobJournal:
		stored, err = t.putJournal(ctx, session, q, next)
	case protocol.BlobEvidence:
		stored, err = t.putEvidence(ctx, session, q, next)
	case protocol.BlobLine:
		stored, err = t.putLine(ctx, session, q, next)
	default:
		err = errs.Field("blob.kind", "a blob of kind %d cannot be put", q.Blob.Kind)
	}

	return stored, transferError(ctx, q, err)
}

// transferError tells a worker what became of a transfer: whether asking again
// helps. What is damaged names its key.
func transferError(ctx context.Context, q *protocol.BlobRequest, err error) error {
	kind := errs.KindOf(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrCorrupt) && kind != errs.DataLoss:
		return errs.New(errs.DataLoss, "blob of unit %s of job %s: %w", q.Unit, q.Job, err)
	case kind == errs.Internal && (store.Retryable(err) || errors.Is(err, store.ErrNoSpace)):
		return &errs.Error{Kind: errs.Unavailable, Reason: errs.StoreAway, Message: "the store does not answer; ask again", RetryAfter: transferPause, Err: err}
	}

	return err
}

// A rangeWriter passes on the bytes of a blob that are in a range. Small pieces
// are gathered.
type rangeWriter struct {
	start, end int64 // end 0 is the end of the blob
	at         int64 // bytes of the blob so far, passed on or not
	take       func([]byte) error
	buffer     []byte
}

// skipBytes reports whether the next n bytes of the blob are not wanted. Then they need
// not be written.
func (w *rangeWriter) skipBytes(n int64) bool {
	if w.at+n > w.start && (w.end == 0 || w.at < w.end) {
		return false
	}
	w.at += n
	return true
}

func (w *rangeWriter) write(data []byte) error {
	n := int64(len(data))
	from, to := min(max(w.start-w.at, 0), n), n
	if w.end > 0 {
		to = min(max(w.end-w.at, 0), n)
	}

	w.at += n
	if from >= to {
		return nil
	}

	data = data[from:to]
	if len(w.buffer)+len(data) <= bufferedBytes {
		w.buffer = append(w.buffer, data...)
		return nil
	}
	if err := w.flushBuffer(); err != nil {
		return err
	}
	return w.take(data)
}

// flushBuffer passes on what was gathered.
func (w *rangeWriter) flushBuffer() error {
	if len(w.buffer) == 0 {
		return nil
	}
	err := w.take(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// sendText writes the text of a unit's document, and of no other.
func (t *Transfers) sendText(ctx context.Context, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	src := u.Source
	switch {
	case src == nil || outputs.IsBundle(u):
		return errs.Field("blob.kind", "unit %s works on no text of a document", q.Unit)
	case len(q.Blob.SHA256) > 0 && !bytes.Equal(q.Blob.SHA256, src.SHA256):
		return errs.Field("blob.sha256", "the text of unit %s has another SHA-256, %x", q.Unit, src.SHA256)
	case max(q.Blob.Start, q.Blob.End) > src.Length:
		return errs.Field("blob.end_byte", "the text of unit %s has %d bytes", q.Unit, src.Length)
	}

	end := q.Blob.End
	if end == 0 {
		end = src.Length
	}

	w.at = w.start // only what is wanted is read
	return t.jobs.Content.TextParts(ctx, q.Job, content.TextRange{SHA256: src.SHA256, Start: q.Blob.Start, End: end, Length: src.Length}, w.write)
}

// sendOriginal writes the document as it was submitted that the text of a unit was read from, and no
// other: the source of the unit that parsed it.
func (t *Transfers) sendOriginal(ctx context.Context, q *protocol.BlobRequest, u *records.Unit, w *rangeWriter) error {
	if u.Source == nil || outputs.IsBundle(u) {
		return errs.Field("blob.kind", "unit %s works on no text of a document", q.Unit)
	}

	parse, err := t.jobs.View.Unit(ctx, q.Job, mapreduce.ParseUnit(u.Document))
	switch {
	case err != nil:
		return err
	case parse == nil || parse.Source == nil:
		return errs.New(errs.NotFound, "the document of unit %s was submitted as text", q.Unit)
	}
	return t.sendText(ctx, q, parse, w)
}

// putOutput stores an output of the attempt that a session holds: the store's
// transactions see to it that it does.
func (t *Transfers) putOutput(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	b := &q.Blob
	switch {
	case b.Length <= 0 || b.Length > protocol.MaxOutput:
		return nil, errs.Field("blob.size_bytes", "is %d; an output that is put has 1 to %d bytes", b.Length, protocol.MaxOutput)
	case len(b.SHA256) != sha256.Size:
		return nil, errs.Field("blob.sha256", "is missing")
	}

	p := &outputPut{
		transfers: t, sum: sha256.New(),
		put: &content.Put{Held: q.Held, Session: q.Session, Length: b.Length, SHA256: b.SHA256},
	}

	err := t.supervisor.RetryStoreCall(ctx, "looking how much of an output is stored", func() (err error) {
		p.at, err = t.jobs.Content.Stored(ctx, p.put)
		return err
	})
	if err != nil {
		return nil, err
	}

	// A put that brings nothing asks how much is stored.
	part, err := next()
	if errors.Is(err, io.EOF) || p.at == b.Length {
		return p.storedReply(), nil
	}
	if err != nil {
		return nil, err
	}

	if err := p.hashStoredPrefix(ctx, b.Start); err != nil {
		return nil, err
	}

	for ; err == nil; part, err = next() {
		if err := p.appendPart(ctx, part); err != nil {
			return nil, err
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}

	if err := p.storeRest(ctx); err != nil {
		return nil, err
	}

	return p.storedReply(), nil
}

// An outputPut is an output on its way to the store. The last of it is stored only
// after its hash was found right.
type outputPut struct {
	transfers *Transfers
	put       *content.Put
	at        int64  // bytes that are stored
	buffer    []byte // that follow on those
	sum       hash.Hash
}

// hashStoredPrefix sums up what is stored already, on which the parts have to follow.
func (p *outputPut) hashStoredPrefix(ctx context.Context, start int64) error {
	if start != p.at {
		return errs.New(errs.Aborted, "the output of unit %s is stored up to byte %d, and comes from byte %d on: ask how much is stored", p.put.Unit, p.at, start)
	}
	return p.transfers.jobs.Content.PutParts(ctx, p.put, p.at, func(part []byte) error {
		p.sum.Write(part)
		return nil
	})
}

func (p *outputPut) appendPart(ctx context.Context, part []byte) error {
	p.sum.Write(part)
	p.buffer = append(p.buffer, part...)
	if p.at+int64(len(p.buffer)) > p.put.Length {
		return errs.Field("blob.size_bytes", "is %d, and more comes", p.put.Length)
	}

	for len(p.buffer) >= content.MaxPutBytes && p.at+content.MaxPutBytes < p.put.Length {
		if err := p.storeBufferHead(ctx, p.buffer[:content.MaxPutBytes]); err != nil {
			return err
		}
	}
	return nil
}

// storeBufferHead stores the beginning of the buffer.
func (p *outputPut) storeBufferHead(ctx context.Context, data []byte) error {
	t := p.transfers
	err := t.supervisor.RetryStoreCall(ctx, "storing an output", func() error { return t.jobs.Content.StorePut(ctx, p.put, p.at, data) })
	if err != nil {
		return err
	}
	p.at += int64(len(data))
	p.buffer = append(p.buffer[:0], p.buffer[len(data):]...)
	return nil
}

// storeRest stores the remaining bytes. If the put ends before the last byte, another put
// continues it.
func (p *outputPut) storeRest(ctx context.Context) error {
	if rest := p.put.Length - p.at - int64(len(p.buffer)); rest > 0 {
		// Whole chunks alone are stored: another put goes on behind them.
		whole := len(p.buffer) / store.ChunkSize * store.ChunkSize
		if whole == 0 {
			return nil
		}
		return p.storeBufferHead(ctx, p.buffer[:whole])
	}

	if !bytes.Equal(p.sum.Sum(nil), p.put.SHA256) {
		return errs.Field("blob.sha256", "is not that of the %d bytes that came of unit %s", p.put.Length, p.put.Unit)
	}

	for len(p.buffer) > 0 {
		if err := p.storeBufferHead(ctx, p.buffer[:min(len(p.buffer), content.MaxPutBytes)]); err != nil {
			return err
		}
	}
	return nil
}

// CollectPut returns all of a blob that is put at once, of a length and hash that are
// said beforehand: 1 to most bytes. What names it in errors.
func CollectPut(b *protocol.Blob, most int64, what string, next func() ([]byte, error)) ([]byte, error) {
	if b.Length <= 0 || b.Length > most || b.Start != 0 {
		return nil, errs.Field("blob.size_bytes", "is %d from byte %d on; %s has 1 to %d bytes", b.Length, b.Start, what, most)
	}

	data := make([]byte, 0, b.Length)
	for {
		part, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if data = append(data, part...); int64(len(data)) > b.Length {
			return nil, errs.Field("blob.size_bytes", "is %d, and more comes", b.Length)
		}
	}

	if sum := sha256.Sum256(data); int64(len(data)) != b.Length || !bytes.Equal(sum[:], b.SHA256) {
		return nil, errs.Field("blob.sha256", "is not that of the %d bytes that came", len(data))
	}
	return data, nil
}

func (p *outputPut) storedReply() *protocol.BlobStored {
	s := &protocol.BlobStored{Length: p.at}
	if p.at == p.put.Length {
		s.SHA256 = p.put.SHA256
	}
	return s
}
