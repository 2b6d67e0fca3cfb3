package orchestrator_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestTheEndOfTheAuditChainIsHeld: the head of a finished job's audit chain stands in the
// job's record and in its result. What is cut off the chain's end, or changed in the record,
// shows to doctor and to who verifies the events.
func TestTheEndOfTheAuditChainIsHeld(t *testing.T) {
	// change changes the record of a job.
	change := func(f func(*storagev1.Job)) func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID) {
		return func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			t.Helper()
			value, err := tx.Get(t.Context(), space.Job(id).Record())
			if err != nil {
				t.Fatal(err)
			}
			job := new(storagev1.Job)
			if err := proto.Unmarshal(value, job); err != nil {
				t.Fatal(err)
			}
			f(job)
			if value, err = proto.Marshal(job); err != nil {
				t.Fatal(err)
			}
			tx.Set(space.Job(id).Record(), value)
		}
	}
	cut := func(t *testing.T, tx store.Tx, r store.Range, least int) {
		t.Helper()
		pairs, _, err := tx.GetRange(t.Context(), r, store.RangeOptions{})
		if err != nil || len(pairs) < least {
			t.Fatalf("%d records are there, %v", len(pairs), err)
		}
		tx.Clear(pairs[len(pairs)-1].Key)
	}
	for name, tt := range map[string]struct {
		damage func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID)
		why    string
	}{
		"the last seal is gone": {func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			cut(t, tx, space.Job(id).Seals(), 1)
		}, "is gone"},
		"the last seal and its checkpoint are gone": {func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			cut(t, tx, space.Job(id).Seals(), 1)
			cut(t, tx, space.Job(id).Checkpoints(), 2)
		}, "is gone"},
		"the whole chain is gone": {func(t *testing.T, tx store.Tx, space *keys.Space, id mapreduce.JobID) {
			tx.ClearRange(space.Job(id).Seals())
			tx.ClearRange(space.Job(id).Checkpoints())
		}, "is gone"},
		"the record has another head":          {change(func(j *storagev1.Job) { j.AuditHead[0]++ }), "and the chain has"},
		"the record has another specification": {change(func(j *storagev1.Job) { j.Config.Schema = []byte(`{"type":"object","title":"another"}`) }), "was submitted"},
		"the record counts other documents":    {change(func(j *storagev1.Job) { j.Documents++; j.Characters += 5 }), "was submitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			leave := c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n)
			id := n.Submit(enginetest.Script(nil), 3)
			n.WantEnd(id, mapreduce.JobComplete)
			var shown string
			err := n.GetResult(t.Context(), id, false, func(p *mapreduce.ResultPart) error {
				if p.Job != nil {
					shown = p.Job.AuditHead
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			leave()
			n.Sound()
			job := new(storagev1.Job)
			err = store.NewDB(c.Store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
				value, err := tx.Get(t.Context(), keys.New().Job(id).Record())
				if err != nil {
					return err
				}
				if err := proto.Unmarshal(value, job); err != nil {
					return err
				}
				tt.damage(t, tx, keys.New(), id)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(job.AuditHead); got != shown || len(shown) != 64 {
				t.Errorf("the record has the head %s, and the result %s", got, shown)
			}
			if found := n.Findings(); !strings.Contains(strings.Join(found, "\n"), tt.why) {
				t.Errorf("doctor finds %q, and not what %s", found, tt.why)
			}
			if tt.why == "was submitted" {
				return // the chain itself is as it was
			}
			_, err = n.ListEvents(t.Context(), mapreduce.ListEventsQuery{Job: id, Verify: true})
			if errs.KindOf(err) != errs.DataLoss || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("who verifies the events is told %v", err)
			}
		})
	}
}
