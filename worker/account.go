package worker

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// An account holds what an attempt may spend, what it has spent, and what it has done and
// said of itself so far. Its exported methods are a part of agent.Calls. The agent writes it,
// and reports and signs of life read it, so it has a lock of its own.
type account struct {
	most     int64              // tokens that its stage gives a unit; 0 is no limit. Set before the agent runs
	bounded  bool               // its job has a budget. Set before the agent runs
	currency mapreduce.Currency // of that. Set before the agent runs

	mu       sync.Mutex // guards the fields below; taken after session.mu
	granted  int64      // of the budget, reserved for this attempt
	tokens   promises   // of calls under way, where most or a budget in tokens bounds them
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
	asking   *reserveQuestion
	answered []string // models that answered, sorted
	failing  []string // models that did not, sorted
	note     string   // the last
	notes    int64    // so far
	keptAt   int64    // tokens that were spent when entries of the journal were last sent
}

// newAccount returns the account of an attempt at a unit of a job, which may be nil.
func newAccount(j *job, granted int64) account {
	if j == nil {
		return account{granted: granted}
	}
	return account{granted: granted, bounded: j.spec.Budget > 0, currency: j.spec.BudgetIn}
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

// A reserveQuestion is a request for a part of the budget that waits for its answer.
type reserveQuestion struct {
	amount  int64         // the reservation in all that is asked for
	done    chan struct{} // closed when answered
	granted bool          // valid once done is closed
}

// checkLimit refuses a call that might take the attempt above what its stage gives a
// unit. Without a budget in tokens it also sets the tokens aside, which nobody else does.
func (a *account) checkLimit(tokens int64) error {
	if a.most == 0 {
		return nil
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	// What calls under way may still spend counts as spent.
	held := a.spent.Total() + a.tokens.sum()
	if held+tokens > a.most {
		return agent.Permanent(fmt.Errorf("a call of up to %d tokens is not made: limits.tokens of the stage gives a unit %d, and %d are spent or set aside",
			tokens, a.most, held))
	}
	if !a.bounded || a.currency != mapreduce.InTokens {
		a.tokens.add(tokens)
	}
	return nil
}

// budgeted returns the promises of the budget's currency. mu is held.
func (a *account) budgeted() *promises {
	if a.currency == mapreduce.InDollars {
		return &a.money
	}
	return &a.tokens
}

// setAside promises an amount of the budget to a call if the reservation holds it. Else it
// returns the question that is open, and whether it was put by this call: one
// at a time is under way for a unit.
func (a *account) setAside(amount int64) (q *reserveQuestion, mine bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	promised := a.budgeted()
	free := a.granted - a.currency.Of(a.spent, a.cost) - promised.sum()
	if amount <= free {
		promised.add(amount)
		return nil, false
	}

	// The question is for the reservation in all, so a grant also covers the calls under
	// way.
	if a.asking == nil {
		a.asking = &reserveQuestion{amount: a.granted - free + amount, done: make(chan struct{})}
		return a.asking, true
	}
	return a.asking, false
}

// answerQuestion answers the open request for tokens. A grant counts even if no call
// waits for it any more.
func (a *account) answerQuestion(granted bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.asking
	if q == nil {
		return
	}

	a.asking = nil
	q.granted = granted
	if granted {
		a.granted = max(a.granted, q.amount)
	}
	close(q.done)
}

// openReserve returns the reservation that is asked for, or 0.
func (a *account) openReserve() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		return 0
	}

	return a.asking.amount
}

// Spent implements agent.Calls. The agent does not say which promise the call settles: see
// promises.settle.
func (a *account) Spent(c mapreduce.Charge) {
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
func (a *account) Saved(s mapreduce.Savings) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.savings = a.savings.Add(s)
}

// countCall counts a call that took d.
func (a *account) countCall(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.latency += d
}

// ToolCalled implements agent.Calls.
func (a *account) ToolCalled(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tools++
	a.toolTime += max(d, 0)
}

// Prompted implements agent.Calls.
func (a *account) Prompted(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.prompt = max(a.prompt, bytes)
}

// Answered implements agent.Calls.
func (a *account) Answered(by string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = insertSorted(a.answered, by)
}

// Failing implements agent.Calls.
func (a *account) Failing(model string) {
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

// addNote takes what the attempt says of itself, and returns its progress with that.
func (a *account) addNote(note string) mapreduce.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note = note
	a.notes++
	return mapreduce.Progress{Tokens: a.spent, Note: note, Number: a.notes}
}

// progress returns how far the attempt is. Whose attempt it is, the caller fills in.
func (a *account) progress() mapreduce.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	return mapreduce.Progress{Tokens: a.spent, Note: a.note, Number: a.notes}
}

// unkept is how many tokens were spent since entries of the journal were last sent.
func (a *account) unkept() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent.Total() - a.keptAt
}

// markKept notes that the entries of the journal are being sent.
func (a *account) markKept() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keptAt = a.spent.Total()
}

// enterInto enters what was spent and done so far into a report.
func (a *account) enterInto(r *mapreduce.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Tokens, r.CostMicros, r.Charges, r.Savings = a.spent, a.cost, slices.Clone(a.charges), a.savings
	r.Calls, r.Latency, r.Prompt = a.calls, a.latency, a.prompt
	r.Tools, r.ToolTime = a.tools, a.toolTime
	r.Models, r.Failing = slices.Clone(a.answered), slices.Clone(a.failing)
}

// followSpent takes over what the process in which the unit runs says that it has spent.
func (a *account) followSpent(t mapreduce.Tokens) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent = t
}

// followReport takes over what the process in which the unit ran says that it has spent.
func (a *account) followReport(r *mapreduce.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent, a.cost, a.charges, a.savings = r.Tokens, r.CostMicros, r.Charges, r.Savings
	a.calls, a.latency, a.prompt = r.Calls, r.Latency, r.Prompt
	a.tools, a.toolTime = r.Tools, r.ToolTime
}

// chargeReserved counts all that was reserved as spent, of a job with a budget: what a
// process had spent that has ended nobody knows.
func (a *account) chargeReserved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch left := max(0, a.granted-a.currency.Of(a.spent, a.cost)); {
	case !a.bounded:
	case a.currency == mapreduce.InDollars:
		a.cost += left
	default:
		a.spent.In += left
	}
}

// askFor returns the open question for a reservation, or one for so much in all.
func (a *account) askFor(amount int64) *reserveQuestion {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asking == nil {
		a.asking = &reserveQuestion{amount: amount, done: make(chan struct{})}
	}
	return a.asking
}
