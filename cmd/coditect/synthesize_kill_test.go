package main_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
)

// synthesisPoints are the points that a synthesis three levels deep reaches. A stage is
// planned each time that the stage before it has ended.
func synthesisPoints() []string {
	var all []string
	for _, s := range []failpoint.Step{
		failpoint.Turn, failpoint.Plan, failpoint.Begin, failpoint.Stage, failpoint.Publish, failpoint.Bind,
		failpoint.Journal, failpoint.Complete, failpoint.Seal, failpoint.Answer, failpoint.Assign, failpoint.Started,
		failpoint.Chunk, failpoint.Wakeup, failpoint.Grant, failpoint.Fleet, failpoint.Reserve, failpoint.Beat,
	} {
		all = append(all, string(s.Before()), string(s.After()))
	}
	for pass := 2; pass <= 4; pass++ {
		all = append(all, fmt.Sprintf("%s:%d", failpoint.Plan.Before(), pass), fmt.Sprintf("%s:%d", failpoint.Plan.After(), pass))
	}
	return all
}

// A synthesis is killed at the points that it reaches, while the scripted model leaves out,
// makes up, exchanges and rewrites a fifth of the references at each of three levels. What
// is resumed ends with the report of a run without interruption. As many points are tried
// as there are trials, and at most all.
func TestSoakKillsOfSynthesis(t *testing.T) {
	testenv.SlowOnFDB(t)

	input := citations(48, 80)
	c := newCorpus(t, build(t), 0, costly()...)
	c.write(t, "citations.jsonl", input)
	c.input = []string{
		"--input", filepath.Join(c.dir, "citations.jsonl"), "--pipeline", "synthesize", "--question", "What do rivers carry?",
		"--var", "group_citation_threshold=20", "--var", "script.drop_refs_rate=0.2", "--var", "script.invent_refs_rate=0.2",
		"--var", "script.mix_refs_rate=0.2", "--var", "script.rewrite_refs_rate=0.2",
	}
	c.tree = nil
	h := newHouse(t, c)
	h.store = nil // the embedded one, whichever these tests use
	h.want(0, c.run("--output", "out")...)
	want := h.results()
	s := &synthesised{dir: h.path("out")}
	s.readResult(t)
	s.checkReferences(t, passagesOf(input))
	if stages := s.units(t); stages["themes"] != 6 || stages["groups"] != 3 || stages["report"] != 1 || len(s.Removed) == 0 || len(s.Dropped) == 0 {
		t.Fatalf("the job had %v, %d references were removed and %d dropped: it shows too little", stages, len(s.Removed), len(s.Dropped))
	}
	points := synthesisPoints()
	n := min(trials(t), len(points))
	for i := range n {
		point := points[i*len(points)/n]
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c)
			h.dies(point, c.run("--output", "out")...)
			h.carryThrough(c)
			h.verify(want)
		})
	}
}
