// Command restate measures Restate, whose server is a program of its own: restate-server has to be in the
// PATH, as npm installs it with @restatedev/restate-server. It is started by rivals.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	restate "github.com/restatedev/sdk-go"
	sdk "github.com/restatedev/sdk-go/server"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/internal/dev/rivals/lap"
)

func main() { lap.Serve(system{}) }

type system struct{}

const (
	program = "restate-server"
	service = "units" // of this process
	handler = "run"
	senders = 64 // at once, where many units are submitted: there is no call for many
)

func (system) Info() lap.Info {
	version := "of an unknown version"
	if out, err := exec.Command(program, "--version").Output(); err == nil {
		version = strings.TrimSpace(strings.TrimPrefix(string(out), program))
	}
	return lap.Info{
		Name: "Restate", Module: "github.com/restatedev/sdk-go", Units: 3000, Again: true,
		Settings: "server " + version + ", whose version the table does not have, but that of its SDK; one node, as it comes; units are invocations of a service that are sent and not waited for; it gives them out itself, so those of the throughput are with the worker when that begins, as many as it gives out at once",
		Killed:   "not elsewhere: a service at the same address was started again at once",
	}
}

// A server is a node of Restate, and a service in this process.
type server struct {
	addresses
	node    *exec.Cmd
	local   *endpoint
	victims atomic.Int64 // services of other processes that were given a unit

	mu     sync.Mutex    // guards the variables below
	worker *lap.Worker   // of this process; nil if nobody works
	begun  chan struct{} // closed when somebody does
}

// addresses are where a node listens.
type addresses struct{ Ingress, Admin string }

// freePorts returns ports of the loopback that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (system) Open(ctx context.Context, dir string) (_ lap.Server, err error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	s := &server{begun: make(chan struct{})}
	s.addresses = addresses{fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()

	s.node = exec.Command(program, "--no-logo", "--listen-mode", "tcp", "--base-dir", filepath.Join(dir, "restate"), "--bind-ip", "127.0.0.1", "--bind-port", fmt.Sprint(ports[2]))
	// npm's program starts the server as a child, which would outlive it: both are ended together.
	s.node.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.node.Env = append(s.node.Environ(),
		fmt.Sprintf("RESTATE_INGRESS__BIND_ADDRESS=127.0.0.1:%d", ports[0]), fmt.Sprintf("RESTATE_ADMIN__BIND_ADDRESS=127.0.0.1:%d", ports[1]),
		"RESTATE_LOG_FILTER=error", "DO_NOT_TRACK=1",
	)
	if err := s.node.Start(); err != nil {
		return nil, fmt.Errorf("%w; npm installs it with @restatedev/restate-server", err)
	}
	if err := s.awaitHealth(ctx); err != nil {
		return nil, err
	}

	s.local, err = serve(ctx, s.addresses, service, s.runLocal)
	return s, err
}

// awaitHealth waits until the node answers.
func (a addresses) awaitHealth(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	for _, at := range []string{a.Admin + "/health", a.Ingress + "/restate/health"} {
		for {
			err := call(ctx, http.MethodGet, at, nil, nil)
			if err == nil {
				break
			}
			if clock.Sleep(ctx, 20*time.Millisecond) != nil {
				return fmt.Errorf("the node does not answer: %w", err)
			}
		}
	}
	return nil
}

// An endpoint is a service that the node calls.
type endpoint struct {
	http *http.Server
	gone chan error // gets how it ended
}

// serve runs a service, at the address that it had before if it is known to the node.
func serve(ctx context.Context, a addresses, name string, run func(ctx context.Context, unit string) error) (*endpoint, error) {
	at, err := a.addressOf(ctx, name)
	if err != nil {
		return nil, err
	}
	known := at != ""
	if !known {
		at = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}

	// It carries what the node asks in HTTP/2 without TLS.
	node := sdk.NewRestate().WithLogger(slog.DiscardHandler, true)
	node.Bind(restate.NewService(name).Handler(handler, restate.NewServiceHandler(func(ctx restate.Context, in invocation) (restate.Void, error) {
		return restate.Void{}, run(ctx, in.Unit)
	})))
	handle, err := node.Handler()
	if err != nil {
		return nil, err
	}

	e := &endpoint{http: &http.Server{Handler: handle, Protocols: new(http.Protocols)}, gone: make(chan error, 1)}
	e.http.Protocols.SetHTTP1(true)
	e.http.Protocols.SetUnencryptedHTTP2(true)
	e.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1 << 20}
	go func() { e.gone <- e.http.Serve(listener) }()

	if !known {
		err = call(ctx, http.MethodPost, a.Admin+"/deployments", map[string]any{"uri": "http://" + listener.Addr().String()}, nil)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *endpoint) close() error {
	err := e.http.Close()
	<-e.gone // says that it was closed
	return err
}

// addressOf returns where a service is, as far as the node knows; "" if it knows none of that name.
func (a addresses) addressOf(ctx context.Context, name string) (string, error) {
	var found struct {
		Rows []struct {
			Endpoint string `json:"endpoint"`
		} `json:"rows"`
	}
	query := map[string]string{"query": "SELECT d.endpoint FROM sys_service s JOIN sys_deployment d ON s.deployment_id = d.id WHERE s.name = '" + name + "'"}
	if err := call(ctx, http.MethodPost, a.Admin+"/query", query, &found); err != nil || len(found.Rows) == 0 {
		return "", err
	}
	return strings.Trim(strings.TrimPrefix(found.Rows[0].Endpoint, "http://"), "/"), nil
}

// An invocation is what a service is called with.
type invocation struct{ Unit, Text string }

// call makes one call over HTTP.
func call(ctx context.Context, method, url string, body, reply any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")

	answer, err := caller.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()

	got, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode >= 300:
		return fmt.Errorf("%s: %s: %.300s", url, answer.Status, got)
	case reply == nil:
		return nil
	}
	return json.Unmarshal(got, reply)
}

var caller = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}

func (s *server) Address() string { return s.Ingress + " " + s.Admin }

// Submit sends units, many of them at once: to the service of this process while it works or none other
// does, else one to each service of other processes.
func (s *server) Submit(ctx context.Context, units []string) error {
	to := func(int) string { return service }
	if others, err := s.others(ctx); err != nil {
		return err
	} else if first := int(s.victims.Load()); len(others) >= first+len(units) {
		s.victims.Store(int64(first + len(units)))
		to = func(i int) string { return others[first+i] }
	}

	errs := make([]error, len(units))
	places := make(chan struct{}, senders)
	var sending sync.WaitGroup
	for i, unit := range units {
		places <- struct{}{}
		sending.Go(func() {
			defer func() { <-places }()
			errs[i] = call(ctx, http.MethodPost, s.Ingress+"/"+to(i)+"/"+handler+"/send", invocation{unit, lap.Text(unit)}, nil)
		})
	}
	sending.Wait()
	return errors.Join(errs...)
}

// others returns the services of other processes in the order in which they were registered.
func (s *server) others(ctx context.Context) (names []string, err error) {
	s.mu.Lock()
	works := s.worker != nil
	s.mu.Unlock()
	if works {
		return nil, nil
	}

	var found struct {
		Rows []struct {
			Name string `json:"name"`
		} `json:"rows"`
	}
	query := map[string]string{"query": "SELECT s.name FROM sys_service s JOIN sys_deployment d ON s.deployment_id = d.id WHERE s.name <> '" + service + "' ORDER BY d.created_at, s.name"}
	err = call(ctx, http.MethodPost, s.Admin+"/query", query, &found)
	for _, row := range found.Rows {
		names = append(names, row.Name)
	}
	return names, err
}

// Work runs the units that the node gives to this process.
func (s *server) Work(ctx context.Context, w lap.Worker) error {
	s.mu.Lock()
	s.worker = &w
	close(s.begun)
	s.mu.Unlock()
	w.Begun()

	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker, s.begun = nil, make(chan struct{})
	return nil
}

// runLocal runs a unit once somebody works in this process.
func (s *server) runLocal(ctx context.Context, unit string) error {
	for {
		s.mu.Lock()
		w, begun := s.worker, s.begun
		s.mu.Unlock()
		if w != nil {
			return w.Run(ctx, unit)
		}
		select {
		case <-begun:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lookEvery is the pause between looks at what is not over yet.
const lookEvery = 5 * time.Millisecond

// AwaitEnded looks at what the node has left: of what is over it keeps nothing.
func (s *server) AwaitEnded(ctx context.Context, _ int) (time.Time, error) {
	query := map[string]string{"query": "SELECT count(*) AS n FROM sys_invocation_status WHERE status <> 'completed'"}
	for {
		var left struct {
			Rows []struct{ N int64 } `json:"rows"`
		}
		if err := call(ctx, http.MethodPost, s.Admin+"/query", query, &left); err != nil {
			return time.Time{}, err
		}
		if len(left.Rows) == 1 && left.Rows[0].N == 0 {
			return time.Now(), nil
		}
		if err := clock.Sleep(ctx, lookEvery); err != nil {
			return time.Time{}, err
		}
	}
}

func (s *server) Close() error {
	var errs []error
	if s.local != nil {
		errs = append(errs, s.local.close())
	}
	if s.node != nil && s.node.Process != nil {
		errs = append(errs, syscall.Kill(-s.node.Process.Pid, syscall.SIGKILL))
		_ = s.node.Wait() // that it was killed is no news
	}
	return errors.Join(errs...)
}

func (system) Work(ctx context.Context, address string, w lap.Worker) error {
	ingress, admin, _ := strings.Cut(address, " ")
	name := strings.ReplaceAll(w.Name, " ", "-")
	e, err := serve(ctx, addresses{ingress, admin}, name, w.Run)
	if err != nil {
		return err
	}
	w.Begun()
	<-ctx.Done()
	return e.close()
}
