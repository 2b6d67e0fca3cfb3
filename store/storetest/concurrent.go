package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/coditect/mapreduce/store"
)

func concurrentChecks() []Check {
	return []Check{
		{Name: "counters of many goroutines are exact", check: exactCounters},
		{Name: "adds of many goroutines are exact", check: exactAdds},
		{Name: "readers see a whole world while writers go on", check: wholeWorld},
		{Name: "versionstamps of many goroutines are unique and in order", check: stampsRace},
	}
}

const (
	goroutines = 8
	rounds     = 25
)

// A race is a check whose transactions run at once, until they commit.
type race struct {
	*env
	db *store.DB
}

func newRace(e *env) *race { return &race{env: e, db: e.retryingDB()} }

// runConcurrently runs do in several goroutines, and ends the check if one fails.
func (r *race) runConcurrently(do func(g int) error) {
	errs := make([]error, goroutines)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() { errs[g] = do(g) })
	}
	running.Wait()
	r.must("concurrent transactions", errors.Join(errs...))
}

// updateOnce runs do in a transaction that sets a mark under name, so that a second
// run after an unknown result does nothing.
func (r *race) updateOnce(name string, do func(tx store.Tx) error) error {
	mark := r.prefixedKey("mark/" + name)
	return r.db.Update(r.ctx, func(tx store.Tx) error {
		done, err := tx.Get(r.ctx, mark)
		if err != nil || done != nil {
			return err
		}
		tx.Set(mark, nil)
		runtime.Gosched() // let other goroutines run in between
		return do(tx)
	})
}

func exactCounters(e *env) {
	r := newRace(e)
	r.runConcurrently(func(g int) error {
		for i := range rounds {
			counter := e.prefixedKey(fmt.Sprint("n", i%2))
			err := r.updateOnce(fmt.Sprint(g, "/", i), func(tx store.Tx) error {
				value, err := tx.Get(e.ctx, counter)
				tx.Set(counter, []byte(encodeNumber(numberOf(value)+1)))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})

	r.wantTotal(goroutines * rounds)
}

func exactAdds(e *env) {
	r := newRace(e)
	r.runConcurrently(func(g int) error {
		for i := range rounds {
			err := r.updateOnce(fmt.Sprint(g, "/", i), func(tx store.Tx) error {
				tx.Add(e.prefixedKey(fmt.Sprint("n", i%2)), 1)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})

	r.wantTotal(goroutines * rounds)
}

// wantTotal checks the sum over the counters.
func (r *race) wantTotal(want int64) {
	got, err := r.sumCounters()
	r.must("total", err)
	r.wantEqual("total", got, want)
}

// sumCounters sums the counters, some read by range and some by key.
func (r *race) sumCounters() (total int64, err error) {
	err = r.db.View(r.ctx, func(tx store.Tx) error {
		total = 0
		first, err := tx.Get(r.ctx, r.prefixedKey("n0"))
		if err != nil {
			return err
		}

		total += numberOf(first)
		// Others may commit between the two reads.
		runtime.Gosched()
		rest, _, err := tx.GetRange(r.ctx, r.prefixedRange("n1", "o"), store.RangeOptions{})
		for _, kv := range rest {
			total += numberOf(kv.Value)
		}
		return err
	})
	return total, err
}

// wholeWorld moves amounts between accounts, by sets and by adds. Every reader must
// see a total of zero.
func wholeWorld(e *env) {
	r := newRace(e)

	var moving sync.WaitGroup
	moving.Add(goroutines / 2)
	moved := make(chan struct{})
	// moved closes when the movers are done, which ends the watchers.
	go func() {
		moving.Wait()
		close(moved)
	}()

	r.runConcurrently(func(g int) error {
		if g%2 == 0 {
			return r.watchTotal(moved)
		}
		defer moving.Done()
		return r.moveAmounts(g)
	})

	<-moved
	r.wantTotal(0)
}

// moveAmounts moves one unit from a random account to another, many times.
func (r *race) moveAmounts(g int) error {
	random := rand.New(rand.NewPCG(uint64(g), 0))
	for i := range rounds {
		from, to := r.prefixedKey(fmt.Sprint("n", random.IntN(5))), r.prefixedKey(fmt.Sprint("n", random.IntN(5)))
		err := r.updateOnce(fmt.Sprint(g, "/", i), func(tx store.Tx) error {
			value, err := tx.Get(r.ctx, from)
			tx.Set(from, []byte(encodeNumber(numberOf(value)-1)))
			tx.Add(to, 1)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// watchTotal reads the total until all amounts have moved, but not for ever: in a
// synctest bubble time would not advance for the others.
func (r *race) watchTotal(moved <-chan struct{}) error {
	for range 20 * rounds {
		total, err := r.sumCounters()
		if err != nil {
			return err
		}

		if total != 0 {
			return fmt.Errorf("a reader saw a total of %d, want 0", total)
		}

		select {
		case <-moved:
			return nil
		default:
			runtime.Gosched()
		}
	}

	return nil
}

// stampsRace checks that the stamps of each goroutine grow from commit to commit,
// and that all keys are found in the end.
func stampsRace(e *env) {
	r := newRace(e)
	stamps := make([][]string, goroutines)

	r.runConcurrently(func(g int) error {
		for i := range rounds {
			stamp, err := r.appendEntry(fmt.Sprint(g, "/", i))
			if err != nil {
				return err
			}
			stamps[g] = append(stamps[g], stamp)
		}
		return nil
	})

	seen := make(map[string]bool)
	for g := range stamps {
		for i, stamp := range stamps[g] {
			if i > 0 && stamp <= stamps[g][i-1] {
				e.fail("versionstamp %x does not follow %x", stamp, stamps[g][i-1])
			}
			if seen[stamp] {
				e.fail("versionstamp %x twice", stamp)
			}
			seen[stamp] = true
		}
	}

	logged, _ := e.begin().scan(store.Prefixed(e.prefixedKey("log/")), store.RangeOptions{})
	e.wantEqual("entries", len(logged)/2, goroutines*rounds)
}

// appendEntry appends an entry once, and returns its versionstamp.
func (r *race) appendEntry(name string) (stamp string, err error) {
	err = r.updateOnce(name, func(tx store.Tx) error {
		key := r.prefixedKey("log/" + placeholder)
		tx.SetVersionstampedKey(key, len(key)-len(placeholder), []byte(name))
		return nil
	})
	if err != nil {
		return "", err
	}

	err = r.db.View(r.ctx, func(tx store.Tx) error {
		entries, _, err := tx.GetRange(r.ctx, store.Prefixed(r.prefixedKey("log/")), store.RangeOptions{})
		for _, kv := range entries {
			if string(kv.Value) == name {
				stamp = string(kv.Key[len(kv.Key)-len(placeholder):])
			}
		}
		return err
	})
	return stamp, err
}
