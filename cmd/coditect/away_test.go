package main_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// A frozen service answers nothing until its store is back.
type frozen struct {
	*servertest.Service
	back chan struct{}
}

func (f *frozen) wait(ctx context.Context) error {
	select {
	case <-f.back:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *frozen) GetJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	return f.Service.GetJob(ctx, mapreduce.Local(""), id)
}

func (f *frozen) ListJobs(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	return f.Service.ListJobs(ctx, mapreduce.Local(""), q)
}

func (f *frozen) CancelJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	return f.Service.CancelJob(ctx, mapreduce.Local(""), id)
}

// freeze serves a frozen service and returns its address.
func freeze(t *testing.T) (*frozen, string) {
	t.Helper()
	f := &frozen{Service: new(servertest.Service), back: make(chan struct{})}
	s, err := server.New(f, nil, server.Config{Patience: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f, l.Addr().String()
}

const frozenJob = "mr_20260704_000000"

// Commands that look say what is wrong with the store of their server.
func TestLookingWhileTheStoreIsAway(t *testing.T) {
	testenv.Raced(t)

	_, address := freeze(t)
	for _, command := range [][]string{{"status", "--job-id", frozenJob}, {"list"}} {
		var out bytes.Buffer
		code := main.Run(t.Context(), append([]string{"mapreduce", "--data-dir", t.TempDir(), "--server", address}, command...), &out)
		if want := "server " + address + ": the store has not answered for 20ms"; code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("%v: exit code %d, want 1 and %q; it says\n%s", command, code, want, &out)
		}
	}
}

// A trigger collects output, and closes a channel once it holds a text.
type trigger struct {
	text string
	hit  func()

	mu  sync.Mutex // guards the variable below
	out strings.Builder
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(p)
	if strings.Contains(w.out.String(), w.text) {
		w.hit()
	}
	return len(p), nil
}

// Commands that change something wait, and say what for.
func TestWaitingWhileTheStoreIsAway(t *testing.T) {
	f, address := freeze(t)
	out := &trigger{text: "waiting: the store has not answered for 20ms", hit: sync.OnceFunc(func() { close(f.back) })}
	args := []string{"mapreduce", "--data-dir", t.TempDir(), "--server", address, "cancel", "--job-id", frozenJob}
	code := main.RunAttending(t.Context(), args, out, time.Millisecond)
	if said := out.out.String(); code != 2 || !strings.Contains(said, out.text) || !strings.Contains(said, frozenJob) {
		t.Errorf("exit code %d, want 2 after it has waited, for a job that is not there; it says\n%s", code, said)
	}
}
