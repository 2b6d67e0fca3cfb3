package loop_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/loop"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// bridges is a pipeline whose first stage has tools; OUTPUT and LIMITS are replaced.
const bridges = `
name: bridges
stages:
  - name: look
    from: documents
    each: document
    agent: {role: Scout, goal: Find bridges}
    task: Find out when the bridge was opened.
    tools: [web]
    limits: LIMITS
    output: OUTPUT
  - {name: report, from: look, each: all, agent: {role: Writer}, task: Write, output: report}
`

const itemsOutput = `{kind: items, schema: {type: object, properties: {facts: {type: array, items: {type: object, properties: ` +
	`{fact: {type: string}, refs: {type: array, items: {type: string}}}, required: [fact, refs]}}}, required: [facts]}}`

// A web is a kit whose pages are functions of their address. It counts what it did.
type web struct {
	mu     sync.Mutex
	did    []string                                                        // calls that were carried out, in order
	call   func(ctx context.Context, name, q string) (*tool.Result, error) // nil serves pages
	onCall func(name string)
	dead   func() bool // the process of the tool
}

func (w *web) Name() string                               { return "web" }
func (w *web) Close() error                               { return nil }
func (w *web) Open(context.Context) (tool.Session, error) { return page{w}, nil }

func (w *web) Tools() []tool.Spec {
	input := json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)
	return []tool.Spec{
		{Name: "fetch", Description: "Fetches a page.", Input: input, Idempotent: true, Address: "q"},
		{Name: "post", Description: "Posts a note.", Input: input, Query: "q"},
	}
}

// done returns how often a call was carried out.
func (w *web) done(what string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.did {
		if d == what {
			n++
		}
	}
	return n
}

type page struct{ *web }

func (p page) Close() error { return nil }

func (p page) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	var in struct{ Q string }
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	if p.onCall != nil {
		p.onCall(name + " begins")
	}
	if p.dead != nil && p.dead() {
		return nil, errKilled
	}
	p.mu.Lock()
	p.did = append(p.did, name+" "+in.Q)
	p.mu.Unlock()
	if p.onCall != nil {
		p.onCall(name + " did")
	}
	if p.call != nil {
		return p.call(ctx, name, in.Q)
	}
	return servePage(name, in.Q)
}

// pageSize is about how many bytes a page has.
const pageSize = 1200

func servePage(name, q string) (*tool.Result, error) {
	if name == "post" {
		return &tool.Result{Text: "posted " + q}, nil
	}
	text := fmt.Sprintf("The bridge of %s was opened in %d.\n", q, 1800+len(q))
	text += strings.Repeat("Nothing else is known of it. ", pageSize/29)
	return &tool.Result{Evidence: []tool.Evidence{{URI: "https://web.test/" + q, Title: "Bridge of " + q, Media: "text/html", Retrieved: time.Unix(1e9, 0), Text: text}}}, nil
}

// A unitDisk is what survives a worker: the journal and the evidence of a unit, and what it
// has cost.
type unitDisk struct {
	scripted.Calls
	mu      sync.Mutex
	stored  [][]byte
	attempt int
	spent   int64
	notes   []string
	calls   []mapreduce.Call
	tools   int
}

// An attempt is one attempt at a unit: its worker's part, which may die.
type attempt struct {
	sending sync.Mutex // held while entries are stored
	*unitDisk
	journal *journal.Journal
	kill    context.CancelCauseFunc
	sentAt  int64
	own     int64 // tokens of this attempt
	dead    bool
	events  int
	dieAt   int // the event at which the worker is killed; 0 never
	trail   []string
}

var errKilled = errors.New("kill -9")

// event is a moment at which the worker may be killed.
func (a *attempt) event(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events++
	a.trail = append(a.trail, what)
	if a.events == a.dieAt {
		a.dead = true
		a.kill(errKilled)
	}
}

func (a *attempt) isDead() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// Reserve has the journal stored first where a worker does.
func (a *attempt) Reserve(ctx context.Context, tokens, cost int64) error {
	a.mu.Lock()
	due := a.own-a.sentAt+tokens > agent.KeepEvery && a.journal.Waiting() > 0
	a.mu.Unlock()
	if due {
		if err := a.journal.Sync(ctx); err != nil {
			return err
		}
	}
	a.event("model asked")
	return nil
}

func (a *attempt) Spent(c mapreduce.Charge) {
	a.mu.Lock()
	a.spent += c.Tokens.Total()
	a.own += c.Tokens.Total()
	a.mu.Unlock()
	a.event("model answered")
}

func (a *attempt) Progress(note string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notes = append(a.notes, note)
}

func (a *attempt) ToolCalled(time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools++
}

func (a *attempt) Captures() mapreduce.Capture { return mapreduce.CaptureFull }

func (a *attempt) Record(c mapreduce.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unitDisk.calls = append(a.unitDisk.calls, c)
}

func (a *attempt) KeepEvidence(ctx context.Context, e mapreduce.Evidence, text []byte) (mapreduce.DocumentID, error) {
	if a.isDead() {
		return "", errKilled
	}
	id, err := a.Keeper.KeepEvidence(ctx, e, text)
	a.event("evidence kept")
	return id, err
}

func (a *attempt) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	raw, err := a.journal.Do(ctx, key, a.alive(fn))
	if err == nil && a.isDead() {
		return nil, errKilled
	}
	return raw, err
}

func (a *attempt) DoOnce(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	raw, err := a.journal.DoOnce(ctx, key, a.alive(fn))
	if err == nil && a.isDead() {
		return nil, errKilled
	}
	return raw, err
}

// alive keeps a worker that was killed from doing anything.
func (a *attempt) alive(fn func(context.Context) ([]byte, error)) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		if a.isDead() {
			return nil, errKilled
		}
		return fn(ctx)
	}
}

func (a *attempt) Recall(key string) ([]byte, bool) { return a.journal.Recall(key) }

func (*attempt) Strayed(string, journal.Entry, int) {}
func (*attempt) Forgot(string, error)               {}

// Offer stores entries as a worker does: when somebody waits, or enough was spent.
func (a *attempt) Offer(now bool) {
	a.mu.Lock()
	due := now || a.own-a.sentAt >= agent.KeepEvery
	if due {
		a.sentAt = a.own
	}
	dead := a.dead
	a.mu.Unlock()
	if !due {
		return
	}
	if dead {
		a.journal.Break(errKilled)
		return
	}
	a.sending.Lock() // a worker sends one append after the other
	defer a.sending.Unlock()
	for {
		_, data, n := a.journal.Next(a.journal.Len())
		if n == 0 {
			break
		}
		entries, err := journal.Split(data)
		if err != nil {
			panic(err)
		}
		a.mu.Lock()
		for _, raw := range entries {
			a.stored = append(a.stored, bytes.Clone(raw))
		}
		a.mu.Unlock()
		a.journal.Acknowledge(n)
	}
	a.event("journal stored")
}

// A rig is the step before a scripted model.
type rig struct {
	runner agent.Agent
	fake   *fakellm.Server
	web    *web
	spec   mapreduce.JobSpec
	disk   *unitDisk
	change func(*agent.Task) // of every attempt; may be nil
}

func newRig(t testing.TB, provider, output, limits string, script fakellm.Config) *rig {
	t.Helper()
	p, err := pipeline.Parse("p.yaml", []byte(strings.NewReplacer("OUTPUT", output, "LIMITS", limits).Replace(bridges)))
	if err != nil {
		t.Fatal(err)
	}
	fake := fakellm.New(script)
	models := modelsOn(t, provider, fake, nil)
	r := &rig{fake: fake, web: &web{}, disk: &unitDisk{}, spec: mapreduce.JobSpec{
		Provider: provider, Model: "m", Pipeline: p.Name, Definition: p.Canonical(), Vars: map[string]string{}, Capture: mapreduce.CaptureFull,
	}}
	r.runAs(t, models)
	return r
}

// runAs has units run by an agent's models, with the tools of the rig.
func (r *rig) runAs(t testing.TB, models *model.Agent) {
	t.Helper()
	box, err := toolbox.New(nil, r.web)
	if err != nil {
		t.Fatal(err)
	}
	r.runner = checked.New(loop.New(models, func() *toolbox.Box { return box }))
}

// modelsOn returns the agent of a provider at a scripted server; others are those of models that stand
// for its own.
func modelsOn(t testing.TB, provider string, fake *fakellm.Server, others func(provider string) *model.Agent) *model.Agent {
	t.Helper()
	models, err := model.New(model.Config{
		Provider: provider, Random: func() float64 { return 0 }, Others: others,
		LLM: llm.Config{Key: llm.NewKey("sk-test-0123456789abcdefghij"), BaseURL: "http://vendor.test", Transport: fake.Transport()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return models
}

const own = "The bridge of Own was opened in 1913, and the book says so."

// task returns the next attempt at the unit.
func (r *rig) task(t testing.TB) *agent.Task {
	t.Helper()
	stage, err := step.Specify(&r.spec, "look")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(own))
	return &agent.Task{
		Assignment: protocol.Assignment{Job: "mr_20260101_abcdef", Unit: "own.txt", Attempt: r.disk.attempt, Kind: mapreduce.KindMap, Stage: "look", Text: &protocol.Text{
			Document: "own.txt", SHA256: sum[:], Content: []byte(own), CoreEnd: len(own), Chunks: 1, Length: int64(len(own)),
		}},
		Spec: &r.spec, StageSpec: stage,
	}
}

// try makes one attempt, whose worker dies at an event; at none if it is 0.
func (r *rig) try(t testing.TB, dieAt int) (*agent.Result, *attempt, error) {
	t.Helper()
	ctx, kill := context.WithCancelCause(t.Context())
	defer kill(nil)
	r.disk.attempt++
	a := &attempt{unitDisk: r.disk, kill: kill, dieAt: dieAt}
	var data []byte
	for _, raw := range r.disk.stored {
		data = journal.AppendEntry(data, raw)
	}
	var err error
	if a.journal, err = journal.Open(data, len(r.disk.stored), r.disk.attempt, a); err != nil {
		t.Fatal(err)
	}
	r.web.onCall, r.web.dead = a.event, a.isDead
	task := r.task(t)
	if r.change != nil {
		r.change(task)
	}
	res, err := r.runner.Run(ctx, task, a)
	if err != nil && !a.isDead() { // the report of an attempt that failed brings the rest
		a.Offer(true)
	}
	return res, a, err
}

// run makes attempts until one comes to an output.
func (r *rig) run(t testing.TB) (*output.Output, *agent.Result) {
	t.Helper()
	res, _, err := r.try(t, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil {
		t.Fatal(err)
	}
	return out, res
}

// turnOf returns how many turns the model of a call has taken.
func turnOf(c fakellm.Call) (n int) {
	for _, u := range c.Uses {
		n = max(n, u.Turn)
	}
	return n
}

func fetches(pages ...string) fakellm.Reply {
	var r fakellm.Reply
	for _, p := range pages {
		r.Calls = append(r.Calls, use("fetch", p))
	}
	return r
}

func use(name, q string) fakellm.Use {
	input, err := json.Marshal(map[string]string{"q": q})
	if err != nil {
		panic(err)
	}
	return fakellm.Use{Name: name, Input: input}
}

var evidenceID = regexp.MustCompile(`evidence_[0-9a-f]{16}`)

var opened = regexp.MustCompile(`The bridge of (\S+) was opened in \d+`)

// answer is the final answer of the scripted model: a fact of each page that it has seen.
func answer(c fakellm.Call) fakellm.Reply {
	type quote struct {
		Ref      string `json:"ref"`
		Document string `json:"document"`
		Quote    string `json:"quote"`
	}
	type fact struct {
		Fact string   `json:"fact"`
		Refs []string `json:"refs"`
	}
	var out struct {
		Quotes []quote `json:"quotes"`
		Value  struct {
			Facts []fact `json:"facts"`
		} `json:"value"`
	}
	out.Quotes, out.Value.Facts = []quote{}, []fact{}
	for _, u := range c.Uses {
		at, said := evidenceID.FindString(u.Result), opened.FindString(u.Result)
		if at == "" || said == "" || slices.ContainsFunc(out.Quotes, func(q quote) bool { return q.Document == at }) {
			continue
		}
		ref := fmt.Sprintf("REF_Q%d", len(out.Quotes)+1)
		out.Quotes = append(out.Quotes, quote{ref, at, said})
		out.Value.Facts = append(out.Value.Facts, fact{said + " [" + ref + "]", []string{ref}})
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	if c.Wire == fakellm.Ollama && len(c.Tools) > 0 {
		return fakellm.Reply{Calls: []fakellm.Use{{Name: "answer", Input: raw}}}
	}
	return fakellm.Reply{Text: string(raw)}
}
