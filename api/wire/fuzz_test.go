package wire_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// seed adds filled messages to the corpus.
func seed(f *testing.F, encode func(filler) proto.Message) {
	for i := range uint64(3) {
		data, err := proto.Marshal(encode(full(i)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{})
}

// checkRefusal checks that a decoder refuses only by naming a field.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field == "" {
		t.Fatalf("%v does not name what is invalid", err)
	}
}

func FuzzDecodeFromWorker(f *testing.F) {
	seed(f, func(f filler) proto.Message { return wire.EncodeFromWorker(filled[protocol.FromWorker](f)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(pb.WorkRequest)
		if proto.Unmarshal(data, p) != nil {
			return
		}
		m, err := wire.DecodeFromWorker(p)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		sent := wire.EncodeFromWorker(m)
		again, err := wire.DecodeFromWorker(sent)
		if err != nil || !proto.Equal(sent, wire.EncodeFromWorker(again)) {
			t.Fatalf("%v became %v with %v", m, again, err)
		}
	})
}

func FuzzDecodeToWorker(f *testing.F) {
	seed(f, func(f filler) proto.Message { return wire.EncodeToWorker(filled[protocol.ToWorker](f)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(pb.WorkResponse)
		if proto.Unmarshal(data, p) != nil {
			return
		}
		m, err := wire.DecodeToWorker(p)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		for _, a := range m.Assignments {
			if a.Text != nil && len(a.Text.Content[a.Text.CoreStart:a.Text.CoreEnd]) > len(a.Text.Content) {
				t.Fatal("the core is larger than the content")
			}
		}
		sent := wire.EncodeToWorker(m)
		again, err := wire.DecodeToWorker(sent)
		if err != nil || !proto.Equal(sent, wire.EncodeToWorker(again)) {
			t.Fatalf("%v became %v with %v", m, again, err)
		}
	})
}

// FuzzSubmission decodes a stream of submissions with a small limit.
func FuzzSubmission(f *testing.F) {
	const limit = 64
	seed(f, func(f filler) proto.Message {
		pieces := parts.CutDocument(&mapreduce.Document{ID: "a", Content: []byte(f.text())})
		return &pb.SubmitJobRequest{Spec: wire.EncodeSpec(filled[mapreduce.JobSpec](f)), Documents: pieces}
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := new(pb.SubmitJobRequest)
		if proto.Unmarshal(data, p) != nil {
			return
		}
		if _, err := wire.DecodeSpec(p.GetSpec()); err != nil {
			checkRefusal(t, err)
		}
		joiner := parts.Joiner{MaxBytes: limit}
		for _, piece := range p.GetDocuments() {
			doc, err := joiner.Add(piece)
			if err != nil {
				checkRefusal(t, err)
				return
			}
			if doc != nil && (doc.ID == "" || doc.Size < 0 || len(doc.Content) > limit || doc.Skip != "" && len(doc.Content) > 0) {
				t.Fatalf("accepted %+v", doc)
			}
		}
		if err := joiner.Close(); err != nil {
			checkRefusal(t, err)
		}
	})
}

// FuzzDecodeReplies finds panics: replies are believed, but not trusted that far.
func FuzzDecodeReplies(f *testing.F) {
	seed(f, func(f filler) proto.Message { return wire.EncodeJobs(filled[mapreduce.JobPage](f)) })
	seed(f, func(f filler) proto.Message { return wire.EncodeUnits(filled[mapreduce.UnitPage](f)) })
	seed(f, func(f filler) proto.Message { return wire.EncodeEvents(filled[mapreduce.EventPage](f)) })
	seed(f, func(f filler) proto.Message { return wire.EncodeResultPart(filled[mapreduce.ResultPart](f)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		jobs, units, events, part := new(pb.ListJobsResponse), new(pb.ListUnitsResponse), new(pb.ListEventsResponse), new(pb.ResultPart)
		if proto.Unmarshal(data, jobs) == nil {
			for _, j := range wire.DecodeJobs(jobs).Jobs {
				if j.State > mapreduce.JobPaused {
					t.Fatalf("state %d", j.State)
				}
			}
		}
		if proto.Unmarshal(data, units) == nil {
			for _, u := range wire.DecodeUnits(units).Units {
				if u.State > mapreduce.UnitCancelled || u.Kind > mapreduce.KindDirect {
					t.Fatalf("state %d, kind %d", u.State, u.Kind)
				}
			}
		}
		if proto.Unmarshal(data, events) == nil {
			if got, want := len(wire.DecodeEvents(events).Checkpoints), len(events.GetCheckpoints()); got != want {
				t.Fatalf("%d of %d checkpoints", got, want)
			}
		}
		if proto.Unmarshal(data, part) == nil {
			if got := wire.DecodeResultPart(part); (got == nil) != (part.GetPart() == nil) {
				t.Fatalf("part %v became %v", part, got)
			}
		}
	})
}

func FuzzError(f *testing.F) {
	f.Add(1, "m", "field", "REASON", "op")
	f.Fuzz(func(t *testing.T, kind int, message, field, reason, op string) {
		sent := &errs.Error{Kind: errs.Kind(kind), Message: message, Field: field, Reason: reason, Op: op}
		if got, want := errs.KindOf(fault.Error(fault.Status(sent).Err())), sent.Kind; got != want && want <= errs.DataLoss {
			t.Fatalf("%v became %v", want, got)
		}
	})
}
