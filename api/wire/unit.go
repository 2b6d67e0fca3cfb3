package wire

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeUnit encodes a unit.
func EncodeUnit(u *mapreduce.Unit) *pb.Unit {
	return &pb.Unit{
		UnitId:     string(u.ID),
		JobId:      string(u.Job),
		DocumentId: string(u.Document),
		Kind:       pb.UnitKind(u.Kind),
		Level:      clampInt32(u.Level),
		Index:      u.Index,
		State:      pb.UnitState(u.State),
		Attempts:   clampInt32(u.Attempts),
		Failures:   clampInt32(u.Failures),

		ShareTokens: u.Share,
		Tokens:      encodeTokens(u.Tokens),
		CostMicros:  u.CostMicros,
		Elapsed:     encodeDuration(u.Elapsed),
		Errors:      validTexts(u.Errors),
		Lasting:     u.Lasting,
		Parking:     encodeParking(u.Parking),

		CallCount:     u.CallSums.Calls,
		CallLatency:   encodeDuration(u.CallSums.Latency),
		ToolCallCount: u.CallSums.Tools,
		ToolTime:      encodeDuration(u.CallSums.ToolTime),

		LargestPromptBytes: u.CallSums.Prompt,
		Savings:            encodeSavings(u.Savings),
		Models:             validTexts(u.Models),

		ChunkIndex: clampInt32(u.ChunkIndex),
		ChunkCount: clampInt32(u.Chunks),
		StartChar:  u.Start,
		EndChar:    u.End,
		Confidence: u.Confidence,
		DependsOn:  stringsOf(u.DependsOn),
		Continues:  u.Continues,
		Output:     u.Output,
		Stage:      u.Stage,
		Locations:  encodeLocations(u.Locations),
	}
}

// DecodeUnit decodes a unit of a reply.
func DecodeUnit(p *pb.Unit) *mapreduce.Unit {
	return &mapreduce.Unit{
		ID:       mapreduce.UnitID(p.GetUnitId()),
		Job:      mapreduce.JobID(p.GetJobId()),
		Document: mapreduce.DocumentID(p.GetDocumentId()),
		Kind:     knownOrZero(p.GetKind(), lastUnitKind),
		Level:    int(p.GetLevel()),
		Index:    p.GetIndex(),
		State:    knownOrZero(p.GetState(), lastUnitState),
		Attempts: int(p.GetAttempts()),
		Failures: int(p.GetFailures()),

		Share:      p.GetShareTokens(),
		Tokens:     decodeTokens(p.GetTokens()),
		CostMicros: p.GetCostMicros(),
		Elapsed:    p.GetElapsed().AsDuration(),
		Errors:     p.GetErrors(),
		Lasting:    p.GetLasting(),
		Parking:    believedParking(p.GetParking()),
		CallSums: mapreduce.CallSums{
			Calls: p.GetCallCount(), Latency: p.GetCallLatency().AsDuration(),
			Tools: p.GetToolCallCount(), ToolTime: p.GetToolTime().AsDuration(), Prompt: p.GetLargestPromptBytes(),
		},
		Savings: decodeSavings(p.GetSavings()),
		Models:  p.GetModels(),

		ChunkIndex: int(p.GetChunkIndex()),
		Chunks:     int(p.GetChunkCount()),
		Start:      p.GetStartChar(),
		End:        p.GetEndChar(),
		Confidence: p.GetConfidence(),
		DependsOn:  convertEach(p.GetDependsOn(), func(s string) mapreduce.UnitID { return mapreduce.UnitID(s) }),
		Continues:  p.GetContinues(),
		Output:     p.GetOutput(),
		Stage:      p.GetStage(),
		Locations:  decodeLocations(p.GetLocations()),
	}
}

func encodeParking(p *mapreduce.Parking) *pb.Parking {
	if p == nil {
		return nil
	}
	return &pb.Parking{Handle: validText(p.Handle), WakeAfter: encodeDuration(p.WakeAfter), Note: validText(p.Note), Line: p.Line, Kept: p.Kept, Scores: p.Scores}
}

func decodeParking(d *decoder, p *pb.Parking) mapreduce.Parking {
	scores := p.GetScores()
	if len(scores) > mapreduce.MaxScores || slices.ContainsFunc(scores, func(s uint32) bool { return s > mapreduce.MaxScore }) {
		d.refuseField("scores", "has %d numbers; at most %d are taken, each of at most %d", len(scores), mapreduce.MaxScores, mapreduce.MaxScore)
		scores = nil
	}

	return mapreduce.Parking{
		Handle:    d.decodeID("handle", p.GetHandle(), mapreduce.MaxHandle),
		WakeAfter: d.decodeDuration("wake_after", p.GetWakeAfter()),
		Note:      p.GetNote(),
		Line:      p.GetLine(),
		Kept:      d.decodeCount64("kept", p.GetKept()),
		Scores:    scores,
	}
}

// believedParking decodes, without checks, what a unit of a reply waits for.
func believedParking(p *pb.Parking) *mapreduce.Parking {
	if p == nil {
		return nil
	}
	return &mapreduce.Parking{Handle: p.GetHandle(), WakeAfter: p.GetWakeAfter().AsDuration(), Note: p.GetNote(), Line: p.GetLine(), Kept: p.GetKept(), Scores: p.GetScores()}
}

// EncodeUnits encodes a page of units.
func EncodeUnits(page *mapreduce.UnitPage) *pb.ListUnitsResponse {
	return &pb.ListUnitsResponse{
		Units:         convertEach(page.Units, EncodeUnit),
		Standings:     convertEach(page.Standings, encodeStanding),
		NextPageToken: page.NextPageToken,
	}
}

// DecodeUnits decodes a page of units.
func DecodeUnits(p *pb.ListUnitsResponse) *mapreduce.UnitPage {
	return &mapreduce.UnitPage{
		Units:         convertEach(p.GetUnits(), DecodeUnit),
		Standings:     convertEach(p.GetStandings(), decodeStanding),
		NextPageToken: p.GetNextPageToken(),
	}
}

func encodeStanding(s mapreduce.UnitStanding) *pb.UnitStanding {
	return &pb.UnitStanding{State: pb.UnitState(s.State), Parked: s.Parked}
}

func decodeStanding(p *pb.UnitStanding) mapreduce.UnitStanding {
	return mapreduce.UnitStanding{State: knownOrZero(p.GetState(), lastUnitState), Parked: p.GetParked()}
}
