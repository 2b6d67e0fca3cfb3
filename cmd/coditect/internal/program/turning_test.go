package program_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// An owner holds a data directory. It can stop to listen before it leaves the directory, as
// every process does that ends.
type owner struct {
	t    *testing.T
	node *embedded.Node
	net.Listener

	mu     sync.Mutex // guards the variables below
	conns  []*ownerConn
	silent bool // closes a connection instead of answering
}

func own(t *testing.T, dir string) *owner {
	t.Helper()
	n, err := embedded.Open(embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{t: t, node: n}
	t.Cleanup(o.leave)
	if o.Listener, err = net.Listen("unix", filepath.Join(dir, "coditect.sock")); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Serve(o)
	return o
}

// Accept implements net.Listener.
func (o *owner) Accept() (net.Conn, error) {
	c, err := o.Listener.Accept()
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	conn := &ownerConn{c, o, make(chan struct{}), sync.Once{}}
	o.conns = append(o.conns, conn)
	return conn, nil
}

// An ownerConn is a connection that loses answers once its owner is silent.
type ownerConn struct {
	net.Conn
	owner  *owner
	closed chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (c *ownerConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// Write implements net.Conn. What is no answer goes on, as it may be left of an earlier call: a client whose connection is
// closed before it has sent a call knows that nobody took it.
func (c *ownerConn) Write(p []byte) (int, error) {
	c.owner.mu.Lock()
	silent := c.owner.silent
	c.owner.mu.Unlock()
	if silent && bringsAnswer(p) {
		return 0, errors.Join(net.ErrClosed, c.Close())
	}
	return c.Conn.Write(p)
}

// bringsAnswer reports whether an answer begins among frames of HTTP/2: each has a head of nine bytes, of which three are its
// length and one is its type.
func bringsAnswer(frames []byte) bool {
	const head, headers = 9, 1
	for len(frames) >= head {
		if frames[3] == headers {
			return true
		}
		length := int(frames[0])<<16 | int(frames[1])<<8 | int(frames[2])
		frames = frames[min(head+length, len(frames)):]
	}
	return false
}

// deafen ends the socket and all connections, and keeps the directory. It returns when the
// clients know: the server closes a connection when its client has.
func (o *owner) deafen() {
	_ = o.Listener.Close() // the server closes it, too
	o.mu.Lock()
	conns := o.conns
	o.mu.Unlock()
	for _, c := range conns {
		if half, ok := c.Conn.(*net.UnixConn); !ok || half.CloseWrite() != nil {
			continue // it is closed
		}
		<-c.closed
	}
}

// loseAnswers makes the owner take calls and answer none, and ends the socket.
func (o *owner) loseAnswers() {
	_ = o.Listener.Close() // the server closes it, too
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent = true
}

// leave ends the owner.
func (o *owner) leave() {
	if err := o.node.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		o.t.Error(err)
	}
}

// A noticed writer calls a function, once, when a text has been written.
type noticed struct {
	text string
	call func()
	seen bytes.Buffer
	once sync.Once
}

// Write implements io.Writer.
func (n *noticed) Write(p []byte) (int, error) {
	n.seen.Write(p)
	if strings.Contains(n.seen.String(), n.text) {
		n.once.Do(n.call)
	}
	return len(p), nil
}

// command calls do in a session, as commands do. waits is called when the session says that
// it waits for the directory.
func command(t *testing.T, dir string, mode program.Mode, waits func(), do func(s *program.Session) error) error {
	t.Helper()
	none := func(string) string { return "" }
	stderr := &noticed{text: "is in use by another process; waiting for it", call: waits}
	p := &program.Program{
		Console: console.Console{Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: stderr, Screen: stderr},
		Getenv:  none, Global: program.Globals{Location: program.Location{Dir: dir}},
	}
	p.Runners.Getenv, p.Runners.Limits.MaxCalls = none, 1
	return p.WithSession(t.Context(), mode, do)
}

// calls are one that reads and one that changes something. No job is there, which only who
// holds the store can say.
var calls = map[string]struct {
	mode program.Mode
	make func(context.Context, *program.Session) error
}{
	"reads": {program.ModeRead, func(ctx context.Context, s *program.Session) error {
		_, err := s.GetJob(ctx, "mr_20260101_aaaaaa")
		return err
	}},
	"reads a stream": {program.ModeRead, func(ctx context.Context, s *program.Session) error {
		return s.GetResult(ctx, "mr_20260101_aaaaaa", true, func(*mapreduce.ResultPart) error { return nil })
	}},
	"changes": {program.ModeMoveJobs, func(ctx context.Context, s *program.Session) error {
		_, err := s.PauseJob(ctx, "mr_20260101_aaaaaa")
		return err
	}},
}

// A command whose process to talk to ends before it takes a call waits until the directory
// is free, and makes the call itself.
func TestOwnerThatEnds(t *testing.T) {
	for name, c := range calls {
		t.Run(name+", owner gone", func(t *testing.T) {
			dir := t.TempDir()
			o := own(t, dir)
			err := command(t, dir, c.mode, func() {}, func(s *program.Session) error {
				if s.IsHere() {
					t.Error("the session did not connect to the owner")
				}
				o.leave()
				err := c.make(t.Context(), s)
				if !s.IsHere() {
					t.Error("the session did not take over")
				}
				return err
			})
			if errs.KindOf(err) != errs.NotFound {
				t.Errorf("error %v, want that no such job is there", err)
			}
		})
		t.Run(name+", owner still there", func(t *testing.T) {
			dir := t.TempDir()
			o := own(t, dir)
			waited := false
			err := command(t, dir, c.mode, func() { waited = true; o.leave() }, func(s *program.Session) error {
				o.deafen()
				return c.make(t.Context(), s)
			})
			if errs.KindOf(err) != errs.NotFound || !waited {
				t.Errorf("error %v, waited %t; want that no such job is there, after the owner has left", err, waited)
			}
		})
		t.Run(name+", another owner", func(t *testing.T) {
			dir := t.TempDir()
			o := own(t, dir)
			err := command(t, dir, c.mode, func() {}, func(s *program.Session) error {
				o.leave()
				own(t, dir)
				err := c.make(t.Context(), s)
				if s.IsHere() {
					t.Error("the session took over what is another's")
				}
				return err
			})
			if errs.KindOf(err) != errs.NotFound {
				t.Errorf("error %v, want that no such job is there", err)
			}
		})
	}
}

// A call whose answer is lost is made again only if it changes nothing.
func TestAnswerLost(t *testing.T) {
	for name, c := range calls {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := own(t, dir)
			waited := false
			err := command(t, dir, c.mode, func() { waited = true; o.leave() }, func(s *program.Session) error {
				o.loseAnswers()
				return c.make(t.Context(), s)
			})
			reads := c.mode == program.ModeRead
			if want := errs.Unavailable; !reads && (errs.KindOf(err) != want || waited) {
				t.Errorf("error %v, waited %t; want %v at once", err, waited, want)
			}
			if want := errs.NotFound; reads && (errs.KindOf(err) != want || !waited) {
				t.Errorf("error %v, waited %t; want %v after the owner has left", err, waited, want)
			}
		})
	}
}
