package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
)

// A ledger is what workers did, kept outside of all processes and of the store.
type ledger struct {
	mu       sync.Mutex // guards the fields below
	attempts map[protocol.Held]*attempt
	made     map[unit]int // results of each unit
	calls    map[call]int // of models that answered, and were paid for
}

// A unit is a unit of a job.
type unit struct {
	job  mapreduce.JobID
	unit mapreduce.UnitID
}

// A call is one of those that a unit makes, in order.
type call struct {
	unit   unit
	number int
}

// unitCalls is how many calls a unit makes at most.
const unitCalls = 3

// An attempt is one that was begun.
type attempt struct {
	begun  int // how often
	inputs map[mapreduce.UnitID][sha256.Size]byte
	output [sha256.Size]byte
	done   bool
	over   bool // its worker has ended it, whatever it came to
}

func newLedger() *ledger {
	return &ledger{attempts: make(map[protocol.Held]*attempt), made: make(map[unit]int), calls: make(map[call]int)}
}

// begin notes that an attempt begins, with what it was given.
func (l *ledger) begin(held protocol.Held, task *agent.Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attempts[held]
	if a == nil {
		a = new(attempt)
		l.attempts[held] = a
	}
	a.begun++
	a.over = false
	a.inputs = make(map[mapreduce.UnitID][sha256.Size]byte)
	for _, in := range task.Inputs {
		if !in.Referred {
			a.inputs[in.Unit] = sha256.Sum256(in.Data)
		}
	}
}

// end notes that an attempt came to an output.
func (l *ledger) end(held protocol.Held, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attempts[held]
	a.done, a.output = true, sha256.Sum256(data)
	l.made[unit{held.Job, held.Unit}]++
}

// noteOver notes that the worker of an attempt has ended it.
func (l *ledger) noteOver(held protocol.Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts[held].over = true
}

// isOver reports whether the worker of an attempt has ended it.
func (l *ledger) isOver(held protocol.Held) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.attempts[held]
	return a != nil && a.over
}

// noteCall notes that a call of a model has answered, and is to be paid for.
func (l *ledger) noteCall(c call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c]++
}

// A runner runs units for one worker, as long as that lives. What a unit does follows from the
// seed: how long it takes, how many models it calls, whether it fails or waits for something.
type runner struct {
	world *world
	name  string
	life  context.Context
}

// provider is that of all jobs here.
const provider = "simulated"

// An account is what the output of a unit says: the documents that it stands for, and which attempt
// made it, so that no two attempts come to the same.
type account struct {
	Attempt int      `json:"attempt"`
	Units   []string `json:"units"`
	Padding string   `json:"padding,omitempty"`
}

// Run implements agent.Agent.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	held := protocol.Held{Job: task.Job, Unit: task.Unit, Attempt: task.Attempt}
	ctx, die := context.WithCancel(ctx)
	defer die()
	defer context.AfterFunc(r.life, die)()

	r.world.ledger.begin(held, task)
	r.world.trace.note("%s begins %s %s %d", r.name, held.Job, held.Unit, held.Attempt)
	result, err := r.work(ctx, task, calls)
	if ctx.Err() != nil && r.life.Err() != nil {
		// Who is dead reports nothing, whatever it has come to.
		<-time.After(time.Millisecond)
		return nil, context.Cause(ctx)
	}

	r.world.trace.note("%s ends %s %s %d: %v", r.name, held.Job, held.Unit, held.Attempt, err)
	r.world.ledger.noteOver(held)
	if err == nil {
		r.world.ledger.end(held, result.Output)
	}
	return result, err
}

// work does what a unit is for.
func (r *runner) work(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	// Each call is remembered, and not made again by another attempt that knows of it.
	for i := range 1 + int(r.draw(unitCalls, "calls", task)) {
		takes := time.Duration(50+r.draw(1500, fmt.Sprint("takes", i), task)) * time.Millisecond
		_, err := calls.Do(ctx, fmt.Sprint("call ", i), func(ctx context.Context) ([]byte, error) {
			return r.call(ctx, call{unit{task.Job, task.Unit}, i}, calls, takes)
		})
		if err != nil {
			return nil, err
		}
	}

	switch {
	case task.Attempt < 4 && r.draw(12, fmt.Sprint("fails", task.Attempt), task) == 0:
		return nil, fmt.Errorf("attempt %d at %s fails", task.Attempt, task.Unit)
	case task.Attempt < 4 && r.draw(12, fmt.Sprint("parks", task.Attempt), task) == 0:
		return nil, agent.Park("simulated", time.Duration(1+r.draw(3000, "waits", task))*time.Millisecond, "something outside")
	}
	return r.account(task)
}

// call makes one call of a model.
func (r *runner) call(ctx context.Context, c call, calls agent.Calls, takes time.Duration) ([]byte, error) {
	const tokens = agent.KeepEvery / 2 // the second of two is stored before the attempt has ended
	if err := calls.Reserve(ctx, tokens, -1); err != nil {
		return nil, err
	}

	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		calls.Spent(mapreduce.Charge{})
		return nil, context.Cause(ctx)
	}
	calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: tokens}})
	r.world.ledger.noteCall(c)
	return []byte("answer"), nil
}

// account makes the output of a unit: it stands for its document, or for those of its inputs. Some
// are too large for a message, and some for one value of the store.
func (r *runner) account(task *agent.Task) (*agent.Result, error) {
	a := account{Attempt: task.Attempt}
	if task.Text != nil {
		a.Units = []string{string(task.Unit)}
	}
	for _, in := range task.Inputs {
		if in.Failed || in.Referred {
			continue
		}
		below, err := accountOf(in.Data)
		if err != nil {
			return nil, agent.Permanent(fmt.Errorf("input %s: %w", in.Unit, err))
		}
		a.Units = append(a.Units, below.Units...)
	}

	sizes := []uint64{0, 0, 0, 0, 0, 10_000, 150_000}
	a.Padding = strings.Repeat("x", int(sizes[r.draw(uint64(len(sizes)), "size", task)]))
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	data, err := (&output.Output{Reason: string(text)}).Encode()
	return &agent.Result{Output: data, Size: int64(20 + 7*len(a.Units))}, err
}

// accountOf returns what an output says.
func accountOf(data []byte) (*account, error) {
	out, err := output.Decode(data)
	if err != nil {
		return nil, err
	}
	a := new(account)
	return a, json.Unmarshal([]byte(out.Reason), a)
}

// draw returns a number below n that depends on nothing but the seed, the unit and what it is for.
// Ids of jobs are drawn by the service, so they have no say.
func (r *runner) draw(n uint64, what string, task *agent.Task) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, r.world.scenario.Seed, "/", what, "/", task.Unit, "/", task.Spec.RequestID)
	return h.Sum64() >> 11 % n
}
