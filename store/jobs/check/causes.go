package check

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
)

// checkCauses checks what was said of causes of the job's failed units: each is where its cause belongs, and says something.
func (k *dataCheck) checkCauses(ctx context.Context) error {
	return k.WalkRange(ctx, k.id, k.Keys.Job(k.id).CauseMarks(), walk.PageOptions(), func(l *walk.Look, pairs []store.KeyValue) error {
		for _, kv := range pairs {
			m := new(storagev1.CauseMark)
			if !l.Decode(kv.Key, kv.Value, m) {
				continue
			}

			switch state := mapreduce.CauseState(m.State); {
			case !bytes.Equal(kv.Key, k.Keys.Job(k.id).CauseMark(m.Cause)):
				l.Find(kv.Key, "it is of the cause %q, which has another key", m.Cause)
			case state != mapreduce.CauseIgnored && state != mapreduce.CauseResolved:
				l.Find(kv.Key, "no mark of a cause has the state %d", m.State)
			case m.Units < 0:
				l.Find(kv.Key, "it counts %d units", m.Units)
			}
		}
		return nil
	}, nil)
}
