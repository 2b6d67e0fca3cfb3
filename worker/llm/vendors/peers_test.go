package vendors_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// peers returns the folder in which `make test-peers` has installed servers and
// clients that others have written.
func peers(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CODITECT_PEERS")
	if dir == "" {
		lacking(t, "CODITECT_PEERS is not set: make test-peers sets it")
	}
	return dir
}

// lacking skips a test, or fails it where none may be skipped.
func lacking(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CODITECT_TEST_PEERS") == "require" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// freePort returns a port of loopback that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// run starts a server and waits until it says that it is ready. It is killed
// when the test ends.
func run(t *testing.T, ready string, name string, args ...string) {
	t.Helper()
	ctx, kill := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // some are started by a script of their own
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	up := make(chan bool, 1)
	reading.Go(func() { up <- waitFor(out, ready) })
	var ended sync.WaitGroup
	ended.Go(func() { in.CloseWithError(cmd.Wait()) })
	t.Cleanup(func() {
		kill()
		ended.Wait()
		reading.Wait()
	})
	if !<-up {
		t.Fatalf("%s ended before it was ready", filepath.Base(name))
	}
	reading.Go(func() { _, _ = io.Copy(io.Discard, out) }) // lest it block on what it has to say
}

// waitFor reads lines until one holds ready.
func waitFor(out io.Reader, ready string) bool {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, ready) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// A witness sends requests to a server, whatever host they are meant for, and
// keeps what came back.
type witness struct {
	to   *url.URL
	trim string // prefix of paths that the server does not know

	mu    sync.Mutex // guards the fields below
	tries int
	bad   []string
}

// RoundTrip implements http.RoundTripper.
func (w *witness) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = w.to.Scheme, w.to.Host, ""
	out.URL.Path = strings.TrimPrefix(out.URL.Path, w.trim)
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	if res.StatusCode != http.StatusOK || res.Header.Get("X-Steady-Request-Valid") != "true" {
		raw, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // what there is of it
		w.bad = append(w.bad, fmt.Sprintf("%s %s: %d %s", req.Method, req.URL.Path, res.StatusCode, raw))
	}
	return res, nil
}

// take returns how many requests were made and which were refused, and forgets.
func (w *witness) take() (tries int, bad []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tries, bad = w.tries, w.bad
	w.tries, w.bad = 0, nil
	return tries, bad
}

// through returns a provider whose requests go by transport.
func through(t *testing.T, vendor string, transport http.RoundTripper, base string, change ...func(*llm.Config)) llm.Provider {
	t.Helper()
	cfg := llm.Config{Key: llm.NewKey(testKey), BaseURL: base, Transport: transport}
	for _, f := range change {
		f(&cfg)
	}
	p, err := vendors.New(vendor, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
