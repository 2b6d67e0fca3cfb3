package parts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// wide returns a plan whose last task depends on n others.
func wide(n int) *mapreduce.Plan {
	p := &mapreduce.Plan{Levels: []mapreduce.PlanLevel{{Tasks: n}, {Level: 1, Tasks: 1}}, Warnings: []mapreduce.PlanWarning{{Kind: "k", Message: "m"}}}
	final := mapreduce.PlanTask{Unit: mapreduce.FinalUnit, Kind: mapreduce.KindFinal, Level: 1, Read: 7}
	for i := range n {
		id := mapreduce.UnitID(fmt.Sprintf("document-%06d", i))
		p.Tasks = append(p.Tasks, mapreduce.PlanTask{Unit: id, Kind: mapreduce.KindMap, Items: 1, Read: int64(i)})
		final.DependsOn = append(final.DependsOn, id)
	}
	p.Tasks = append(p.Tasks, final)
	return p
}

func TestPlansAreSplit(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, 1000} {
		for _, limit := range []int{1, 50, 1000, 1 << 20} {
			p := wide(n)
			messages := slices.Collect(parts.SplitPlan(wire.EncodePlan(p), limit))
			for i, part := range messages {
				if i > 0 && (len(part.GetTasks()) == 0 || proto.Size(part) > limit+100) {
					t.Errorf("%d tasks, limit %d: message %d has %d tasks in %d bytes", n, limit, i, len(part.GetTasks()), proto.Size(part))
				}
			}
			if len(messages[0].GetTasks()) != 0 {
				t.Errorf("the first message has tasks")
			}
			whole, err := parts.JoinPlan(oneByOne(messages))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wire.EncodePlan(p), whole, protocmp.Transform()); diff != "" {
				t.Errorf("%d tasks, limit %d: sent (-), joined (+):\n%s", n, limit, diff)
			}
		}
	}
}

// oneByOne returns the messages one by one, and then nil.
func oneByOne(messages []*pb.Plan) func() (*pb.Plan, error) {
	return func() (*pb.Plan, error) {
		if len(messages) == 0 {
			return nil, nil
		}
		first := messages[0]
		messages = messages[1:]
		return first, nil
	}
}

// A plan that breaks off is no shorter plan.
func TestBrokenPlans(t *testing.T) {
	if _, err := parts.JoinPlan(oneByOne(nil)); err == nil {
		t.Error("nothing is taken for a plan")
	}
	begun := []*pb.PlanTask{{UnitId: "a", Continues: true}}
	if _, err := parts.JoinPlan(oneByOne([]*pb.Plan{{}, {Tasks: begun}, {Tasks: []*pb.PlanTask{{UnitId: "b"}}}})); err == nil {
		t.Error("a task that went on with another one was taken")
	}
	if _, err := parts.JoinPlan(oneByOne([]*pb.Plan{{}, {Tasks: begun}})); err == nil {
		t.Error("a task that did not go on was taken")
	}
}
