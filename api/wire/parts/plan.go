package parts

import (
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// SplitPlan yields p as messages of about limit bytes at most: first all but the
// tasks, then these. A task that depends on more than fits goes on in the next
// message.
func SplitPlan(p *pb.Plan, limit int) iter.Seq[*pb.Plan] {
	return func(yield func(*pb.Plan) bool) {
		tasks := p.GetTasks()
		p.Tasks = nil
		more := yield(p)

		page, size := &pb.Plan{}, 0
		flush := func() {
			more = more && (len(page.GetTasks()) == 0 || yield(page))
			page, size = &pb.Plan{}, 0
		}

		for _, t := range tasks {
			for part := range splitTask(t, limit) {
				if n := proto.Size(part); size > 0 && size+n > limit {
					flush()
				}
				page.Tasks = append(page.Tasks, part)

				// A part that goes on in the next message ends this one.
				if size += proto.Size(part) + partOverhead; part.GetContinues() {
					flush()
				}
			}
			if !more {
				return
			}
		}

		flush()
	}
}

// splitTask yields a task in parts of about limit bytes.
func splitTask(t *pb.PlanTask, limit int) iter.Seq[*pb.PlanTask] {
	return func(yield func(*pb.PlanTask) bool) {
		rest := t.GetDependsOn()
		t.DependsOn = nil
		part := t

		for {
			n, size := 0, 0
			// At least one name, however long it is.
			for n < len(rest) && (n == 0 || size < limit) {
				size += len(rest[n]) + partOverhead
				n++
			}

			part.DependsOn, rest = rest[:n], rest[n:]
			part.Continues = len(rest) > 0

			if !yield(part) || len(rest) == 0 {
				return
			}

			part = &pb.PlanTask{UnitId: t.GetUnitId()}
		}
	}
}

// JoinPlan returns what SplitPlan was given, of which next returns the messages
// and then nil.
func JoinPlan(next func() (*pb.Plan, error)) (*pb.Plan, error) {
	whole, err := next()
	if err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errs.New(errs.Internal, "the server's reply holds no plan")
	}

	for {
		p, err := next()
		if err != nil {
			return nil, err
		}
		if p == nil {
			return whole, checkWhole(whole.GetTasks())
		}

		for _, t := range p.GetTasks() {
			last := len(whole.GetTasks()) - 1
			if last < 0 || !whole.GetTasks()[last].GetContinues() {
				whole.Tasks = append(whole.Tasks, t)
				continue
			}

			// The last task goes on with this one.
			begun := whole.GetTasks()[last]
			if begun.GetUnitId() != t.GetUnitId() {
				return nil, errs.New(errs.Internal, "the server's plan breaks off in task %q", begun.GetUnitId())
			}

			begun.DependsOn = append(begun.DependsOn, t.GetDependsOn()...)
			begun.Continues = t.GetContinues()
		}
	}
}

// checkWhole refuses a plan whose last task was to go on.
func checkWhole(tasks []*pb.PlanTask) error {
	if n := len(tasks); n > 0 && tasks[n-1].GetContinues() {
		return errs.New(errs.Internal, "the server's plan breaks off in task %q", tasks[n-1].GetUnitId())
	}
	return nil
}
