package wire_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

const job = "mr_20260704_abc123"

// refused checks that err names field as what is invalid.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field != field {
		t.Errorf("got %v, want field %q to be refused as invalid", err, field)
	}
}

func TestDecodeFromWorkerRefuses(t *testing.T) {
	good := func() *pb.Report {
		return &pb.Report{JobId: job, UnitId: "a", Attempt: 1, Outcome: pb.Outcome_OUTCOME_DONE}
	}
	report := func(change func(*pb.Report)) *pb.WorkRequest {
		bad := good()
		change(bad)
		return &pb.WorkRequest{Reports: []*pb.Report{good(), bad}}
	}
	held := &pb.Held{JobId: job, UnitId: "a", Attempt: 1}
	tests := []struct {
		name  string
		field string
		in    *pb.WorkRequest
	}{
		{"job id missing", "reports[1].job_id", report(func(r *pb.Report) { r.JobId = "" })},
		{"job id malformed", "reports[1].job_id", report(func(r *pb.Report) { r.JobId = "mr_20260704_ABC123" })},
		{"unit id missing", "reports[1].unit_id", report(func(r *pb.Report) { r.UnitId = "" })},
		{"unit id giant", "reports[1].unit_id", report(func(r *pb.Report) { r.UnitId = strings.Repeat("a", wire.MaxUnitID+1) })},
		{"attempt negative", "reports[1].attempt", report(func(r *pb.Report) { r.Attempt = -1 })},
		{"outcome missing", "reports[1].outcome", report(func(r *pb.Report) { r.Outcome = 0 })},
		{"outcome unknown", "reports[1].outcome", report(func(r *pb.Report) { r.Outcome = 5 })},
		{"outcome that wraps to a byte", "reports[1].outcome", report(func(r *pb.Report) { r.Outcome = 257 })},
		{"outcome negative", "reports[1].outcome", report(func(r *pb.Report) { r.Outcome = -255 })},
		{"length negative", "reports[1].output_bytes", report(func(r *pb.Report) { r.OutputBytes = math.MinInt64 })},
		{"size negative", "reports[1].prompt_tokens", report(func(r *pb.Report) { r.PromptTokens = -1 })},
		{"confidence not a number", "reports[1].confidence", report(func(r *pb.Report) { r.Confidence = math.NaN() })},
		{"confidence above 1", "reports[1].confidence", report(func(r *pb.Report) { r.Confidence = 1.5 })},
		{"tokens negative", "reports[1].tokens.output", report(func(r *pb.Report) { r.Tokens = &pb.Tokens{Output: -5} })},
		{"cost negative", "reports[1].cost_micros", report(func(r *pb.Report) { r.CostMicros = -5 })},
		{"calls negative", "reports[1].call_count", report(func(r *pb.Report) { r.CallCount = -5 })},
		{"elapsed negative", "reports[1].elapsed", report(func(r *pb.Report) { r.Elapsed = &durationpb.Duration{Nanos: -1} })},
		{"elapsed malformed", "reports[1].elapsed", report(func(r *pb.Report) { r.Elapsed = &durationpb.Duration{Seconds: 1, Nanos: -1} })},
		{"class unknown", "reports[1].failure_class", report(func(r *pb.Report) { r.FailureClass = 9 })},
		{"retry-after beyond time", "reports[1].retry_after", report(func(r *pb.Report) { r.RetryAfter = &durationpb.Duration{Seconds: math.MaxInt64} })},
		{"parked for nothing", "reports[1].parking", report(func(r *pb.Report) { r.Outcome = pb.Outcome_OUTCOME_PARKED })},
		{"parked under no handle", "reports[1].parking.handle", report(func(r *pb.Report) { r.Parking = &pb.Parking{} })},
		{"parked under a giant handle", "reports[1].parking.handle", report(func(r *pb.Report) {
			r.Parking = &pb.Parking{Handle: strings.Repeat("h", mapreduce.MaxHandle+1)}
		})},
		{"parked until before", "reports[1].parking.wake_after", report(func(r *pb.Report) {
			r.Parking = &pb.Parking{Handle: "h", WakeAfter: &durationpb.Duration{Seconds: -1}}
		})},
		{"session missing", "hello.session_id", &pb.WorkRequest{Hello: &pb.Hello{}}},
		{"session giant", "hello.session_id", &pb.WorkRequest{Hello: &pb.Hello{SessionId: strings.Repeat("s", 257)}}},
		{"slots negative", "hello.slots", &pb.WorkRequest{Hello: &pb.Hello{SessionId: "s", Slots: -1}}},
		{"providers without end", "hello.offer.providers", &pb.WorkRequest{Hello: &pb.Hello{SessionId: "s", Offer: &pb.Offer{Providers: make([]string, wire.MaxParts+1)}}}},
		{"tools without end", "hello.offer.tools", &pb.WorkRequest{Hello: &pb.Hello{SessionId: "s", Offer: &pb.Offer{Tools: make([]string, wire.MaxParts+1)}}}},
		{"parsers without end", "hello.offer.parsers", &pb.WorkRequest{Hello: &pb.Hello{SessionId: "s", Offer: &pb.Offer{Parsers: make([]string, wire.MaxParts+1)}}}},
		{"holding nothing", "hello.holding[0].job_id", &pb.WorkRequest{Hello: &pb.Hello{SessionId: "s", Holding: []*pb.Held{{}}}}},
		{"held missing", "reserve[0].held.job_id", &pb.WorkRequest{Reserve: []*pb.ReserveRequest{{}}}},
		{"reserve negative", "reserve[0].tokens", &pb.WorkRequest{Reserve: []*pb.ReserveRequest{{Held: held, Tokens: -1}}}},
		{"too many parts", "started", &pb.WorkRequest{Started: make([]*pb.Held, wire.MaxParts+1)}},
		{"progress without unit", "heartbeat.progress[0].held.job_id", &pb.WorkRequest{Heartbeat: &pb.Heartbeat{Progress: []*pb.Progress{nil}}}},
		{"breaker without name", "heartbeat.breakers[0].name", &pb.WorkRequest{Heartbeat: &pb.Heartbeat{Breakers: []*pb.BreakerState{{}}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wire.DecodeFromWorker(tt.in)
			if m != nil {
				t.Errorf("got message %v besides the error", m)
			}
			refused(t, err, tt.field)
		})
	}
}

func TestDecodeToWorkerRefuses(t *testing.T) {
	assignment := func(change func(*pb.Assignment)) *pb.WorkResponse {
		a := &pb.Assignment{JobId: job, UnitId: "a", Attempt: 1, Text: &pb.Text{DocumentId: "a", Content: []byte("abc"), CoreEnd: 3}}
		change(a)
		return &pb.WorkResponse{Assignments: []*pb.Assignment{a}}
	}
	tests := []struct {
		name  string
		field string
		in    *pb.WorkResponse
	}{
		{"core beyond content", "assignments[0].text.core_end", assignment(func(a *pb.Assignment) { a.Text.CoreEnd = 4 })},
		{"core backwards", "assignments[0].text.core_end", assignment(func(a *pb.Assignment) { a.Text.CoreStart, a.Text.CoreEnd = 2, 1 })},
		{"core negative", "assignments[0].text.core_start", assignment(func(a *pb.Assignment) { a.Text.CoreStart = -1 })},
		{"document missing", "assignments[0].text.document_id", assignment(func(a *pb.Assignment) { a.Text.DocumentId = "" })},
		{"index negative", "assignments[0].index", assignment(func(a *pb.Assignment) { a.Index = -1 })},
		{"timeout negative", "assignments[0].timeout", assignment(func(a *pb.Assignment) { a.Timeout = &durationpb.Duration{Seconds: -1} })},
		{"reservation negative", "assignments[0].reserved_tokens", assignment(func(a *pb.Assignment) { a.ReservedTokens = -1 })},
		{"core beyond content to come", "assignments[0].text.core_end", assignment(func(a *pb.Assignment) {
			a.Text.Content = nil
			a.Blobs = []*pb.Blob{{Kind: pb.BlobKind_BLOB_KIND_TEXT, SizeBytes: 9, StartByte: 5, EndByte: 7}}
		})},
		{"blob negative", "assignments[0].blobs[0].size_bytes", assignment(func(a *pb.Assignment) { a.Blobs = []*pb.Blob{{SizeBytes: -1}} })},
		{"range backwards", "assignments[0].blobs[0].end_byte", assignment(func(a *pb.Assignment) { a.Blobs = []*pb.Blob{{StartByte: 3, EndByte: 2}} })},
		{"range beyond the blob", "assignments[0].blobs[0].end_byte", assignment(func(a *pb.Assignment) { a.Blobs = []*pb.Blob{{SizeBytes: 3, EndByte: 4}} })},
		{"hash too short", "assignments[0].blobs[0].sha256", assignment(func(a *pb.Assignment) { a.Blobs = []*pb.Blob{{Sha256: []byte("abc")}} })},
		{"job without id", "jobs[0].job_id", &pb.WorkResponse{Jobs: []*pb.JobInfo{{}}}},
		{"spec out of range", "jobs[0].spec.max_attempts", &pb.WorkResponse{Jobs: []*pb.JobInfo{{JobId: job, Spec: &pb.JobSpec{MaxAttempts: -1}}}}},
		{"heartbeat negative", "welcome.heartbeat_interval", &pb.WorkResponse{Welcome: &pb.Welcome{HeartbeatInterval: &durationpb.Duration{Seconds: -3}}}},
		{"cancel of nothing", "cancel[0].job_id", &pb.WorkResponse{Cancel: []*pb.Held{{}}}},
		{"verdict on nothing", "verdicts[0].held.job_id", &pb.WorkResponse{Verdicts: []*pb.ReportVerdict{{}}}},
		{"reply to nothing", "reserved[0].held.job_id", &pb.WorkResponse{Reserved: []*pb.ReserveReply{{}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := wire.DecodeToWorker(tt.in)
			refused(t, err, tt.field)
		})
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	spec := func(p *pb.JobSpec) error { _, err := wire.DecodeSpec(p); return err }
	jobs := func(p *pb.ListJobsRequest) error { _, err := wire.DecodeListJobs(p); return err }
	units := func(p *pb.ListUnitsRequest) error { _, err := wire.DecodeListUnits(p); return err }
	tests := []struct {
		name  string
		field string
		err   error
	}{
		{"parallelism negative", "spec.parallelism", spec(&pb.JobSpec{Parallelism: -1})},
		{"budget negative", "spec.budget_tokens", spec(&pb.JobSpec{BudgetTokens: -1})},
		{"share infinite", "spec.reduce_share", spec(&pb.JobSpec{ReduceShare: math.Inf(1)})},
		{"limit negative", "spec.reading.max_pages", spec(&pb.JobSpec{Reading: &pb.Reading{MaxPages: -1}})},
		{"page_text unknown", "spec.reading.page_text", spec(&pb.JobSpec{Reading: &pb.Reading{PageText: 3}})},
		{"on_error unknown", "spec.on_error", spec(&pb.JobSpec{OnError: 3})},
		{"on_breaker negative", "spec.on_breaker", spec(&pb.JobSpec{OnBreaker: -1})},
		{"request id giant", "spec.request_id", spec(&pb.JobSpec{RequestId: strings.Repeat("r", wire.MaxNames+1)})},
		{"page size negative", "page_size", jobs(&pb.ListJobsRequest{PageSize: -1})},
		{"state unspecified", "states", jobs(&pb.ListJobsRequest{States: []pb.JobState{0}})},
		{"states without end", "states", jobs(&pb.ListJobsRequest{States: make([]pb.JobState, 1000)})},
		{"unit state unknown", "states", units(&pb.ListUnitsRequest{JobId: job, States: []pb.UnitState{99}})},
		{"job missing", "job_id", units(&pb.ListUnitsRequest{})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, tt.err, tt.field) })
	}
}

func TestLargePagesAreBounded(t *testing.T) {
	q, err := wire.DecodeListJobs(&pb.ListJobsRequest{PageSize: math.MaxInt32})
	if err != nil || q.PageSize != wire.MaxPage {
		t.Errorf("got a page of %d and %v, want %d", q.PageSize, err, wire.MaxPage)
	}
}

func TestNewerPeers(t *testing.T) {
	t.Run("worker gets a kind and a verdict it does not know", func(t *testing.T) {
		m, err := wire.DecodeToWorker(&pb.WorkResponse{
			Assignments: []*pb.Assignment{{JobId: job, UnitId: "a", Kind: 256 + 1}},
			Verdicts:    []*pb.ReportVerdict{{Held: &pb.Held{JobId: job, UnitId: "a"}, Verdict: 77}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if k, v := m.Assignments[0].Kind, m.Verdicts[0].Verdict; k != mapreduce.KindUnknown || v != protocol.VerdictUnknown {
			t.Errorf("got %v and %v, want the unknown ones", k, v)
		}
	})
	t.Run("client gets a state it does not know", func(t *testing.T) {
		if j := wire.DecodeJob(&pb.Job{State: 300, Phase: -1}); j.State != mapreduce.JobUnknown || j.Phase != mapreduce.JobUnknown {
			t.Errorf("got %v and %v, want the unknown ones", j.State, j.Phase)
		}
	})
	t.Run("client gets a part it does not know", func(t *testing.T) {
		if p := wire.DecodeResultPart(&pb.ResultPart{}); p != nil {
			t.Errorf("got %v, want nothing", p)
		}
	})
	t.Run("a severity it does not know is wrong", func(t *testing.T) {
		if f := wire.DecodeFinding(&pb.Finding{Severity: 9}); f.Severity != mapreduce.Wrong {
			t.Errorf("got %v, want wrong", f.Severity)
		}
	})
}

func TestNumbersThatDoNotFitStayExtreme(t *testing.T) {
	p := wire.EncodeSpec(&mapreduce.JobSpec{Parallelism: math.MaxInt, Priority: math.MinInt})
	if p.GetParallelism() != math.MaxInt32 || p.GetPriority() != math.MinInt32 {
		t.Errorf("got %d and %d, want the nearest that fit", p.GetParallelism(), p.GetPriority())
	}
}

func TestTextThatIsNotUTF8(t *testing.T) {
	m := &protocol.FromWorker{Reports: []protocol.Report{{
		Job: job, Unit: "a", Outcome: protocol.Errored, Errors: []string{"fine", "bad \xff byte"},
	}}}
	got := wire.EncodeFromWorker(m).GetReports()[0].GetErrors()
	if want := "bad \uFFFD byte"; got[0] != "fine" || got[1] != want {
		t.Errorf("got %q, want the second to be %q", got, want)
	}
	if m.Reports[0].Errors[1] != "bad \xff byte" {
		t.Error("the caller's message was changed")
	}
}
