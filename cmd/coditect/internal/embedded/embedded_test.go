package embedded_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/storetest/driver"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, driver.Leaks()...) }

// A gate is an agent whose units wait until it is opened.
type gate chan struct{}

func (g gate) Run(ctx context.Context, _ *agent.Task, _ agent.Calls) (*agent.Result, error) {
	select {
	case <-g:
		return &agent.Result{Output: []byte{}, Size: 1}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// owner returns a node that works, with one slot.
func owner(t *testing.T, dir string, a agent.Agent) *embedded.Node {
	t.Helper()
	n, err := embedded.Open(embedded.Config{Dir: dir, Steps: step.Serving("gate", a), Drain: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(n.Start(t.Context()), n.Listen(), n.Work(1, 1)); err != nil {
		t.Fatal(err)
	}
	return n
}

func joined(t *testing.T, dir string) *client.Client {
	t.Helper()
	n, c, err := embedded.Join(t.Context(), embedded.Config{Dir: dir}, embedded.JoinOptions{})
	if err != nil || n != nil {
		t.Fatalf("joining gave node %v, error %v; want a client", n, err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return c
}

func submit(t *testing.T, s mapreduce.Client) *mapreduce.Job {
	t.Helper()
	var docs iter.Seq2[*mapreduce.Document, error] = func(yield func(*mapreduce.Document, error) bool) {
		yield(&mapreduce.Document{ID: "d", Content: []byte("text")}, nil)
	}
	job, err := s.SubmitJob(t.Context(), mapreduce.JobSpec{Provider: "gate", Schema: []byte(`{"type":"object"}`)}, docs)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func ended(t *testing.T, s mapreduce.Client, id mapreduce.JobID) (last *mapreduce.Job) {
	t.Helper()
	if err := s.WatchJob(t.Context(), id, func(j *mapreduce.Job) error { last = j; return nil }); err != nil {
		t.Fatal(err)
	}
	return last
}

func TestWaitingClients(t *testing.T) {
	dir, open := t.TempDir(), make(gate)
	n := owner(t, dir, open)

	looking := joined(t, dir)
	if _, err := looking.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
		t.Fatal(err)
	}
	own := submit(t, n)
	if got := n.CountClients(); got != 0 {
		t.Fatalf("%d waiting clients, though nobody else has submitted a job", got)
	}
	visitor := joined(t, dir)
	job := submit(t, visitor)
	if got := n.CountClients(); got != 1 {
		t.Fatalf("%d waiting clients, want 1", got)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := n.WaitForClients(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waiting for a client gave %v", err)
	}
	close(open)
	if got := ended(t, visitor, job.ID); got.State != mapreduce.JobComplete {
		t.Errorf("the client's job is %v: %s", got.State, got.Error)
	}
	if got := ended(t, looking, own.ID); got.State != mapreduce.JobComplete {
		t.Errorf("the owner's job is %v: %s", got.State, got.Error)
	}
	if err := visitor.Close(); err != nil {
		t.Error(err)
	}
	if err := n.WaitForClients(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client of an owner that leaves is told so at once, and takes over.
func TestTakeover(t *testing.T) {
	dir, open := t.TempDir(), make(gate)
	n := owner(t, dir, open)
	visitor := joined(t, dir)
	job := submit(t, visitor)
	watched := make(chan error, 1)
	seen := make(chan struct{}, 100)
	go func() {
		watched <- visitor.WatchJob(t.Context(), job.ID, func(*mapreduce.Job) error { seen <- struct{}{}; return nil })
	}()
	<-seen
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; !errors.Is(err, errs.Unavailable) {
		t.Fatalf("the watch ended with %v, want unavailable", err)
	}
	close(open)
	heir := owner(t, dir, open)
	if _, err := heir.ResumeJob(t.Context(), job.ID, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, heir, job.ID); got.State != mapreduce.JobComplete {
		t.Errorf("the job is %v: %s", got.State, got.Error)
	}
}

func TestJoin(t *testing.T) {
	t.Run("a free directory", func(t *testing.T) {
		n, c, err := embedded.Join(t.Context(), embedded.Config{Dir: t.TempDir()}, embedded.JoinOptions{})
		if err != nil || c != nil {
			t.Fatalf("client %v, error %v; want a node", c, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a holder that does not listen, and leaves", func(t *testing.T) {
		dir := t.TempDir()
		holder, err := embedded.Open(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		left := make(chan error, 1)
		n, c, err := embedded.Join(t.Context(), embedded.Config{Dir: dir}, embedded.JoinOptions{
			Waiting: func() { left <- holder.Close() },
		})
		if err != nil || c != nil {
			t.Fatalf("client %v, error %v; want a node", c, err)
		}
		if err := errors.Join(<-left, n.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a holder that does not listen, and stays", func(t *testing.T) {
		dir := t.TempDir()
		holder, err := embedded.Open(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = embedded.Join(t.Context(), embedded.Config{Dir: dir}, embedded.JoinOptions{Patience: 100 * time.Millisecond})
		if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("error %v, want that it is in use, and what to do", err)
		}
		if err := holder.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		dir := t.TempDir()
		holder, err := embedded.Open(embedded.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		because := errors.New("enough")
		cancel(because)
		if _, _, err := embedded.Join(ctx, embedded.Config{Dir: dir}, embedded.JoinOptions{}); !errors.Is(err, because) {
			t.Errorf("error %v, want the cause", err)
		}
		if err := holder.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What a killed process leaves of its socket does not disturb the next.
func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "coditect.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "socket"), []byte("/nowhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := owner(t, dir, make(gate))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the socket has mode %o", mode)
	}
	if _, err := joined(t, dir).ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
}

func TestLongPath(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir := filepath.Join(t.TempDir(), strings.Repeat("long %name ", 15))
	n := owner(t, dir, make(gate))
	pointer, err := os.ReadFile(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joined(t, dir).ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{string(pointer), filepath.Dir(string(pointer)), filepath.Join(dir, "socket")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}

	// What a process that was killed has left goes with the next one, and nothing else.
	killed, other := t.TempDir()+"/coditect-1/s", t.TempDir()+"/s"
	for _, path := range []string{killed, other} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "socket"), []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := owner(t, dir, make(gate)).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Dir(killed)); err == nil {
		t.Error("the folder of a process that was killed is left")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}
