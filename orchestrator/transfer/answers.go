package transfer

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// putAnswer keeps what a model answered a unit of a job that shares answers. They
// are there to save calls, and are worth no failure: what goes wrong is logged.
func (t *Transfers) putAnswer(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	if len(q.Blob.Key) != sha256.Size {
		return nil, errs.Field("blob.key", "is missing")
	}

	tenant, shares, err := t.answerSharingTenant(ctx, session, q.Held)
	if err != nil {
		return nil, err
	}
	if !shares {
		return nil, errs.New(errs.Precondition, "session %s holds no attempt at unit %s of a job that shares answers", q.Session, q.Unit)
	}

	data, err := CollectPut(&q.Blob, protocol.MaxAnswer, "an answer that is put", next)
	if err != nil {
		return nil, err
	}

	err = t.jobs.Answers.Keep(ctx, tenant, q.Blob.Key, data, t.config.answersSince())
	if err == nil {
		err = t.trimAnswers(ctx, tenant)
	}

	t.supervisor.LogFailure(ctx, "keeping the answer of a model", err, "job", q.Job, "unit", q.Unit)
	return &protocol.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// sendAnswer writes what a model answered another job. One that is damaged is as
// good as none.
func (t *Transfers) sendAnswer(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, w *rangeWriter) error {
	if len(q.Blob.Key) != sha256.Size {
		return errs.Field("blob.key", "is missing")
	}

	tenant, shares, err := t.answerSharingTenant(ctx, session, q.Held)
	if err != nil {
		return err
	}

	var data []byte
	if shares {
		data, err = t.jobs.Answers.Get(ctx, tenant, q.Blob.Key, t.config.answersSince())
	}
	if err != nil && !cluster.IsPermanent(err) {
		return err
	}

	if len(data) == 0 {
		return errs.New(errs.NotFound, "no answer is kept under that key")
	}
	return w.write(data)
}

// answerSharingTenant returns whose answers the job of an attempt shares, if it does. The
// session has to hold the attempt: so no worker can read the answers of tenants
// that it does not work for.
func (t *Transfers) answerSharingTenant(ctx context.Context, session *workers.Session, h protocol.Held) (mapreduce.TenantID, bool, error) {
	held, j := t.scheduler.Sessions.FindUnit(session, h)
	if held == nil {
		return "", false, nil
	}
	spec, err := t.grants.SpecOf(ctx, j)
	if err != nil {
		return "", false, err
	}
	return spec.Tenant, spec.Cache, nil
}

// answersSince is when an answer must have been kept to count. It goes by this node's
// clock, which may be wrong: an answer that is somewhat too old is not a wrong answer.
func (c *Config) answersSince() time.Time { return time.Now().Add(-c.AnswerAge) }

func (t *Transfers) trimAnswers(ctx context.Context, tenant mapreduce.TenantID) error {
	return t.jobs.Answers.Trim(ctx, tenant, t.config.AnswerBytes, t.config.answersSince())
}

// trimEvery is how often answers that are too old are removed.
const trimEvery = 10 * time.Minute

// TrimAnswersLoop removes answers that are too old.
func (t *Transfers) TrimAnswersLoop(ctx context.Context) {
	cluster.CallEvery(ctx, cluster.WithJitter(trimEvery), func() {
		tenants, err := t.jobs.Answers.Tenants(ctx)
		for _, tenant := range tenants {
			if err == nil {
				err = t.trimAnswers(ctx, tenant)
			}
		}
		t.supervisor.LogFailure(ctx, "removing old answers of models", err)
	})
}
