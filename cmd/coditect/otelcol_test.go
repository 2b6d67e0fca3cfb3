package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// OpenTelemetry's own collector receives the same trace, says how many spans it has
// received, and passes them on as they are. It is built outside of this module:
// deploy/observability/collector says how.
func TestOneTraceInACollectorOfOthers(t *testing.T) {
	program := os.Getenv("CODITECT_OTELCOL")
	if program == "" {
		t.Skip("CODITECT_OTELCOL names no collector; deploy/observability/collector/builder.yaml says how to build one")
	}
	c := newCollector(t)
	said := c.behind(t, program)
	checkOneTrace(t, c)
	received := 0
	for _, m := range regexp.MustCompile(`"spans": (\d+)`).FindAllStringSubmatch(said.String(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		received += n
	}
	t.Logf("%s has received %d spans and passed on %d", program, received, len(c.all()))
	if received != len(c.all()) {
		t.Errorf("it has received %d spans and passed on %d:\n%s", received, len(c.all()), said)
	}
}

// behind puts OpenTelemetry's collector before this one, at the address that processes
// export to, and returns what it says.
func (c *collector) behind(t *testing.T, program string) *output {
	t.Helper()
	config, address := filepath.Join(t.TempDir(), "config.yaml"), freeAddress(t)
	if err := os.WriteFile(config, []byte(`
receivers: {otlp: {protocols: {grpc: {endpoint: "`+address+`"}}}}
exporters:
  otlp_grpc: {endpoint: "`+c.address+`", tls: {insecure: true}, sending_queue: {enabled: false}}
  debug: {verbosity: basic}
service:
  telemetry: {metrics: {level: none}, logs: {sampling: {enabled: false}}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_grpc, debug]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &output{more: make(chan struct{})}
	cmd := exec.Command(program, "--config", config)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it says why it ended
	c.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
	})
	t.Cleanup(c.end)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close() // it was only to see who listens
			c.address = address
			return said
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("%s has ended:\n%s", program, said)
		case <-deadline:
			t.Fatalf("%s does not listen on %s:\n%s", program, address, said)
		}
	}
}
