// Package child runs the programs that tools need, and processes for units, so that none of them outlives the
// process that started it: not when it is stopped, and not when it is killed.
// It imports nothing of the project.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Config says what to run.
type Config struct {
	Path string   // of the program, or its name in PATH
	Args []string // without the name of the program
	Env  []string // NAME=VALUE, all that the program sees
	Dir  string   // where it runs; empty means where this process does

	// Stderr gets what the program writes to its standard error. Defaults to keeping the
	// end of it for Err.
	Stderr io.Writer

	// Grace is how long a program may take to end after its input was closed, and again
	// after it was told to terminate. Defaults to a second.
	Grace time.Duration
}

// A Process is a program that runs, with all that it started in its process group.
type Process struct {
	Stdin  io.WriteCloser // closed by Stop
	Stdout io.ReadCloser  // ends when the program closes it; closed by Stop

	cmd   *exec.Cmd
	guard *Guard
	tail  *Tail
	grace time.Duration
	stop  sync.Once
	ended chan struct{}
	err   error // set before ended is closed
}

// Start starts a program.
func Start(c Config) (*Process, error) {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, fmt.Errorf("the program %q cannot be run: %w", c.Path, errors.Unwrap(err))
	}

	if c.Grace <= 0 {
		c.Grace = time.Second
	}

	p := &Process{tail: new(Tail), grace: c.Grace, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.Background(), path, c.Args...) //nolint:gosec // the operator of the worker chose the program
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = append([]string{}, c.Env...), c.Dir, p.tail
	if c.Stderr != nil {
		p.cmd.Stderr = c.Stderr
	}

	p.cmd.SysProcAttr = Attributes()
	p.cmd.WaitDelay = c.Grace // for what the program started and left behind with its standard error

	if p.Stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}

	// Not StdoutPipe: that is closed when the program ends, before all of it was read.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, p.Stdin.Close())
	}
	p.Stdout, p.cmd.Stdout = out, in

	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, in.Close(), out.Close(), p.Stdin.Close())
	}

	_ = in.Close() // the program has it
	// A program without a guard could outlive this process.
	if p.guard, err = StartGuard(p.cmd.Process.Pid); err != nil {
		return nil, errors.Join(err, p.Kill())
	}

	go p.wait()
	return p, nil
}

// wait waits for the end of the program. Stop, or its reader by Ended, waits for it.
func (p *Process) wait() {
	p.err = p.cmd.Wait()
	// What the program started and left behind ends with it.
	killGroup(p.cmd.Process.Pid)
	p.guard.Stop()
	close(p.ended)
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err says how a program ended, and the last lines that it wrote to its standard error.
// It returns nil while the program runs.
func (p *Process) Err() error {
	select {
	case <-p.ended:
	default:
		return nil
	}

	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}

	if said := p.tail.String(); said != "" {
		return fmt.Errorf("the program ended (%s): %s", how, said)
	}

	return fmt.Errorf("the program ended (%s)", how)
}

// Said returns the last lines that the program wrote to its standard error.
func (p *Process) Said() string { return p.tail.String() }

// Kill ends the program at once.
func (p *Process) Kill() error {
	killGroup(p.cmd.Process.Pid)
	return nil
}

// Stop ends the program: its input is closed, then it is told to terminate, then it is
// killed. When Stop returns, it has ended, with all of its process group.
func (p *Process) Stop() {
	p.stop.Do(func() {
		_ = p.Stdin.Close()
		if !p.endsWithin(p.grace) {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
			if !p.endsWithin(p.grace) {
				killGroup(p.cmd.Process.Pid)
			}
		}

		<-p.ended
		_ = p.Stdout.Close()
	})
}

func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// killGroup kills a process group, if there is still something of it.
func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }

// maxTail is how many bytes of what a program says are kept.
const maxTail = 2 << 10

// A Tail keeps the end of what is written to it. Writes never fail.
type Tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

// Write keeps the last bytes.
func (t *Tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data[max(0, len(data)-maxTail):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-maxTail):]...)
	return len(data), nil
}

// String returns what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
