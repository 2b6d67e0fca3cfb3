package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/telemetry"
)

// A label has no more values than it may, and those that it has do not change.
func TestLabelsAreBounded(t *testing.T) {
	l := telemetry.NewLabels(3)
	seen := make(map[string]bool)
	for i := range 100 {
		seen[l.Of(fmt.Sprint(i))] = true
	}
	if len(seen) != 4 || !seen[telemetry.Other] || l.Of("2") != "2" || l.Of("3") != telemetry.Other {
		t.Errorf("got values %v", seen)
	}
}

// The ids of spans depend on all that names what they are of, and on nothing else.
func TestIDsAreDerived(t *testing.T) {
	held := func(job, unit string, attempt int) protocol.Held {
		return protocol.Held{Job: mapreduce.JobID(job), Unit: mapreduce.UnitID(unit), Attempt: attempt}
	}
	seen := make(map[trace.SpanID]string)
	for name, id := range map[string]trace.SpanID{
		"job": telemetry.JobSpan("a"), "other job": telemetry.JobSpan("b"), "end": telemetry.EndSpan("a", 1), "second end": telemetry.EndSpan("a", 2),
		"claim": telemetry.ClaimSpan(held("a", "u", 1)), "attempt": telemetry.AttemptSpan(held("a", "u", 1)),
		"second attempt": telemetry.AttemptSpan(held("a", "u", 2)), "names that join alike": telemetry.AttemptSpan(held("au", "", 1)),
		"number that joins alike": telemetry.AttemptSpan(held("a", "u1", 1)),
	} {
		if other := seen[id]; other != "" || !id.IsValid() {
			t.Errorf("%s and %s share the id %s", name, other, id)
		}
		seen[id] = name
	}
	if got := telemetry.AttemptSpan(held("a", "u", 1)).String(); got != "496ed987bfdd165a" || telemetry.TraceOf("a") == telemetry.TraceOf("b") {
		t.Errorf("the id of an attempt is %s in this process: others go on with the ids that they derive", got)
	}
}

// A record of something traced has its ids, also below a group's or a logger's attributes.
func TestLogsHaveIDs(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(telemetry.NewLogHandler(slog.NewTextHandler(&b, nil))).With("a", 1)
	at := trace.NewSpanContext(trace.SpanContextConfig{TraceID: telemetry.TraceOf("j"), SpanID: telemetry.JobSpan("j")})
	log.InfoContext(trace.ContextWithSpanContext(t.Context(), at), "traced")
	log.Info("not traced")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if want := "trace_id=" + at.TraceID().String() + " span_id=" + at.SpanID().String(); !strings.Contains(lines[0], want) {
		t.Errorf("%q lacks %q", lines[0], want)
	}
	if strings.Contains(lines[1], "trace_id") {
		t.Errorf("%q has ids of nothing", lines[1])
	}
}
