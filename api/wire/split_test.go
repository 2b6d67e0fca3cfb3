package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// Merging what a split yields, in its order, gives the message again, since
// every part is a message or a list of them.
func TestSplitSaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 2000).Draw(t, "limit")

		request := wire.EncodeFromWorker(filled[mapreduce.FromWorker](drawn(t)))
		joined := new(pb.WorkRequest)
		for p := range wire.SplitRequest(request, limit) {
			checkSize(t, p, limit)
			proto.Merge(joined, p)
		}
		if diff := cmp.Diff(request, joined, protocmp.Transform()); diff != "" {
			t.Fatalf("request (-), joined (+):\n%s", diff)
		}

		response := wire.EncodeToWorker(filled[mapreduce.ToWorker](drawn(t)))
		answer := new(pb.WorkResponse)
		for p := range wire.SplitResponse(response, limit) {
			checkSize(t, p, limit)
			proto.Merge(answer, p)
		}
		if diff := cmp.Diff(response, answer, protocmp.Transform()); diff != "" {
			t.Fatalf("response (-), joined (+):\n%s", diff)
		}
	})
}

// checkSize allows a message beyond the limit only if it cannot be split.
func checkSize(t *rapid.T, p proto.Message, limit int) {
	if size := proto.Size(p); size > limit && parts(p) > 1 {
		t.Fatalf("a message of %d parts has %d bytes, more than %d", parts(p), size, limit)
	}
}

// parts counts the parts of p but for the flag at its end.
func parts(p proto.Message) (n int) {
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
	request := wire.EncodeFromWorker(&mapreduce.FromWorker{
		Reports: []mapreduce.Report{{Job: job, Unit: "a"}},
		Reserve: []mapreduce.ReserveRequest{{Held: mapreduce.Held{Job: job, Unit: mapreduce.UnitID(strings.Repeat("a", 100))}, Tokens: 1}},
		Drain:   true,
	})
	var got []string
	for p := range wire.SplitRequest(request, 100) {
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
	request := wire.EncodeFromWorker(filled[mapreduce.FromWorker](full(1)))
	n := 0
	for range wire.SplitRequest(request, 0) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("got %d messages, want the loop to end after 2", n)
	}
}
