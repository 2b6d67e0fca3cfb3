package lap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// betweenKills is how far apart the workers of a round are killed.
const betweenKills = 25 * time.Millisecond

// measureKills measures it with workers that are processes of their own.
func (m *measurement) measureKills(ctx context.Context, set Settings, r *Result) error {
	waits := new(rig.Sample)
	for round := 0; waits.Len() < set.Kills; round++ {
		if err := m.runRound(ctx, round, waits); err != nil {
			return err
		}
	}
	r.Elsewhere, r.Kills = quantile(waits), waits.Len()
	return nil
}

// runRound gives one unit to each of some workers, starts as many more, kills the first, and waits
// until others run the units.
func (m *measurement) runRound(ctx context.Context, round int, waits *rig.Sample) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	f := &fleet{address: m.server.Address(), news: make(chan news)}
	defer func() { err = errors.Join(err, f.killAll()) }()
	for i := range victims {
		if err := f.start(ctx, fmt.Sprintf("victim-%d-%d", round, i), true); err != nil {
			return err
		}
	}
	if err := f.awaitReady(ctx, victims); err != nil {
		return err
	}

	if err := m.submit(ctx, victims); err != nil {
		return err
	}
	running, err := f.awaitRunning(ctx, victims)
	if err != nil {
		return err
	}

	// The others are there before the first is killed, and have nothing to do.
	if !m.info.Again {
		for i := range victims {
			if err := f.start(ctx, fmt.Sprintf("other-%d-%d", round, i), false); err != nil {
				return err
			}
		}
		if err := f.awaitReady(ctx, victims); err != nil {
			return err
		}
	}

	killed := make(map[string]time.Time)
	for unit, victim := range running {
		if err := clock.Sleep(ctx, betweenKills); err != nil {
			return err
		}
		killed[unit] = time.Now()
		if err := victim.child.Cmd.Process.Kill(); err != nil {
			return err
		}
		if m.info.Again {
			if err := f.start(ctx, victim.name, false); err != nil {
				return err
			}
		}
	}

	for len(killed) > 0 {
		n, err := f.next(ctx)
		if err != nil {
			return err
		}
		at, ok := killed[n.Unit]
		if n.Ready || !ok {
			continue // a worker that was started again, or a unit that runs once more
		}
		waits.Add(n.At.Sub(at))
		delete(killed, n.Unit)
	}

	// Nothing is left to the next round. What the others say meanwhile must not make them wait.
	go f.drain()
	_, err = m.server.AwaitEnded(ctx, m.submitted)
	return err
}

// A fleet is the workers of a round.
type fleet struct {
	address string
	news    chan news
	workers []*process
	reading sync.WaitGroup
}

// A process is one worker.
type process struct {
	name  string
	child *rig.Child
}

// News are what a worker's process says on its standard output.
type news struct {
	Ready bool   `json:",omitempty"`
	Unit  string `json:",omitempty"` // it begins
	At    time.Time

	from *process
	err  error // what came is no news
}

// start starts a worker of one slot that holds its unit, or ends it at once.
func (f *fleet) start(ctx context.Context, name string, holds bool) error {
	c, err := rig.StartChild(ctx, order{Worker: &workerOrder{f.address, name, holds}})
	if err != nil {
		return err
	}

	p := &process{name, c}
	f.workers = append(f.workers, p)
	f.reading.Go(func() {
		for {
			n := news{from: p}
			err := c.Out.Decode(&n)
			if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrClosed) {
				return // the process has ended
			}
			n.err = err
			select {
			case f.news <- n:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

// awaitReady waits until n workers can be given units.
func (f *fleet) awaitReady(ctx context.Context, n int) error {
	for n > 0 {
		got, err := f.next(ctx)
		switch {
		case err != nil:
			return err
		case got.Ready:
			n--
		}
	}
	return nil
}

// awaitRunning waits until n units run, and returns who runs each. A system that takes a worker of
// a busy machine for dead gives its unit to another, which then has none of the others: another
// takes its place.
func (f *fleet) awaitRunning(ctx context.Context, n int) (map[string]*process, error) {
	running := make(map[string]*process)
	for len(running) < n {
		got, err := f.next(ctx)
		switch {
		case err != nil:
			return nil, err
		case got.Ready:
			continue
		case running[got.Unit] == nil:
			running[got.Unit] = got.from
			continue
		}

		if err := got.from.child.Cmd.Process.Kill(); err != nil {
			return nil, err
		}
		if err := f.start(ctx, got.from.name+"-in-its-place", true); err != nil {
			return nil, err
		}
	}
	return running, nil
}

func (f *fleet) next(ctx context.Context) (news, error) {
	select {
	case n := <-f.news:
		return n, n.err
	case <-ctx.Done():
		return news{}, context.Cause(ctx)
	}
}

// killAll kills what is left of the workers. What they still say is not needed.
func (f *fleet) killAll() error {
	var errs []error
	for _, w := range f.workers {
		if err := w.child.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}

	go f.drain()
	f.reading.Wait()
	close(f.news)
	for _, w := range f.workers {
		_ = w.child.Cmd.Wait() // that it was killed is no news
	}
	return errors.Join(errs...)
}

// drain takes the news that are not needed any more, until there is no more of them.
func (f *fleet) drain() {
	for range f.news {
		continue
	}
}

// A workerOrder makes a process a worker of one slot.
type workerOrder struct {
	Address, Name string
	Holds         bool // its unit until the process ends; else the unit does nothing
}

func (o *workerOrder) carryOut(ctx context.Context, s System, out *json.Encoder) error {
	var mu sync.Mutex // guards out
	say := func(n news) error {
		mu.Lock()
		defer mu.Unlock()
		return out.Encode(n)
	}

	var unsaid error // read after Work only, which calls Ready before it ends
	return errors.Join(s.Work(ctx, o.Address, Worker{
		Name: o.Name, Slots: 1,
		Ready: func() { unsaid = say(news{Ready: true}) },
		Run: func(ctx context.Context, unit string) error {
			if err := say(news{Unit: unit, At: time.Now()}); err != nil {
				return err
			}
			if !o.Holds {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}), unsaid)
}
