package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// A Guard kills a process group when this process is gone, even by SIGKILL. It is a shell
// that reads from a pipe: the pipe ends with its writer, which is this process. A signal
// at the death of the parent, which Linux can send, reaches the first program alone, and
// not what a launcher such as npx has started.
type Guard struct {
	cmd *exec.Cmd
	end *os.File // the writing end of the pipe
}

// StartGuard starts a guard over a process group. Where there is no shell it returns a
// guard that does nothing.
func StartGuard(group int) (*Guard, error) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return new(Guard), nil
	}

	in, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()

	g := &Guard{end: end}
	g.cmd = exec.CommandContext(context.Background(), shell, "-c", `read -r _ || kill -s KILL -- "-$1"`, "guard", strconv.Itoa(group)) //nolint:gosec // a shell's own words and a number
	g.cmd.Stdin, g.cmd.Env = in, []string{}
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is not for it

	if err := g.cmd.Start(); err != nil {
		_ = end.Close()
		return nil, fmt.Errorf("the guard of a program cannot be started: %w", err)
	}

	return g, nil
}

// Stop ends the guard without any kill. It may be called more than once.
func (g *Guard) Stop() {
	if g == nil || g.cmd == nil {
		return
	}

	_, _ = g.end.WriteString("\n") // tells it that all is well
	_ = g.end.Close()
	_ = g.cmd.Wait()
	g.cmd = nil
}
