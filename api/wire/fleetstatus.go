package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeFleetStatus encodes how a fleet stands.
func EncodeFleetStatus(f *mapreduce.FleetStatus) *pb.FleetStatus {
	p := &pb.FleetStatus{NodeId: validText(string(f.Node)), Time: encodeTime(f.Time), MoreWorkers: f.MoreWorkers, Store: encodeStoreStatus(f.Store)}
	for _, s := range f.Servers {
		p.Servers = append(p.Servers, &pb.ServerStatus{NodeId: validText(string(s.Node)), Silent: encodeDuration(s.Silent), Dead: s.Dead})
	}
	for i := range f.Workers {
		p.Workers = append(p.Workers, encodeWorkerStatus(&f.Workers[i]))
	}

	for _, t := range f.Tenants {
		p.Tenants = append(p.Tenants, &pb.TenantQueue{TenantId: validText(string(t.Tenant)), Jobs: t.Jobs, Running: t.Running, Ready: t.Ready, Age: encodeDuration(t.Age)})
	}
	for _, m := range f.Models {
		p.Models = append(p.Models, &pb.ModelStatus{
			Name: validText(m.Name), BreakerOpen: m.BreakerOpen, Pause: encodeDuration(m.Pause), Calls: m.Calls, Rates: encodeRates(m.Rates),
		})
	}
	return p
}

func encodeWorkerStatus(w *mapreduce.WorkerStatus) *pb.WorkerStatus {
	p := &pb.WorkerStatus{
		SessionId: validText(string(w.Session)), NodeId: validText(string(w.Node)), Embedded: w.Embedded, Known: w.Known, Version: validText(w.Version),
		TenantId: validText(string(w.Tenant)), Slots: clampInt32(w.Slots), Prefetch: clampInt32(w.Prefetch), Held: clampInt32(w.Held),
		Draining: w.Draining, Away: w.Away, SeenTime: encodeTime(w.Seen), Refused: clampInt32(w.Refused), Breakers: validTexts(w.Breakers),
	}
	if w.Known {
		p.Offer = encodeOffer(w.Offer)
	}
	return p
}

func encodeStoreStatus(s mapreduce.StoreStatus) *pb.StoreStatus {
	return &pb.StoreStatus{
		Answers: s.Answers, Full: s.Full, Read: encodeDuration(s.Read), Write: encodeDuration(s.Write),
		Commits: s.Commits, Reads: s.Reads, Conflicts: s.Conflicts, TooOld: s.TooOld, Unknown: s.Unknown,
	}
}

// DecodeFleetStatus decodes the reply that says how a fleet stands.
func DecodeFleetStatus(p *pb.FleetStatus) *mapreduce.FleetStatus {
	f := &mapreduce.FleetStatus{Node: mapreduce.NodeID(p.GetNodeId()), Time: decodeTime(p.GetTime()), MoreWorkers: p.GetMoreWorkers(), Store: decodeStoreStatus(p.GetStore())}
	for _, s := range p.GetServers() {
		f.Servers = append(f.Servers, mapreduce.ServerStatus{Node: mapreduce.NodeID(s.GetNodeId()), Silent: s.GetSilent().AsDuration(), Dead: s.GetDead()})
	}
	for _, w := range p.GetWorkers() {
		f.Workers = append(f.Workers, decodeWorkerStatus(w))
	}

	for _, t := range p.GetTenants() {
		f.Tenants = append(f.Tenants, mapreduce.TenantQueue{
			Tenant: mapreduce.TenantID(t.GetTenantId()), Jobs: t.GetJobs(), Running: t.GetRunning(), Ready: t.GetReady(), Age: t.GetAge().AsDuration(),
		})
	}
	for _, m := range p.GetModels() {
		f.Models = append(f.Models, mapreduce.ModelStatus{
			Name: m.GetName(), BreakerOpen: m.GetBreakerOpen(), Pause: m.GetPause().AsDuration(), Calls: m.GetCalls(),
			Rates: mapreduce.Rates{Requests: m.GetRates().GetRequests(), Input: m.GetRates().GetInputTokens(), Output: m.GetRates().GetOutputTokens()},
		})
	}

	return f
}

func decodeWorkerStatus(w *pb.WorkerStatus) mapreduce.WorkerStatus {
	return mapreduce.WorkerStatus{
		Session: mapreduce.SessionID(w.GetSessionId()), Node: mapreduce.NodeID(w.GetNodeId()), Embedded: w.GetEmbedded(), Known: w.GetKnown(),
		Version: w.GetVersion(), Tenant: mapreduce.TenantID(w.GetTenantId()), Slots: int(w.GetSlots()), Prefetch: int(w.GetPrefetch()), Held: int(w.GetHeld()),
		Draining: w.GetDraining(), Away: w.GetAway(), Seen: decodeTime(w.GetSeenTime()), Refused: int(w.GetRefused()), Breakers: w.GetBreakers(),
		Offer: mapreduce.Offer{Providers: w.GetOffer().GetProviders(), Tools: w.GetOffer().GetTools(), Parsers: w.GetOffer().GetParsers()},
	}
}

func decodeStoreStatus(s *pb.StoreStatus) mapreduce.StoreStatus {
	return mapreduce.StoreStatus{
		Answers: s.GetAnswers(), Full: s.GetFull(), Read: s.GetRead().AsDuration(), Write: s.GetWrite().AsDuration(),
		Commits: s.GetCommits(), Reads: s.GetReads(), Conflicts: s.GetConflicts(), TooOld: s.GetTooOld(), Unknown: s.GetUnknown(),
	}
}
