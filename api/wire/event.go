package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeEvents encodes a page of checkpoints.
func EncodeEvents(page *mapreduce.EventPage) *pb.ListEventsResponse {
	return &pb.ListEventsResponse{
		Checkpoints:   convertEach(page.Checkpoints, EncodeCheckpoint),
		Seals:         convertEach(page.Seals, encodeSeal),
		NextPageToken: page.NextPageToken,
	}
}

// DecodeEvents decodes a page of checkpoints.
func DecodeEvents(p *pb.ListEventsResponse) *mapreduce.EventPage {
	return &mapreduce.EventPage{
		Checkpoints:   convertEach(p.GetCheckpoints(), DecodeCheckpoint),
		Seals:         convertEach(p.GetSeals(), decodeSeal),
		NextPageToken: p.GetNextPageToken(),
	}
}

// EncodeCheckpoint encodes a checkpoint.
func EncodeCheckpoint(c *mapreduce.Checkpoint) *pb.Checkpoint {
	return &pb.Checkpoint{
		CheckpointId: c.ID,
		CreateTime:   encodeTime(c.Time),
		Kind:         pb.EventKind(c.Kind),
		NodeId:       string(c.Node),
		State:        pb.JobState(c.State),
		Completed:    encodeEach(c.Completed, encodeUnitRef),
		Failed:       encodeEach(c.Failed, encodeUnitRef),
		Tokens:       encodeTokens(c.Tokens),
		Message:      validText(c.Message),
		Progress:     encodeMark(c.Progress),
		Principal:    validText(c.Principal),
		TenantId:     string(c.Tenant),
		Deleted:      encodeDeleted(c.Deleted),
		Proof:        encodeProof(c.Proof),

		CompletedCount: c.CompletedCount,
		FailedCount:    c.FailedCount,
	}
}

func encodeProof(p mapreduce.Proof) *pb.CheckpointProof {
	if len(p.Record) == 0 {
		return nil
	}
	return &pb.CheckpointProof{Key: p.Key, Record: p.Record}
}

func encodeDeleted(d *mapreduce.DeletedJob) *pb.DeletedJob {
	if d == nil {
		return nil
	}
	return &pb.DeletedJob{
		JobId: string(d.Job), State: pb.JobState(d.State), CreateTime: encodeTime(d.Created), EndTime: encodeTime(d.Ended),
		Retention: validText(d.Rule), SealCount: d.Seals, AuditHead: d.Head,
	}
}

func decodeDeleted(p *pb.DeletedJob) *mapreduce.DeletedJob {
	if p == nil {
		return nil
	}
	return &mapreduce.DeletedJob{
		Job: mapreduce.JobID(p.GetJobId()), State: knownOrZero(p.GetState(), lastJobState), Created: decodeTime(p.GetCreateTime()),
		Ended: decodeTime(p.GetEndTime()), Rule: p.GetRetention(), Seals: p.GetSealCount(), Head: p.GetAuditHead(),
	}
}

func encodeMark(p *mapreduce.ProgressMark) *pb.ProgressMark {
	if p == nil {
		return nil
	}
	return &pb.ProgressMark{CompletedUnits: p.Completed, Tokens: encodeTokens(p.Tokens)}
}

func decodeMark(p *pb.ProgressMark) *mapreduce.ProgressMark {
	if p == nil {
		return nil
	}
	return &mapreduce.ProgressMark{Completed: p.GetCompletedUnits(), Tokens: decodeTokens(p.GetTokens())}
}

// DecodeCheckpoint decodes a checkpoint of a reply.
func DecodeCheckpoint(p *pb.Checkpoint) *mapreduce.Checkpoint {
	return &mapreduce.Checkpoint{
		ID:        p.GetCheckpointId(),
		Time:      decodeTime(p.GetCreateTime()),
		Kind:      knownOrZero(p.GetKind(), lastEventKind),
		Node:      mapreduce.NodeID(p.GetNodeId()),
		State:     knownOrZero(p.GetState(), lastJobState),
		Completed: convertEach(p.GetCompleted(), decodeUnitRef),
		Failed:    convertEach(p.GetFailed(), decodeUnitRef),
		Tokens:    decodeTokens(p.GetTokens()),
		Message:   p.GetMessage(),
		Progress:  decodeMark(p.GetProgress()),
		Principal: p.GetPrincipal(),
		Tenant:    mapreduce.TenantID(p.GetTenantId()),
		Deleted:   decodeDeleted(p.GetDeleted()),
		Proof:     mapreduce.Proof{Key: p.GetProof().GetKey(), Record: p.GetProof().GetRecord()},

		CompletedCount: p.GetCompletedCount(),
		FailedCount:    p.GetFailedCount(),
	}
}

func encodeUnitRef(p *pb.UnitRef, r *mapreduce.UnitRef) {
	p.UnitId = string(r.Unit)
	p.Attempt = clampInt32(r.Attempt)
	p.Sha256 = r.SHA256
	p.Tokens = encodeTokens(r.Tokens)
}

func decodeUnitRef(p *pb.UnitRef) mapreduce.UnitRef {
	return mapreduce.UnitRef{
		Unit:    mapreduce.UnitID(p.GetUnitId()),
		Attempt: int(p.GetAttempt()),
		SHA256:  p.GetSha256(),
		Tokens:  decodeTokens(p.GetTokens()),
	}
}

func encodeSeal(s *mapreduce.Seal) *pb.Seal {
	return &pb.Seal{
		Number:           s.Number,
		CheckpointCount:  clampInt32(s.Count),
		LastCheckpointId: s.Last,
		Hash:             s.Hash,
	}
}

func decodeSeal(p *pb.Seal) *mapreduce.Seal {
	return &mapreduce.Seal{
		Number: p.GetNumber(),
		Count:  int(p.GetCheckpointCount()),
		Last:   p.GetLastCheckpointId(),
		Hash:   p.GetHash(),
	}
}
