package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// MaxField bounds the path of a field in a request, in bytes.
const MaxField = 4 << 10

// EncodeNewDecision encodes a decision that is to be taken.
func EncodeNewDecision(d *mapreduce.NewDecision) *pb.DecideValueRequest {
	p := &pb.DecideValueRequest{
		JobId: string(d.Job), RecordId: string(d.Record), Field: validText(d.Field), RequestId: string(d.Request),
		Verdict: pb.ReviewVerdict(d.Verdict), Value: encodeJSON(d.Value), Note: validText(d.Note), ModelValue: encodeJSON(d.Model),
	}
	if d.Passage != nil {
		p.Passage = &pb.Passage{
			DocumentId: string(d.Passage.Document), UnitId: string(d.Passage.Unit), StartByte: d.Passage.ByteStart, EndByte: d.Passage.ByteEnd,
		}
	}
	return p
}

// DecodeNewDecision decodes a decision that is to be taken.
func DecodeNewDecision(p *pb.DecideValueRequest) (mapreduce.NewDecision, error) {
	var d decoder
	out := mapreduce.NewDecision{
		Job:     d.jobID("job_id", p.GetJobId()),
		Record:  mapreduce.RecordID(d.decodeID("record_id", p.GetRecordId(), MaxNames)),
		Field:   d.decodeID("field", p.GetField(), MaxField),
		Request: mapreduce.RequestID(d.decodeName("request_id", p.GetRequestId(), MaxNames)),
		Verdict: decodeEnum(&d, "verdict", p.GetVerdict(), lastReview),
		Value:   decodeJSON(d.decodeName("value", p.GetValue(), mapreduce.MaxReviewedValue)),
		Note:    d.decodeName("note", p.GetNote(), mapreduce.MaxReviewNote),
		Model:   decodeJSON(d.decodeName("model_value", p.GetModelValue(), mapreduce.MaxReviewedValue)),
	}

	out.Passage = decodeOptional(&d, "passage", p.GetPassage(), func(d *decoder, p *pb.Passage) mapreduce.Passage {
		return mapreduce.Passage{
			Document:  d.documentID("document_id", p.GetDocumentId()),
			Unit:      mapreduce.UnitID(d.decodeName("unit_id", p.GetUnitId(), MaxUnitID)),
			ByteStart: d.decodeCount64("start_byte", p.GetStartByte()),
			ByteEnd:   d.decodeCount64("end_byte", p.GetEndByte()),
		}
	})
	return out, d.firstError()
}

// EncodeDecision encodes a decision.
func EncodeDecision(d *mapreduce.Decision) *pb.Decision {
	p := &pb.Decision{
		RecordId: string(d.Record), Field: validText(d.Field), Number: d.Number, RequestId: string(d.Request), CreateTime: encodeTime(d.Time),
		Principal: validText(d.By), Verdict: pb.ReviewVerdict(d.Verdict), Value: encodeJSON(d.Value), Note: validText(d.Note), ModelValue: encodeJSON(d.Model),
	}
	if d.Passage != nil {
		p.Passage = encodeCitation(d.Passage)
	}
	return p
}

// DecodeDecision decodes a decision.
func DecodeDecision(p *pb.Decision) *mapreduce.Decision {
	d := &mapreduce.Decision{
		Record: mapreduce.RecordID(p.GetRecordId()), Field: p.GetField(), Number: p.GetNumber(), Request: mapreduce.RequestID(p.GetRequestId()), Time: decodeTime(p.GetCreateTime()),
		By: p.GetPrincipal(), Verdict: knownOrZero(p.GetVerdict(), lastReview), Value: decodeJSON(p.GetValue()), Note: p.GetNote(), Model: decodeJSON(p.GetModelValue()),
	}
	if p.GetPassage() != nil {
		d.Passage = decodeCitation(p.GetPassage())
	}
	return d
}

// EncodeListDecisions encodes a choice of decisions.
func EncodeListDecisions(q *mapreduce.ListDecisionsQuery) *pb.ListDecisionsRequest {
	return &pb.ListDecisionsRequest{JobId: string(q.Job), RecordId: string(q.Record), PageSize: clampInt32(q.PageSize), PageToken: q.PageToken}
}

// DecodeListDecisions decodes a choice of decisions.
func DecodeListDecisions(p *pb.ListDecisionsRequest) (mapreduce.ListDecisionsQuery, error) {
	var d decoder
	q := mapreduce.ListDecisionsQuery{
		Job:       d.jobID("job_id", p.GetJobId()),
		Record:    mapreduce.RecordID(d.decodeName("record_id", p.GetRecordId(), MaxNames)),
		PageSize:  d.pageSize(p.GetPageSize()),
		PageToken: p.GetPageToken(),
	}
	return q, d.firstError()
}

// EncodeDecisions encodes a page of decisions.
func EncodeDecisions(page *mapreduce.DecisionPage) *pb.ListDecisionsResponse {
	return &pb.ListDecisionsResponse{Decisions: convertEach(page.Decisions, EncodeDecision), NextPageToken: page.NextPageToken}
}

// DecodeDecisions decodes a page of decisions.
func DecodeDecisions(p *pb.ListDecisionsResponse) *mapreduce.DecisionPage {
	return &mapreduce.DecisionPage{Decisions: convertEach(p.GetDecisions(), DecodeDecision), NextPageToken: p.GetNextPageToken()}
}

func encodeReviewed(c *mapreduce.ReviewCount) *pb.ReviewCount {
	if c == nil {
		return nil
	}
	return &pb.ReviewCount{
		AcceptedCount: c.Accepted, CorrectedCount: c.Corrected, RejectedCount: c.Rejected, AbsentCount: c.Absent, UnfittingCount: c.Unfitting,
	}
}

func decodeReviewed(p *pb.ReviewCount) *mapreduce.ReviewCount {
	if p == nil {
		return nil
	}
	return &mapreduce.ReviewCount{
		Accepted: p.GetAcceptedCount(), Corrected: p.GetCorrectedCount(), Rejected: p.GetRejectedCount(), Absent: p.GetAbsentCount(), Unfitting: p.GetUnfittingCount(),
	}
}
