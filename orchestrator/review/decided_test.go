package review_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
)

// wordy is a schema of which people may write much.
const wordy = `
title: report
type: object
properties:
  a: {type: string, x-coditect: {labels: [ALPHA]}}
  b: {type: string, x-coditect: {labels: [BETA]}}
  c: {type: string, x-coditect: {labels: [GAMMA]}}
  d: {type: string, x-coditect: {labels: [DELTA]}}
`

// What people decide about values of a unit may be more than a call takes that wakes it: the unit goes on nevertheless, with
// all of it, whether the last decision wakes it or its time is over.
func TestMuchIsDecided(t *testing.T) {
	long := strings.Repeat("x", mapreduce.MaxReviewedValue-2)
	for _, tt := range []struct {
		name   string
		within string
		fields []string // that somebody decides about
		want   string   // the end of d
	}{
		{"all of it", "", []string{"a", "b", "c", "d"}, long[1:] + "d"},
		{"until its time is over", "1m", []string{"a", "b", "c"}, "four"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f, p, _ := reviewFleet(t, 1)
				n := f.Any()
				spec := waitingJob(t, wordy, "all")
				if tt.within != "" {
					spec.Vars["review_within"], spec.Vars["review_then"] = tt.within, "accept"
				}
				job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(map[string]string{"r.txt": "ALPHA: one\nBETA: two\nGAMMA: three\nDELTA: four\n"}, "r.txt"))
				if err != nil {
					t.Fatal(err)
				}
				n.Until(job.ID, func(j *mapreduce.Job) bool { return j.ParkedUnits == 1 })
				for _, field := range tt.fields {
					value := fmt.Appendf(nil, "%q", long[1:]+field)
					decide(t, n, mapreduce.NewDecision{Job: job.ID, Record: "0.0", Field: field, Verdict: mapreduce.ReviewCorrect, Value: value})
				}

				if job := n.EndWithin(job.ID, 2*time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
					t.Fatalf("the job is %v: %s", job.State, job.Error)
				}
				p.once(t, 1)
				got := n.Result(job.ID)
				if len(got.Records) != 1 || got.Summary.Reviewed.Corrected != int64(len(tt.fields)) {
					t.Fatalf("%d records, and %+v", len(got.Records), got.Summary.Reviewed)
				}
				for _, field := range []string{"a", "b", "c"} {
					if got.Records[0][field] != long[1:]+field {
						t.Errorf("%s is %.20q of %d bytes", field, got.Records[0][field], len(fmt.Sprint(got.Records[0][field])))
					}
				}
				if got.Records[0]["d"] != tt.want {
					t.Errorf("d is %.20q", got.Records[0]["d"])
				}
				n.Sound()
			})
		})
	}
}

// A unit that a cascade draws, and that fails as nobody has decided in time, waits for people again when its job is resumed: the
// last member is not asked about it, then or before.
func TestDrawnUnitsWaitAgain(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, p := judgedFleet(t)
		n := f.Any()
		docs, order := make(map[string]string), []string(nil)
		for i := range 40 {
			name := fmt.Sprintf("%03d.txt", i)
			docs[name], order = fmt.Sprintf("ORDER: A-%d\nCITY: Bonn\nTOTAL: %d\n", i, 100+i), append(order, name)
		}
		spec := waitingJob(t, keyed, "compared")
		spec.Vars["cascade"], spec.Vars["cascade_target"], spec.Vars["cascade_seed"] = "rules,strong/m", "0.8", "7"
		spec.Vars["review_within"], spec.Vars["review_then"] = "1m", "fail"
		job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
		if err != nil {
			t.Fatal(err)
		}

		ended := n.EndWithin(job.ID, 100*time.Hour)
		drawn := ended.FailedUnits
		if drawn == 0 || int(drawn)+len(p.asked) != 40 {
			t.Fatalf("%d units have failed, and %d were asked of the last member; the job is %v", drawn, len(p.asked), ended.State)
		}
		if _, err := n.ResumeJob(t.Context(), job.ID, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		n.Until(job.ID, func(j *mapreduce.Job) bool { return j.ParkedUnits == drawn })
		if units, corrected := judge(t, n, job.ID, func(i int) bool { return i%2 == 0 }); int64(units) != drawn || corrected == 0 {
			t.Errorf("%d units waited again of %d, and %d were corrected", units, drawn, corrected)
		}
		p.once(t, 40-int(drawn))
		if got := n.Result(job.ID); len(got.Records) != 40 {
			t.Errorf("%d records", len(got.Records))
		}
		n.Sound()
	})
}
