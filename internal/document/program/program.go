// Package program runs programs that others wrote, which read documents or pictures of them: in a
// process group of their own, without the keys of models in the environment of this process, and
// with bounds of what they write. One of them is LibreOffice, which converts documents that no
// parser of this program reads.
package program

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"time"
)

// A Run is one run of a program.
type Run struct {
	Command []string  // the program and its arguments
	Stdin   io.Reader // may be nil
	Dir     string    // in which it runs; empty is that of this process
	Env     []string  // in addition to what Environment returns; may be nil
	Most    int       // bytes of its standard output that are kept
	// Bounds of each of its processes, where the system can set them; 0 of all three sets none.
	Busy         time.Duration // of a processor
	Memory, File int64         // bytes of addresses, and of a file that it writes
}

// said bounds what is kept of the standard error, in bytes.
const said = 1 << 10

// Output runs the program, and returns the beginnings of its standard output and standard error.
// When it ends, or ctx does, all that it started is killed.
func (r Run) Output(ctx context.Context) (out, errors string, err error) {
	command := r.Command
	if r.Busy > 0 {
		command = bounded(command, r.Memory, r.File, r.Busy)
	}
	run := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the program is the worker's own configuration
	run.WaitDelay = time.Second
	run.Dir, run.Env, run.Stdin = r.Dir, append(Environment(), r.Env...), r.Stdin // of two values of a name the last counts
	ownGroup(run)
	defer killGroup(run) // what the program started and left behind ends with it

	kept, complaint := limited{room: r.Most}, limited{room: said}
	run.Stdout, run.Stderr = &kept, &complaint
	err = run.Run()
	return kept.String(), complaint.String(), err
}

// Environment returns all that such programs see of the environment of this process, which has
// keys of models, too.
func Environment() []string {
	env := []string{} // nil would be all of it
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TESSDATA_PREFIX", "OMP_THREAD_LIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// A limited keeps the first bytes that are written to it.
type limited struct {
	bytes.Buffer
	room int
}

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	if n := min(len(b), l.room-l.Len()); n > 0 {
		l.Buffer.Write(b[:n])
	}
	return len(b), nil
}
