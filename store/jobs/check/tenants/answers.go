package tenants

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
)

// checkAnswers checks that every answer is what was kept under its key, and is listed
// by its age.
func (c *checker) checkAnswers(ctx context.Context) error {
	r := c.Keys.AllTenants().Answers()
	for r.Begin != nil {
		var next []byte
		err := c.Look(ctx, "", func(l *walk.Look) (err error) {
			next, err = c.answerFrom(ctx, l, r)
			return err
		})
		if err != nil {
			return err
		}

		r.Begin = next
	}

	return nil
}

// checkCertificates checks that every certificate of cascades can be read, and has what it says of each measure.
func (c *checker) checkCertificates(ctx context.Context) error {
	return c.WalkRange(ctx, "", c.Keys.AllTenants().Certificates(), walk.PageOptions(), func(l *walk.Look, page []store.KeyValue) error {
		for _, kv := range page {
			var of storagev1.Certificate
			if !l.Decode(kv.Key, kv.Value, &of) {
				continue
			}
			if len(of.Measures) == 0 || len(of.Floors) != len(of.Measures) {
				l.Find(kv.Key, "the certificate has floors of %d measures, and %d measures; drop it with `coditect mapreduce certificates --drop`", len(of.Floors), len(of.Measures))
			}
		}
		return nil
	}, nil)
}

// answerFrom checks the first answer of a range, and returns where the next one
// begins; nil if there is none.
func (c *checker) answerFrom(ctx context.Context, l *walk.Look, r store.Range) ([]byte, error) {
	pairs, _, err := l.GetRange(ctx, r, store.RangeOptions{Limit: 1})
	if err != nil || len(pairs) == 0 {
		return nil, err
	}

	kv := pairs[0]
	_, rest, err := c.Keys.Last(kv.Key)
	if err != nil {
		return nil, err
	}

	t, sum := mapreduce.TenantID(rest.Text()), rest.Bytes()
	next := c.Keys.Tenant(t).AnswerChunks(sum).End
	// The record of an answer comes before its chunks, so a chunk that comes first has
	// none.
	if rest.Err() != nil || len(rest.Rest()) > 0 {
		l.Find(kv.Key, "this is a chunk of an answer that does not exist; delete all answers with `coditect mapreduce cache --clear`")
		return next, nil
	}

	a := new(storagev1.Answer)
	if !l.Decode(kv.Key, kv.Value, a) {
		return next, nil
	}
	if _, err := c.answers.AnswerBytes(ctx, l, t, sum, a); walk.IsDamage(err) {
		l.Find(kv.Key, "the answer is not the one that was stored: %v; no job will get it", err)
	} else if err != nil {
		return nil, err
	}

	listed, err := l.Get(ctx, c.Keys.Tenant(t).Aged(a.KeptMicros, sum))
	if err == nil && listed == nil {
		l.Find(kv.Key, "the answer is not listed by its age: it would be kept for ever; delete all answers with `coditect mapreduce cache --clear`")
	}
	return next, err
}
