package lap_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

// The program of the tests is that of a system, as soon as it has an order.
func TestMain(m *testing.M) {
	if _, ordered := os.LookupEnv("CODITECT_BENCH_CHILD"); ordered {
		lap.Serve(broker{Again: os.Getenv("CODITECT_TEST_AGAIN") != ""})
		return
	}
	os.Exit(m.Run())
}

// A broker is a system that keeps units in memory, and gives them to workers over TCP. The units
// of a worker whose connection ends go to another, or to the same one begun again.
type broker lap.Info

func (b broker) Info() lap.Info {
	b.Name, b.Units = "broker", 500
	return lap.Info(b)
}

func (b broker) Open(context.Context, string) (lap.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &hub{Listener: l, again: b.Again, kept: make(map[string][]string)}
	s.changed = sync.NewCond(&s.mu)
	s.serving.Go(s.accept)
	return s, nil
}

type hub struct {
	net.Listener
	again   bool
	serving sync.WaitGroup

	mu      sync.Mutex // guards the variables below
	changed *sync.Cond
	waiting []string
	kept    map[string][]string // units of workers that are gone, by their names
	ended   int
	last    time.Time
	closed  bool
}

func (h *hub) Address() string { return h.Addr().String() }

func (h *hub) Submit(_ context.Context, units []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = append(h.waiting, units...)
	h.changed.Broadcast()
	return nil
}

// take waits for a unit.
func (h *hub) take(ctx context.Context, worker string) (unit string, ok bool) {
	defer context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.changed.Broadcast()
	})()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		queue := &h.waiting
		if own := h.kept[worker]; len(own) > 0 {
			queue = &own
			h.kept[worker] = own[1:]
		}
		switch {
		case ctx.Err() != nil || h.closed:
			return "", false
		case len(*queue) > 0:
			unit = (*queue)[0]
			*queue = (*queue)[1:]
			return unit, true
		}
		h.changed.Wait()
	}
}

func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended, h.last = h.ended+1, time.Now()
	h.changed.Broadcast()
}

func (h *hub) Work(ctx context.Context, w lap.Worker) error {
	for {
		unit, ok := h.take(ctx, w.Name)
		if !ok {
			return nil
		}
		if err := w.Run(ctx, unit); err != nil {
			return err
		}
		h.end()
	}
}

func (h *hub) AwaitEnded(ctx context.Context, submitted int) (time.Time, error) {
	defer context.AfterFunc(ctx, h.changed.Broadcast)()
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.ended < submitted && ctx.Err() == nil {
		h.changed.Wait()
	}
	return h.last, context.Cause(ctx)
}

// accept serves workers of other processes: a line with the name comes, and one for each unit that
// has ended; one goes for each unit.
func (h *hub) accept() {
	for {
		c, err := h.Accept()
		if err != nil {
			return
		}
		h.serving.Go(func() { h.serve(c) })
	}
}

func (h *hub) serve(c net.Conn) {
	defer c.Close()
	ctx, gone := context.WithCancel(context.Background())
	defer gone()
	lines := bufio.NewScanner(c)
	if !lines.Scan() {
		return
	}
	worker, ends := lines.Text(), make(chan struct{})
	go func() {
		defer gone()
		for lines.Scan() {
			ends <- struct{}{}
		}
	}()

	for {
		unit, ok := h.take(ctx, worker)
		if !ok {
			return
		}
		fmt.Fprintln(c, unit)
		select {
		case <-ends:
			h.end()
		case <-ctx.Done():
			h.mu.Lock()
			if h.again {
				h.kept[worker] = append(h.kept[worker], unit)
			} else {
				h.waiting = append(h.waiting, unit)
			}
			h.changed.Broadcast()
			h.mu.Unlock()
			return
		}
	}
}

func (h *hub) Close() error {
	h.mu.Lock()
	h.closed = true
	h.changed.Broadcast()
	h.mu.Unlock()
	return h.Listener.Close()
}

func (broker) Work(ctx context.Context, address string, w lap.Worker) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintln(c, w.Name)
	w.Begun()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if err := w.Run(ctx, lines.Text()); err != nil {
			return err
		}
		fmt.Fprintln(c, "ended")
	}
	return nil
}

// A lap has all figures, of all units and kills that were asked for, whichever way units go on.
func TestLapOfASystem(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]string{"elsewhere": "", "again": "yes"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CODITECT_TEST_AGAIN", again)
			r, err := lap.Run(t.Context(), self, lap.Settings{
				Dir: t.TempDir(), Share: .5, Arrivals: 20, Pause: time.Millisecond, Kills: 9,
			})
			if err != nil {
				t.Fatal(err)
			}

			said, _ := json.Marshal(r)
			if r.Info.Name != "broker" || r.Info.Again != (again != "") || r.PerSecond <= 0 {
				t.Errorf("the lap says %s", said)
			}
			if r.Kills != 16 || r.Elsewhere.P50 <= 0 || r.Elsewhere.P99 < r.Elsewhere.P50 {
				t.Errorf("of two rounds of kills the lap says %s", said)
			}
			if r.Asked.P50 <= 0 || r.Asked.P99 < r.Asked.P50 || r.Told.P99 > r.Asked.P99 {
				t.Errorf("of arrivals the lap says %s", said)
			}
		})
	}
}

// What a unit works on has the length that the figures of the project have, and is its own.
func TestTextsDiffer(t *testing.T) {
	one, other := lap.Text("one"), lap.Text("other")
	if len(one) != 256 || len(other) != 256 || one == other || one != lap.Text("one") {
		t.Errorf("texts of %d and %d bytes: %q, %q", len(one), len(other), one, other)
	}
}
