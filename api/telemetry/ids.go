package telemetry

import (
	"context"
	"crypto/sha256"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// The ids of what is traced of a job are hashes of its names, so that whoever goes on with
// it, in whatever process, goes on with the same trace, and can name spans that it has not
// seen: those of attempts whose worker died, too.

// TraceOf returns the id of the trace of a job whose client has none of its own.
func TraceOf(job mapreduce.JobID) (id trace.TraceID) {
	sum := sha256.Sum256([]byte("trace\x00" + string(job)))
	copy(id[:], sum[:])
	return id
}

// JobSpan returns the id of the span of a job's submission, under which its others stand.
func JobSpan(job mapreduce.JobID) trace.SpanID { return hashSpan("job", string(job)) }

// EndSpan returns the id of the span of a job's end, as of an epoch: a job that is resumed
// ends again.
func EndSpan(job mapreduce.JobID, epoch int64) trace.SpanID {
	return hashSpan("end", string(job), strconv.FormatInt(epoch, 10))
}

// ClaimSpan returns the id of the span of the claim that began an attempt, and AttemptSpan
// that of the attempt itself.
func ClaimSpan(h protocol.Held) trace.SpanID {
	return hashSpan("claim", string(h.Job), string(h.Unit), strconv.Itoa(h.Attempt))
}

// AttemptSpan returns the id of the span of an attempt.
func AttemptSpan(h protocol.Held) trace.SpanID {
	return hashSpan("attempt", string(h.Job), string(h.Unit), strconv.Itoa(h.Attempt))
}

func hashSpan(kind string, names ...string) (id trace.SpanID) {
	text := []byte(kind)
	for _, n := range names {
		text = append(append(text, 0), n...)
	}
	sum := sha256.Sum256(text)
	copy(id[:], sum[:])
	return id
}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// WithIDs returns a context in which the next span that is started has the given id, and if
// it has no parent, is in the given trace. Zeros leave it to chance.
func WithIDs(ctx context.Context, t trace.TraceID, s trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, ids{t, s})
}

// IDsFrom returns the ids that a context asks for; zeros are none.
func IDsFrom(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, _ := ctx.Value(idsKey{}).(ids)
	return i.trace, i.span
}
