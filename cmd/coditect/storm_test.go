package main_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The tests of this file kill processes at random while they work on jobs of every kind. A
// kill is no evidence against a unit: every job ends as if nobody had killed anything.

// A kind is a kind of job.
type kind struct {
	name   string
	corpus *corpus
	keeps  bool                                 // a call is stored before the next one is made
	want   func(t *testing.T) map[string]string // what it comes to if nobody kills anything
}

// kinds returns jobs of every kind.
func kinds(t *testing.T) []kind {
	t.Helper()
	program := build(t)
	slow := append(costly(), "--var", "script.latency=lognormal:25ms,1")
	extract := newCorpus(t, program, 12, slow...)

	rules := newCorpus(t, program, 120, "--provider", "rules")

	parse := newCorpus(t, program, 3, "--provider", "rules")
	for i := range 60 {
		parse.write(t, fmt.Sprintf("docs/heavy%02d.html", i), "<html><body>"+strings.Repeat(fmt.Sprintf("<p>Package: html-%d</p><p>Version: %d</p>", i, i), 150)+"</body></html>")
	}

	synthesis := newCorpus(t, program, 0, slow...)
	synthesis.write(t, "citations.jsonl", citations(48, 80))
	synthesis.input = []string{
		"--input", filepath.Join(synthesis.dir, "citations.jsonl"), "--pipeline", "synthesize", "--question", "What do rivers carry?",
		"--var", "group_citation_threshold=20", "--var", "script.drop_refs_rate=0.2", "--var", "script.mix_refs_rate=0.2",
	}
	synthesis.tree = nil

	compare, site := newCorpus(t, program, 0, "--provider", "rules"), newNewsSite(t, silent+1)
	compare.write(t, "sources.jsonl", site.sources(12))
	compare.input = []string{"--input", filepath.Join(compare.dir, "sources.jsonl"), "--pipeline", "compare", "--question", "vote on the tidal barrier"}
	compare.tree, compare.tools = nil, append(site.hosts(), "--tool", "fetch")

	research := newCorpus(t, program, 0, slow...)
	research.write(t, "kept/dikes.txt", "The sea dike of Norden was raised by two metres after the flood of 1962.\n")
	research.write(t, "folder/minutes.txt", "The council of Norden voted to pay for the sea dike of Norden.\n")
	research.input = []string{"--pipeline", "research", "--question", "sea dike of Norden"}
	research.tree = nil
	research.tools = []string{"--search-store", "kept=" + filepath.Join(research.dir, "kept"), "--tool-root", filepath.Join(research.dir, "folder")}

	found := newCorpus(t, program, 6, append(slow, "--var", "script.pages=2", "--var", "script.page_bytes=60000")...).searching(t)
	found.tools = []string{"--tool", "read", "--tool-root", "."}

	captured := newCorpus(t, program, 12, append(slow, "--capture", "full", "--cache")...)

	all := []kind{
		{name: "extract", corpus: extract, keeps: true},
		{name: "extract, static tree", corpus: extract.reduced("--chunk-size", "4"), keeps: true},
		{name: "extract, rules", corpus: rules},
		{name: "parse", corpus: parse},
		{name: "synthesize", corpus: synthesis, keeps: true},
		{name: "compare", corpus: compare},
		{name: "research", corpus: research, keeps: true},
		{name: "agents that find", corpus: found, keeps: true},
		{name: "capture and cache", corpus: captured, keeps: true},
	}
	for i := range all {
		all[i].want = withUnitsOnce(all[i].corpus)
	}
	return all
}

// paidAhead checks that no call of a unit was made again that was stored before the next call
// of the unit began: each of these calls spends more than may be lost with a process.
func (h *house) paidAhead() {
	h.t.Helper()
	type call struct {
		job, unit, hash string
		call            int
	}
	stored := make(map[call]int)
	for _, e := range h.ledger() {
		c := call{string(e.Job), string(e.Unit), e.Hash, e.Call}
		if by, found := stored[c]; found && !e.End {
			h.t.Errorf("call %d of unit %s was stored when attempt %d went on, and was made again by attempt %d", e.Call, e.Unit, by, e.Attempt)
		}
		if e.Call > 0 && !e.End {
			c.call--
			stored[c] = e.Attempt
		}
	}
}

// killedWhile runs a command and kills it while it runs a unit, any if none is named. It
// returns the unit, or "" if the command ended before.
func (h *house) killedWhile(unit string, args []string) string {
	h.t.Helper()
	cmd := h.command(nil, append([]string{"mapreduce"}, args...)...)
	had := len(h.ledger())
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // however it ends
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	hit := ""
	for over := time.After(slowest); hit == ""; {
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				h.t.Errorf("%s ended with %d", args[0], code)
			}
			return ""
		case <-over:
			h.t.Fatalf("%s neither ran unit %s nor ended", args[0], unit)
		case <-look.C:
			for _, e := range h.ledger()[had:] {
				if !e.End && (unit == "" || string(e.Unit) == unit) {
					hit = string(e.Unit)
				}
			}
		}
	}
	_ = cmd.Process.Kill() // it may have ended
	<-ended
	h.kills++
	h.look()
	return hit
}

// strikeOne kills what works on a job, at random: one process after the other, or again and
// again while the same unit runs.
func (h *house) strikeOne(k kind, random *rand.Rand) {
	h.t.Helper()
	if random.IntN(2) == 0 || !k.keeps {
		for range 1 + random.IntN(5) {
			h.killed(time.Duration(random.IntN(700))*time.Millisecond, h.next(k.corpus))
		}
		return
	}
	unit := ""
	for range 3 + random.IntN(8) {
		if unit = h.killedWhile(unit, h.next(k.corpus)); unit == "" {
			return // the job has ended
		}
	}
}

// countKills returns what counts the kills of a test, which says at its end how many there were.
func countKills(t *testing.T) *atomic.Int64 {
	t.Helper()
	killed := new(atomic.Int64)
	t.Cleanup(func() { t.Logf("%d processes were killed", killed.Load()) })
	return killed
}

// TestSoakStormOfKills kills the only process that works on jobs of every kind.
func TestSoakStormOfKills(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	all, killed := kinds(t), countKills(t)
	for seed := range trials(t) {
		k := all[seed%len(all)]
		t.Run(fmt.Sprintf("%d %s", seed, k.name), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 11))
			h := newHouse(t, k.corpus)
			h.strikeOne(k, random)
			killed.Add(int64(h.kills))
			h.carryThrough(k.corpus)
			h.verify(k.want(t))
			if k.keeps {
				h.paidAhead()
			}
		})
	}
}

// TestSoakStormOfAFleet kills a server and its workers, and the worker that runs one unit
// again and again, while they work on jobs of every kind.
func TestSoakStormOfAFleet(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	all, killed := kinds(t), countKills(t)
	for seed := range trials(t) {
		k := all[seed%len(all)]
		t.Run(fmt.Sprintf("%d %s", seed, k.name), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 12))
			s := newService(t, k.corpus, "worker a", "worker b")
			for name := range s.args {
				s.args[name] = append(s.args[name], k.corpus.toolsOfFleet()...)
				s.start(name)
			}
			names := []string{"server", "worker a", "worker b"}
			happen := func() { s.strike(names[random.IntN(len(names))]) }
			if k.keeps && random.IntN(2) == 0 {
				happen = s.hunt(3 + random.IntN(8))
			}
			submit := append(k.corpus.submit(), "--output", "out", "--request-id", "storm")
			p := s.storm(submit, happen, random)
			killed.Add(int64(s.kills))
			s.wantComplete(p.outcome)
			s.stop()
			s.verify(k.want(t))
			if k.keeps {
				s.paidAhead()
			}
		})
	}
}

// submit returns the arguments of the command that submits the corpus to a server, which has
// the tools.
func (c *corpus) submit() []string {
	bare := *c
	bare.tools = nil
	return bare.run()
}

// toolsOfFleet returns the flags of servers and workers for the tools of the corpus.
func (c *corpus) toolsOfFleet() []string { return c.tools }

// hunt returns what kills the worker that runs the unit that began first, so many times.
func (s *service) hunt(times int) func() {
	unit, had := "", 0
	return func() {
		all := s.ledger()
		for _, e := range all[min(had, len(all)):] {
			if e.End || unit != "" && string(e.Unit) != unit || times == 0 {
				continue
			}
			unit, had = string(e.Unit), len(all)
			times--
			for _, name := range []string{"worker a", "worker b"} { // one of them runs it
				s.strike(name)
			}
			return
		}
	}
}
