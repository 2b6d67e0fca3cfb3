// Package history finds faults of a store that no clause of the contract covers: it lets
// workers race, and searches for a serial order that explains what each of them saw.
//
// It is for tests only.
package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/coditect/mapreduce/store"
)

// The shape of a history.
const (
	workerCount = 6
	unitCount   = 3
	roundCount  = 30
)

// searchTime bounds the search for a serial order. Histories of this shape take
// milliseconds.
const searchTime = 30 * time.Second

// maxBackoff keeps a check quick under faults.
const maxBackoff = 5 * time.Millisecond

// A verb is an operation of a worker on a unit.
type verb string

const (
	claim   verb = "claim"   // of a ready unit: raises the attempt
	finish  verb = "finish"  // with an attempt: of a unit not done, if the attempt stands
	requeue verb = "requeue" // with an attempt: of a claimed unit, if the attempt stands
	reopen  verb = "reopen"  // of a unit that is done
	look    verb = "look"
)

// A unit is the record of a unit of work, as much of it as fencing needs.
type unit struct {
	state   string // ready, claimed or done; "" is ready
	attempt int
}

// next returns the unit after v, and whether u allows v. This is the serial
// specification; the workers use it as well.
func (u unit) next(v verb, attempt int) (unit, bool) {
	switch {
	case v == look:
		return u, true
	case v == claim && (u.state == "" || u.state == "ready"):
		return unit{"claimed", u.attempt + 1}, true
	case v == finish && u.state != "done" && u.attempt == attempt && attempt > 0:
		return unit{"done", u.attempt}, true
	case v == requeue && u.state == "claimed" && u.attempt == attempt:
		return unit{"ready", u.attempt}, true
	case v == reopen && u.state == "done":
		return unit{"ready", u.attempt}, true
	default:
		return u, false
	}
}

func (u unit) encode() []byte { return fmt.Appendf(nil, "%s %d", u.state, u.attempt) }

func decodeUnit(value []byte) (unit, error) {
	if value == nil {
		return unit{}, nil
	}
	state, rest, _ := bytes.Cut(value, []byte(" "))
	attempt, err := strconv.Atoi(string(rest))
	return unit{string(state), attempt}, err
}

// A call is the input of an operation; an answer is its output.
type call struct {
	unit    int
	verb    verb
	attempt int
}

type answer struct {
	unknown bool // it happened at some time from the call on, or never
	allowed bool
	unit    unit // as the operation left it
}

// Check lets workers race for a few units in random transactions. It returns an
// error unless some serial order that agrees with real time explains all answers.
// An operation without an answer may have happened at any later time. Keys are put
// below prefix, which must be empty in s.
func Check(ctx context.Context, s store.Store, prefix string, seed uint64) error {
	// With so few attempts some results stay unknown.
	h := &history{db: store.NewDB(s, store.Config{MaxAttempts: 10, MaxBackoff: maxBackoff}), prefix: prefix}

	var workers sync.WaitGroup
	operations := make([][]porcupine.Operation, workerCount)
	errs := make([]error, workerCount)
	for w := range workerCount {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			operations[w], errs[w] = h.runWorker(ctx, w, random)
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}

	var all []porcupine.Operation
	for _, of := range operations {
		all = append(all, of...)
	}

	if got := porcupine.CheckOperationsTimeout(registerModel(), all, searchTime); got != porcupine.Ok {
		return fmt.Errorf("history of seed %d is not serializable: %s", seed, got)
	}

	return nil
}

type history struct {
	db     *store.DB
	prefix string
	clock  atomic.Int64 // orders calls and returns
}

// runWorker runs random operations on random units with the attempts that it has
// seen.
func (h *history) runWorker(ctx context.Context, worker int, random *rand.Rand) ([]porcupine.Operation, error) {
	var done []porcupine.Operation
	var seen [unitCount]int
	for round := range roundCount {
		verbs := []verb{claim, claim, finish, requeue, reopen, look}
		c := call{unit: random.IntN(unitCount), verb: verbs[random.IntN(len(verbs))]}
		c.attempt = seen[c.unit]

		op := porcupine.Operation{ClientId: worker, Input: c, Call: h.clock.Add(1)}
		a, err := h.runOperation(ctx, c, fmt.Sprint(worker, "/", round))
		op.Return = h.clock.Add(1)

		if err != nil {
			if !store.Retryable(err) {
				return nil, err
			}

			// It may have happened at any later time, or never.
			a, op.Return = answer{unknown: true}, math.MaxInt64
		} else {
			seen[c.unit] = a.unit.attempt
		}

		op.Output = a
		done = append(done, op)
	}

	return done, nil
}

// runOperation runs one operation and stores its outcome under id, so that a second
// run after an unknown result does nothing and returns the same answer.
func (h *history) runOperation(ctx context.Context, c call, id string) (a answer, err error) {
	key, mark := fmt.Appendf(nil, "%su/%d", h.prefix, c.unit), []byte(h.prefix+"m/"+id)
	err = h.db.Update(ctx, func(tx store.Tx) error {
		a = answer{}
		marked, err := tx.Get(ctx, mark)
		if err != nil {
			return err
		}

		if marked != nil {
			a.allowed = true
			a.unit, err = decodeUnit(marked)
			return err
		}

		value, err := tx.Get(ctx, key)
		if err != nil {
			return err
		}
		before, err := decodeUnit(value)
		if err != nil {
			return err
		}

		runtime.Gosched() // let others in between
		a.unit, a.allowed = before.next(c.verb, c.attempt)
		if a.unit != before {
			tx.Set(key, a.unit.encode())
			tx.Set(mark, a.unit.encode())
		}

		return nil
	})
	return a, err
}

// registerModel models each unit as a register.
func registerModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			units := make([][]porcupine.Operation, unitCount)
			for _, op := range all {
				u := op.Input.(call).unit
				units[u] = append(units[u], op)
			}
			return units
		},
		Init: func() any { return unit{} },
		Step: func(state, input, output any) (bool, any) {
			c, a := input.(call), output.(answer)
			next, allowed := state.(unit).next(c.verb, c.attempt)
			// It may come after all others, where nobody saw its effect.
			if a.unknown {
				return true, next
			}

			return allowed == a.allowed && next == a.unit, next
		},
	}
}
