package apart

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker"
)

// Run runs the unit that the worker which has started this process sends, until that worker
// has closed the connection, or has ended. whose is the value of Variable.
func Run(ctx context.Context, version, whose string, r *runners.Runners) (err error) {
	conn := ownPipe()
	preferAsVictim()
	r.Models.Fleet = whose == others
	r.Remote = false
	r.LogTools(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	defer func() { err = errors.Join(err, r.CloseTools()) }()
	if _, err := r.OpenTools(ctx); err != nil {
		return err
	}

	all, err := r.StepRegistry()
	if err != nil {
		return err
	}
	formats, err := r.DocumentFormats()
	if err != nil {
		return err
	}

	starter, err := client.Dial("unix:apart", client.Config{
		Name:    "the worker that has started this process",
		Options: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return conn.take() })},
	})
	if err != nil {
		return err
	}

	w, err := worker.New(worker.Config{
		Version: version, Steps: all, Parsers: formats.Parsers(), Tools: r.OfferedTools(), Limits: r.Gates, Manners: r.Manners, DrawPages: r.DrawPages, Slots: 1,
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return starter.Connect(ctx) }},
	})
	if err != nil {
		return err
	}

	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }() // until the process ends
	select {
	case err := <-ended:
		return err
	case <-conn.closed:
		return nil
	}
}

// preferAsVictim asks the system to end this process, rather than the one that has started
// it, if memory runs out. Systems other than Linux have no such file.
func preferAsVictim() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}

// A pipe is the connection over the standard input and output of this process. There is
// one: it is lost for good with the process at its other end.
type pipe struct {
	net.Conn // addresses and deadlines, of a connection that is not used
	in       *os.File
	out      *os.File
	taken    sync.Once
	close    sync.Once
	closed   chan struct{} // closed when nothing comes any more
}

// ownPipe takes the standard input and output over. From then on, output of this process
// goes to its standard error.
func ownPipe() *pipe {
	unused, _ := net.Pipe()
	p := &pipe{Conn: unused, in: os.Stdin, out: os.Stdout, closed: make(chan struct{})}
	os.Stdout = os.Stderr
	return p
}

// take returns the connection, once.
func (p *pipe) take() (conn net.Conn, err error) {
	err = errors.New("the connection is lost")
	p.taken.Do(func() { conn, err = p, nil })
	return conn, err
}

// Read implements net.Conn.
func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if err != nil {
		_ = p.Close()
	}
	return n, err
}

// Write implements net.Conn.
func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		_ = p.Close()
	}
	return n, err
}

// Close implements net.Conn.
func (p *pipe) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

var _ io.ReadWriteCloser = (*pipe)(nil)
