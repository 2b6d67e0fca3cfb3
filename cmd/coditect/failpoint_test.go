package main_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/failpoint"
)

// unreachable are the steps that one process on its own does not take, and why.
var unreachable = map[failpoint.Step]string{
	failpoint.Rate:   "calls are counted of tenants with a quota, which a process on its own has not: TestQuotasThroughTheWire",
	failpoint.Decide: "a server takes decisions, and no command: TestDecisionsSurviveKills",
	failpoint.Ask:    "calls go by batch where a vendor has batches: TestSoakBatchStorms in package orchestrator",
	failpoint.Group:  "as Ask",
	failpoint.Take:   "as Ask",
	failpoint.Tell:   "as Ask",
	failpoint.Rescue: "as Ask: TestSoakDeadlineStorms",
	failpoint.Return: "slots are given back to other orchestrators: TestSlotsAreGivenBack in package orchestrator",
}

// A killing kills a command at both points of some steps, and brings what is
// left to its end.
type killing struct {
	name   string
	corpus *corpus
	steps  []failpoint.Step
	before func(h *house)          // what is done before; may be nil
	victim func(h *house) []string // the command that is killed
	after  func(h *house)          // brings the job to its end, and checks
}

// Every point is hit, and the process that is killed there leaves nothing with
// which the next cannot go on.
//
// Most of its time processes wait for units that failed, so many run at once.
func TestKilledAtEveryPoint(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	t.Parallel()
	covered := make(map[failpoint.Step]bool)
	for _, k := range killings(t, build(t)) {
		for _, s := range k.steps {
			covered[s] = true
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range k.steps {
				for _, p := range []failpoint.Point{s.Before(), s.After()} {
					t.Run(string(p), func(t *testing.T) {
						t.Parallel()
						h := newHouse(t, k.corpus)
						if k.before != nil {
							k.before(h)
						}
						h.dies(string(p), k.victim(h)...)
						k.after(h)
					})
				}
			}
		})
	}
	for _, s := range failpoint.Steps() {
		if why := unreachable[s]; covered[s] == (why != "") {
			t.Errorf("step %s: covered is %t, and the reason not to is %q", s, covered[s], why)
		}
	}
}

// ignoring is the command that ignores the cause for which a poisoned unit fails.
func ignoring(job string) []string {
	return []string{"failures", job, "--ignore", "scripted permanent failure"}
}

// costly makes units call twice, spend more than was reserved at first, and fail
// now and then.
func costly() []string {
	return []string{
		"--budget", "100000000", "--var", "script.calls=2", "--var", "script.tokens_in=11000", "--var", "script.tokens_out=500",
		"--var", "script.fail_rate=0.3", "--var", "script.latency=1ms",
	}
}

// certificates returns the ids of the certificates of cascades that are kept.
func (h *house) certificates() (ids []string) {
	h.t.Helper()
	var list struct {
		Certificates []struct {
			ID string `json:"certificate_id"`
		} `json:"certificates"`
	}
	h.decode(h.want(0, "certificates", "-o", "json"), &list)
	for _, c := range list.Certificates {
		ids = append(ids, c.ID)
	}
	return ids
}

// once returns what makes the results with which others are compared when they are
// first needed, and no second time.
func once(results func(t *testing.T) map[string]string) func(t *testing.T) map[string]string {
	var mu sync.Mutex
	var made map[string]string
	return func(t *testing.T) map[string]string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if made == nil {
			made = results(t)
		}
		return made
	}
}

// referenceOnce is reference when it is first needed.
func referenceOnce(c *corpus, code int) func(t *testing.T) map[string]string {
	return once(func(t *testing.T) map[string]string { t.Helper(); return reference(t, c, code) })
}

// withUnitsOnce is withUnits when it is first needed.
func withUnitsOnce(c *corpus, wants ...string) func(t *testing.T) map[string]string {
	return once(func(t *testing.T) map[string]string { t.Helper(); return withUnits(t, c, 0, wants...) })
}

// triedOnce is tried when it is first needed.
func triedOnce(c *corpus) func(t *testing.T) map[string]string {
	return once(func(t *testing.T) map[string]string { t.Helper(); return tried(t, c) })
}

// tried returns the results of a job whose failed units have been tried twice.
func tried(t *testing.T, c *corpus) map[string]string {
	t.Helper()
	h := newHouse(t, c)
	h.want(3, c.run("--output", "out")...)
	job, _ := h.job()
	h.want(3, "resume", "--job-id", job.JobID, "--output", "out")
	return h.results()
}

func killings(t *testing.T, program string) []killing {
	whole := newCorpus(t, program, 12, costly()...)
	poor := newCorpus(t, program, 12, "--budget", "150000", "--var", "script.tokens_in=9000")
	partly := newCorpus(t, program, 12, "--var", "script.poison.004.txt=permanent")
	fails := newCorpus(t, program, 12, "--on-error", "fail-fast", "--var", "script.poison.004.txt=permanent")
	static, adaptive := whole.reduced("--chunk-size", "3"), whole.reduced("--target-token-budget", "200")
	partlyStatic := partly.reduced("--chunk-size", "3")
	direct := whole.piped(t, "--target-token-budget", "100000")
	dissolved := newCorpus(t, program, 2, costly()...).grown(t).piped(t, "--target-token-budget", "2400")
	wantedDirect, wantedDissolved := withUnitsOnce(direct, `"unit_id":"direct"`), withUnitsOnce(dissolved, `"unit_id":"000.txt"`, `"unit_id":"grown.html"`)
	wanted, wantedStatic, wantedAdaptive := referenceOnce(whole, 0), referenceOnce(static, 0), referenceOnce(adaptive, 0)
	wantedPartlyStatic := triedOnce(partlyStatic)
	wantedPoor := referenceOnce(newCorpus(t, program, 12, "--var", "script.tokens_in=9000"), 0)
	wantedPartly := triedOnce(partly)
	many := newCorpus(t, program, 260, "--var", "script.latency=1ms").reduced("--chunk-size", "100")
	wantedMany := withUnitsOnce(many, `"unit_id":"reduce_L1_2"`, `"unit_id":"final"`)
	stages := whole.surveyed(t)
	wantedStages := withUnitsOnce(stages, `"unit_id":"plan"`, `"unit_id":"item_6"`, `"unit_id":"group_L1_2"`, `"unit_id":"group"`, `"unit_id":"theme_0"`, `"unit_id":"report"`)
	parking := newCorpus(t, program, 12, append(costly(), "--var", "script.parks=2", "--var", "script.park_for=20ms")...)
	asking := newCorpus(t, program, 1, "--var", "script.parks=1", "--var", "script.answer=granted")
	wantedAsking := withUnitsOnce(newCorpus(t, program, 1), `"unit_id":"000.txt"`, `"unit_id":"final"`)
	cascading := newCorpus(t, program, 24, "--model", "m", "--cascade", "rules,scripted/m", "--target", "0.5", "--var", "cascade_seed=7", "--var", "script.tokens_in=1000")
	certifying := newCorpus(t, program, 24, "--model", "m", "--cascade", "rules,scripted/m", "--target", "0.5", "--cascade-kind", "orders", "--var", "cascade_seed=7")
	wantedCascading := withUnitsOnce(cascading, `"unit_id":"000.txt"`, `"unit_id":"final"`)
	searching := newCorpus(t, program, 6, "--tool", "read", "--tool-root", ".", "--var", "script.pages=2", "--var", "script.page_bytes=600000").searching(t)
	wantedSearching := withUnitsOnce(searching, `"unit_id":"000.txt"`, `"unit_id":"table"`, `"quote":"what the script found"`)
	id := func(h *house) string {
		job, _ := h.job()
		return job.JobID
	}
	finish := func(h *house) {
		h.carryThrough(whole)
		h.verify(wanted(h.t))
	}
	enough := []string{"--budget", "100000000"}
	return []killing{
		{
			name:   "a job from its submission to its end",
			corpus: whole,
			steps: []failpoint.Step{
				failpoint.Begin, failpoint.Stage, failpoint.Publish, failpoint.Bind, failpoint.Turn, failpoint.Started,
				failpoint.Chunk, failpoint.Journal, failpoint.Wakeup, failpoint.Grant, failpoint.Fleet, failpoint.Reserve,
				failpoint.Insert, failpoint.Map, failpoint.Plan, failpoint.Complete, failpoint.Beat, failpoint.Seal,
				failpoint.Answer, failpoint.Assign,
			},
			victim: func(*house) []string { return whole.run("--output", "out") },
			after:  finish,
		},
		{
			name:   "units whose tools bring evidence",
			corpus: searching,
			steps:  []failpoint.Step{failpoint.Evidence, failpoint.Turn},
			victim: func(*house) []string { return searching.run("--output", "out") },
			after: func(h *house) {
				h.want(0, "resume", "--job-id", id(h), "--tool", "read", "--tool-root", ".", "--output", "out")
				h.verify(wantedSearching(h.t))
			},
		},
		{
			name:   "units that wait for something outside",
			corpus: parking,
			steps:  []failpoint.Step{failpoint.Turn, failpoint.Journal, failpoint.Wakeup},
			before: func(h *house) { h.dies("assign.before:4", parking.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"resume", "--job-id", id(h), "--output", "out"} },
			after: func(h *house) {
				h.carryThrough(parking)
				h.verify(wanted(h.t))
			},
		},
		{
			name:   "a cascade",
			corpus: cascading,
			steps:  []failpoint.Step{failpoint.Census, failpoint.Certify, failpoint.Judge},
			victim: func(*house) []string { return cascading.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(cascading)
				h.verify(wantedCascading(h.t))
			},
		},
		{
			name:   "a certificate of a cascade that is dropped",
			corpus: certifying,
			steps:  []failpoint.Step{failpoint.Disown},
			before: func(h *house) { h.want(0, certifying.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"certificates", "--drop", h.certificates()[0]} },
			after: func(h *house) {
				for _, id := range h.certificates() { // if the first was not dropped
					h.want(0, "certificates", "--drop", id)
				}
				if left := h.certificates(); len(left) > 0 {
					h.t.Errorf("certificates %q are kept", left)
				}
				h.healthy()
			},
		},
		{
			name:   "a unit that is woken by a call",
			corpus: asking,
			steps:  []failpoint.Step{failpoint.Wake},
			before: func(h *house) { h.runUntilAsked(asking.run("--output", "out")) },
			victim: func(h *house) []string { return h.firstAsked().wake("granted") },
			after: func(h *house) {
				h.want(0, h.asked[0].wake("granted")...) // whether the first was, or was not
				h.answering(id(h), "granted")
				h.verify(wantedAsking(h.t))
			},
		},
		{
			name:   "a static tree",
			corpus: static,
			steps: []failpoint.Step{
				failpoint.Publish, failpoint.Insert, failpoint.Plan, failpoint.Turn, failpoint.Unblock, failpoint.Ascend, failpoint.Complete,
			},
			victim: func(*house) []string { return static.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(static)
				h.verify(wantedStatic(h.t))
			},
		},
		{
			name:   "failed units of a static tree tried again",
			corpus: partlyStatic,
			steps:  []failpoint.Step{failpoint.Retry, failpoint.Resume, failpoint.Turn, failpoint.Unblock},
			before: func(h *house) { h.want(3, partlyStatic.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"resume", "--job-id", id(h), "--output", "out"} },
			after: func(h *house) {
				h.remade()
				if code := h.carryOn(partlyStatic); code != 3 {
					h.t.Fatalf("ended with %d", code)
				}
				h.verify(wantedPartlyStatic(h.t))
			},
		},
		{
			name:   "a direct unit",
			corpus: direct,
			steps:  []failpoint.Step{failpoint.Stage, failpoint.Publish, failpoint.Insert, failpoint.Map, failpoint.Turn, failpoint.Journal, failpoint.Complete},
			victim: func(*house) []string { return direct.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(direct)
				h.verify(wantedDirect(h.t))
			},
		},
		{
			name:   "a direct unit that is dissolved",
			corpus: dissolved,
			steps:  []failpoint.Step{failpoint.Stage, failpoint.Publish, failpoint.Insert, failpoint.Map, failpoint.Turn},
			victim: func(*house) []string { return dissolved.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(dissolved)
				h.verify(wantedDissolved(h.t))
			},
		},
		{
			name:   "stages of a pipeline that no preset has",
			corpus: stages,
			steps: []failpoint.Step{
				failpoint.Begin, failpoint.Stage, failpoint.Publish, failpoint.Bind, failpoint.Turn, failpoint.Journal, failpoint.Plan,
				failpoint.Map, failpoint.Insert, failpoint.Complete, failpoint.Assign, failpoint.Answer, failpoint.Seal,
			},
			victim: func(*house) []string { return stages.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(stages)
				h.verify(wantedStages(h.t))
			},
		},
		{
			name:   "a result that is a unit of its own",
			corpus: many,
			steps:  []failpoint.Step{failpoint.Assemble, failpoint.Complete},
			victim: func(*house) []string { return many.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(many)
				h.verify(wantedMany(h.t))
			},
		},
		{
			name:   "an adaptive tree",
			corpus: adaptive,
			steps:  []failpoint.Step{failpoint.Plan, failpoint.Turn, failpoint.Complete},
			victim: func(*house) []string { return adaptive.run("--output", "out") },
			after: func(h *house) {
				h.carryThrough(adaptive)
				h.verify(wantedAdaptive(h.t))
			},
		},
		{
			name:   "a submission that was given up",
			corpus: whole,
			steps:  []failpoint.Step{failpoint.Abandon},
			before: func(h *house) { h.dies("stage.after", whole.run("--output", "out")...) },
			victim: func(*house) []string { return whole.run("--output", "out") },
			after:  finish,
		},
		{
			name:   "a job whose process was killed",
			corpus: whole,
			steps:  []failpoint.Step{failpoint.Doubt, failpoint.Expire, failpoint.Forget, failpoint.Bind, failpoint.Grant, failpoint.Turn, failpoint.Assign},
			before: func(h *house) { h.dies("assign.before:4", whole.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"resume", "--job-id", id(h), "--output", "out"} },
			after:  finish,
		},
		{
			name:   "out of budget",
			corpus: poor,
			steps:  []failpoint.Step{failpoint.Pause},
			victim: func(*house) []string { return poor.run("--output", "out") },
			after: func(h *house) {
				if code := h.carryOn(poor, enough...); code != 0 {
					h.t.Fatalf("ended with %d", code)
				}
				h.verify(wantedPoor(h.t))
			},
		},
		{
			name:   "more budget",
			corpus: poor,
			steps:  []failpoint.Step{failpoint.Resume},
			before: func(h *house) { h.want(4, poor.run("--output", "out")...) },
			victim: func(h *house) []string {
				return append([]string{"resume", "--job-id", id(h), "--output", "out"}, enough...)
			},
			after: func(h *house) {
				if code := h.carryOn(poor, enough...); code != 0 {
					h.t.Fatalf("ended with %d", code)
				}
				h.verify(wantedPoor(h.t))
			},
		},
		{
			name:   "failed units tried again",
			corpus: partly,
			steps:  []failpoint.Step{failpoint.Retry, failpoint.Resume},
			before: func(h *house) { h.want(3, partly.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"resume", "--job-id", id(h), "--output", "out"} },
			after: func(h *house) {
				h.remade()
				if code := h.carryOn(partly); code != 3 {
					h.t.Fatalf("ended with %d", code)
				}
				h.verify(wantedPartly(h.t))
			},
		},
		{
			name:   "a job that fails",
			corpus: fails,
			steps:  []failpoint.Step{failpoint.Fail},
			victim: func(*house) []string { return fails.run("--output", "out") },
			after: func(h *house) {
				if code := h.carryOn(fails); code != 1 {
					h.t.Fatalf("ended with %d", code)
				}
				h.healthy()
				h.paidOnce()
			},
		},
		{
			name:   "a job that is cancelled",
			corpus: whole,
			steps:  []failpoint.Step{failpoint.Cancel, failpoint.Sweep},
			before: func(h *house) { h.dies("turn.after:4", whole.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"cancel", "--job-id", id(h)} },
			after: func(h *house) {
				h.want(0, "cancel", "--job-id", id(h))
				if left := h.want(0, "units", "--job-id", id(h), "--status", "pending,processing", "-o", "json"); strings.Contains(left, "unit_id") {
					h.t.Errorf("units are left:\n%s", left)
				}
				h.healthy()
			},
		},
		{
			name:   "a cause of failed units that is ignored",
			corpus: partly,
			steps:  []failpoint.Step{failpoint.Mark},
			before: func(h *house) { h.want(3, partly.run("--output", "out")...) },
			victim: func(h *house) []string { return ignoring(id(h)) },
			after: func(h *house) {
				h.want(0, ignoring(id(h))...) // whether the first was kept, or was not
				if said := h.want(0, "failures", id(h)); !strings.Contains(said, "ignored") || strings.Contains(said, "open") {
					h.t.Errorf("the cause is not ignored: %s", said)
				}
				h.healthy()
			},
		},
		{
			name:   "a job that is deleted",
			corpus: whole,
			steps:  []failpoint.Step{failpoint.Delete},
			before: func(h *house) { h.want(0, whole.run("--output", "out")...) },
			victim: func(h *house) []string { return []string{"delete", "--job-id", id(h)} },
			after: func(h *house) {
				if job, found := h.job(); found {
					h.want(0, "delete", "--job-id", job.JobID)
				}
				if job, found := h.job(); found {
					h.t.Errorf("job %s is still there", job.JobID)
				}
				h.healthy()
			},
		},
	}
}

// A process is killed at one point, and the next one at another, and so on.
func TestKilledAgainAndAgain(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	t.Parallel()
	c := newCorpus(t, build(t), 12, costly()...)
	want := reference(t, c, 0)
	for _, points := range [][]string{
		{"publish.after", "bind.after", "turn.after"},
		{"assign.before:2", "expire.before", "expire.after", "forget.before"},
		{"assign.before:2", "forget.after", "grant.before"},
		{"turn.after:5", "grant.after", "turn.before", "assign.before"},
		{"chunk.after", "chunk.after", "chunk.after"},
		{"journal.after", "turn.after:3", "reserve.after"},
		{"plan.before", "plan.after", "plan.before", "turn.after"},
		{"insert.after", "map.before", "map.after"},
		{"seal.after:2", "seal.before", "answer.before:3"},
		{"complete.before", "complete.before", "complete.after"},
	} {
		t.Run(strings.Join(points, ","), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, c)
			h.dies(points[0], c.run("--output", "out")...)
			for _, p := range points[1:] {
				job, found := h.job()
				if !found {
					t.Fatal("there is no job")
				}
				h.dies(p, "resume", "--job-id", job.JobID, "--output", "out")
			}
			h.carryThrough(c)
			h.verify(want)
		})
	}
}

// A point that no step has is refused before anything is done.
func TestUnknownPoint(t *testing.T) {
	testenv.SlowOnFDB(t)

	c := newCorpus(t, build(t), 1)
	o := newHouse(t, c).try([]string{failpoint.Variable + "=turn.during"}, c.run("--output", "out")...)
	if o.code != 2 || !strings.Contains(o.stderr, `no point is called "turn.during"`) {
		t.Errorf("exit code %d\n%s", o.code, o.stderr)
	}
}

// piped returns the same corpus with a pipeline that has a stage for all documents.
func (c *corpus) piped(t *testing.T, flags ...string) *corpus {
	t.Helper()
	c.write(t, "pipeline.yaml", `
name: whole
stages:
- {name: direct, each: all, when: tokens <= budget, agent: {role: Editor in chief}, task: "Read all {{items.count}}"}
- {name: map, from: documents, each: chunk, agent: {role: "Reader of {{item.id}}"}, task: Read it}
- {name: reduce, each: group, agent: {role: Editor}, task: Bring it together}
`)
	return c.reduced(append(flags, "--pipeline", filepath.Join(c.dir, "pipeline.yaml"))...)
}

// searching returns the same corpus with a pipeline whose first stage has tools.
func (c *corpus) searching(t *testing.T, flags ...string) *corpus {
	t.Helper()
	c.write(t, "searching.yaml", `
name: searching
stages:
- name: look
  each: document
  agent: {role: Reader}
  task: Find it.
  tools: [read]
  output: {kind: items, schema: {type: object, required: [found], properties: {found: {type: array, minItems: 2, maxItems: 2, items: {type: string, minLength: 1}}}}}
- name: table
  from: look
  each: all
  agent: {role: Writer}
  task: Put it together.
  output: {kind: table, schema: {type: object, required: [rows], properties: {rows: {type: array, minItems: 3, maxItems: 5, items: {type: string, minLength: 1}}}}}
`)
	return c.reduced(append(flags, "--pipeline", filepath.Join(c.dir, "searching.yaml"))...)
}

// surveyed returns the same corpus with a pipeline of five stages: a plan, of which
// each topic is looked at, what comes of that brought together, each theme of it
// written about, and a report.
func (c *corpus) surveyed(t *testing.T, flags ...string) *corpus {
	t.Helper()
	c.write(t, "survey.yaml", `
name: survey
stages:
- name: plan
  each: all
  agent: {role: Planner}
  task: Say which topics the documents have.
  output:
    kind: items
    schema:
      type: object
      required: [topics]
      properties: {topics: {type: array, minItems: 7, maxItems: 7, items: {type: object, required: [name], properties: {name: {type: string, minLength: 1}}}}}
- name: item
  each: plan.topics
  agent: {role: "Expert of {{item.name}}"}
  task: Say what the topic is about.
  output:
    kind: items
    schema: {type: object, required: [themes], properties: {themes: {type: array, minItems: 1, maxItems: 2, items: {type: string, minLength: 1}}}}
- {name: group, each: group, merge: typed, strategy: static, chunk_size: 3}
- name: theme
  each: group.themes
  agent: {role: Writer}
  task: Write a paragraph on the theme.
  output: {kind: items, schema: {type: object, required: [text], properties: {text: {type: string, minLength: 1}}}}
- {name: report, each: all, agent: {role: Editor}, task: Write the report., output: report}
`)
	return c.reduced(append(flags, "--pipeline", filepath.Join(c.dir, "survey.yaml"))...)
}

// grown adds a page that is larger as text than all other documents.
func (c *corpus) grown(t *testing.T) *corpus {
	t.Helper()
	var b strings.Builder
	for i := range 150 {
		fmt.Fprintf(&b, "<p>Package: grown-%d</p><p>Version: %d</p>", i, i)
	}
	c.write(t, "docs/grown.html", b.String())
	return c
}

// An asking is a unit that waits for an answer.
type asking struct {
	job    string
	UnitID string `json:"unit_id"`
	Parked *struct {
		Handle string `json:"handle"`
		Note   string `json:"note"`
	} `json:"parked"`
}

func (a asking) wake(answer string) []string {
	return []string{"wake", "--job-id", a.job, "--unit", a.UnitID, "--handle", a.Parked.Handle, "--answer", answer}
}

// askings returns the units of the only job that wait for an answer. While the process
// that holds the store comes or goes, it cannot be asked: then there are none.
func (h *house) askings() (all []asking) {
	h.t.Helper()
	var jobs struct{ Jobs []listed }
	o := h.try(nil, "list", "-o", "json")
	if o.code != 0 {
		return nil
	}
	if h.decode(o.stdout, &jobs); len(jobs.Jobs) != 1 {
		return nil
	}
	var page struct{ Units []asking }
	if o = h.try(nil, "units", "--job-id", jobs.Jobs[0].JobID, "--limit", "1000", "-o", "json"); o.code != 0 {
		return nil
	}
	h.decode(o.stdout, &page)
	for _, a := range page.Units {
		if a.job = jobs.Jobs[0].JobID; a.Parked != nil {
			all = append(all, a)
		}
	}
	return all
}

// firstAsked returns one of the units that wait for an answer, and remembers it.
func (h *house) firstAsked() asking {
	h.t.Helper()
	if h.asked = h.askings(); len(h.asked) == 0 {
		h.t.Fatal("no unit waits for an answer")
	}
	return h.asked[0]
}

// runUntilAsked runs a command until a unit waits for an answer, and kills it.
func (h *house) runUntilAsked(args []string) {
	h.t.Helper()
	cmd := h.command(nil, append([]string{"mapreduce"}, args...)...)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for asked := false; !asked; <-pause.C {
		select {
		case err := <-ended:
			h.t.Fatalf("ended before any unit waited: %v", err)
		default:
		}
		asked = len(h.askings()) > 0
	}
	if err := cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	if err := <-ended; err == nil {
		h.t.Fatal("ended, while a unit waited")
	}
	h.kills++
	h.look()
}

// answering brings a job to its end, and answers the units that wait meanwhile.
func (h *house) answering(job, answer string) {
	h.t.Helper()
	cmd := h.command(nil, "mapreduce", "resume", "--job-id", job, "--output", "out")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				h.t.Fatalf("resume: %v\n%s", err, &said)
			}
			return
		case <-pause.C:
		}
		for _, a := range h.askings() {
			h.try(nil, a.wake(answer)...) // if it fails, the unit is found again
		}
	}
}
