// Package apart starts this program once more for a unit that has to run alone, and is that
// program: a worker of one slot, connected by its standard input and output to the worker
// that has started it, and to nothing else. It never outlives that worker.
package apart

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/child"
)

// Variable is the environment variable that tells a process of this program that it is to
// run one unit. Its value says whose jobs it runs.
const Variable = "CODITECT_APART"

// Values of Variable.
const (
	own    = "own"    // those of the user who has started the command
	others = "others" // those of the clients of a server
)

// Whose returns the value of Variable for a process that runs the jobs of others, or its
// user's own.
func Whose(fleet bool) string {
	if fleet {
		return others
	}
	return own
}

// A Command starts this program again with the command line that it was started with, so
// that units find the same providers, keys, tools and limits there. The zero Command cannot.
type Command struct {
	Path string   // of the program
	Args []string // without its name
	Env  []string // NAME=VALUE
}

// Starter returns what starts processes that run the jobs of whose, or nil if none can be.
func (c Command) Starter(whose string) apart.Start {
	if c.Path == "" {
		return nil
	}
	return func(f protocol.Fleet) (apart.Process, error) { return c.start(f, whose) }
}

// pipeBytes is the buffer of the connection to a process, each way.
const pipeBytes = 256 << 10

// start starts a process whose worker has f for its orchestrator.
func (c Command) start(f protocol.Fleet, whose string) (apart.Process, error) {
	s, err := server.New(noService{}, f, server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	p := &process{server: s, ended: make(chan struct{})}
	p.program, err = child.Start(child.Config{Path: c.Path, Args: c.Args, Env: c.environ(whose), Stderr: &p.said})
	if err != nil {
		return nil, err
	}

	listener := bufconn.Listen(pipeBytes)
	p.serving.Go(func() { _ = s.Serve(listener) }) // ends with the server; calls fail if it ends before
	conn, err := listener.Dial()
	if err != nil {
		p.program.Stop()
		p.shutDown()
		return nil, err
	}

	heard := make(chan struct{})
	p.serving.Go(func() {
		defer close(heard)
		_, _ = io.Copy(conn, p.program.Stdout) // until the process ends, or the server does
	})
	p.serving.Go(func() { _, _ = io.Copy(p.program.Stdin, conn) })

	go p.wait(conn, heard)
	return p, nil
}

// environ returns the environment of a process.
func (c Command) environ(whose string) []string {
	env := make([]string, 0, len(c.Env)+1)
	for _, v := range c.Env {
		if name, _, _ := strings.Cut(v, "="); name != Variable && name != failpoint.Variable {
			env = append(env, v)
		}
	}
	return append(env, Variable+"="+whose)
}

// A process is a process that runs one unit.
type process struct {
	program *child.Process
	server  *server.Server
	said    head
	serving sync.WaitGroup
	ended   chan struct{}
}

var _ apart.Process = (*process)(nil)

// lastWords bounds how long what an ended process has written is read.
const lastWords = time.Second

// wait waits until the process has ended and its output has been read. Callers of Ended or
// Stop wait for that.
func (p *process) wait(conn io.Closer, heard <-chan struct{}) {
	<-p.program.Ended()

	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-heard:
	case <-t.C: // something that it has started holds its output open
	}

	_ = conn.Close()
	p.program.Stop() // which closes what it wrote to
	p.shutDown()
	close(p.ended)
}

// shutDown ends the server of the process.
func (p *process) shutDown() {
	ctx, stop := context.WithTimeout(context.Background(), lastWords)
	defer stop()
	p.server.Shutdown(ctx)
	p.serving.Wait()
}

// Ended implements apart.Process.
func (p *process) Ended() <-chan struct{} { return p.ended }

// Err implements apart.Process. It says where and how the process ended, and what it
// printed first.
func (p *process) Err() error {
	err := p.program.Err()
	if err == nil {
		return nil
	}
	where, _ := os.Hostname() // "" if the system does not know
	if said := p.said.firstLine(); said != "" {
		return fmt.Errorf("%w on %s: %s", err, where, said)
	}
	return fmt.Errorf("%w on %s", err, where)
}

// Stop implements apart.Process.
func (p *process) Stop() {
	p.program.Stop()
	<-p.ended
}

// maxHead is how many bytes of what a process says are kept.
const maxHead = 512

// A head keeps the beginning of what is written to it: that of a crash says why, and what
// follows says where everything else was. Writes never fail.
type head struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

// Write keeps the first bytes.
func (h *head) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, data[:min(len(data), maxHead-len(h.kept))]...)
	return len(data), nil
}

// firstLine returns the first line that says something.
func (h *head) firstLine() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimSpace(h.kept), []byte("\n"))
	return strings.TrimSpace(strings.ToValidUTF8(string(line), "\uFFFD"))
}

// noService stands where a Service is required and never called: a worker calls none.
type noService struct{ mapreduce.Service }
