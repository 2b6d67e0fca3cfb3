package report

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// An Account holds what an attempt may spend, what it has spent, and what it has done and
// said of itself so far. Its exported methods are a part of agent.Calls. The agent writes it,
// and reports and signs of life read it, so it has a lock of its own.
type Account struct {
	Most     int64              // tokens that its stage gives a unit; 0 is no limit. Set before the agent runs
	Bounded  bool               // its job has a budget. Set before the agent runs
	Currency mapreduce.Currency // of that. Set before the agent runs

	mu       sync.Mutex // guards the fields below; taken after session.mu
	granted  int64      // of the budget, reserved for this attempt
	tokens   promises   // of calls under way, where Most or a budget in tokens bounds them
	money    promises   // likewise, of a budget in dollars
	spent    mapreduce.Tokens
	cost     int64              // millionths of a US dollar
	charges  []mapreduce.Charge // whose both are
	savings  mapreduce.Savings
	calls    int
	latency  time.Duration // of calls
	tools    int           // calls of them
	toolTime time.Duration // of these
	prompt   int64         // bytes of the largest that a model was given
	asking   *Question
	answered []string // models that answered, sorted
	failing  []string // models that did not, sorted
	note     string   // the last
	notes    int64    // so far
	keptAt   int64    // tokens that were spent when entries of the journal were last sent
}

// Open sets what was reserved for the attempt of the budget of its job, before the agent runs. The specification
// is that of the job, or nil if it is not known.
func (a *Account) Open(spec *mapreduce.JobSpec, granted int64) {
	a.granted = granted
	if spec != nil {
		a.Bounded, a.Currency = spec.Budget > 0, spec.BudgetIn
	}
}

// promises are amounts that are set aside for calls under way, ascending.
type promises []int64

func (p *promises) add(amount int64) {
	i, _ := slices.BinarySearch(*p, amount)
	*p = slices.Insert(*p, i, amount)
}

func (p promises) sum() (all int64) {
	for _, amount := range p {
		all += amount
	}
	return all
}

// settle takes off the smallest promise that could have paid for what a call took. So the sum of the
// others is never below what the calls may take that are truly under way.
func (p *promises) settle(took int64) {
	if n := len(*p); n > 0 {
		i, _ := slices.BinarySearch(*p, took)
		i = min(i, n-1)
		*p = slices.Delete(*p, i, i+1)
	}
}

// A Question is a request for a part of the budget that waits for its answer.
type Question struct {
	Amount  int64         // the reservation in all that is asked for
	Done    chan struct{} // closed when answered
	Granted bool          // valid once Done is closed
}

// CheckLimit refuses a call that might take the attempt above what its stage gives a
// unit. Without a budget in tokens it also sets the tokens aside, which nobody else does.
func (a *Account) CheckLimit(tokens int64) error {
	if a.Most == 0 {
		return nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	// What calls under way may still spend counts as spent.
	held := a.spent.Total() + a.tokens.sum()
	if held+tokens > a.Most {
		return agent.Permanent(fmt.Errorf("a call of up to %d tokens is not made: limits.tokens of the stage gives a unit %d, and %d are spent or set aside",
			tokens, a.Most, held))
	}
	if !a.Bounded || a.Currency != mapreduce.InTokens {
		a.tokens.add(tokens)
	}
	return nil
}

// budgeted returns the promises of the budget's currency. mu is held.
func (a *Account) budgeted() *promises {
	if a.Currency == mapreduce.InDollars {
		return &a.money
	}
	return &a.tokens
}

// SetAside promises an amount of the budget to a call if the reservation holds it. Else it
// returns the question that is open, and whether it was put by this call: one
// at a time is under way for a unit.
func (a *Account) SetAside(amount int64) (q *Question, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	promised := a.budgeted()
	free := a.granted - a.Currency.Of(a.spent, a.cost) - promised.sum()
	if amount <= free {
		promised.add(amount)
		return nil, false
	}

	// The question is for the reservation in all, so a grant also covers the calls under
	// way.
	if a.asking == nil {
		a.asking = &Question{Amount: a.granted - free + amount, Done: make(chan struct{})}
		return a.asking, true
	}
	return a.asking, false
}

// AnswerQuestion answers the open request for tokens. A grant counts even if no call
// waits for it any more.
func (a *Account) AnswerQuestion(granted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.asking
	if q == nil {
		return
	}

	a.asking = nil
	q.Granted = granted
	if granted {
		a.granted = max(a.granted, q.Amount)
	}
	close(q.Done)
}

// OpenReserve returns the reservation that is asked for, or 0.
func (a *Account) OpenReserve() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		return 0
	}

	return a.asking.Amount
}

// Spent implements agent.Calls. The agent does not say which promise the call settles: see
// promises.settle.
func (a *Account) Spent(c mapreduce.Charge) {
	// Figures below zero would give back what other calls have spent.
	c.Tokens = mapreduce.Tokens{In: max(c.Tokens.In, 0), Out: max(c.Tokens.Out, 0)}
	c.CostMicros = max(c.CostMicros, 0)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = a.spent.Add(c.Tokens)
	a.cost += c.CostMicros
	if c.Model != "" { // what has none counts as not known in any case
		a.charges = mapreduce.AddCharge(a.charges, c)
	}

	a.tokens.settle(c.Tokens.Total())
	a.money.settle(c.CostMicros)
}

// Saved implements agent.Calls.
func (a *Account) Saved(s mapreduce.Savings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.savings = a.savings.Add(s)
}

// CountCall counts a call that took d.
func (a *Account) CountCall(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.latency += d
}

// ToolCalled implements agent.Calls.
func (a *Account) ToolCalled(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools++
	a.toolTime += max(d, 0)
}

// Prompted implements agent.Calls.
func (a *Account) Prompted(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prompt = max(a.prompt, bytes)
}

// Answered implements agent.Calls.
func (a *Account) Answered(by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = insertSorted(a.answered, by)
}

// Failing implements agent.Calls.
func (a *Account) Failing(model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failing = insertSorted(a.failing, model)
}

// insertSorted adds a name of a model to sorted ones, as far as a report has room for it.
func insertSorted(names []string, name string) []string {
	i, known := slices.BinarySearch(names, name)
	if known || len(names) == mapreduce.MaxModels {
		return names
	}
	return slices.Insert(names, i, name)
}

// AddNote takes what the attempt says of itself, and returns its progress with that.
func (a *Account) AddNote(note string) protocol.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note = note
	a.notes++
	return protocol.Progress{Tokens: a.spent, Note: note, Number: a.notes}
}

// SoFar returns how far the attempt is. Whose attempt it is, the caller fills in.
func (a *Account) SoFar() protocol.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	return protocol.Progress{Tokens: a.spent, Note: a.note, Number: a.notes}
}

// Unkept is how many tokens were spent since entries of the journal were last sent.
func (a *Account) Unkept() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent.Total() - a.keptAt
}

// MarkKept notes that the entries of the journal are being sent.
func (a *Account) MarkKept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keptAt = a.spent.Total()
}

// enterInto enters what was spent and done so far into a report.
func (a *Account) enterInto(r *protocol.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Tokens, r.CostMicros, r.Charges, r.Savings = a.spent, a.cost, slices.Clone(a.charges), a.savings
	r.Calls, r.Latency, r.Prompt = a.calls, a.latency, a.prompt
	r.Tools, r.ToolTime = a.tools, a.toolTime
	r.Models, r.Failing = slices.Clone(a.answered), slices.Clone(a.failing)
}

// FollowSpent takes over what the process in which the unit runs says that it has spent.
func (a *Account) FollowSpent(t mapreduce.Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = t
}

// FollowReport takes over what the process in which the unit ran says that it has spent.
func (a *Account) FollowReport(r *protocol.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent, a.cost, a.charges, a.savings = r.Tokens, r.CostMicros, r.Charges, r.Savings
	a.calls, a.latency, a.prompt = r.Calls, r.Latency, r.Prompt
	a.tools, a.toolTime = r.Tools, r.ToolTime
}

// ChargeReserved counts all that was reserved as spent, of a job with a budget: what a
// process had spent that has ended nobody knows.
func (a *Account) ChargeReserved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch left := max(0, a.granted-a.Currency.Of(a.spent, a.cost)); {
	case !a.Bounded:
	case a.Currency == mapreduce.InDollars:
		a.cost += left
	default:
		a.spent.In += left
	}
}

// AskFor returns the open question for a reservation, or one for so much in all.
func (a *Account) AskFor(amount int64) *Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		a.asking = &Question{Amount: amount, Done: make(chan struct{})}
	}
	return a.asking
}
