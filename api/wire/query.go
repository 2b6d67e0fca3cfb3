package wire

import (
	"errors"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// DecodeJobID decodes the field job_id of a request.
func DecodeJobID(s string) (mapreduce.JobID, error) {
	var d decoder
	id := d.jobID("job_id", s)
	return id, d.firstError()
}

// EncodeListJobs encodes a choice of jobs.
func EncodeListJobs(q *mapreduce.ListJobsQuery) *pb.ListJobsRequest {
	return &pb.ListJobsRequest{
		States:    encodeJobStates(q.States),
		TenantId:  string(q.Tenant),
		Labels:    encodeLabelFilters(q.Labels),
		PageSize:  clampInt32(q.PageSize),
		PageToken: q.PageToken,
	}
}

// DecodeListJobs decodes a choice of jobs.
func DecodeListJobs(p *pb.ListJobsRequest) (mapreduce.ListJobsQuery, error) {
	var d decoder
	q := mapreduce.ListJobsQuery{
		States:    decodeEnums(&d, "states", p.GetStates(), lastJobState),
		Tenant:    mapreduce.TenantID(d.decodeName("tenant_id", p.GetTenantId(), MaxNames)),
		Labels:    decodeLabelFilters(&d, p.GetLabels()),
		PageSize:  d.pageSize(p.GetPageSize()),
		PageToken: p.GetPageToken(),
	}
	return q, d.firstError()
}

func encodeLabelFilters(all []label.Filter) []string {
	return convertEach(all, func(f label.Filter) string { return validText(f.String()) })
}

func decodeLabelFilters(d *decoder, texts []string) []label.Filter {
	all, err := label.ParseFilters(texts)
	if e, ok := errors.AsType[*errs.Error](err); ok {
		d.refuseField("labels", "%s", e.Message)
	}
	return all
}

// EncodeJobs encodes a page of jobs.
func EncodeJobs(page *mapreduce.JobPage) *pb.ListJobsResponse {
	return &pb.ListJobsResponse{
		Jobs:          convertEach(page.Jobs, EncodeJob),
		NextPageToken: page.NextPageToken,
	}
}

// DecodeJobs decodes a page of jobs.
func DecodeJobs(p *pb.ListJobsResponse) *mapreduce.JobPage {
	return &mapreduce.JobPage{
		Jobs:          convertEach(p.GetJobs(), DecodeJob),
		NextPageToken: p.GetNextPageToken(),
	}
}

// EncodeResume encodes a resume of a job.
func EncodeResume(id mapreduce.JobID, r mapreduce.Resume) *pb.ResumeJobRequest {
	p := &pb.ResumeJobRequest{JobId: string(id), Cause: validText(r.Cause), Deadline: encodeTime(r.Deadline)}
	if r.BudgetIn == mapreduce.InDollars {
		p.MaxCostMicros = r.Budget
	} else {
		p.BudgetTokens = r.Budget
	}
	return p
}

// DecodeResume decodes a resume of a job.
func DecodeResume(p *pb.ResumeJobRequest) (mapreduce.JobID, mapreduce.Resume, error) {
	var d decoder
	id := d.jobID("job_id", p.GetJobId())
	var r mapreduce.Resume
	r.Budget, r.BudgetIn = decodeBudget(&d, p)
	r.Deadline = d.decodeMoment("deadline", p.GetDeadline())
	if r.Cause = p.GetCause(); len(r.Cause) > mapreduce.MaxCause {
		d.refuseField("cause", "is longer than %d bytes", mapreduce.MaxCause)
	}
	return id, r, d.firstError()
}

// EncodeMarkCause encodes what is said of a cause.
func EncodeMarkCause(id mapreduce.JobID, cause string, state mapreduce.CauseState) *pb.MarkCauseRequest {
	return &pb.MarkCauseRequest{JobId: string(id), Cause: validText(cause), State: encodeChoice[pb.CauseState](state)}
}

// DecodeMarkCause decodes what is said of a cause.
func DecodeMarkCause(p *pb.MarkCauseRequest) (mapreduce.JobID, string, mapreduce.CauseState, error) {
	var d decoder
	id, cause := d.jobID("job_id", p.GetJobId()), d.decodeID("cause", p.GetCause(), mapreduce.MaxCause)
	state := decodeEnum(&d, "state", p.GetState(), lastCauseState+1)
	if state > 0 {
		state-- // the first of the message is no state
	}
	return id, cause, state, d.firstError()
}

// DecodeWakeUnit decodes the unit to wake, the handle and the answer.
func DecodeWakeUnit(p *pb.WakeUnitRequest) (mapreduce.JobID, mapreduce.UnitID, *protocol.WakeCall, error) {
	var d decoder
	id, unit := d.jobID("job_id", p.GetJobId()), d.unitID("unit_id", p.GetUnitId())
	call := &protocol.WakeCall{Handle: d.decodeID("handle", p.GetHandle(), mapreduce.MaxHandle), Answer: p.GetAnswer()}
	if len(call.Answer) > mapreduce.MaxWakeAnswer {
		d.refuseField("answer", "is longer than %d bytes", mapreduce.MaxWakeAnswer)
	}
	return id, unit, call, d.firstError()
}

// EncodeListUnits encodes a choice of units.
func EncodeListUnits(q *mapreduce.ListUnitsQuery) *pb.ListUnitsRequest {
	return &pb.ListUnitsRequest{
		JobId:     string(q.Job),
		States:    encodeUnitStates(q.States),
		Outputs:   q.Outputs,
		Inputs:    q.Inputs,
		Standings: q.Standings,
		PageSize:  clampInt32(q.PageSize),
		PageToken: q.PageToken,
	}
}

// DecodeListUnits decodes a choice of units.
func DecodeListUnits(p *pb.ListUnitsRequest) (mapreduce.ListUnitsQuery, error) {
	var d decoder
	q := mapreduce.ListUnitsQuery{
		Job:       d.jobID("job_id", p.GetJobId()),
		States:    decodeEnums(&d, "states", p.GetStates(), lastUnitState),
		Outputs:   p.GetOutputs(),
		Inputs:    p.GetInputs(),
		Standings: p.GetStandings(),
		PageSize:  d.pageSize(p.GetPageSize()),
		PageToken: p.GetPageToken(),
	}
	return q, d.firstError()
}

// EncodeListEvents encodes a choice of checkpoints.
func EncodeListEvents(q *mapreduce.ListEventsQuery) *pb.ListEventsRequest {
	return &pb.ListEventsRequest{
		JobId:     string(q.Job),
		TenantId:  string(q.Tenant),
		Verify:    q.Verify,
		Proofs:    q.Proofs,
		Counts:    q.Counts,
		PageSize:  clampInt32(q.PageSize),
		PageToken: q.PageToken,
	}
}

// DecodeListEvents decodes a choice of checkpoints.
func DecodeListEvents(p *pb.ListEventsRequest) (mapreduce.ListEventsQuery, error) {
	var d decoder
	q := mapreduce.ListEventsQuery{
		Tenant:    mapreduce.TenantID(d.decodeName("tenant_id", p.GetTenantId(), MaxNames)),
		Verify:    p.GetVerify(),
		Proofs:    p.GetProofs(),
		Counts:    p.GetCounts(),
		PageSize:  d.pageSize(p.GetPageSize()),
		PageToken: p.GetPageToken(),
	}

	if p.GetJobId() != "" {
		q.Job = d.jobID("job_id", p.GetJobId())
	}
	return q, d.firstError()
}
