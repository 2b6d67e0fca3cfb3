package figures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/coditect/mapreduce/internal/dev/bench/asking"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// An order is what a child is to do.
type order struct {
	Pending *pendingOrder `json:",omitempty"`
	Worker  *workerOrder  `json:",omitempty"`
	Figure  *figureOrder  `json:",omitempty"`
	Reduce  *reduceOrder  `json:",omitempty"`
	Crowd   *crowdOrder   `json:",omitempty"`
	asking.Order
}

type figureOrder struct {
	Name string
	Lab  Lab
}

// RunChild does what a parent has ordered in the environment, and reports
// whether there was an order. A main function calls it first.
func RunChild(ctx context.Context, stdin io.Reader, stdout io.Writer) (ordered bool, err error) {
	return rig.RunChild(ctx, stdin, stdout, carryOut)
}

// carryOut does what is ordered, and writes what came of it.
func carryOut(ctx context.Context, o *order, out *json.Encoder) error {
	switch {
	case o.Pending != nil:
		size, err := o.Pending.measureSize(ctx)
		return errors.Join(err, out.Encode(size))
	case o.Reduce != nil:
		r, err := o.Reduce.measureOrder(ctx)
		return errors.Join(err, out.Encode(r))
	case o.Worker != nil:
		return o.Worker.runWorker(ctx, out)
	case !o.Order.IsZero():
		return o.Order.CarryOut(ctx, out)
	case o.Crowd != nil:
		return o.Crowd.runCrowd(ctx, out)
	case o.Figure != nil:
		rows, err := measureFigure(ctx, o.Figure.Name, o.Figure.Lab)
		return errors.Join(err, out.Encode(rows))
	}

	return errors.New("an order of nothing")
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

	// One in a hundred waits for locks is noted.
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
	err := rig.AskChild(ctx, order{Figure: &figureOrder{name, l}}, &rows)
	return rows, err
}
