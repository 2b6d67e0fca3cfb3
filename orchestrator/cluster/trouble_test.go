package cluster_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
)

// untilComplete waits for the end of a job.
func untilComplete(f *enginetest.Fleet, t *testing.T, id mapreduce.JobID) {
	t.Helper()
	for state := mapreduce.JobUnknown; state != mapreduce.JobComplete; {
		<-time.After(time.Second)
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		state = job.State
	}
}

// While the store is away everything fails that is tried, again and again. The
// log has a line when that begins, one a minute, and one when it ends.
func TestAnOutageOfTheStoreIsLoggedOnce(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		log := new(enginetest.LogBook)
		config := enginetest.Steady()
		config.Lease = 10 * time.Minute
		config.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		f := enginetest.NewFleet(t, 1, 1, nil, config)
		f.Join(worker.Config{Slots: 4, DrainTimeout: time.Minute})
		id := f.Any().Submit(enginetest.Script(map[string]string{"script.latency": "1s"}), 100)
		<-time.After(3 * time.Second)
		f.Faults.BeginOutage()
		<-time.After(10 * time.Minute)
		f.Faults.EndOutage()
		untilComplete(f, t, id)
		if n := len(log.Lines("does not answer, and is tried again")); n != 1 {
			t.Errorf("%d lines say that the outage begins, want 1", n)
		}
		if n := len(log.Lines("the store still does not answer")); n < 5 || n > 10 {
			t.Errorf("%d lines say that the outage lasts, want up to one a minute for ten minutes", n)
		}
		if n := len(log.Lines("the store answers again")); n != 1 {
			t.Errorf("%d lines say that the outage has ended, want 1", n)
		}
		if all := log.Lines(""); len(all) > 15 {
			t.Errorf("%d lines:\n%s", len(all), strings.Join(all, ""))
		}
	})
}

// A mute store does not answer while it is hushed, and says no more than that, as
// a cluster does that has lost too many processes.
type mute struct {
	store.Store
	mu     sync.Mutex
	hushed chan struct{} // guarded by mu; closed when the store answers
}

func (m *mute) hush() { m.set(make(chan struct{})) }

func (m *mute) answer() {
	close(m.now())
	m.set(nil)
}

func (m *mute) set(c chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hushed = c
}

func (m *mute) now() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hushed
}

func (m *mute) Begin(ctx context.Context) (store.Tx, error) {
	if hushed := m.now(); hushed != nil {
		select {
		case <-hushed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return m.Store.Begin(ctx)
}

// A store that does not even fail is noticed as well.
func TestAStoreThatIsSilentIsLogged(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		log := new(enginetest.LogBook)
		config := enginetest.Steady()
		config.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		f := enginetest.NewFleet(t, 1, 0, nil, config)
		m := &mute{Store: f.Store}
		f.Faults = fault.New(m, fault.Config{})
		f.Nodes = make([]*enginetest.Standing, 1)
		f.Start(0)
		f.Join(worker.Config{Slots: 4, DrainTimeout: time.Minute})
		id := f.Any().Submit(enginetest.Script(map[string]string{"script.latency": "1s"}), 20)
		<-time.After(3 * time.Second)
		m.hush()
		<-time.After(10 * time.Second)
		if n := len(log.Lines("does not answer, and is tried again")); n != 1 {
			t.Errorf("after ten seconds %d lines say that the store is silent, want 1", n)
		}
		<-time.After(3 * time.Minute)
		if n := len(log.Lines("the store still does not answer")); n < 2 || n > 3 {
			t.Errorf("%d lines say that it lasts, want one a minute for three minutes", n)
		}
		m.answer()
		untilComplete(f, t, id)
		if n := len(log.Lines("the store answers again")); n != 1 {
			t.Errorf("%d lines say that it has ended, want 1", n)
		}
		if all := log.Lines(""); len(all) > 15 {
			t.Errorf("%d lines:\n%s", len(all), strings.Join(all, ""))
		}
	})
}
