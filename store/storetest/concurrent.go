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

// together runs do in many goroutines, and ends the check if one fails.
func (e *env) together(do func(g int) error) {
	errs := make([]error, goroutines)
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() { errs[g] = do(g) })
	}
	running.Wait()
	e.must("concurrent transactions", errors.Join(errs...))
}

// once runs do in a transaction that leaves a mark under name, so that a second
// run after an unknown result does nothing.
func (e *env) once(db *store.DB, name string, do func(tx store.Tx) error) error {
	mark := e.key("mark/" + name)
	return db.Update(e.ctx, func(tx store.Tx) error {
		done, err := tx.Get(e.ctx, mark)
		if err != nil || done != nil {
			return err
		}
		tx.Set(mark, nil)
		runtime.Gosched() // let others in between
		return do(tx)
	})
}

func exactCounters(e *env) {
	db := e.db()
	e.together(func(g int) error {
		for i := range rounds {
			counter := e.key(fmt.Sprint("n", i%2))
			err := e.once(db, fmt.Sprint(g, "/", i), func(tx store.Tx) error {
				value, err := tx.Get(e.ctx, counter)
				tx.Set(counter, []byte(number(numberOf(value)+1)))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	e.wantTotal(goroutines * rounds)
}

func exactAdds(e *env) {
	db := e.db()
	e.together(func(g int) error {
		for i := range rounds {
			err := e.once(db, fmt.Sprint(g, "/", i), func(tx store.Tx) error {
				tx.Add(e.key(fmt.Sprint("n", i%2)), 1)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	e.wantTotal(goroutines * rounds)
}

// wantTotal checks the sum over the counters.
func (e *env) wantTotal(want int64) {
	got, err := e.total(e.db())
	e.must("total", err)
	e.diff("total", got, want)
}

// total sums the counters, some read by range and some by key.
func (e *env) total(db *store.DB) (total int64, err error) {
	err = db.View(e.ctx, func(tx store.Tx) error {
		total = 0
		first, err := tx.Get(e.ctx, e.key("n0"))
		if err != nil {
			return err
		}
		total += numberOf(first)
		runtime.Gosched()
		rest, _, err := tx.GetRange(e.ctx, e.span("n1", "o"), store.RangeOptions{})
		for _, kv := range rest {
			total += numberOf(kv.Value)
		}
		return err
	})
	return total, err
}

// wholeWorld moves amounts between accounts, by sets and by adds. Their total
// stays zero for whoever looks.
func wholeWorld(e *env) {
	db := e.db()
	var moving sync.WaitGroup
	moving.Add(goroutines / 2)
	moved := make(chan struct{})
	go func() {
		moving.Wait()
		close(moved)
	}()
	e.together(func(g int) error {
		if g%2 == 0 {
			return e.watchTotal(db, moved)
		}
		defer moving.Done()
		return e.move(db, g)
	})
	<-moved
	e.wantTotal(0)
}

// move moves one from some account to another, many times.
func (e *env) move(db *store.DB, g int) error {
	random := rand.New(rand.NewPCG(uint64(g), 0))
	for i := range rounds {
		from, to := e.key(fmt.Sprint("n", random.IntN(5))), e.key(fmt.Sprint("n", random.IntN(5)))
		err := e.once(db, fmt.Sprint(g, "/", i), func(tx store.Tx) error {
			value, err := tx.Get(e.ctx, from)
			tx.Set(from, []byte(number(numberOf(value)-1)))
			tx.Add(to, 1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// watchTotal looks until all has moved, but not for ever: in a synctest bubble
// nobody else's time would pass.
func (e *env) watchTotal(db *store.DB, moved <-chan struct{}) error {
	for range 20 * rounds {
		total, err := e.total(db)
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

// stampsRace: each goroutine's stamps grow, as one commit follows the other,
// and all keys are found in the end.
func stampsRace(e *env) {
	db := e.db()
	stamps := make([][]string, goroutines)
	e.together(func(g int) error {
		for i := range rounds {
			stamp, err := e.log(db, fmt.Sprint(g, "/", i))
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
	logged, _ := e.begin().scan(store.Prefixed(e.key("log/")), store.RangeOptions{})
	e.diff("entries", len(logged)/2, goroutines*rounds)
}

// log appends an entry once, and returns the versionstamp under which it is.
func (e *env) log(db *store.DB, name string) (stamp string, err error) {
	err = e.once(db, name, func(tx store.Tx) error {
		key := e.key("log/" + placeholder)
		tx.SetVersionstampedKey(key, len(key)-len(placeholder), []byte(name))
		return nil
	})
	if err != nil {
		return "", err
	}
	err = db.View(e.ctx, func(tx store.Tx) error {
		entries, _, err := tx.GetRange(e.ctx, store.Prefixed(e.key("log/")), store.RangeOptions{})
		for _, kv := range entries {
			if string(kv.Value) == name {
				stamp = string(kv.Key[len(kv.Key)-len(placeholder):])
			}
		}
		return err
	})
	return stamp, err
}
