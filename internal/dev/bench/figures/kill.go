package figures

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// A Kill is how long it takes until a unit runs again whose worker's process was
// killed.
type Kill struct {
	Waits *rig.Sample // from the kill to the start of the next attempt, in another process
}

// victims is how many workers are killed in one round.
const victims = 8

// MeasureKill measures it with workers that are processes of their own, over TCP.
func MeasureKill(ctx context.Context, l *Lab) (*Kill, error) {
	k := &Kill{new(rig.Sample)}
	return k, l.WithSystem(func(s *rig.System) error {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}

		s.ServeOn(listener)
		for round := 0; k.Waits.Len() < l.Kills; round++ {
			if err := k.runRound(ctx, s, listener.Addr().String(), l.Pause*10); err != nil {
				return err
			}
		}
		return nil
	})
}

// runRound gives one unit to each of some workers, starts as many more, kills the
// first, a pause apart, and waits until the others run the units.
func (k *Kill) runRound(ctx context.Context, s *rig.System, server string, pause time.Duration) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	fleet := &workerFleet{server: server, news: make(chan workerNews)}
	defer func() { err = errors.Join(err, fleet.killAll()) }()
	if err := fleet.startWorkers(ctx, victims); err != nil {
		return err
	}

	id, err := s.SubmitDocuments(ctx, rig.NoopSpec(victims), victims)
	if err != nil {
		return err
	}

	running := make(map[mapreduce.UnitID]*rig.Child)
	for len(running) < victims {
		n, err := fleet.nextNews(ctx)
		if err != nil {
			return err
		}
		running[n.Unit] = n.from
	}

	// The others are there before the first is killed, and have nothing to do.
	if err := fleet.startWorkers(ctx, victims); err != nil {
		return err
	}

	killed := make(map[mapreduce.UnitID]time.Time)
	for unit, victim := range running {
		if err := clock.Sleep(ctx, pause/victims); err != nil {
			return err
		}
		killed[unit] = time.Now()
		if err := victim.Cmd.Process.Kill(); err != nil {
			return err
		}
	}

	for len(killed) > 0 {
		n, err := fleet.nextNews(ctx)
		if err != nil {
			return err
		}
		at, ok := killed[n.Unit]
		if !ok {
			return fmt.Errorf("unit %s runs, which no killed worker had", n.Unit)
		}
		k.Waits.Add(n.At.Sub(at))
		delete(killed, n.Unit)
	}

	_, err = s.CancelJob(ctx, id)
	return err
}

// A workerFleet is the workers of a round.
type workerFleet struct {
	server  string
	news    chan workerNews
	workers []*rig.Child
	reading sync.WaitGroup
}

// News are what a worker's process says on its standard output.
type workerNews struct {
	Connected bool `json:",omitempty"`
	Unit      mapreduce.UnitID
	At        time.Time

	from *rig.Child
}

// startWorkers starts n workers of one slot, and waits until they are connected.
func (f *workerFleet) startWorkers(ctx context.Context, n int) error {
	for range n {
		c, err := rig.StartChild(ctx, order{Worker: &workerOrder{Server: f.server}})
		if err != nil {
			return err
		}
		f.workers = append(f.workers, c)
		f.reading.Go(func() { f.readNews(ctx, c) })
	}

	for range n {
		select {
		case got := <-f.news:
			if !got.Connected {
				return fmt.Errorf("a worker says that it runs %s before all are connected", got.Unit)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}

	return nil
}

func (f *workerFleet) readNews(ctx context.Context, c *rig.Child) {
	for {
		n := workerNews{from: c}
		if err := c.Out.Decode(&n); err != nil {
			return // the process has ended
		}
		select {
		case f.news <- n:
		case <-ctx.Done():
			return
		}
	}
}

func (f *workerFleet) nextNews(ctx context.Context) (workerNews, error) {
	select {
	case n := <-f.news:
		return n, nil
	case <-ctx.Done():
		return workerNews{}, context.Cause(ctx)
	}
}

// killAll kills what is left of the workers.
func (f *workerFleet) killAll() error {
	var errs []error
	for _, w := range f.workers {
		if err := w.Cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}

	go f.drainNews()
	f.reading.Wait()
	close(f.news)
	for _, w := range f.workers {
		_ = w.Cmd.Wait() // that it was killed is no news
	}

	return errors.Join(errs...)
}

// drainNews takes the news that are not needed any more, so that no reader waits.
func (f *workerFleet) drainNews() {
	for range f.news {
		continue
	}
}

// A workerOrder makes a process a worker of one slot that holds its unit, or of more that take a
// while for theirs.
type workerOrder struct {
	Server string
	Slots  int           // 0 is one
	Nap    time.Duration // that a unit takes, of which nothing is said; 0 holds it until the process ends
}

func (o *workerOrder) runWorker(ctx context.Context, out *json.Encoder) error {
	c, err := client.Dial(o.Server, client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()

	var mu sync.Mutex // guards out
	say := func(n workerNews) error {
		mu.Lock()
		defer mu.Unlock()
		return out.Encode(n)
	}

	hold := func(ctx context.Context, task *agent.Task) error {
		if o.Nap > 0 {
			return clock.Sleep(ctx, o.Nap)
		}
		if err := say(workerNews{Unit: task.Unit, At: time.Now()}); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}

	w, err := worker.New(worker.Config{
		Steps: step.Serving(rig.Provider, &rig.Bencher{Output: 2, Do: hold}), Slots: max(1, o.Slots),
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) {
			stream, err := c.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return &rig.Greeted{WorkerStream: stream, Greet: func() error { return say(workerNews{Connected: true}) }}, nil
		}},
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

// Rows returns the report.
func (k *Kill) Rows() []Row {
	bound := fmt.Sprintf("%d kills; a worker whose own system closed its connection has 0.3 s to come back; p50 %s s",
		k.Waits.Len(), Number(k.Waits.Quantile(.5).Seconds()))
	return []Row{{"kill -9 of a worker → its unit runs elsewhere, p99", k.Waits.Quantile(.99).Seconds(), "s", atMost(.5), bound}}
}
