package review_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// claims returns claims as text.
func claims(all []mapreduce.RecordClaim) string {
	var texts []string
	for _, c := range all {
		text := fmt.Sprint(c.Record, " ", c.By)
		if c.Own {
			text += "*"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// What somebody is about to review is theirs until they give it back or it lapses, whichever server is asked, and
// others see it.
func TestClaim(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w, id := complete(t, f, 2)
	far := mapreduce.NewRecordID(1<<20, 10)
	claim := func(node int, by string, d time.Duration, records ...mapreduce.RecordID) string {
		t.Helper()
		all, err := w.Nodes[node].Review.Claim(w.Ctx, mapreduce.Claim{Job: id, Records: records, Time: d}, by)
		w.Must(err)
		return claims(all)
	}

	f.FailNext(fault.UnknownCommitted)
	for _, step := range []struct {
		node    int
		by      string
		time    time.Duration
		records []mapreduce.RecordID
		after   time.Duration
		want    string
	}{
		{0, "ann", 5 * time.Minute, []mapreduce.RecordID{far, "0.2"}, 0, "0.2 ann*, 1048576.10 ann*"},
		{1, "bob", 10 * time.Minute, []mapreduce.RecordID{"0.2", "0.10"}, time.Minute, "0.2 ann, 0.10 bob*, 1048576.10 ann"},
		{1, "bob", 0, []mapreduce.RecordID{"0.2", "0.10"}, 0, "0.2 ann, 1048576.10 ann"},
		{1, "bob", 10 * time.Minute, []mapreduce.RecordID{"0.10"}, 0, "0.2 ann, 0.10 bob*, 1048576.10 ann"},
		{0, "ann", 5 * time.Minute, []mapreduce.RecordID{"0.2"}, 3 * time.Minute, "0.2 ann*, 0.10 bob, 1048576.10 ann*"},
		{1, "bob", 10 * time.Minute, []mapreduce.RecordID{far}, time.Minute + time.Second, "0.2 ann, 0.10 bob*, 1048576.10 bob*"},
	} {
		atomic.AddInt64(&w.Micro, step.after.Microseconds())
		if got := claim(step.node, step.by, step.time, step.records...); got != step.want {
			t.Errorf("%s, %v: %s, want %s", step.by, step.records, got, step.want)
		}
	}
	w.Healthy()

	atomic.AddInt64(&w.Micro, (4*time.Minute + 10*time.Second).Microseconds())
	all, err := w.Nodes[0].Review.Claims(w.Ctx, id, "bob")
	w.Must(err)
	if got := claims(all); got != "0.10 bob*, 1048576.10 bob*" {
		t.Errorf("when a claim has lapsed: %s", got)
	}

	w.Must(w.Nodes[0].Lifecycle.Delete(w.Ctx, id))
	for _, kv := range w.All() {
		if name, _, err := w.Space.Last(kv.Key); err != nil || name == "reviewing" {
			t.Errorf("%x is left of the job: %v", kv.Key, err)
		}
	}
	if _, err := w.Nodes[0].Review.Claims(w.Ctx, id, "bob"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("of no job: %v", err)
	}
	_, err = w.Nodes[0].Review.Claim(w.Ctx, mapreduce.Claim{Job: id, Records: []mapreduce.RecordID{"0.0"}, Time: time.Minute}, "bob")
	if errs.KindOf(err) != errs.NotFound {
		t.Errorf("of a job that is gone: %v", err)
	}
	w.Healthy()
}

// Of two who reach for the same records at once each record is one's, and nobody holds more than may be held.
func TestClaimAtOnce(t *testing.T) {
	w, id := complete(t, jobstest.Open(t), 2)
	var records []mapreduce.RecordID
	for i := range int64(mapreduce.MaxClaimedRecords) {
		records = append(records, mapreduce.NewRecordID(i, 0))
	}

	var all sync.WaitGroup
	for node, by := range []string{"ann", "bob"} {
		all.Go(func() {
			for at := range len(records) / 20 {
				if _, err := w.Nodes[node].Review.Claim(w.Ctx, mapreduce.Claim{Job: id, Records: records[20*at:][:20], Time: time.Hour}, by); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := w.Nodes[0].Review.Claims(w.Ctx, id, "ann")
	w.Must(err)
	if len(got) != len(records) {
		t.Errorf("%d records are held, want %d", len(got), len(records))
	}

	for at := range int64(mapreduce.MaxHeldRecords / mapreduce.MaxClaimedRecords) {
		for i := range records {
			records[i] = mapreduce.NewRecordID(1<<20+at, int64(i))
		}
		if _, err := w.Nodes[0].Review.Claim(w.Ctx, mapreduce.Claim{Job: id, Records: records, Time: time.Hour}, "cat"); err != nil {
			t.Error(err)
		}
	}
	_, err = w.Nodes[0].Review.Claim(w.Ctx, mapreduce.Claim{Job: id, Records: []mapreduce.RecordID{"7.7"}, Time: time.Hour}, "cat")
	if errs.KindOf(err) != errs.Exhausted {
		t.Errorf("one more than may be held: %v", err)
	}
	w.Healthy()
}
