package auth

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/proto/externalscaler"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A Rule says who may call a method.
type Rule struct {
	// Roles are those of which a caller needs one. None means that each principal of the
	// policy may call the method.
	Roles []mapreduce.Role

	// Open is the name under which an operator can open the method to who is no
	// principal; "" if that cannot be done.
	Open string

	// Lasts marks calls that may last for ever. They end when what their callers have
	// shown expires, so that these show it anew.
	Lasts bool
}

// The names of services that can be opened to all who can connect.
const (
	OpenHealth     = "health"
	OpenReflection = "reflection"
)

var (
	observers  = Rule{Roles: []mapreduce.Role{mapreduce.Observer}}
	viewers    = Rule{Roles: []mapreduce.Role{mapreduce.Viewer}}
	submitters = Rule{Roles: []mapreduce.Role{mapreduce.Submitter}}
	reviewers  = Rule{Roles: []mapreduce.Role{mapreduce.Reviewer}}
	operators  = Rule{Roles: []mapreduce.Role{mapreduce.Operator}}
	workers    = Rule{Roles: []mapreduce.Role{mapreduce.Worker}}
	admins     = Rule{Roles: []mapreduce.Role{mapreduce.Admin}}
	scalers    = Rule{Roles: []mapreduce.Role{mapreduce.Scaler, mapreduce.Viewer}}
	health     = Rule{Open: OpenHealth, Lasts: true}
	reflection = Rule{Open: OpenReflection}
)

// lasting returns a rule for calls that may last for ever.
func lasting(r Rule) Rule {
	r.Lasts = true
	return r
}

// rules has each method of each service. A server does not start with a method that is not
// here.
var rules = map[string]Rule{
	pb.MapReduceService_SubmitJob_FullMethodName:         submitters,
	pb.MapReduceService_PlanJob_FullMethodName:           submitters,
	pb.MapReduceService_GetJob_FullMethodName:            observers,
	pb.MapReduceService_ListJobs_FullMethodName:          observers,
	pb.MapReduceService_WatchJob_FullMethodName:          lasting(observers),
	pb.MapReduceService_ResumeJob_FullMethodName:         operators,
	pb.MapReduceService_MarkCause_FullMethodName:         operators,
	pb.MapReduceService_PauseJob_FullMethodName:          operators,
	pb.MapReduceService_CancelJob_FullMethodName:         operators,
	pb.MapReduceService_DeleteJob_FullMethodName:         operators,
	pb.MapReduceService_ListUnits_FullMethodName:         observers,
	pb.MapReduceService_WakeUnit_FullMethodName:          operators,
	pb.MapReduceService_GetResult_FullMethodName:         viewers,
	pb.MapReduceService_GetResultFile_FullMethodName:     viewers,
	pb.MapReduceService_ReadText_FullMethodName:          viewers,
	pb.MapReduceService_DecideValue_FullMethodName:       reviewers,
	pb.MapReduceService_ListDecisions_FullMethodName:     viewers,
	pb.MapReduceService_ListWaiting_FullMethodName:       viewers,
	pb.MapReduceService_ClaimRecords_FullMethodName:      reviewers,
	pb.MapReduceService_ListEvents_FullMethodName:        observers,
	pb.MapReduceService_GetTenantUse_FullMethodName:      observers,
	pb.MapReduceService_SumCosts_FullMethodName:          observers,
	pb.MapReduceService_ListCertificates_FullMethodName:  viewers,
	pb.MapReduceService_DeleteCertificate_FullMethodName: operators,
	pb.MapReduceService_GetCaller_FullMethodName:         {},

	pb.AdminService_CheckStore_FullMethodName:       admins,
	pb.AdminService_GetFleet_FullMethodName:         admins,
	pb.AdminService_GetAnswerCache_FullMethodName:   operators,
	pb.AdminService_ClearAnswerCache_FullMethodName: operators,

	pb.WorkerService_Work_FullMethodName:    lasting(workers),
	pb.WorkerService_GetBlob_FullMethodName: workers,
	pb.WorkerService_PutBlob_FullMethodName: workers,

	externalscaler.ExternalScaler_IsActive_FullMethodName:       scalers,
	externalscaler.ExternalScaler_StreamIsActive_FullMethodName: lasting(scalers),
	externalscaler.ExternalScaler_GetMetricSpec_FullMethodName:  scalers,
	externalscaler.ExternalScaler_GetMetrics_FullMethodName:     scalers,

	"/grpc.health.v1.Health/Check": health,
	"/grpc.health.v1.Health/List":  health,
	"/grpc.health.v1.Health/Watch": health,

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      reflection,
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": reflection,
}

// RuleOf returns the rule of a method, by its full name, /SERVICE/METHOD.
func RuleOf(method string) (r Rule, found bool) {
	r, found = rules[method]
	return r, found
}

// allows reports whether a principal may call a method.
func (r Rule) allows(by mapreduce.Principal) bool {
	return slices.ContainsFunc(r.Roles, by.Has) || len(r.Roles) == 0 && len(by.Roles) > 0
}
