package dispatch_test

import (
	"crypto/sha256"
	"errors"
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/orchestrator/dispatch"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

const (
	job      = "mr_20261123_abc123"
	unitName = "a.txt"
)

// Bounds that what was taken of a worker keeps, as its readers need them: so many reports
// of one job are added up without overflow, and no time outlasts its purpose.
const (
	mostTokens = math.MaxInt64 / (1 << 28)
	mostMicros = math.MaxInt64 / (1 << 26)
	mostRate   = math.MaxInt64 / (1 << 12)
	longest    = 2 * 366 * 24 * time.Hour
	longestGap = 2 * time.Hour
)

// FuzzReports takes any bytes for a message of a worker. What is decoded is within bounds
// afterwards; a report is refused, or what it says is possible; and what is told of a
// refused one is never refused itself.
func FuzzReports(f *testing.F) {
	for _, m := range messages() {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(pb.WorkRequest)
		if proto.Unmarshal(data, p) != nil {
			return
		}
		m, err := wire.DecodeFromWorker(p)
		if err != nil {
			return
		}
		m.Bound()
		checkBounds(t, m)
		for i := range m.Reports {
			rep := &m.Reports[i]
			why := rep.Check()
			if why == nil {
				checkPossible(t, rep)
				why = errors.New("something else is wrong with it")
			}
			attempt := protocol.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}
			if !dispatch.RefuseReport("session", rep, why) {
				t.Error("nobody is to blame for a report that was refused")
			}
			if rep.Outcome != protocol.Errored || len(rep.Output) > 0 || rep.Length != 0 || len(rep.Errors) == 0 ||
				attempt != (protocol.Held{Job: rep.Job, Unit: rep.Unit, Attempt: rep.Attempt}) {
				t.Errorf("a report that was refused became %+v", rep)
			}
			if err := rep.Check(); err != nil {
				t.Errorf("what became of a report that was refused is refused: %v", err)
			}
		}
	})
}

// messages returns what the fuzzer begins with: what honest workers send, and numbers that
// none of them does.
func messages() []proto.Message {
	forever := durationpb.New(math.MaxInt64)
	honest := &pb.Report{
		JobId: job, UnitId: unitName, Attempt: 1, Outcome: pb.Outcome(protocol.Done), Output: []byte("x"), PromptTokens: 7, Confidence: 0.5,
		Tokens: &pb.Tokens{Input: 10, Output: 5}, CostMicros: 3, CallCount: 1, CallLatency: durationpb.New(time.Second),
	}
	huge := &pb.Report{
		JobId: job, UnitId: unitName, Attempt: math.MaxInt32, Outcome: pb.Outcome(protocol.Done), OutputBytes: math.MaxInt64, Sha256: make([]byte, sha256.Size),
		PromptTokens: math.MaxInt64, Confidence: 1, Tokens: &pb.Tokens{Input: math.MaxInt64, Output: math.MaxInt64}, CostMicros: math.MaxInt64,
		CallLatency: forever, ToolTime: forever, Elapsed: forever, RetryAfter: forever,
		Savings: &pb.Savings{AnswerCount: math.MaxInt64, AnswerCostMicros: math.MaxInt64, CacheWriteTokens: math.MaxInt64, CacheReadTokens: math.MaxInt64, PromptCostMicros: math.MinInt64},
	}
	parked := &pb.Report{JobId: job, UnitId: unitName, Attempt: 1, Outcome: pb.Outcome(protocol.Parked), Parking: &pb.Parking{Handle: "h", WakeAfter: forever}}
	held := &pb.Held{JobId: job, UnitId: unitName, Attempt: 1}
	rates := &pb.Rates{Requests: math.MaxInt64, InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}
	return []proto.Message{
		&pb.WorkRequest{},
		&pb.WorkRequest{Reports: []*pb.Report{honest, parked}},
		&pb.WorkRequest{
			Reports: []*pb.Report{huge}, Reserve: []*pb.ReserveRequest{{Held: held, Tokens: math.MaxInt64}},
			Limits: []*pb.LimitNote{{Name: "a/b", Successes: math.MaxInt64, Pause: forever, Told: rates, Left: rates}},
			Heartbeat: &pb.Heartbeat{
				Progress: []*pb.Progress{{Held: held, Tokens: &pb.Tokens{Input: math.MaxInt64}}},
				Breakers: []*pb.BreakerState{{Name: "a/b", OpenFor: forever}},
			},
		},
	}
}

// checkBounds checks what every message keeps once it was brought within bounds.
func checkBounds(t *testing.T, m *protocol.FromWorker) {
	t.Helper()
	count := func(what string, n, most int64) {
		if n < 0 || n > most {
			t.Errorf("%s: %d is not in [0, %d]", what, n, most)
		}
	}
	span := func(what string, d, most time.Duration) { count(what, int64(d), int64(most)) }
	for i := range m.Reports {
		r := &m.Reports[i]
		span("retry_after", r.RetryAfter, longestGap)
		if r.Parking != nil {
			span("wake_after", r.Parking.WakeAfter, longest)
		}
	}
	for _, r := range m.Reserve {
		count("reserve", r.Tokens, mostTokens)
	}
	for _, n := range m.Limits {
		count("successes", n.Successes, mostTokens)
		span("pause", n.Pause, longestGap)
		for _, r := range []mapreduce.Rates{n.Told, n.Left} {
			count("requests", r.Requests, mostRate)
			count("input", r.Input, mostRate)
			count("output", r.Output, mostRate)
		}
	}
	if m.Heartbeat != nil {
		for _, b := range m.Heartbeat.Breakers {
			span("open_for", b.OpenFor, longestGap)
		}
	}
}

// checkPossible checks what a report keeps that was taken.
func checkPossible(t *testing.T, r *protocol.Report) {
	t.Helper()
	for _, n := range []int64{r.Size, r.Tokens.In, r.Tokens.Out} {
		if n < 0 || n > mostTokens {
			t.Errorf("%d tokens are taken", n)
		}
	}
	for _, took := range []time.Duration{r.Latency, r.ToolTime, r.Elapsed} {
		if took < 0 || took > longest {
			t.Errorf("a time of %v is taken", took)
		}
	}
	if c := r.Savings; c.Answers < 0 || c.CacheRead < 0 || c.CacheWrite < 0 || c.CacheRead+c.CacheWrite > r.Tokens.In || c.AnswerMicros < 0 ||
		max(c.AnswerMicros, c.PromptMicros, -c.PromptMicros) > mostMicros || c.PromptMicros < -r.CostMicros {
		t.Errorf("savings of %+v are taken of %v and a cost of %d", c, r.Tokens, r.CostMicros)
	}
	if r.CostMicros < 0 || r.CostMicros > mostMicros || !(r.Confidence >= 0 && r.Confidence <= 1) {
		t.Errorf("a cost of %d and a confidence of %v are taken", r.CostMicros, r.Confidence)
	}
	if r.Outcome == protocol.Done && (len(r.Output) > protocol.MaxInline || r.Length < 0 || r.Length > protocol.MaxOutput || r.Length > 0 && len(r.SHA256) != sha256.Size) {
		t.Errorf("an output of %d bytes, or of %d, is taken", len(r.Output), r.Length)
	}
}
