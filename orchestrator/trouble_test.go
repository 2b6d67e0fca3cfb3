package orchestrator_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
)

// A logBook keeps the lines of a log.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (j *logBook) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// lines returns those with part in them.
func (j *logBook) lines(part string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, part) {
			found = append(found, line)
		}
	}
	return found
}

// untilComplete waits for the end of a job.
func (f *fleet) untilComplete(t *testing.T, id mapreduce.JobID) {
	t.Helper()
	for state := mapreduce.JobUnknown; state != mapreduce.JobComplete; {
		<-time.After(time.Second)
		job, err := f.any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		state = job.State
	}
}

// While the store is away everything fails that is tried, again and again. The
// log has a line when that begins, one a minute, and one when it ends.
func TestAnOutageOfTheStoreIsLoggedOnce(t *testing.T) {
	virtually(t, func(t *testing.T) {
		log := new(logBook)
		config := steady()
		config.Lease = 10 * time.Minute
		config.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		f := newFleet(t, 1, 1, nil, config)
		f.join(worker.Config{Slots: 4, DrainTimeout: time.Minute})
		id := f.any().submit(script(map[string]string{"script.latency": "1s"}), 100)
		<-time.After(3 * time.Second)
		f.faults.BeginOutage()
		<-time.After(10 * time.Minute)
		f.faults.EndOutage()
		f.untilComplete(t, id)
		if n := len(log.lines("does not answer, and is tried again")); n != 1 {
			t.Errorf("%d lines say that the outage begins, want 1", n)
		}
		if n := len(log.lines("the store still does not answer")); n < 5 || n > 10 {
			t.Errorf("%d lines say that the outage lasts, want up to one a minute for ten minutes", n)
		}
		if n := len(log.lines("the store answers again")); n != 1 {
			t.Errorf("%d lines say that the outage has ended, want 1", n)
		}
		if all := log.lines(""); len(all) > 15 {
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
	virtually(t, func(t *testing.T) {
		log := new(logBook)
		config := steady()
		config.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		f := newFleet(t, 1, 0, nil, config)
		m := &mute{Store: f.store}
		f.faults = fault.New(m, fault.Config{})
		f.nodes = make([]*standing, 1)
		f.start(0)
		f.join(worker.Config{Slots: 4, DrainTimeout: time.Minute})
		id := f.any().submit(script(map[string]string{"script.latency": "1s"}), 20)
		<-time.After(3 * time.Second)
		m.hush()
		<-time.After(10 * time.Second)
		if n := len(log.lines("does not answer, and is tried again")); n != 1 {
			t.Errorf("after ten seconds %d lines say that the store is silent, want 1", n)
		}
		<-time.After(3 * time.Minute)
		if n := len(log.lines("the store still does not answer")); n < 2 || n > 3 {
			t.Errorf("%d lines say that it lasts, want one a minute for three minutes", n)
		}
		m.answer()
		f.untilComplete(t, id)
		if n := len(log.lines("the store answers again")); n != 1 {
			t.Errorf("%d lines say that it has ended, want 1", n)
		}
		if all := log.lines(""); len(all) > 15 {
			t.Errorf("%d lines:\n%s", len(all), strings.Join(all, ""))
		}
	})
}
