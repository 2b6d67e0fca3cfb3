package figures

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// childVariable tells a process that another of this program started what to
// do. Children are needed to be killed, and to have memory of their own.
const childVariable = "CODITECT_BENCH_CHILD"

// An order is what a child is to do.
type order struct {
	Pending *pendingOrder `json:",omitempty"`
	Worker  *workerOrder  `json:",omitempty"`
	Figure  *figureOrder  `json:",omitempty"`
	Reduce  *reduceOrder  `json:",omitempty"`
	Model   *modelOrder   `json:",omitempty"`
	Asker   *askerOrder   `json:",omitempty"`
}

type figureOrder struct {
	Name string
	Lab  Lab
}

// RunChild does what a parent has ordered in the environment, and reports
// whether there was an order. A main function calls it first.
func RunChild(ctx context.Context, stdin io.Reader, stdout io.Writer) (ordered bool, err error) {
	text, ok := os.LookupEnv(childVariable)
	if !ok {
		return false, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends with the process
		defer stop() // the parent is gone
		_, _ = io.Copy(io.Discard, stdin)
	}()
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return true, fmt.Errorf("%s: %w", childVariable, err)
	}
	out := json.NewEncoder(stdout)
	switch {
	case o.Pending != nil:
		size, err := o.Pending.measureSize(ctx)
		return true, errors.Join(err, out.Encode(size))
	case o.Reduce != nil:
		r, err := o.Reduce.measureOrder(ctx)
		return true, errors.Join(err, out.Encode(r))
	case o.Worker != nil:
		return true, o.Worker.runWorker(ctx, out)
	case o.Model != nil:
		return true, o.Model.serveModel(ctx, out)
	case o.Asker != nil:
		return true, o.Asker.runAsker(ctx, out)
	case o.Figure != nil:
		rows, err := measureFigure(ctx, o.Figure.Name, o.Figure.Lab)
		return true, errors.Join(err, out.Encode(rows))
	}
	return true, errors.New("an order of nothing")
}

func measureFigure(ctx context.Context, name string, l Lab) ([]Row, error) {
	for _, f := range All() {
		if f.Name == name {
			l = l.withDefaults()
			return l.withProfiles(f.Name, func() ([]Row, error) { return f.Measure(ctx, &l) })
		}
	}
	return nil, fmt.Errorf("there is no figure %q", name)
}

// withProfiles writes profiles of what measure does, if wanted.
func (l *Lab) withProfiles(name string, measure func() ([]Row, error)) (rows []Row, err error) {
	if l.Profiles == "" {
		return measure()
	}
	file, err := os.Create(filepath.Join(l.Profiles, name+".cpu"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	runtime.SetMutexProfileFraction(100)
	rows, err = measure()
	pprof.StopCPUProfile()
	for _, kind := range []string{"allocs", "mutex"} {
		var b bytes.Buffer
		err = errors.Join(err, pprof.Lookup(kind).WriteTo(&b, 0))
		err = errors.Join(err, os.WriteFile(filepath.Join(l.Profiles, name+"."+kind), b.Bytes(), 0o600))
	}
	return rows, err
}

// Measure measures a figure in a process of its own.
func Measure(ctx context.Context, name string, l Lab) ([]Row, error) {
	var rows []Row
	err := askChild(ctx, order{Figure: &figureOrder{name, l}}, &rows)
	return rows, err
}

// askChild has a child do something and reads its answer.
func askChild(ctx context.Context, o order, answer any) error {
	c, err := startChild(ctx, o)
	if err != nil {
		return err
	}
	err = c.out.Decode(answer)
	return errors.Join(err, c.cmd.Wait())
}

// A child is a process that carries out an order. It ends when its parent does.
type child struct {
	cmd *exec.Cmd
	in  io.Closer
	out *json.Decoder
}

func startChild(ctx context.Context, o order) (*child, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &child{cmd, in, json.NewDecoder(bufio.NewReader(out))}, nil
}
