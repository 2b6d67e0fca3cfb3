package orchestrator

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// keepAnswers keeps what models answered units of jobs that share answers. They
// are there to save calls, and are worth no failure: what goes wrong is logged.
func (o *Orchestrator) keepAnswers(ctx context.Context, s *session, asked []mapreduce.AnswerRequest) error {
	for _, q := range asked {
		if len(q.Keep) == 0 || len(q.Keep) > mapreduce.MaxAnswer || len(q.Key) != sha256.Size {
			continue
		}
		t, shares, err := o.sharing(ctx, s, q.Held)
		if err != nil {
			return err
		}
		if !shares {
			continue
		}
		err = o.jobs.KeepAnswer(ctx, t, q.Key, q.Keep, o.answersSince())
		if err == nil {
			err = o.trimAnswers(ctx, t)
		}
		o.failed(ctx, "keeping the answer of a model", err, "job", q.Job, "unit", q.Unit)
	}
	return ctx.Err()
}

// findAnswers answers requests for what models answered other jobs. The stream
// waits for that: its back-pressure is ours.
func (o *Orchestrator) findAnswers(ctx context.Context, s *session, asked []mapreduce.AnswerRequest) error {
	for _, q := range asked {
		if len(q.Keep) > 0 {
			continue
		}
		t, shares, err := o.sharing(ctx, s, q.Held)
		if err != nil {
			return err
		}
		reply := mapreduce.AnswerReply{Held: q.Held, Key: q.Key}
		if shares && len(q.Key) == sha256.Size {
			reply.Data, err = o.jobs.Answer(ctx, t, q.Key, o.answersSince())
		}
		if err != nil && !damaged(err) { // which is as good as none
			return err
		}
		s.out.put(&mapreduce.ToWorker{Answers: []mapreduce.AnswerReply{reply}})
	}
	return nil
}

// sharing returns whose answers the job of an attempt shares, if it does. The
// session has to hold the attempt: so no worker can read the answers of tenants
// that it does not work for.
func (o *Orchestrator) sharing(ctx context.Context, s *session, h mapreduce.Held) (mapreduce.TenantID, bool, error) {
	held, r := o.board.holder(s, h)
	if held == nil {
		return "", false, nil
	}
	spec, err := o.specOf(ctx, r)
	if err != nil {
		return "", false, err
	}
	return spec.Tenant, spec.Cache, nil
}

// answersSince is when an answer must have been kept to count. It is told by a
// clock that may be wrong: an answer that is too old is no wrong one.
func (o *Orchestrator) answersSince() time.Time { return time.Now().Add(-o.config.AnswerAge) }

func (o *Orchestrator) trimAnswers(ctx context.Context, t mapreduce.TenantID) error {
	return o.jobs.TrimAnswers(ctx, t, o.config.AnswerBytes, o.answersSince())
}

// trimEvery is how often answers that are too old are removed.
const trimEvery = 10 * time.Minute

// trimmer removes answers that are too old.
func (o *Orchestrator) trimmer(ctx context.Context) {
	every(ctx, jittered(trimEvery), func() {
		tenants, err := o.jobs.AnswerTenants(ctx)
		for _, t := range tenants {
			if err == nil {
				err = o.trimAnswers(ctx, t)
			}
		}
		o.failed(ctx, "removing old answers of models", err)
	})
}

// AnswerCache implements mapreduce.Service.
func (o *Orchestrator) AnswerCache(ctx context.Context, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	c, err := o.jobs.AnswerCache(ctx, t)
	if err == nil && forget {
		err = o.jobs.ClearAnswers(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	c.MaxBytes, c.MaxAge = o.config.AnswerBytes, o.config.AnswerAge
	return &c, nil
}
