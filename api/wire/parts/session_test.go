package parts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// Merging what a split yields, in its order, gives the message again, since
// every part is a message or a list of them.
func TestSplitSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 2000).Draw(t, "limit")

		request := drawnMessage(t, new(pb.WorkRequest))
		joined := new(pb.WorkRequest)
		for p := range parts.SplitRequest(request, limit) {
			checkSize(t, p, limit)
			proto.Merge(joined, p)
		}
		if diff := cmp.Diff(request, joined, protocmp.Transform()); diff != "" {
			t.Fatalf("request (-), joined (+):\n%s", diff)
		}

		response := drawnMessage(t, new(pb.WorkResponse))
		answer := new(pb.WorkResponse)
		for p := range parts.SplitResponse(response, limit) {
			checkSize(t, p, limit)
			proto.Merge(answer, p)
		}
		if diff := cmp.Diff(response, answer, protocmp.Transform()); diff != "" {
			t.Fatalf("response (-), joined (+):\n%s", diff)
		}
	})
}

// drawnMessage sets every field of a message of a session: lists have some parts each, and parts a text,
// so that a field which a split forgets shows as a difference.
func drawnMessage[M proto.Message](t *rapid.T, m M) M {
	text := rapid.StringMatching(`[a-z]{0,100}`)
	of := m.ProtoReflect()
	for i := range of.Descriptor().Fields().Len() {
		field := of.Descriptor().Fields().Get(i)
		switch {
		case field.IsList() && field.Message() != nil:
			list := of.Mutable(field).List()
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				setTexts(list.AppendMutable().Message(), text.Draw(t, "text"))
			}
		case field.IsList():
			of.Mutable(field).List().Append(protoreflect.ValueOf(text.Draw(t, "text")))
		case field.Message() != nil:
			setTexts(of.Mutable(field).Message(), text.Draw(t, "text"))
		default:
			of.Set(field, protoreflect.ValueOf(true))
		}
	}
	return m
}

// setTexts sets the fields of a message that are a text.
func setTexts(m protoreflect.Message, text string) {
	for i := range m.Descriptor().Fields().Len() {
		if field := m.Descriptor().Fields().Get(i); field.Kind() == protoreflect.StringKind && !field.IsList() && field.ContainingOneof() == nil {
			m.Set(field, protoreflect.ValueOf(text))
		}
	}
}

// checkSize allows a message beyond the limit only if it cannot be split.
func checkSize(t *rapid.T, p proto.Message, limit int) {
	if size := proto.Size(p); size > limit && partsOf(p) > 1 {
		t.Fatalf("a message of %d parts has %d bytes, more than %d", partsOf(p), size, limit)
	}
}

// partsOf counts the parts of p but for the flag at its end.
func partsOf(p proto.Message) (n int) {
	switch m := p.(type) {
	case *pb.WorkRequest:
		n = len(m.GetReports()) + len(m.GetStarted()) + len(m.GetReserve()) + len(m.GetLimits())
		n += present(m.GetHello() != nil) + present(m.GetHeartbeat() != nil)
	case *pb.WorkResponse:
		n = len(m.GetJobs()) + len(m.GetAssignments()) + len(m.GetVerdicts()) + len(m.GetReserved()) + len(m.GetCancel()) + len(m.GetForget()) + len(m.GetLimits())
		n += present(m.GetWelcome() != nil)
	}
	return n
}

func present(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestSplitKeepsOrder(t *testing.T) {
	request := wire.EncodeFromWorker(&protocol.FromWorker{
		Reports: []protocol.Report{{Job: job, Unit: "a"}},
		Reserve: []protocol.ReserveRequest{{Held: protocol.Held{Job: job, Unit: mapreduce.UnitID(strings.Repeat("a", 100))}, Tokens: 1}},
		Drain:   true,
	})
	var got []string
	for p := range parts.SplitRequest(request, 100) {
		switch {
		case len(p.GetReports()) == 1 && len(p.GetReserve()) == 0 && !p.GetDrain():
			got = append(got, "report")
		case len(p.GetReports()) == 0 && len(p.GetReserve()) == 1 && p.GetDrain():
			got = append(got, "question, drain")
		}
	}
	if diff := cmp.Diff([]string{"report", "question, drain"}, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestSplitStopsWhenAsked(t *testing.T) {
	request := wire.EncodeFromWorker(&protocol.FromWorker{Started: make([]protocol.Held, 5)})
	n := 0
	for range parts.SplitRequest(request, 0) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("got %d messages, want the loop to end after 2", n)
	}
}
