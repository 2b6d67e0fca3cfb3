package main_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A collector receives what processes export by OTLP over gRPC: from them, or from a
// collector that others wrote.
type collector struct {
	collectortrace.UnimplementedTraceServiceServer
	address string // where processes export to
	end     func() // ends what stands between, which passes on all that it has; nil if nothing does

	mu    sync.Mutex // guards the variable below
	spans []received
}

// A received span says which process it is of.
type received struct {
	*tracev1.Span
	service string
	pid     int64
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: l.Addr().String()}
	s := grpc.NewServer()
	collectortrace.RegisterTraceServiceServer(s, c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // ends with the test
	}()
	t.Cleanup(func() {
		s.Stop()
		<-served
	})
	return c
}

// Export implements the service of a collector.
func (c *collector) Export(_ context.Context, r *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		about := attributesOf(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, received{s, about["service.name"].GetStringValue(), about["process.pid"].GetIntValue()})
			}
		}
	}
	return &collectortrace.ExportTraceServiceResponse{}, nil
}

func (c *collector) all() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// env is what has a process export to the collector, soon.
func (c *collector) env(more ...string) []string {
	return append(more, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+c.address, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=50")
}

func attributesOf(all []*commonv1.KeyValue) map[string]*commonv1.AnyValue {
	found := make(map[string]*commonv1.AnyValue)
	for _, a := range all {
		found[a.GetKey()] = a.GetValue()
	}
	return found
}

func (r received) attribute(key string) string {
	for _, a := range r.GetAttributes() {
		if a.GetKey() == key {
			if _, ok := a.GetValue().GetValue().(*commonv1.AnyValue_IntValue); ok {
				return fmt.Sprint(a.GetValue().GetIntValue())
			}
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// One trace holds what became of a job over a client, two servers of which the first is
// killed, and three workers of which one is killed in the middle of a call: the client's
// command and call, the submission, claims, attempts, calls of the model, and the end. Each
// span's parent is in the trace; the killed worker's attempt is there, as lost; the next
// attempt has a link to it. No span holds a key, a prompt or an answer.
func TestOneTraceOverAllProcesses(t *testing.T) {
	testenv.Raced(t)

	checkOneTrace(t, newCollector(t))
}

func checkOneTrace(t *testing.T, c *collector) {
	t.Helper()
	const documents = 12
	const answered = 5 // before the first worker dies
	var mu sync.Mutex  // guards the variables below
	dead, asked, again := false, 0, 0
	release, together := make(chan struct{}), make(chan struct{})
	s := newStudio(t, fakellm.Config{Key: modelKey, Model: func(c fakellm.Call) fakellm.Reply {
		mu.Lock()
		wait := release
		if asked++; asked <= answered {
			mu.Unlock()
			return obedient(c)
		}
		if dead {
			if wait, again = together, again+1; again == 2 { // each worker asks: it has one slot
				close(together)
			}
		}
		mu.Unlock()
		<-wait
		return obedient(c)
	}})
	var once sync.Once
	free := func() {
		once.Do(func() {
			mu.Lock()
			defer mu.Unlock()
			dead = true
			close(release)
		})
	}
	t.Cleanup(func() {
		free()
		mu.Lock()
		defer mu.Unlock()
		if again < 2 {
			again = 2
			close(together)
		}
	})
	s.shops(documents)
	serve := func() (*daemon, string) {
		d := s.start(c.env(), "serve", "--listen", "127.0.0.1:0", "--workers", "0")
		return d, d.said.await(t, `msg=serving address=(\S+)`)
	}
	work := func(slots string) *daemon {
		w := s.start(c.env("ANTHROPIC_API_KEY="+modelKey), "worker", "--slots", slots, "--endpoint", "anthropic="+s.url)
		w.said.await(t, `msg="connected to (orchestrator)"`)
		return w
	}
	first, address := serve()
	doomed := work("12") // has all of them, and dies with one
	run := s.try(c.env(), "run", "--detach", "--server", address, "--input", s.docs, "--schema", s.path("schema.yaml"),
		"--provider", "anthropic", "--model", "claude-haiku-4-5")
	if run.code != 0 {
		t.Fatalf("exit code %d\n%s%s", run.code, run.stdout, run.stderr)
	}
	id := s.only()
	// Before its worker dies, the server must have taken what was answered, and the collector
	// the attempts: the span of one ends after those of its calls, may come with a later batch,
	// and would be made again, as lost, if its report did not arrive. A list of all jobs is in
	// no job's trace.
	s.until("what was answered is complete", func() bool {
		return strings.Contains(s.want(0, "list", "-o", "json"), fmt.Sprintf(`"completed_units": %d,`, answered))
	})
	c.await(t, "the attempts that were answered", func(spans []received) bool {
		done := 0
		for _, r := range spans {
			if r.attribute("coditect.unit.outcome") == "done" {
				done++
			}
		}
		return done == answered
	})
	c.await(t, "the claims of all", func(spans []received) bool { return len(only(spans, "claim map")) == documents })
	kill(t, doomed)
	first.said.await(t, `msg="worker (lost)"`)
	c.await(t, "the attempt that is lost", func(spans []received) bool {
		return slices.ContainsFunc(spans, func(r received) bool { return r.attribute("coditect.unit.outcome") == "lost" })
	})
	kill(t, first)
	free()
	second, _ := serve()
	workers := []*daemon{work("1"), work("1")}
	c.await(t, "the end of the job", func(spans []received) bool { return len(only(spans, "finish extract")) > 0 })
	for _, d := range append(workers, second) {
		d.stop() // which sends what is left
	}
	if c.end != nil {
		c.end()
	}
	trace := c.ofJob(t, id)
	checkTree(t, trace)
	checkAttempts(t, trace, documents)
	c.holdsNone(t, modelKey, "docs/7.txt", shopText(7))
	for _, want := range []string{
		"coditect mapreduce run", "coditect.mapreduce.v1.MapReduceService/SubmitJob", "Service/SubmitJob", "invoke_workflow extract",
		"claim map", "invoke_agent map", "chat claude-haiku-4-5", "turn", "update pebble", "finish extract",
	} {
		if len(only(trace, want)) == 0 && len(only(trace, strings.ReplaceAll(want, " map", " extract"))) == 0 {
			t.Errorf("the trace of the job has no span %q, but %v", want, slices.Sorted(maps.Keys(names(trace))))
		}
	}
	processes := make(map[string]map[int64]bool)
	for _, r := range trace {
		if processes[r.service] == nil {
			processes[r.service] = make(map[int64]bool)
		}
		processes[r.service][r.pid] = true
	}
	if len(processes["coditect"]) != 1 || len(processes["coditect-server"]) != 2 || len(processes["coditect-worker"]) != 3 {
		t.Errorf("spans come from %v; want a client, two servers and three workers", processes)
	}
	if path := os.Getenv("CODITECT_TRACE_SVG"); path != "" {
		if err := os.WriteFile(path, drawTrace(trace), 0o600); err != nil {
			t.Error(err)
		}
	}
}

func kill(t *testing.T, d *daemon) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // it was killed
}

func only(spans []received, name string) (found []received) {
	for _, r := range spans {
		if r.GetName() == name {
			found = append(found, r)
		}
	}
	return found
}

func names(spans []received) map[string]int {
	all := make(map[string]int)
	for _, r := range spans {
		all[r.GetName()]++
	}
	return all
}

// await waits until the collector has what is looked for.
func (c *collector) await(t *testing.T, what string, there func([]received) bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !there(c.all()) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s did not come; these have: %v", what, names(c.all()))
		}
	}
}

// ofJob returns the trace of a job, in order of time.
func (c *collector) ofJob(t *testing.T, id string) (trace []received) {
	t.Helper()
	all := c.all()
	i := slices.IndexFunc(all, func(r received) bool { return r.attribute("coditect.job.id") == id })
	if i < 0 {
		t.Fatalf("no span is of job %s: %v", id, names(all))
	}
	for _, r := range all {
		if bytes.Equal(r.GetTraceId(), all[i].GetTraceId()) {
			trace = append(trace, r)
		} else if r.attribute("coditect.job.id") == id {
			t.Errorf("span %s of the job is in another trace", r.GetName())
		}
	}
	slices.SortStableFunc(trace, func(a, b received) int { return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano())) })
	return trace
}

// checkTree checks that each span stands once, and below another of the trace.
func checkTree(t *testing.T, trace []received) {
	t.Helper()
	seen := make(map[string]string)
	for _, r := range trace {
		id := hex.EncodeToString(r.GetSpanId())
		if seen[id] != "" {
			t.Errorf("two spans have the id %s: %s and %s", id, seen[id], r.GetName())
		}
		seen[id] = r.GetName()
	}
	roots := 0
	for _, r := range trace {
		switch parent := hex.EncodeToString(r.GetParentSpanId()); {
		case parent == "":
			roots++
		case seen[parent] == "":
			t.Errorf("the parent of %s of %s (%d) is nowhere", r.GetName(), r.service, r.pid)
		}
	}
	if roots != 1 {
		t.Errorf("%d spans have no parent, want the client's command alone", roots)
	}
}

// checkAttempts checks that each unit was claimed and attempted, and what became of the one
// whose worker died.
func checkAttempts(t *testing.T, trace []received, documents int) {
	t.Helper()
	attempts := make(map[string][]received) // by unit
	for _, r := range trace {
		if r.attribute("coditect.unit.outcome") != "" {
			unit := r.attribute("coditect.unit.id")
			attempts[unit] = append(attempts[unit], r)
		}
	}
	if len(attempts) < documents+1 { // and a reduce
		t.Errorf("%d units have attempts, want %d and a reduce", len(attempts), documents)
	}
	lost := 0
	for unit, of := range attempts {
		if of[0].attribute("coditect.unit.outcome") != "lost" {
			continue
		}
		lost++
		if len(of) != 2 || of[1].attribute("coditect.unit.outcome") != "done" || of[1].attribute("coditect.unit.attempt") != "2" {
			t.Errorf("the attempts at %s, whose worker died, are %v", unit, of)
		} else if len(of[1].GetLinks()) != 1 || !bytes.Equal(of[1].GetLinks()[0].GetSpanId(), of[0].GetSpanId()) {
			t.Errorf("the second attempt at %s has no link to the first: %v", unit, of[1])
		}
	}
	if lost == 0 {
		t.Error("no attempt was lost")
	}
	linked := 0
	for _, r := range trace {
		if strings.HasPrefix(r.GetName(), "claim ") && len(r.GetLinks()) == 1 {
			linked++
		}
	}
	if linked == 0 {
		t.Error("no claim has a link to the turn that made it")
	}
}

// holdsNone checks that what was received holds no such text.
func (c *collector) holdsNone(t *testing.T, texts ...string) {
	t.Helper()
	for _, r := range c.all() {
		for _, text := range texts {
			if strings.Contains(r.String(), text) {
				t.Errorf("span %s holds %q", r.GetName(), text)
			}
		}
	}
}
