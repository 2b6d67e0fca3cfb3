package nodes_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// A sign of life sees the jobs that may run. It is given also if these cannot be
// read, or are too many to be read once a second.
func TestASignOfLifeSeesWhatRuns(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	refs, err := j.View.Runs(w.Ctx)
	if err != nil || len(refs) != 1 {
		t.Fatalf("jobs that may run: %v (error %v)", refs, err)
	}
	run := func(id string) []byte { return w.Space.Tenant(refs[0].Tenant).Run(mapreduce.JobID(id)) }
	value := w.Get(run(string(id)))
	for count, given := range []struct {
		name  string
		write func(tx store.Tx)
		seen  bool
		runs  int
	}{
		{"one job", func(store.Tx) {}, true, 1},
		{"a damaged one", func(tx store.Tx) { tx.Set(run("damaged"), []byte("damaged")) }, false, 0},
		{"none that is damaged", func(tx store.Tx) { tx.Clear(run("damaged")) }, true, 1},
		{"very many", func(tx store.Tx) {
			for i := range 1000 {
				tx.Set(run(fmt.Sprint("other-", i)), value)
			}
		}, false, 0},
	} {
		w.Write(given.write)
		s, err := j.Nodes.Beat(w.Ctx, int64(count+2), nodes.News{})
		if err != nil {
			t.Fatalf("%s: %v", given.name, err)
		}
		if got := s.Beats[j.Node()]; got != int64(count+2) {
			t.Errorf("%s: the count is %d, want %d", given.name, got, count+2)
		}
		if s.Seen != given.seen || s.Seen && len(s.Runs) != given.runs {
			t.Errorf("%s: seen: %t, %d jobs; want %t, %d", given.name, s.Seen, len(s.Runs), given.seen, given.runs)
		}
	}
	if refs, err = j.View.Runs(w.Ctx); err != nil || len(refs) != 1001 {
		t.Errorf("%d jobs may run (error %v), want 1001", len(refs), err)
	}
}

// What a node tells with its sign of life the others see with theirs, until it tells
// something else.
func TestSignsOfLifeTellNews(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	first, second := w.Nodes[0], w.Nodes[1]
	told := nodes.News{
		Watched: []mapreduce.JobID{"mr_20261123_aaaaaa", "mr_20261123_bbbbbb"}, Told: 17,
		Notes: []nodes.Note{{Job: "mr_20261123_cccccc", Activity: mapreduce.Activity{
			Unit: "map:3", Attempt: 2, Number: 5, Tokens: mapreduce.Tokens{In: 100, Out: 20}, Note: "turn 2 of 9: Größe",
		}}},
	}
	for count, news := range []nodes.News{told, {}} {
		if _, err := first.Nodes.Beat(w.Ctx, int64(count+2), news); err != nil {
			t.Fatal(err)
		}
		s, err := second.Nodes.Beat(w.Ctx, int64(count+2), nodes.News{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[mapreduce.NodeID]nodes.News{}
		if news.Told > 0 {
			want[first.Node()] = news
		}
		if diff := cmp.Diff(want, s.News); diff != "" {
			t.Errorf("the other node sees (-want +got):\n%s", diff)
		}
	}
}
