package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// The tests of this file run jobs whose models go wrong in every way that the
// scripted one can, in all three formats, and look at the money: what a job says
// it has spent is what its model has told, to the token.
//
// A call that breaks off is charged as follows. Of what its vendor had told by
// then, all counts. What was not told is charged as it was reserved, for its
// vendor charges something for it and nobody knows what: with Anthropic, which
// tells of the prompt at the beginning, the longest answer; with the others,
// which tell of everything at the end, prompt and answer at their worst. The same
// holds for an answer that is whole and comes without its usage, and for a call
// whose connection broke once it was sent.

// A payment is what a call was charged.
type payment struct {
	Attempt  int
	Reserved int64
	In, Out  int64
}

// A cashier is an agent that asks models, and writes down what it pays.
type cashier struct {
	agent.Agent
	gates *decorator.Gates

	mu   sync.Mutex // guards paid
	paid map[mapreduce.UnitID][]payment
}

// Run implements agent.Agent.
func (c *cashier) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	return c.Agent.Run(ctx, task, &till{Calls: calls, cashier: c, task: task})
}

func (c *cashier) total() (sum mapreduce.Tokens) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.paid {
		for _, p := range all {
			sum = sum.Add(mapreduce.Tokens{In: p.In, Out: p.Out})
		}
	}
	return sum
}

// A till is that of an attempt, which makes one call after the other.
type till struct {
	agent.Calls
	cashier  *cashier
	task     *agent.Task
	reserved int64
}

// Reserve implements agent.Calls.
func (t *till) Reserve(ctx context.Context, tokens, cost int64) error {
	err := t.Calls.Reserve(ctx, tokens, cost)
	if err == nil {
		t.reserved = tokens
	}
	return err
}

// Spent implements agent.Calls.
func (t *till) Spent(c mapreduce.Charge) {
	t.Calls.Spent(c)
	if c.Tokens.Total() == 0 {
		return
	}
	t.cashier.mu.Lock()
	defer t.cashier.mu.Unlock()
	t.cashier.paid[t.task.Unit] = append(t.cashier.paid[t.task.Unit], payment{t.task.Attempt, t.reserved, c.Tokens.In, c.Tokens.Out})
}

// newCashier returns an agent for a scripted model.
func newCashier(t *testing.T, provider string, fake *fakellm.Server) *cashier {
	t.Helper()
	gates := decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} })
	a, err := model.New(model.Config{
		Provider: provider, Random: func() float64 { return 0.5 }, Prices: shopPrices(t),
		LLM: llm.Config{
			Key: llm.NewKey("sk-of-a-test-0123456789"), BaseURL: "http://vendor.test", SendTrace: true,
			Transport: fake.Transport(), Idle: 5 * time.Second,
		},
		Limited: func(p llm.Provider, count func(*llm.Request) int64) llm.Provider {
			return &decorator.Limit{Provider: p, Gates: gates, Count: count}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &cashier{Agent: checked.New(steps.Of(a)), gates: gates, paid: make(map[mapreduce.UnitID][]payment)}
}

const receipts = `
title: receipt
type: object
required: [company, total]
properties:
  company: {type: string}
  total: {type: number}
`

// shop is a document that is long enough to be split.
func shop(i int) string {
	lines := strings.Repeat("one more thing that nobody needs to know about it\n", 12)
	return fmt.Sprintf("SHOP NUMBER %d\n%sTOTAL RM %d.50\n", i, lines, i)
}

func shops(n int) (map[string]string, []string) {
	docs, order := make(map[string]string), make([]string, n)
	for i := range n {
		order[i] = fmt.Sprintf("%03d.txt", i)
		docs[order[i]] = shop(i)
	}
	return docs, order
}

var (
	shopForm  = regexp.MustCompile(`SHOP NUMBER \d+`)
	totalForm = regexp.MustCompile(`TOTAL RM (\d+\.50)`)
)

// shopkeeper is a model that reads receipts, and parts of them.
func shopkeeper(c fakellm.Call) fakellm.Reply {
	text := c.Turns[0].Text
	fields := map[string]any{"company": []any{}, "total": []any{}}
	found := func(field string, value any, quote string) {
		fields[field] = []any{map[string]any{"value": value, "quotes": []string{quote}, "confidence": 0.9}}
	}
	if quote := shopForm.FindString(text); quote != "" {
		found("company", quote, quote)
	}
	if m := totalForm.FindStringSubmatch(text); m != nil {
		found("total", json.Number(m[1]), m[0])
	}
	raw, err := json.Marshal(map[string]any{"fields": fields, "not_found": []any{}})
	if err != nil {
		panic(err) // texts and numbers
	}
	return fakellm.Reply{Text: string(raw)}
}

// longestAnswer is what an answer may have at most, in tokens.
const longestAnswer = 400

func receiptJob(t *testing.T, provider string) mapreduce.JobSpec {
	t.Helper()
	spec := enginetest.Extracting(t, receipts)
	spec.Provider, spec.Model, spec.Parallelism = provider, "m", 4
	spec.UnitTimeout = 61_700 * time.Millisecond // not when a call begins: those begin at full seconds
	spec.Vars = map[string]string{settings.VarAnswer: fmt.Sprint(longestAnswer)}
	return spec
}

// fatal are the faults after which a job cannot go on.
func fatal() []fakellm.Fault {
	return []fakellm.Fault{fakellm.Unauthorized, fakellm.NoMoney, fakellm.SpendLimit, fakellm.UnknownModel, fakellm.WebPage, fakellm.Redirect}
}

// passing are the faults that a job gets over, with units that fail or without.
func passing() []fakellm.Fault {
	return slices.DeleteFunc(fakellm.Faults(), func(f fakellm.Fault) bool { return slices.Contains(fatal(), f) })
}

// broke reports whether a call ended without all of its usage.
func broke(e fakellm.Entry) bool {
	switch e.Fault {
	case fakellm.MidStream, fakellm.Cut, fakellm.Reset, fakellm.Stall, fakellm.Drip, fakellm.NotJSON, fakellm.Hangup:
		return true
	case fakellm.NoUsage:
		return e.Wire == fakellm.OpenAI
	}
	return false
}

// again is how many calls a fault is worth.
func again(e fakellm.Entry) int {
	switch e.Fault {
	case fakellm.None, fakellm.NoUsage, fakellm.UnknownStop:
		return 0
	case fakellm.Truncated, fakellm.TooLong:
		return 3 // parts of what was too large
	case fakellm.Refusal, fakellm.Filter:
		if e.Wire != fakellm.Ollama { // which says nothing, and not why
			return 0
		}
	}
	if slices.Contains(fatal(), e.Fault) {
		return 0
	}
	return 1
}

// charged is what a call should be charged, of which so much was reserved.
func charged(e fakellm.Entry, reserved int64) (in, out int64) {
	switch {
	case !broke(e):
		return e.In(), e.Output
	case e.Wire == fakellm.Anthropic && e.Fault != fakellm.Hangup:
		return e.In(), e.MaxTokens
	}
	return reserved - e.MaxTokens, e.MaxTokens
}

// balance checks each call's charge against the journal of the model, and what a
// job says it has spent against the sum.
func (c *cashier) balance(t *testing.T, job *mapreduce.Job, entries []fakellm.Entry) {
	t.Helper()
	asked := make(map[mapreduce.UnitID][]fakellm.Entry)
	for _, e := range entries {
		if e.In()+e.Output > 0 || broke(e) {
			asked[mapreduce.UnitID(e.Unit)] = append(asked[mapreduce.UnitID(e.Unit)], e)
		}
	}
	for unit, paid := range c.paid {
		if len(asked[unit]) != len(paid) {
			t.Errorf("%s: %d calls were paid, and %d cost something", unit, len(paid), len(asked[unit]))
			continue
		}
		for i, got := range paid {
			e := asked[unit][i]
			want := payment{Attempt: e.Attempt, Reserved: got.Reserved}
			want.In, want.Out = charged(e, got.Reserved)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: call %d (%s, status %d) (-want +got):\n%s", unit, e.N, e.Fault, e.Status, diff)
			}
			if got.In+got.Out > got.Reserved {
				t.Errorf("%s: call %d took %d tokens, and %d were reserved", unit, e.N, got.In+got.Out, got.Reserved)
			}
		}
		delete(asked, unit)
	}
	for unit, rest := range asked {
		t.Errorf("%s: %d calls that cost something were not paid", unit, len(rest))
	}
	if diff := cmp.Diff(c.total(), job.TotalTokens); diff != "" {
		t.Errorf("tokens of the job (-paid +job):\n%s", diff)
	}
	if spent := job.TotalTokens.Total(); job.Spec.Budget > 0 && spent > job.Spec.Budget {
		t.Errorf("%d tokens were spent of %d", spent, job.Spec.Budget)
	}
}

// A trouble is a way for a job's model, and its store, to go wrong.
type trouble struct {
	name    string
	fault   func(fakellm.Call) fakellm.Fault
	rates   fault.Rates
	budget  int64
	few     bool // documents
	workers int  // slots
	want    func(*mapreduce.Job) bool
}

func ended(states ...mapreduce.JobState) func(*mapreduce.Job) bool {
	return func(j *mapreduce.Job) bool { return slices.Contains(states, j.State) }
}

// anyEnd is that a job does not run any more.
func anyEnd(j *mapreduce.Job) bool { return !j.State.Running() }

// A fault at a fifth of the calls needs some to befall. With one that befalls every
// call each unit goes the same way, through all of its attempts.
const (
	someDocuments = 16
	fewDocuments  = 5
)

// troubles are all that are tried in a format.
func troubles() []trouble {
	var all []trouble
	for _, f := range fakellm.Faults() {
		some := trouble{name: string(f) + " at a fifth", fault: fakellm.Mix(7, 0.2, f), workers: 4, want: ended(mapreduce.JobComplete)}
		always := trouble{name: string(f) + " always", fault: fakellm.Mix(7, 1, f), few: true, workers: 4, want: anyEnd}
		if slices.Contains(fatal(), f) { // one at a time, so that no other call is called off
			some.want, some.workers = ended(mapreduce.JobFailed), 1
			// How many begin until the first has failed the job is chance.
			always.want, always.workers, always.few = some.want, 1, false
		}
		all = append(all, some, always)
	}
	mix := fakellm.Mix(11, 0.2, passing()...)
	return append(
		all,
		trouble{name: "none", workers: 4, want: ended(mapreduce.JobComplete)},
		trouble{name: "all that pass at a fifth", fault: mix, workers: 4, want: ended(mapreduce.JobComplete)},
		trouble{name: "all at a fifth", fault: fakellm.Mix(12, 0.2, fakellm.Faults()...), workers: 1, want: anyEnd},
		trouble{name: "a store that fails", fault: mix, rates: fault.Retryable(0.02), workers: 4, want: ended(mapreduce.JobComplete)},
		trouble{name: "a store that runs all twice", fault: mix, rates: fault.Rates{fault.Rerun: 0.5}, workers: 4, want: ended(mapreduce.JobComplete)},
		trouble{name: "a budget that is enough", fault: mix, budget: 1 << 20, workers: 4, want: ended(mapreduce.JobComplete)},
		trouble{name: "a budget that is not", fault: mix, budget: 20_000, workers: 4, want: ended(mapreduce.JobPaused)},
		trouble{
			name: "a budget that is not, and a store that fails", fault: mix, rates: fault.Retryable(0.02),
			budget: 20_000, workers: 4, want: ended(mapreduce.JobPaused),
		},
	)
}

func TestMatrixOfFaults(t *testing.T) {
	for _, trouble := range troubles() {
		t.Run("anthropic/"+trouble.name, func(t *testing.T) {
			testenv.Variant(t, !strings.HasSuffix(trouble.name, " always") && !strings.HasSuffix(trouble.name, " at a fifth"))

			enginetest.Virtually(t, func(t *testing.T) { trouble.befalls(t, "anthropic") })
		})
	}
}

// The other providers go the same ways through what is the worker's.
func TestMatrixOfFaultsOfOtherProviders(t *testing.T) {
	testenv.Lengthy(t)

	for _, provider := range []string{"openai", "ollama"} {
		for _, trouble := range troubles() {
			t.Run(provider+"/"+trouble.name, func(t *testing.T) {
				enginetest.Virtually(t, func(t *testing.T) { trouble.befalls(t, provider) })
			})
		}
	}
}

// befalls runs a job.
func (x trouble) befalls(t *testing.T, provider string) {
	fake := fakellm.New(fakellm.Config{Model: shopkeeper, Fault: x.fault})
	faults := fault.New(driver.Open(t), fault.Config{Seed: 1, Rates: x.rates})
	c := &enginetest.Cluster{T: t, Store: store.Store(faults)}
	n := c.Orchestrator(calm())
	cashier := newCashier(t, provider, fake)
	drain := c.WorkerFor(provider, cashier, worker.Config{Slots: x.workers, Limits: cashier.gates}, n)
	spec := receiptJob(t, provider)
	spec.Budget = x.budget
	most := someDocuments
	if x.few {
		most = fewDocuments
	}
	docs, order := shops(most)
	submitted, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
	if err != nil {
		t.Fatal(err)
	}
	job := n.Rest(submitted.ID)
	if !x.want(job) {
		t.Errorf("the job is %v: %s", job.State, job.Error)
	}
	faults.Heal()
	drain()
	job = quiet(n, job.ID)
	entries := fake.Entries()
	for _, e := range entries {
		most += again(e)
	}
	if len(entries) > most {
		t.Errorf("%d calls, want at most %d", len(entries), most)
	}
	cashier.balance(t, job, entries)
}

// TestBudgetWhileWorkersDie kills workers and orchestrators while models answer,
// or do not. What their calls had cost nobody reports, so it is charged as it was
// reserved: whatever is killed and when, all that the model has told, of the lost
// calls too, is within the budget.
func TestBudgetWhileWorkersDie(t *testing.T) {
	for seed := range testenv.Storms(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { killed(t, uint64(seed), 60_000, mapreduce.InTokens) })
		})
	}
}

// TestMoneyWhileWorkersDie is the same of a budget in dollars: nobody has to pay more, by the prices of
// what the model has told.
func TestMoneyWhileWorkersDie(t *testing.T) {
	for seed := range testenv.Storms(t, 6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { killed(t, uint64(seed), 300_000, mapreduce.InDollars) })
		})
	}
}

func killed(t *testing.T, seed uint64, budget int64, in mapreduce.Currency) {
	fake := fakellm.New(fakellm.Config{
		Model: shopkeeper, Fault: fakellm.Mix(seed, 0.1, fakellm.Cut, fakellm.MidStream, fakellm.EmptyAnswer, fakellm.ServerError),
		Latency: fakellm.LogNormal(seed, 2*time.Second, 0.8),
	})
	f := enginetest.NewFleet(t, seed, 2, nil, enginetest.Steady())
	f.Works, f.Counter.Agent = "anthropic", newCashier(t, "anthropic", fake)
	members := [3]*enginetest.Member{}
	for i := range members {
		members[i] = f.Join(stormWorker(i))
	}
	spec := receiptJob(t, "anthropic")
	spec.Budget, spec.BudgetIn, spec.Parallelism = budget, in, 9
	docs, order := shops(60)
	submitted, err := f.Any().SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
	if err != nil {
		t.Fatal(err)
	}
	job := submitted
	for end := time.Now().Add(30 * time.Minute); job.State.Running(); {
		strike(f, storm{kills: true, nodes: true}, &members)
		if job, err = f.Any().GetJob(t.Context(), submitted.ID); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("the job has not ended: %+v", job)
		}
	}
	for _, m := range members {
		m.Stop()
	}
	told := int64(0)
	for _, e := range fake.Entries() {
		cost, _ := shopPrices(t).Cost("anthropic", "any", llm.Usage{Input: e.In(), Output: e.Output}, "")
		told += in.Of(mapreduce.Tokens{In: e.In(), Out: e.Output}, cost)
	}
	job = quiet(f.Any(), submitted.ID)
	spent := in.Of(job.TotalTokens, job.CostMicros)
	if told > budget || spent > budget || told == 0 || spent == 0 {
		t.Errorf("the model told of %s and the job of %s, of a budget of %s", in.Text(told), in.Text(spent), in.Text(budget))
	}
	if f.Lost == 0 && job.State != mapreduce.JobPaused {
		t.Errorf("no unit was lost and the job is %v: the budget is not for all", job.State)
	}
	t.Logf("%v: %s told, %s reported, %d units lost", job.State, in.Text(told), in.Text(spent), f.Lost)
}

// shopPrices are the prices of the cashier's models.
func shopPrices(t *testing.T) *llm.Prices {
	t.Helper()
	prices, err := new(llm.Prices).With([]byte("anthropic: {'*': {input: 3, output: 15}}"))
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

// calm are settings of an orchestrator of tests that last for minutes, in virtual
// time.
func calm() orchestrator.Config {
	return orchestrator.Config{Adopt: true, Heartbeat: 2 * time.Second, Lease: 20 * time.Second, Poll: 2 * time.Second, Seal: time.Second}
}

// quiet waits until nothing of a job is under way.
func quiet(n *enginetest.Node, id mapreduce.JobID) *mapreduce.Job {
	n.T.Helper()
	for range 10_000 {
		job, err := n.GetJob(n.T.Context(), id)
		if err != nil {
			n.T.Fatal(err)
		}
		if job.RunningUnits == 0 {
			return job
		}
		<-time.After(100 * time.Millisecond)
	}
	n.T.Fatal("units of the job are still under way")
	return nil
}
