package child_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/worker/child"
)

// TestMain runs the tests, or stands for a worker that started a launcher.
func TestMain(m *testing.M) {
	if os.Getenv("CODITECT_TEST_PARENT") != "" {
		beParent()
		return
	}
	goleak.VerifyTestMain(m)
}

// launcher starts a program that ignores every signal it can, prints its process id, and
// waits for it.
const launcher = `sh -c 'trap "" TERM INT HUP; echo $$; while :; do sleep 1; done' & wait`

// beParent is a worker: it starts a launcher, prints what that prints, and then waits to
// be killed.
func beParent() {
	p, err := child.Start(child.Config{Path: "sh", Args: []string{"-c", launcher}, Env: os.Environ()})
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(os.Stdout, p.Stdout)
}

// line reads a line that is a process id.
func line(t *testing.T, from io.Reader) int {
	t.Helper()
	text, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone waits until a process is gone.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for begun := time.Now(); ; {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("process %d is still there: %s", pid, state)
		}
		timer := time.NewTimer(5 * time.Millisecond)
		<-timer.C
	}
}

// A worker is killed, and what its launcher started ends too.
func TestNothingOutlivesAKilledWorker(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be looked at: there is no /proc")
	}
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), "CODITECT_TEST_PARENT=1")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	pid := line(t, out)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the program does not run: %v", err)
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	waitGone(t, pid)
}

// Stop ends a program that ignores that its input ended and that it is told to terminate,
// with what it started.
func TestStop(t *testing.T) {
	p, err := child.Start(child.Config{Path: "sh", Args: []string{"-c", launcher}, Env: os.Environ(), Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	pid := line(t, p.Stdout)
	p.Stop()
	waitGone(t, pid)
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "signal") {
		t.Errorf("it ended with %v", err)
	}
}

// A program that ends by itself says how, and all that it wrote can still be read.
func TestEnd(t *testing.T) {
	p, err := child.Start(child.Config{Path: "sh", Args: []string{"-c", `echo "$A"; yes | head -c 10000 >&2; echo last words >&2; exit 7`}, Env: []string{"A=b", "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	out, err := io.ReadAll(p.Stdout)
	if err != nil || string(out) != "b\n" {
		t.Errorf("it wrote %q, error %v", out, err)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.HasSuffix(err.Error(), "last words\n") || len(err.Error()) > 3000 {
		t.Errorf("it ended with %v", err)
	}
	p.Stop()
	if _, err := child.Start(child.Config{Path: "no-such-program"}); err == nil || !strings.Contains(err.Error(), `"no-such-program"`) {
		t.Errorf("a program that is not there: %v", err)
	}
}
