package wire

import (
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodePlanQuery encodes a request for the plan of a job.
func EncodePlanQuery(q *mapreduce.PlanQuery) *pb.PlanJobRequest {
	return &pb.PlanJobRequest{Spec: EncodeSpec(&q.Spec), RequireExact: q.Exact}
}

// DecodePlanQuery decodes a request for the plan of a job.
func DecodePlanQuery(p *pb.PlanJobRequest) (mapreduce.PlanQuery, error) {
	var d decoder
	q := mapreduce.PlanQuery{Spec: decodePart(&d, "spec", p.GetSpec(), decodeSpec), Exact: p.GetRequireExact()}
	return q, d.firstError()
}

// EncodePlan encodes a plan.
func EncodePlan(p *mapreduce.Plan) *pb.Plan {
	e := &p.Estimate

	return &pb.Plan{
		SchemaVersion: mapreduce.PlanVersion,
		MapReduceMode: pb.MapReduceMode(p.Strategy),
		Exact:         p.Exact,
		Deadline:      encodeTime(p.Deadline),
		Turnarounds:   convertEach(p.Turnarounds, encodeDuration),
		Tasks:         convertEach(p.Tasks, encodePlanTask),
		Levels: convertEach(p.Levels, func(l mapreduce.PlanLevel) *pb.PlanLevel {
			return &pb.PlanLevel{Level: clampInt32(l.Level), TaskCount: int64(l.Tasks), Expected: l.Expected}
		}),
		Warnings: convertEach(p.Warnings, func(w mapreduce.PlanWarning) *pb.PlanWarning {
			return &pb.PlanWarning{Kind: validText(w.Kind), Message: validText(w.Message)}
		}),
		Estimate: &pb.PlanEstimate{
			TaskCount:  int64(e.Parses + e.Maps + e.Reduces),
			LevelCount: clampInt32(e.Levels),
			ParseCount: int64(e.Parses), MapCount: int64(e.Maps), ReduceCount: int64(e.Reduces),
			CallCount: e.Expected.Calls, InputTokens: e.Expected.Tokens.In, OutputTokens: e.Expected.Tokens.Out, CostMicros: e.Expected.CostMicros,
			Low: encodePlanSpend(e.Low), High: encodePlanSpend(e.High),
			Parallelism: clampInt32(e.Parallelism), Makespan: encodeDuration(e.Makespan),
		},
	}
}

// DecodePlan decodes a plan of a reply, whole.
func DecodePlan(p *pb.Plan) *mapreduce.Plan {
	e := p.GetEstimate()

	return &mapreduce.Plan{
		Strategy:    knownOrZero(p.GetMapReduceMode(), lastStrategy),
		Exact:       p.GetExact(),
		Deadline:    decodeTime(p.GetDeadline()),
		Turnarounds: convertEach(p.GetTurnarounds(), (*durationpb.Duration).AsDuration),
		Tasks:       convertEach(p.GetTasks(), decodePlanTask),
		Levels: convertEach(p.GetLevels(), func(l *pb.PlanLevel) mapreduce.PlanLevel {
			return mapreduce.PlanLevel{Level: int(l.GetLevel()), Tasks: int(l.GetTaskCount()), Expected: l.GetExpected()}
		}),
		Warnings: convertEach(p.GetWarnings(), func(w *pb.PlanWarning) mapreduce.PlanWarning {
			return mapreduce.PlanWarning{Kind: w.GetKind(), Message: w.GetMessage()}
		}),
		Estimate: mapreduce.PlanEstimate{
			Parses: int(e.GetParseCount()), Maps: int(e.GetMapCount()), Reduces: int(e.GetReduceCount()), Levels: int(e.GetLevelCount()),
			Low: decodePlanSpend(e.GetLow()), High: decodePlanSpend(e.GetHigh()),
			Expected: mapreduce.PlanSpend{
				Calls: e.GetCallCount(), Tokens: mapreduce.Tokens{In: e.GetInputTokens(), Out: e.GetOutputTokens()}, CostMicros: e.GetCostMicros(),
			},
			Parallelism: int(e.GetParallelism()), Makespan: e.GetMakespan().AsDuration(),
		},
	}
}

func encodePlanSpend(s mapreduce.PlanSpend) *pb.PlanSpend {
	return &pb.PlanSpend{CallCount: s.Calls, InputTokens: s.Tokens.In, OutputTokens: s.Tokens.Out, CostMicros: s.CostMicros}
}

func decodePlanSpend(p *pb.PlanSpend) mapreduce.PlanSpend {
	return mapreduce.PlanSpend{
		Calls: p.GetCallCount(), Tokens: mapreduce.Tokens{In: p.GetInputTokens(), Out: p.GetOutputTokens()}, CostMicros: p.GetCostMicros(),
	}
}

// nodeTypes are the types of nodes by the kinds of their units. What only
// prepares a document is a plain task.
var nodeTypes = map[mapreduce.UnitKind]pb.NodeType{
	mapreduce.KindParse:  pb.NodeType_NODE_TYPE_UNSPECIFIED,
	mapreduce.KindMap:    pb.NodeType_NODE_TYPE_MAP,
	mapreduce.KindReduce: pb.NodeType_NODE_TYPE_REDUCE,
	mapreduce.KindFinal:  pb.NodeType_NODE_TYPE_FINAL_REDUCE,
	mapreduce.KindDirect: pb.NodeType_NODE_TYPE_DIRECT,
}

func kindOfNode(t pb.NodeType) mapreduce.UnitKind {
	for kind, node := range nodeTypes {
		if node == t {
			return kind
		}
	}
	return mapreduce.KindUnknown
}

func encodePlanTask(t mapreduce.PlanTask) *pb.PlanTask {
	return &pb.PlanTask{
		UnitId: string(t.Unit), NodeType: nodeTypes[t.Kind], MapReduceLevel: clampInt32(t.Level), DependsOn: stringsOf(t.DependsOn),
		Stage: t.Stage, ItemCount: int64(t.Items), InputTokens: t.Read, OutputTokens: t.Written,
		CallCount: t.Calls, CallInputTokens: t.Tokens.In, CallOutputTokens: t.Tokens.Out,
	}
}

func decodePlanTask(p *pb.PlanTask) mapreduce.PlanTask {
	return mapreduce.PlanTask{
		Unit: mapreduce.UnitID(p.GetUnitId()), Kind: kindOfNode(p.GetNodeType()), Level: int(p.GetMapReduceLevel()),
		DependsOn: convertEach(p.GetDependsOn(), func(s string) mapreduce.UnitID { return mapreduce.UnitID(s) }),
		Stage:     p.GetStage(),
		Items:     int(p.GetItemCount()), Read: p.GetInputTokens(), Written: p.GetOutputTokens(),
		Calls: p.GetCallCount(), Tokens: mapreduce.Tokens{In: p.GetCallInputTokens(), Out: p.GetCallOutputTokens()},
	}
}
