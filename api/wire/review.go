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
		Principal: validText(d.By), Verdict: pb.ReviewVerdict(d.Verdict), Value: encodeJSON(d.Value), Note: validText(d.Note), ModelValue: encodeJSON(d.Model), Waited: d.Waited,
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
		By: p.GetPrincipal(), Verdict: knownOrZero(p.GetVerdict(), lastReview), Value: decodeJSON(p.GetValue()), Note: p.GetNote(), Model: decodeJSON(p.GetModelValue()), Waited: p.GetWaited(),
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

// EncodeClaim encodes which records somebody is about to review.
func EncodeClaim(c *mapreduce.Claim) *pb.ClaimRecordsRequest {
	p := &pb.ClaimRecordsRequest{JobId: string(c.Job), Time: encodeDuration(c.Time)}
	for _, id := range c.Records {
		p.RecordIds = append(p.RecordIds, string(id))
	}
	return p
}

// DecodeClaim decodes which records somebody is about to review.
func DecodeClaim(p *pb.ClaimRecordsRequest) (mapreduce.Claim, error) {
	var d decoder
	c := mapreduce.Claim{Job: d.jobID("job_id", p.GetJobId()), Time: d.decodeDuration("time", p.GetTime())}
	if n := len(p.GetRecordIds()); n > mapreduce.MaxClaimedRecords {
		d.refuseField("record_ids", "are %d; at most %d are claimed at once", n, mapreduce.MaxClaimedRecords)
		return c, d.firstError()
	}
	for _, id := range p.GetRecordIds() {
		c.Records = append(c.Records, mapreduce.RecordID(d.decodeID("record_ids", id, MaxNames)))
	}
	return c, d.firstError()
}

// EncodeRecordClaims encodes who is about to review which records.
func EncodeRecordClaims(all []mapreduce.RecordClaim) *pb.ClaimRecordsResponse {
	p := new(pb.ClaimRecordsResponse)
	for _, c := range all {
		p.Claims = append(p.Claims, &pb.RecordClaim{RecordId: string(c.Record), Principal: validText(c.By), Own: c.Own, EndTime: encodeTime(c.End)})
	}
	return p
}

// DecodeRecordClaims decodes who is about to review which records.
func DecodeRecordClaims(p *pb.ClaimRecordsResponse) (all []mapreduce.RecordClaim) {
	for _, c := range p.GetClaims() {
		all = append(all, mapreduce.RecordClaim{Record: mapreduce.RecordID(c.GetRecordId()), By: c.GetPrincipal(), Own: c.GetOwn(), End: decodeTime(c.GetEndTime())})
	}
	return all
}

// EncodeListWaiting encodes a choice of units that wait for a person.
func EncodeListWaiting(q *mapreduce.ListWaitingQuery) *pb.ListWaitingRequest {
	return &pb.ListWaitingRequest{JobId: string(q.Job), PageSize: clampInt32(q.PageSize), PageToken: q.PageToken}
}

// DecodeListWaiting decodes a choice of units that wait for a person.
func DecodeListWaiting(p *pb.ListWaitingRequest) (mapreduce.ListWaitingQuery, error) {
	var d decoder
	q := mapreduce.ListWaitingQuery{
		Job: d.jobID("job_id", p.GetJobId()), PageSize: d.pageSize(p.GetPageSize()), PageToken: p.GetPageToken(),
	}
	return q, d.firstError()
}

// EncodeWaiting encodes a page of units that wait for a person.
func EncodeWaiting(page *mapreduce.WaitingPage) *pb.ListWaitingResponse {
	return &pb.ListWaitingResponse{Units: convertEach(page.Units, encodeWaitingUnit), NextPageToken: page.NextPageToken}
}

func encodeWaitingUnit(u *mapreduce.WaitingUnit) *pb.WaitingUnit {
	p := &pb.WaitingUnit{UnitId: string(u.Unit), Role: string(u.Role), Parts: convertEach(u.Parts, EncodeResultPart)}
	for _, v := range u.Values {
		p.Values = append(p.Values, &pb.WaitingValue{RecordId: string(v.Record), Field: validText(v.Field), Reason: v.Why})
	}
	return p
}

// DecodeWaiting decodes a page of units that wait for a person.
func DecodeWaiting(p *pb.ListWaitingResponse) *mapreduce.WaitingPage {
	return &mapreduce.WaitingPage{Units: convertEach(p.GetUnits(), decodeWaitingUnit), NextPageToken: p.GetNextPageToken()}
}

func decodeWaitingUnit(p *pb.WaitingUnit) *mapreduce.WaitingUnit {
	u := &mapreduce.WaitingUnit{Unit: mapreduce.UnitID(p.GetUnitId()), Role: mapreduce.Role(p.GetRole())}
	for _, v := range p.GetValues() {
		u.Values = append(u.Values, mapreduce.WaitingValue{Record: mapreduce.RecordID(v.GetRecordId()), Field: v.GetField(), Why: v.GetReason()})
	}
	for _, part := range p.GetParts() {
		if decoded := DecodeResultPart(part); decoded != nil { // a newer kind is skipped
			u.Parts = append(u.Parts, decoded)
		}
	}
	return u
}
