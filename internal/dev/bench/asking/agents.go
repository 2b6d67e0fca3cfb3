package asking

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/tool"
)

// Agents is how agents with tools do that all run at once on one worker process: each takes
// some turns of a model, and calls two tools between any two of them.
type Agents struct {
	Count, Turns int
	Least        time.Duration // of the agent whose model takes the longest in all
	Took         time.Duration // from the commit that made the job ready to the one that ended its map level
	Pool         time.Duration // of goroutines that do nothing but wait as long
	Memory       int64         // bytes that the worker process takes more in the midst of it
	Evidence     int           // pages that were kept and cited
	Tally        rig.Tally
}

// agentTurns is how many turns an agent takes, and toolShare how long its tools take, as a
// share of what its model takes for a turn on average.
const (
	agentTurns = 10
	toolShare  = .25
)

// MeasureAgents measures them.
func MeasureAgents(ctx context.Context, l *Load) (*Agents, error) {
	a := &Agents{Count: l.Units, Turns: agentTurns}
	o := modelOrder{Mean: l.Think, Agents: true}
	units := make([]time.Duration, a.Count)
	for i := range units {
		units[i] = o.ofAgent(agentName(i))
		a.Least = max(a.Least, units[i])
	}

	a.Pool = rig.Pool(ctx, units, len(units))

	m := &Models{AtOnce: a.Count}
	return a, m.withSystem(l, true, func(s *rig.System, server string) error { return a.measureJob(ctx, s, server, o) })
}

// toolTime is how long a tool takes.
func (o *modelOrder) toolTime() time.Duration { return time.Duration(toolShare * float64(o.Mean)) }

// ofTurn returns how long the model thinks in a turn of an agent: between a half and three
// halves of the mean.
func (o *modelOrder) ofTurn(agent string, turn int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(agent)) // a hash takes everything
	r := rand.New(rand.NewPCG(h.Sum64(), uint64(turn)))
	return time.Duration((.5 + r.Float64()) * float64(o.Mean))
}

// ofAgent returns how long an agent takes at least.
func (o *modelOrder) ofAgent(agent string) (least time.Duration) {
	for turn := range agentTurns {
		least += o.ofTurn(agent, turn)
	}
	return least + (agentTurns-1)*o.toolTime()
}

// agentName is the document, and the unit, of the i-th agent.
func agentName(i int) string { return fmt.Sprintf("%06d.txt", i) }

func turnsTaken(c fakellm.Call) (n int) {
	for _, u := range c.Uses {
		n = max(n, u.Turn)
	}
	return n
}

var pageEvidence = regexp.MustCompile(`evidence_[0-9a-f]{16}`)

// runAgent is a model that looks at two pages a turn, and at the end says what stands there.
func runAgent(c fakellm.Call) fakellm.Reply {
	n := turnsTaken(c)
	if n < agentTurns-1 && !c.NoCalls {
		var r fakellm.Reply
		for _, page := range []string{"a", "b"} {
			r.Calls = append(r.Calls, fakellm.Use{Name: "look", Input: json.RawMessage(fmt.Sprintf(`{"page":"%s/%d/%s"}`, c.Unit, n, page))})
		}
		return r
	}

	quotes, facts := []any{}, []any{}
	for _, u := range c.Uses {
		if at := pageEvidence.FindString(u.Result); at != "" && !u.Error {
			ref := fmt.Sprintf("REF_Q%d", len(quotes)+1)
			quotes = append(quotes, map[string]string{"ref": ref, "document": at, "quote": pageFact})
			facts = append(facts, map[string]any{"fact": pageFact, "refs": []string{ref}})
		}
	}

	raw, err := json.Marshal(map[string]any{"quotes": quotes, "value": map[string]any{"facts": facts}})
	if err != nil {
		panic(err) // texts
	}
	return fakellm.Reply{Text: string(raw)}
}

const pageFact = "The bridge was opened in 1913"

// lookingPipeline has an agent for each document.
const lookingPipeline = `
name: looking
stages:
- name: look
  from: documents
  each: document
  agent: {role: Scout, goal: Find bridges}
  task: Find out when the bridge was opened.
  tools: [look]
  output: {kind: items, schema: {type: object, required: [facts], properties: {facts: {type: array, items: {type: object, required: [fact, refs], properties: {fact: {type: string}, refs: {type: array, items: {type: string}}}}}}}}
- {name: report, from: look, each: all, agent: {role: Writer}, task: Write, output: report}
`

// measureJob has a worker of its own process run all agents.
func (a *Agents) measureJob(ctx context.Context, s *rig.System, server string, o modelOrder) (err error) {
	model, err := rig.StartModel(ctx, Order{Model: &o})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.EndProcess()) }()

	workers := &askerProcesses{order: askerOrder{
		Server: server, Model: model.URL, Prefetch: 1, Idle: 10 * o.Mean, Unlimited: true, Look: o.toolTime(),
	}}
	if err := workers.startWorker(ctx, a.Count); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workers.killAll()) }()

	status := fmt.Sprintf("/proc/%d/status", workers.workers[0].Cmd.Process.Pid)
	before, err := rig.ProcNumber(status, "VmRSS:", 1024)
	if err != nil {
		return err
	}

	p, err := pipeline.Parse("looking.yaml", []byte(lookingPipeline))
	if err != nil {
		return err
	}

	spec := mapreduce.JobSpec{
		Provider: asked, Model: "m", Parallelism: a.Count, Pipeline: p.Name, Definition: p.Canonical(), UnitTimeout: time.Hour,
	}
	id, err := submitReceipts(ctx, s, spec, a.Count)
	if err != nil {
		return err
	}

	if err := clock.Sleep(ctx, a.Least/2); err != nil {
		return err
	}
	during, err := rig.ProcNumber(status, "VmRSS:", 1024)
	if err != nil {
		return err
	}
	a.Memory = during - before

	mapped := func(j *mapreduce.Job) bool { return j.CompletedUnits+j.FailedUnits >= int64(a.Count) }
	if err := s.AwaitJob(ctx, id, mapped); err != nil {
		return err
	}
	a.Took = s.Observer.MappedAt(id).Sub(s.Observer.ReadyAt(id))

	page, err := s.ListUnits(ctx, mapreduce.ListUnitsQuery{Job: id, PageSize: 1, Outputs: true})
	if err != nil {
		return err
	}
	a.Evidence = strings.Count(string(page.Units[0].Output), pageFact)

	if _, err := s.CancelJob(ctx, id); err != nil { // the report is no part of it
		return err
	}
	if err := workers.killAll(); err != nil {
		return err
	}

	tally, err := model.ReadTally(ctx)
	if err == nil {
		a.Tally = *tally
	}
	return err
}

// A lookKit is a tool whose pages take their time.
type lookKit struct{ takes time.Duration }

func (k lookKit) Name() string { return "look" }

func (k lookKit) Close() error { return nil }

func (k lookKit) Open(context.Context) (tool.Session, error) { return k, nil }

func (k lookKit) Tools() []tool.Spec {
	return []tool.Spec{{
		Name: "look", Description: "Shows a page.", Idempotent: true, Address: "page",
		Input: json.RawMessage(`{"type":"object","properties":{"page":{"type":"string"}},"required":["page"]}`),
	}}
}

// Call implements tool.Session.
func (k lookKit) Call(ctx context.Context, _ string, input json.RawMessage) (*tool.Result, error) {
	var in struct{ Page string }
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	if err := clock.Sleep(ctx, k.takes); err != nil {
		return nil, err
	}
	text := "Page " + in.Page + "\n" + pageFact + ".\n" + strings.Repeat("Nothing else is known of it. ", 40)
	return &tool.Result{Evidence: []tool.Evidence{{URI: "https://bench.test/" + in.Page, Title: in.Page, Media: "text/html", Retrieved: time.Now(), Text: text}}}, nil
}
