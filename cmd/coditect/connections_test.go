package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	edge "github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Many peers keep connections open over which nothing goes, and a tenth as many stop in the
// middle of what they send. Others are served meanwhile. CODITECT_CONNECTIONS says how many.
func TestIdleAndSlowConnections(t *testing.T) {
	idle := 100
	if text := os.Getenv("CODITECT_CONNECTIONS"); text != "" {
		var err error
		if idle, err = strconv.Atoi(text); err != nil || idle < 10 {
			t.Fatalf("CODITECT_CONNECTIONS: %q is no number of connections from 10", text)
		}
	}
	s := &studio{house: &house{t: t, program: program(t), dir: t.TempDir(), done: make(map[string]int)}}
	for _, kind := range []struct {
		name       string
		idle, slow func(net.Conn) error
	}{
		{"gRPC", greetHTTP2, stopWithinHeaders},
		{"HTTP", askOnce, stopWithinBody},
	} {
		t.Run(kind.name, func(t *testing.T) {
			serve := s.start(nil, "serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--workers", "0", "--data-dir", s.path(kind.name))
			defer serve.stop()
			address := serve.said.await(t, `msg=serving address=(\S+)`)
			web := serve.said.await(t, ` http=(\S+)`)
			at := address
			if kind.name == "HTTP" {
				at = web
			}
			before := resident(t, serve.cmd.Process.Pid)
			first := timesOfCalls(t, address, web)
			crowd := connectAll(t, at, idle, kind.idle)
			after := resident(t, serve.cmd.Process.Pid)
			crowd = append(crowd, connectAll(t, at, idle/10, kind.slow)...)
			worst := resident(t, serve.cmd.Process.Pid)
			times := timesOfCalls(t, address, web)
			t.Logf("%d idle and %d slow connections: %d MiB resident before, %d with those that are idle (%.1f kB each), %d with all; calls of others: p50 %v, p99 %v (%v and %v before)",
				idle, idle/10, before>>20, after>>20, float64(after-before)/float64(idle)/1000, worst>>20,
				quantileOf(times, .5), quantileOf(times, .99), quantileOf(first, .5), quantileOf(first, .99))
			if most := before + int64(idle+idle/10)*100_000 + 64<<20; worst > most {
				t.Errorf("the server holds %d MiB, want at most %d", worst>>20, most>>20)
			}
			for _, c := range crowd {
				_ = c.Close() // the server may have closed it
			}
		})
	}
}

// connectAll opens connections, some at a time, and has each do what it is to do.
func connectAll(t *testing.T, address string, n int, do func(net.Conn) error) []net.Conn {
	t.Helper()
	all := make([]net.Conn, n)
	failed := make(chan error, n)
	var opening sync.WaitGroup
	limit := make(chan struct{}, 50)
	for i := range n {
		opening.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			c, err := net.DialTimeout("tcp", address, patience)
			if err == nil {
				all[i] = c
				err = errors.Join(c.SetDeadline(time.Now().Add(patience)), do(c))
			}
			if err != nil {
				failed <- err
			}
		})
	}
	opening.Wait()
	close(failed)
	if err, some := <-failed; some {
		t.Fatalf("a connection of %d failed: %v", n, err)
	}
	return all
}

// greetHTTP2 begins a connection of HTTP/2 as a client does that then has nothing to say.
func greetHTTP2(c net.Conn) error {
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return err
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	_, err := f.ReadFrame() // the settings of the server: it is there
	return err
}

// stopWithinHeaders stops in the middle of the headers of a call.
func stopWithinHeaders(c net.Conn) error {
	if err := greetHTTP2(c); err != nil {
		return err
	}
	return http2.NewFramer(c, c).WriteRawFrame(http2.FrameHeaders, 0, 1, []byte{0x82}) // more frames would have to follow
}

// askOnce makes one call by REST and leaves the connection open.
func askOnce(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.Contains(line, " 200 ") {
		err = fmt.Errorf("the answer is %q", line)
	}
	return err
}

// stopWithinBody stops in the middle of a submission.
func stopWithinBody(c net.Conn) error {
	_, err := io.WriteString(c, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{\"spec\":")
	return err
}

// timesOfCalls makes calls by gRPC and by REST, each over a connection of its own, and
// returns how long each took.
func timesOfCalls(t *testing.T, address, web string) (all []time.Duration) {
	t.Helper()
	for range 50 {
		begun := time.Now()
		c, err := edge.Dial(address, edge.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.ListJobs(t.Context(), mapreduce.ListJobsQuery{})
		if all = append(all, time.Since(begun)); err != nil {
			t.Errorf("a call of another: %v", err)
		}
		_ = c.Close() // nothing goes over it any more
		begun = time.Now()
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + web + "/v1/jobs")
		if all = append(all, time.Since(begun)); err != nil {
			t.Errorf("a call of another: %v", err)
			continue
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Errorf("a call of another: %s", answer.Status)
		}
	}
	return all
}

func quantileOf(all []time.Duration, part float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[int(part*float64(len(all)-1))].Round(100 * time.Microsecond)
}

// resident returns the memory that a process takes of the machine, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("memory is measured on Linux alone: ", err)
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the process has no VmRSS")
	return 0
}
