package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A trip takes a filled value over the wire. It returns the value, its message,
// and what arrives.
type trip func(filler) (sent any, message proto.Message, arrived any, err error)

// over makes a trip of a pair of conversions.
func over[T any, M any, P interface {
	*M
	proto.Message
}](encode func(*T) P, decode func(P) (*T, error),
) trip {
	return func(f filler) (any, proto.Message, any, error) {
		sent := filled[T](f)
		message := encode(sent)
		data, err := proto.Marshal(message)
		if err != nil {
			return nil, nil, nil, err
		}
		received := P(new(M))
		if err := proto.Unmarshal(data, received); err != nil {
			return nil, nil, nil, err
		}
		arrived, err := decode(received)
		return sent, message, arrived, err
	}
}

// sure makes a decoder that cannot fail look like one that can.
func sure[T, P any](decode func(P) *T) func(P) (*T, error) {
	return func(p P) (*T, error) { return decode(p), nil }
}

// byValue makes a decoder that returns a value return a pointer.
func byValue[T, P any](decode func(P) (T, error)) func(P) (*T, error) {
	return func(p P) (*T, error) {
		v, err := decode(p)
		return &v, err
	}
}

type markCause struct {
	ID    mapreduce.JobID
	Cause string
	State mapreduce.CauseState
}

type resume struct {
	ID     mapreduce.JobID
	Resume mapreduce.Resume
}

var trips = map[string]trip{
	"spec":       over(wire.EncodeSpec, byValue(wire.DecodeSpec)),
	"job":        over(wire.EncodeJob, sure(wire.DecodeJob)),
	"jobs":       over(wire.EncodeJobs, sure(wire.DecodeJobs)),
	"unit":       over(wire.EncodeUnit, sure(wire.DecodeUnit)),
	"units":      over(wire.EncodeUnits, sure(wire.DecodeUnits)),
	"checkpoint": over(wire.EncodeCheckpoint, sure(wire.DecodeCheckpoint)),
	"events":     over(wire.EncodeEvents, sure(wire.DecodeEvents)),
	"result":     over(wire.EncodeResultPart, sure(wire.DecodeResultPart)),
	"finding": over(
		func(f *mapreduce.Finding) *pb.Finding { return wire.EncodeFinding(*f) },
		byValue(func(p *pb.Finding) (mapreduce.Finding, error) { return wire.DecodeFinding(p), nil })),
	"list jobs":      over(wire.EncodeListJobs, byValue(wire.DecodeListJobs)),
	"list units":     over(wire.EncodeListUnits, byValue(wire.DecodeListUnits)),
	"list events":    over(wire.EncodeListEvents, byValue(wire.DecodeListEvents)),
	"new decision":   over(wire.EncodeNewDecision, byValue(wire.DecodeNewDecision)),
	"decision":       over(wire.EncodeDecision, sure(wire.DecodeDecision)),
	"list decisions": over(wire.EncodeListDecisions, byValue(wire.DecodeListDecisions)),
	"decisions":      over(wire.EncodeDecisions, sure(wire.DecodeDecisions)),
	"resume": over(
		func(r *resume) *pb.ResumeJobRequest { return wire.EncodeResume(r.ID, r.Resume) },
		func(p *pb.ResumeJobRequest) (*resume, error) {
			id, r, err := wire.DecodeResume(p)
			return &resume{id, r}, err
		}),
	"mark cause": over(
		func(m *markCause) *pb.MarkCauseRequest { return wire.EncodeMarkCause(m.ID, m.Cause, m.State) },
		func(p *pb.MarkCauseRequest) (*markCause, error) {
			id, cause, state, err := wire.DecodeMarkCause(p)
			return &markCause{id, cause, state}, err
		}),
	"plan":        over(wire.EncodePlan, sure(wire.DecodePlan)),
	"plan query":  over(wire.EncodePlanQuery, byValue(wire.DecodePlanQuery)),
	"get blob":    over(wire.EncodeGetBlob, wire.DecodeGetBlob),
	"put blob":    over(wire.EncodePutBlob, wire.DecodePutBlob),
	"stored blob": over(wire.EncodeBlobStored, sure(wire.DecodeBlobStored)),
	"from worker": over(wire.EncodeFromWorker, wire.DecodeFromWorker),
	"to worker":   over(wire.EncodeToWorker, wire.DecodeToWorker),
}

func TestRoundTrip(t *testing.T) {
	for name, travel := range trips {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				sent, _, arrived, err := travel(drawn(t))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(sent, arrived); diff != "" {
					t.Fatalf("sent (-), arrived (+):\n%s", diff)
				}
			})
		})
	}
}

// TestEveryFieldIsUsed finds fields of messages that no conversion sets.
func TestEveryFieldIsUsed(t *testing.T) {
	for name, travel := range trips {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				_, message, _, err := travel(full(seed))
				if err != nil {
					t.Fatal(err)
				}
				for _, field := range unset(message.ProtoReflect()) {
					t.Errorf("%s is never set", field)
				}
			}
		})
	}
}

// Fields that are set by what cuts messages, not by conversions, or only where another is not, or
// whose zero is one of their values.
var madeElsewhere = map[protoreflect.FullName]bool{
	"coditect.mapreduce.v1.PlanTask.node_type":       true,
	"coditect.mapreduce.v1.PlanTask.continues":       true,
	"coditect.mapreduce.v1.PlanJobRequest.documents": true,
	"coditect.mapreduce.v1.PutBlobRequest.part":      true,
	"coditect.mapreduce.v1.ResultPart.record_id":     true, // of records alone

	// Of these one alone is set, as the budget is in tokens or in money: TestRoundTrip has both.
	"coditect.mapreduce.v1.JobSpec.budget_tokens":            true,
	"coditect.mapreduce.v1.JobSpec.max_cost_micros":          true,
	"coditect.mapreduce.v1.ResumeJobRequest.budget_tokens":   true,
	"coditect.mapreduce.v1.ResumeJobRequest.max_cost_micros": true,
}

// unset returns the names of the fields that are not set in m or in what it
// holds. Of a oneof, one field is enough; offsets may be 0.
func unset(m protoreflect.Message) (names []protoreflect.FullName) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.ContainingOneof() != nil || f.Name() == "core_start":
		case madeElsewhere[f.FullName()]:
		case !m.Has(f):
			names = append(names, f.FullName())
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap() || f.Message().ParentFile().Package() != "coditect.mapreduce.v1":
		case f.IsList():
			names = append(names, unset(v.List().Get(0).Message())...)
		default:
			names = append(names, unset(v.Message())...)
		}
		return true
	})
	return names
}

// TestEnumerators pins the numbers, by name where there are names.
func TestEnumerators(t *testing.T) {
	tests := []struct {
		name string
		enum protoreflect.Enum
		want []string // by number
	}{
		{"job state", pb.JobState(0), names(mapreduce.JobState.String, mapreduce.JobPaused)},
		{"unit state", pb.UnitState(0), names(mapreduce.UnitState.String, mapreduce.UnitCancelled)},
		{"event kind", pb.EventKind(0), names(mapreduce.EventKind.String, mapreduce.EventRetried)},
		{"unit kind", pb.UnitKind(0), []string{"", "map", "parse", "reduce", "final", "direct"}},
		{"map-reduce mode", pb.MapReduceMode(0), []string{"", "static", "adaptive"}},
		{"outcome", pb.Outcome(0), []string{protocol.Done: "done", protocol.Errored: "errored", protocol.Returned: "returned", protocol.Parked: "parked"}},
		{"verdict", pb.Verdict(0), []string{protocol.Accepted: "accepted", protocol.Stale: "stale", protocol.Gone: "gone"}},
		{"blob kind", pb.BlobKind(0), []string{
			protocol.BlobText: "text", protocol.BlobInputs: "inputs", protocol.BlobReferred: "referred",
			protocol.BlobJournal: "journal", protocol.BlobAnswer: "answer", protocol.BlobOutput: "output",
			protocol.BlobEvidence: "evidence", protocol.BlobEvidenceList: "evidence_list", protocol.BlobOriginal: "original",
			protocol.BlobLine: "line", protocol.BlobLineReply: "line_reply", protocol.BlobBatches: "batches", protocol.BlobBatchLines: "batch_lines",
			protocol.BlobBatchReport: "batch_report", protocol.BlobWakeAnswer: "wake_answer",
		}},
		{"failure class", pb.FailureClass(0), []string{
			1 + protocol.Retryable: "retryable", 1 + protocol.PermanentUnit: "permanent_unit", 1 + protocol.PermanentJob: "permanent_job",
		}},
		{"cause state", pb.CauseState(0), []string{1 + mapreduce.CauseOpen: "open", 1 + mapreduce.CauseIgnored: "ignored", 1 + mapreduce.CauseResolved: "resolved"}},
		{"on error", pb.OnError(0), []string{1 + mapreduce.Continue: "continue", 1 + mapreduce.FailFast: "fail_fast"}},
		{"on breaker", pb.OnBreaker(0), []string{1 + mapreduce.BreakerWait: "wait", 1 + mapreduce.BreakerSkip: "skip"}},
		{"capture", pb.Capture(0), []string{1 + mapreduce.CaptureOff: "off", 1 + mapreduce.CaptureStandard: "standard", 1 + mapreduce.CaptureFull: "full"}},
		{"severity", pb.Severity(0), []string{1 + mapreduce.Info: "info", 1 + mapreduce.Wrong: "wrong"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, enumerators(tt.enum)); diff != "" {
				t.Errorf("domain (-), message (+):\n%s", diff)
			}
		})
	}
}

// names returns the names of a domain enumeration's values, which must end with
// last.
func names[E ~uint8](name func(E) string, last E) []string {
	all := []string{""}
	for e := E(1); e <= last || !strings.HasPrefix(name(e), "unknown"); e++ {
		all = append(all, name(e))
	}
	return all
}

// enumerators returns the names of a message's enumeration in lower case and
// without their common prefix.
func enumerators(e protoreflect.Enum) []string {
	values := e.Descriptor().Values()
	prefix := strings.TrimSuffix(string(values.Get(0).Name()), "UNSPECIFIED")
	all := []string{""}
	for i := 1; i < values.Len(); i++ {
		all = append(all, strings.ToLower(strings.TrimPrefix(string(values.Get(i).Name()), prefix)))
	}
	return all
}
