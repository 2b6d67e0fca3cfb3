package parts

import (
	"iter"

	"google.golang.org/protobuf/proto"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// partOverhead bounds the bytes that a message needs for a part besides the part's own.
const partOverhead = 8

// SplitRequest yields p, or if it is larger than limit bytes, messages that say
// the same in the same order, each within the limit unless a single part is not.
func SplitRequest(p *pb.WorkRequest, limit int) iter.Seq[*pb.WorkRequest] {
	return func(yield func(*pb.WorkRequest) bool) {
		if proto.Size(p) <= limit {
			yield(p)
			return
		}

		c := newCutter(limit, yield)
		addParts(c, listOf(p.GetHello()), func(m *pb.WorkRequest, v *pb.Hello) { m.Hello = v })
		addParts(c, p.GetReports(), func(m *pb.WorkRequest, v *pb.Report) { m.Reports = append(m.Reports, v) })
		addParts(c, p.GetStarted(), func(m *pb.WorkRequest, v *pb.Held) { m.Started = append(m.Started, v) })
		addParts(c, p.GetReserve(), func(m *pb.WorkRequest, v *pb.ReserveRequest) { m.Reserve = append(m.Reserve, v) })
		addParts(c, listOf(p.GetHeartbeat()), func(m *pb.WorkRequest, v *pb.Heartbeat) { m.Heartbeat = v })
		addParts(c, p.GetLimits(), func(m *pb.WorkRequest, v *pb.LimitNote) { m.Limits = append(m.Limits, v) })
		addParts(c, p.GetManners(), func(m *pb.WorkRequest, v *pb.ModelManners) { m.Manners = append(m.Manners, v) })

		// Drain goes with the last message.
		c.current.Drain = p.GetDrain()
		c.flushMessage()
	}
}

// SplitResponse is SplitRequest for the other direction.
func SplitResponse(p *pb.WorkResponse, limit int) iter.Seq[*pb.WorkResponse] {
	return func(yield func(*pb.WorkResponse) bool) {
		if proto.Size(p) <= limit {
			yield(p)
			return
		}

		c := newCutter(limit, yield)
		addParts(c, listOf(p.GetWelcome()), func(m *pb.WorkResponse, v *pb.Welcome) { m.Welcome = v })
		addParts(c, p.GetJobs(), func(m *pb.WorkResponse, v *pb.JobInfo) { m.Jobs = append(m.Jobs, v) })
		addParts(c, p.GetAssignments(), func(m *pb.WorkResponse, v *pb.Assignment) { m.Assignments = append(m.Assignments, v) })
		addParts(c, p.GetVerdicts(), func(m *pb.WorkResponse, v *pb.ReportVerdict) { m.Verdicts = append(m.Verdicts, v) })
		addParts(c, p.GetReserved(), func(m *pb.WorkResponse, v *pb.ReserveReply) { m.Reserved = append(m.Reserved, v) })
		addParts(c, p.GetCancel(), func(m *pb.WorkResponse, v *pb.Held) { m.Cancel = append(m.Cancel, v) })
		addOf(c, p.GetForget(), stringSize, func(m *pb.WorkResponse, v string) { m.Forget = append(m.Forget, v) })
		addParts(c, p.GetLimits(), func(m *pb.WorkResponse, v *pb.LimitShare) { m.Limits = append(m.Limits, v) })
		addParts(c, p.GetManners(), func(m *pb.WorkResponse, v *pb.ModelManners) { m.Manners = append(m.Manners, v) })

		// Goodbye goes with the last message.
		c.current.Goodbye = p.GetGoodbye()
		c.flushMessage()
	}
}

// A cutter fills messages of type M up to the limit.
type cutter[M any] struct {
	limit   int // bytes
	yield   func(*M) bool
	current *M
	size    int // bytes of current, at most
	stopped bool
}

func newCutter[M any](limit int, yield func(*M) bool) *cutter[M] {
	return &cutter[M]{limit: limit, yield: yield, current: new(M), size: partOverhead}
}

func (c *cutter[M]) flushMessage() {
	if !c.stopped {
		c.stopped = !c.yield(c.current)
	}
	c.current, c.size = new(M), partOverhead
}

// addParts puts parts into the current message, and into new ones when it is full.
func addParts[M any, P proto.Message](c *cutter[M], parts []P, put func(*M, P)) {
	addOf(c, parts, func(p P) int { return proto.Size(p) }, put)
}

func stringSize(s string) int { return len(s) }

// addOf is add for parts whose size a function returns.
func addOf[M, P any](c *cutter[M], parts []P, size func(P) int, put func(*M, P)) {
	for _, p := range parts {
		n := size(p) + partOverhead
		if c.size+n > c.limit && c.size > partOverhead {
			c.flushMessage()
		}
		put(c.current, p)
		c.size += n
	}
}

// listOf returns p as a list, which is empty if p is nil.
func listOf[P any](p *P) []*P {
	if p == nil {
		return nil
	}
	return []*P{p}
}
