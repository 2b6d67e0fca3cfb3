package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A server is the process that is attacked.
type server struct {
	command *exec.Cmd
	program string
	data    string
	address string
	ended   chan struct{} // closed when the process has ended
	err     error         // of the process; written before ended is closed
	logged  sync.WaitGroup
	log     *serverLog
}

// A serverLog is what the server has logged, as far as it matters.
type serverLog struct {
	mu     sync.Mutex // guards the variables below
	faults []string   // lines about panics and internal errors
	tail   []string   // the last lines
	stacks []string   // of goroutines, from the line that says SIGQUIT on
}

// maxStacks bounds how many lines of stacks are kept. Those of goroutines that run come first.
const maxStacks = 2000

var (
	servesAt = regexp.MustCompile(`msg=serving address=(\S+)`)
	isFault  = regexp.MustCompile(`panic|fatal error|kind=internal|DATA RACE`)
)

// add notes a line.
func (l *serverLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.HasPrefix(line, "SIGQUIT") || len(l.stacks) > 0 {
		if len(l.stacks) < maxStacks {
			l.stacks = append(l.stacks, line)
		}
		return
	}

	if isFault.MatchString(line) && len(l.faults) < 1000 {
		l.faults = append(l.faults, line)
	}
	if l.tail = append(l.tail, line); len(l.tail) > 20 {
		l.tail = l.tail[1:]
	}
}

// startServer starts a server on a free port, with its data in dir.
func startServer(ctx context.Context, program, dir string) (*server, error) {
	s := &server{program: program, data: filepath.Join(dir, "data"), ended: make(chan struct{}), log: new(serverLog)}
	s.command = exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data-dir", s.data, "--workers", "4")

	out, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}

	address := make(chan string, 1)
	s.logged.Go(func() { s.readLog(out, address) })
	go func() {
		defer close(s.ended)
		// Wait closes the pipe, so the log is read to its end before.
		s.logged.Wait()
		s.err = s.command.Wait()
	}()

	select {
	case s.address = <-address:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("the server did not start: %w\n%s", s.err, strings.Join(s.log.tail, "\n"))
	case <-ctx.Done():
		s.kill()
		return nil, context.Cause(ctx)
	}
}

func (s *server) readLog(out io.Reader, address chan<- string) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.log.add(lines.Text())
		if m := servesAt.FindStringSubmatch(lines.Text()); m != nil {
			address <- m[1]
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line too long to be kept must not stop the server
}

func (s *server) kill() {
	_ = s.command.Process.Kill() // it may have ended
	<-s.ended
}

// memory returns how many bytes of memory the server takes.
func (s *server) memory() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	if err != nil {
		return 0, errors.New("the server has ended")
	}

	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kB, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("the server has ended")
}

// dumpStacks ends the server, and returns what its goroutines did.
func (s *server) dumpStacks() string {
	if err := s.command.Process.Signal(syscall.SIGQUIT); err != nil {
		return err.Error()
	}

	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		s.kill()
	}
	return strings.Join(s.log.stacks, "\n")
}

// sampleMemory notes how much memory the server takes, until ctx ends.
func (s *server) sampleMemory(ctx context.Context, r *Report) {
	for pause(ctx, 100*time.Millisecond) {
		if n, err := s.memory(); err == nil {
			r.notePeak(n)
		}
	}
}

// finish stops the server in order, and checks its store.
func (s *server) finish(ctx context.Context, r *Report) error {
	select {
	case <-s.ended:
		return fmt.Errorf("the server has ended: %w\n%s", s.err, strings.Join(s.log.tail, "\n"))
	default:
	}

	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}

	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		stacks := s.dumpStacks() // no more is logged after it
		return fmt.Errorf("the server did not end within a minute of SIGTERM\n%s\n%s", strings.Join(s.log.tail, "\n"), stacks)
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	s.log.mu.Lock()
	r.faults = s.log.faults
	s.log.mu.Unlock()
	if s.err != nil {
		return fmt.Errorf("the server ended with %w\n%s", s.err, strings.Join(s.log.tail, "\n"))
	}

	out, err := exec.CommandContext(ctx, s.program, "mapreduce", "doctor", "--data-dir", s.data).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	r.doctor = lines[len(lines)-1]
	if err != nil {
		return fmt.Errorf("doctor: %w\n%s", err, out)
	}
	return nil
}
