package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/web"
)

// connect opens a connection and sends something over it.
func (l *listener) connect(text string) net.Conn {
	l.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(l.url, "http://"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	if _, err := io.WriteString(c, text); err != nil {
		l.t.Fatal(err)
	}
	return c
}

// status returns the status line of the next answer, or an error, and what has the rest.
func status(c net.Conn) (line string, rest io.Reader, err error) {
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", nil, err
	}
	r := bufio.NewReader(c)
	line, err = r.ReadString('\n')
	return line, r, err
}

// A peer that stalls in the middle of what it sends, or reads nothing of what it asked for,
// is not waited for for long; what it began does nothing, and others are served meanwhile.
func TestStalledPeers(t *testing.T) {
	service := &endless{ended: make(chan error, 1)}
	l := serve(t, service, web.Config{Idle: 300 * time.Millisecond})
	sends := l.connect("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"spec\":")
	reads := l.connect("GET /v1/jobs/mr_20260101_aaaaaa/text?unit_id=a&document_id=a HTTP/1.1\r\nHost: x\r\n\r\n")
	l.want("GET /v1/jobs", "")
	if line, _, err := status(sends); err != nil || !strings.Contains(line, " 400 ") {
		t.Errorf("a request that does not go on is answered by %q, %v", line, err)
	}
	if err := <-service.ended; err == nil {
		t.Error("a text was sent to a peer that does not read it")
	}
	if _, err := io.Copy(io.Discard, reads); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if names := l.methods(); len(names) != 3 { // a stream of the submission has begun, without a job
		t.Errorf("calls have come to %v", names)
	}
	if page := l.want("GET /v1/jobs", ""); strings.Contains(page.body, "jobId") {
		t.Errorf("half a submission has made a job: %s", page.body)
	}
}

// endless is a service with a text that never ends.
type endless struct {
	servertest.Service
	ended chan error
}

func (e *endless) ReadText(_ context.Context, _ mapreduce.Principal, _ mapreduce.JobID, _ mapreduce.UnitID, _ mapreduce.DocumentID, sink func([]byte) error) error {
	part := make([]byte, 64<<10)
	for {
		if err := sink(part); err != nil {
			e.ended <- err
			return err
		}
	}
}

// While there are as many connections as may be, an idle one makes way for the next, and
// none that has a call.
func TestManyConnections(t *testing.T) {
	service := &servertest.Service{}
	l := serve(t, service, web.Config{MaxConnections: 3})
	// The job comes without a connection: one that is being closed would still be counted.
	docs := func(yield func(*mapreduce.Document, error) bool) { yield(&mapreduce.Document{ID: "1"}, nil) }
	job, err := service.SubmitJob(t.Context(), mapreduce.Local("a"), mapreduce.JobSpec{Tenant: "a"}, docs)
	if err != nil {
		t.Fatal(err)
	}
	watch := l.connect("GET /v1/jobs/" + string(job.ID) + ":watch HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	line, watched, err := status(watch)
	if err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("%q %v", line, err)
	}
	idle := []net.Conn{l.connect(""), l.connect("")}
	served := func() error {
		c := l.connect("GET /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		defer c.Close()
		line, _, err := status(c)
		if err == nil && !strings.Contains(line, " 200 ") {
			err = errors.New(line)
		}
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := served()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("idle connections do not make way: %v", err)
		}
		<-time.After(50 * time.Millisecond) // a connection is idle after a second
	}
	if _, _, err := status(idle[0]); err == nil || os.IsTimeout(err) {
		t.Errorf("the connection that was idle for the longest is still there: %v", err)
	}
	if _, err := service.Finish(job.ID); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(watched); err != nil || !strings.Contains(string(data), "JOB_STATE_COMPLETE") {
		t.Errorf("a watch made way: %q %v", data, err)
	}
}

// What a connection that has made a call takes is counted, while it takes it: for a moment,
// and of few connections.
func TestIdleConnectionsHoldLittle(t *testing.T) {
	const relays, all = 5, 40
	l := serve(t, &servertest.Service{}, web.Config{Relays: relays})
	most := int64(0)
	for range all {
		c := l.connect("GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n")
		if line, _, err := status(c); err != nil || !strings.Contains(line, " 200 ") {
			t.Fatalf("%q %v", line, err)
		}
		most = max(most, l.server.Held())
	}
	// A connection that the test has had its answer over may not be idle yet.
	if each := int64(64 << 10); most < relays*each || most > 4*relays*each {
		t.Errorf("%d connections held %d bytes at most, want those of %d, about", all, most, relays)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); l.server.Held() > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("idle connections hold %d bytes", l.server.Held())
		}
	}
	again := l.connect("GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n")
	if line, _, err := status(again); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("%q %v", line, err)
	}
}

// Shutdown ends watches, and waits for the rest.
func TestShutdown(t *testing.T) {
	service := &servertest.Service{}
	ended := make(chan answer, 1)
	t.Run("serving", func(t *testing.T) {
		l := serve(t, service, web.Config{})
		submitted := l.want("POST /v1/jobs", `{"spec":{"tenantId":"a"},"documents":[{"documentId":"1"}]}`, "jobId")
		_, rest, _ := strings.Cut(submitted.body, `"jobId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		q, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s/v1/jobs/%s:watch", l.url, id), nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.http.Do(q) //nolint:bodyclose // below, when the watch has ended
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer a.Body.Close()
			data, _ := io.ReadAll(a.Body) // how it ends is in what has come
			ended <- answer{status: a.StatusCode, body: string(data)}
		}()
	})
	if a := <-ended; a.status != http.StatusOK || !strings.Contains(a.body, `{"error":{"code":14`) || !strings.Contains(a.body, "shutting down") {
		t.Errorf("a watch ends with %d %s", a.status, a.body)
	}
}
