package view_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// TestCountsOfEvents: a list of events with counts has of each event when it was, how many units it ended and what these
// spent, as the list with these units says it.
func TestCountsOfEvents(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(9))
	s := w.Session(j)
	for i, u := range w.Claim(j, id, s, 5) {
		if i == 2 {
			w.Report(j, jobstest.Errored(id, u, protocol.PermanentUnit))
		} else {
			w.Report(j, jobstest.Done(id, u))
		}
	}
	w.Run(j, id)
	w.Seal(j, id, 1)

	ended := int64(0)
	for _, size := range []int{2, 1000} {
		whole, counts := mapreduce.ListEventsQuery{Job: id, PageSize: size}, mapreduce.ListEventsQuery{Job: id, PageSize: size, Counts: true}
		for {
			want, err := j.Audit.List(w.Ctx, whole)
			w.Must(err)
			got, err := j.Audit.List(w.Ctx, counts)
			w.Must(err)
			for _, c := range want.Checkpoints {
				*c = mapreduce.Checkpoint{ID: c.ID, Time: c.Time, Tokens: c.Tokens, CompletedCount: int64(len(c.Completed)), FailedCount: int64(len(c.Failed))}
				ended += c.CompletedCount + c.FailedCount
			}
			if diff := cmp.Diff(want.Checkpoints, got.Checkpoints); diff != "" || len(got.Seals) > 0 {
				t.Errorf("pages of %d, with %d seals (-want +got):\n%s", size, len(got.Seals), diff)
			}

			whole.PageToken, counts.PageToken = want.NextPageToken, got.NextPageToken
			if (whole.PageToken == "") != (counts.PageToken == "") {
				t.Fatalf("one list ends before the other: %q, %q", whole.PageToken, counts.PageToken)
			}
			if whole.PageToken == "" {
				break
			}
		}
	}
	if ended < 2*9 {
		t.Errorf("%d units have ended", ended)
	}
}
