package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childVariable holds the order of a process that another of this program started.
// Children are needed to be killed, and to have memory of their own.
const childVariable = "CODITECT_BENCH_CHILD"

// RunChild calls carryOut with the order that a parent has left in the environment, and
// reports whether there was one. The parent reads what carryOut encodes.
func RunChild[O any](ctx context.Context, stdin io.Reader, stdout io.Writer, carryOut func(ctx context.Context, o *O, out *json.Encoder) error) (ordered bool, err error) {
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

	var o O
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return true, fmt.Errorf("%s: %w", childVariable, err)
	}
	return true, carryOut(ctx, &o, json.NewEncoder(stdout))
}

// AskChild has a child do something and reads its answer.
func AskChild(ctx context.Context, o, answer any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return AskProgram(ctx, self, o, answer)
}

// AskProgram has a child do something that is another program, whose main function calls
// RunChild as well.
func AskProgram(ctx context.Context, program string, o, answer any) error {
	c, err := startProgram(ctx, program, o)
	if err != nil {
		return err
	}
	err = c.Out.Decode(answer)
	return errors.Join(err, c.Cmd.Wait())
}

// A Child is a process that carries out an order. It ends when its parent does.
type Child struct {
	Cmd *exec.Cmd
	Out *json.Decoder // what it answers
	in  io.Closer
}

// StartChild starts a child that is given the order o, as JSON.
func StartChild(ctx context.Context, o any) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startProgram(ctx, self, o)
}

func startProgram(ctx context.Context, program string, o any) (*Child, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}

	// It is asked to end, so that what it has started ends as well.
	cmd := exec.CommandContext(ctx, program)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr

	// The child ends when its standard input ends, and so with this process.
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
	return &Child{cmd, json.NewDecoder(bufio.NewReader(out)), in}, nil
}
