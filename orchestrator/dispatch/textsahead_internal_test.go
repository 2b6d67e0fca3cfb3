package dispatch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/keys"
)

// A turn may run twice before it commits, and claim other units the second time: the texts are
// those of the last. The text of a unit that is damaged is left to the unit itself.
func TestTextsAreThoseOfTheLastRun(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(4))
	units := w.Turn(j, &queue.Turn{Job: id, Claim: w.ClaimOf(j, id, w.Session(j), 4)}).Claimed
	units[3].Unit.Source.SHA256 = []byte("of no text")

	a := aheadOf(j, id)
	a.begin(t.Context(), units[:1])
	a.begin(t.Context(), units[1:])
	texts, err := a.wait()
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range units[1:] {
		want := ""
		if i < 2 {
			want = fmt.Sprintf("text of document %d", keys.Document(u.Unit.Index))
		}
		if string(texts[i]) != want {
			t.Errorf("the text of %s is %q, want %q", u.Unit.ID, texts[i], want)
		}
	}
	a.end()
}

// After an error there is a place for each unit, which then reads its own text.
func TestTextsOfATurnThatIsGivenUp(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	units := w.Turn(j, &queue.Turn{Job: id, Claim: w.ClaimOf(j, id, w.Session(j), 2)}).Claimed

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := aheadOf(j, id)
	a.end() // before anything is read
	a.begin(ctx, units)
	if texts, err := a.wait(); err == nil || len(texts) != 2 || texts[0] != nil {
		t.Errorf("%d texts and error %v, want two that are not there", len(texts), err)
	}
	a.end()
}

func aheadOf(j *jobs.Jobs, id mapreduce.JobID) *textsAhead {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	s := cluster.NewSupervisor(j, new(cluster.Signals), cluster.SupervisorConfig{Logger: logger})
	return &textsAhead{dispatcher: &dispatcher{jobs: j, supervisor: s}, job: id}
}
