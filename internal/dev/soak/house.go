package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// patience is how long a process may take to start or to stop in order.
const patience = time.Minute

// A house has a server, two workers and a vendor of batches.
type house struct {
	config config
	dir    string // of the store
	vendor *http.Server
	url    string // of the vendor

	server, steady, mortal *process
	conn                   *grpc.ClientConn
	kills                  int
}

// openHouse starts all processes.
func openHouse(ctx context.Context, c config) (h *house, err error) {
	h = &house{config: c, dir: filepath.Join(c.data, "store")}
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()

	if err := h.openVendor(); err != nil {
		return nil, err
	}

	serve := []string{"serve", "--listen", "127.0.0.1:0", "--data-dir", h.dir, "--workers", "0"}
	if c.store != "" {
		serve = append(serve, "--store", c.store, "--store-prefix", fmt.Sprintf("soak-%d", time.Now().Unix()))
	}
	if h.server, err = h.start(ctx, "server", serve); err != nil {
		return nil, err
	}

	for _, w := range []**process{&h.steady, &h.mortal} {
		name := "worker that lives"
		if w == &h.mortal {
			name = "worker that is killed"
		}
		if *w, err = h.startWorker(ctx, name); err != nil {
			return nil, err
		}
	}

	h.conn, err = grpc.NewClient(h.server.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return h, err
}

// openVendor serves batches, which take ten seconds each, and calls that do not go by batch.
func (h *house) openVendor() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	h.url = "http://" + listener.Addr().String()
	answer := func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: `{"records":[]}`} }
	later := batches.New(batches.Config{
		Wire: fakellm.Anthropic, Lean: true, Model: answer, Takes: func(int) time.Duration { return 10 * time.Second },
	})
	now := fakellm.New(fakellm.Config{Model: answer, Journal: io.Discard})

	h.vendor = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/batches") {
			later.ServeHTTP(w, r)
			return
		}
		now.ServeHTTP(w, r)
	})}
	go func() { _ = h.vendor.Serve(listener) }() // close ends it
	return nil
}

func (h *house) startWorker(ctx context.Context, name string) (*process, error) {
	return h.start(ctx, name, []string{"worker", "--server", h.server.address, "--slots", "4"})
}

// replaceMortal kills the worker that is to be killed, and starts another one.
func (h *house) replaceMortal(ctx context.Context) (err error) {
	h.mortal.kill()
	h.kills++
	h.mortal, err = h.startWorker(ctx, h.mortal.name)
	return err
}

// close stops all processes in order.
func (h *house) close() error {
	var all []error
	if h.conn != nil {
		all = append(all, h.conn.Close())
	}
	for _, p := range []*process{h.steady, h.mortal, h.server} {
		if p != nil {
			all = append(all, p.stop())
		}
	}
	if h.vendor != nil {
		all = append(all, h.vendor.Close())
	}
	return errors.Join(all...)
}

// A process is a server or a worker.
type process struct {
	name    string
	command *exec.Cmd
	admin   string // its address for operators
	address string // that it serves clients at
	ended   chan struct{}
	err     error  // of the process; written before ended is closed
	fault   string // the first line of a panic; written before ended is closed
}

var (
	adminAt  = regexp.MustCompile(`msg="operators are served" admin=(\S+)`)
	servesAt = regexp.MustCompile(`msg=serving address=(\S+)`)
	isFault  = regexp.MustCompile(`^(panic|fatal error)|kind=internal`)
)

// start starts a process, and waits until it serves.
func (h *house) start(ctx context.Context, name string, args []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(h.config.data, strings.ReplaceAll(name, " ", "-")+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}

	args = append(args, "--admin", "127.0.0.1:0", "--endpoint", "anthropic="+h.url)
	p := &process{name: name, command: exec.Command(h.config.program, args...), ended: make(chan struct{})} //nolint:gosec // the program is named by whoever starts this one
	p.command.Env = append(os.Environ(), "ANTHROPIC_API_KEY=soak")
	stderr, err := p.command.StderrPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}

	said := make(chan struct{}) // closed when all addresses are known
	go func() {
		defer close(p.ended)
		p.read(stderr, log, said, args[0] == "serve")
		p.err = errors.Join(p.command.Wait(), log.Close())
	}()

	select {
	case <-said:
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("the %s did not start, see its log in %s: %w", name, h.config.data, p.err)
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("the %s did not say within %v where it serves, see its log in %s", name, patience, h.config.data)
	case <-ctx.Done():
		p.kill()
		return nil, context.Cause(ctx)
	}
}

// read copies what a process logs, and notes its addresses and the first sign of a panic.
func (p *process) read(from io.Reader, log io.Writer, said chan<- struct{}, serves bool) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for known := false; lines.Scan(); {
		fmt.Fprintln(log, lines.Text())
		if m := adminAt.FindStringSubmatch(lines.Text()); m != nil {
			p.admin = m[1]
		}
		if m := servesAt.FindStringSubmatch(lines.Text()); m != nil {
			p.address = m[1]
		}
		if p.fault == "" && isFault.MatchString(lines.Text()) {
			p.fault = lines.Text()
		}
		if !known && p.admin != "" && (p.address != "" || !serves) {
			known = true
			close(said)
		}
	}
	_, _ = io.Copy(io.Discard, from) // a line too long to be kept must not stop the process
}

func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.ended
}

// stop ends a process in order, and returns what was wrong with it.
func (p *process) stop() error {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("the %s did not end within %v of SIGTERM", p.name, patience)
	}

	if p.fault != "" {
		return fmt.Errorf("the %s logged %q", p.name, p.fault)
	}
	if p.err != nil {
		return fmt.Errorf("the %s ended with %w", p.name, p.err)
	}
	return nil
}
