package wire

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeFromWorker encodes a message of a worker. The result shares m's bytes.
func EncodeFromWorker(m *protocol.FromWorker) *pb.WorkRequest {
	return &pb.WorkRequest{
		Hello:     encodeHello(m.Hello),
		Reports:   encodeEach(m.Reports, encodeReport),
		Started:   encodeEach(m.Started, fillHeld),
		Reserve:   encodeEach(m.Reserve, encodeReserve),
		Heartbeat: encodeHeartbeat(m.Heartbeat),
		Drain:     m.Drain,
		Limits:    encodeEach(m.Limits, encodeLimitNote),
		Manners:   encodeEach(m.Manners, encodeManners),
	}
}

// DecodeFromWorker decodes a message of a worker. The result shares p's bytes.
func DecodeFromWorker(p *pb.WorkRequest) (*protocol.FromWorker, error) {
	d := new(decoder)
	m := &protocol.FromWorker{
		Hello:     decodeOptional(d, "hello", p.GetHello(), decodeHello),
		Reports:   decodeList(d, "reports", p.GetReports(), decodeReport),
		Started:   decodeList(d, "started", p.GetStarted(), decodeHeld),
		Reserve:   decodeList(d, "reserve", p.GetReserve(), decodeReserve),
		Heartbeat: decodeOptional(d, "heartbeat", p.GetHeartbeat(), decodeHeartbeat),
		Drain:     p.GetDrain(),
		Limits:    decodeList(d, "limits", p.GetLimits(), decodeLimitNote),
		Manners:   decodeList(d, "manners", p.GetManners(), decodeManners),
	}

	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

func encodeHello(h *protocol.Hello) *pb.Hello {
	if h == nil {
		return nil
	}

	return &pb.Hello{
		SessionId: string(h.Session),
		Version:   validText(h.Version),
		Slots:     clampInt32(h.Slots),
		Prefetch:  clampInt32(h.Prefetch),
		Offer:     encodeOffer(h.Offer),
		Embedded:  h.Embedded,
		Address:   validText(h.Address),
		Holding:   encodeEach(h.Holding, fillHeld),
	}
}

func decodeHello(d *decoder, p *pb.Hello) protocol.Hello {
	return protocol.Hello{
		Session:  mapreduce.SessionID(d.decodeID("session_id", p.GetSessionId(), MaxNames)),
		Version:  d.decodeName("version", p.GetVersion(), MaxNames),
		Slots:    d.decodeCount("slots", p.GetSlots()),
		Prefetch: d.decodeCount("prefetch", p.GetPrefetch()),
		Offer:    decodePart(d, "offer", p.GetOffer(), decodeOffer),
		Embedded: p.GetEmbedded(),
		Address:  d.decodeName("address", p.GetAddress(), MaxNames),
		Holding:  decodeList(d, "holding", p.GetHolding(), decodeHeld),
	}
}

func encodeOffer(o mapreduce.Offer) *pb.Offer {
	return &pb.Offer{Providers: validTexts(o.Providers), Tools: validTexts(o.Tools), Parsers: validTexts(o.Parsers), Dollars: o.Dollars, Batches: validTexts(o.Batches), Reviews: o.Reviews, Deadlines: o.Deadlines}
}

func decodeOffer(d *decoder, p *pb.Offer) mapreduce.Offer {
	for _, f := range []struct {
		name string
		list []string
	}{{"providers", p.GetProviders()}, {"tools", p.GetTools()}, {"parsers", p.GetParsers()}, {"batches", p.GetBatches()}} {
		if len(f.list) > MaxParts {
			d.refuseField(f.name, "has more than %d entries", MaxParts)
		}
	}
	return mapreduce.Offer{Providers: p.GetProviders(), Tools: p.GetTools(), Parsers: p.GetParsers(), Dollars: p.GetDollars(), Batches: p.GetBatches(), Reviews: p.GetReviews(), Deadlines: p.GetDeadlines()}
}

func fillHeld(p *pb.Held, h *protocol.Held) {
	p.JobId, p.UnitId, p.Attempt, p.Running = string(h.Job), string(h.Unit), clampInt32(h.Attempt), h.Running
}

func encodeHeld(h protocol.Held) *pb.Held {
	p := new(pb.Held)
	fillHeld(p, &h)
	return p
}

func decodeHeld(d *decoder, p *pb.Held) protocol.Held {
	return protocol.Held{
		Job:     d.jobID("job_id", p.GetJobId()),
		Unit:    d.unitID("unit_id", p.GetUnitId()),
		Attempt: d.decodeCount("attempt", p.GetAttempt()),
		Running: p.GetRunning(),
	}
}

func encodeReport(p *pb.Report, r *protocol.Report) {
	p.JobId, p.UnitId, p.Attempt = string(r.Job), string(r.Unit), clampInt32(r.Attempt)
	p.Outcome = pb.Outcome(r.Outcome)

	p.Output = r.Output
	p.OutputBytes = r.Length
	p.Sha256 = r.SHA256
	p.PromptTokens = r.Size
	p.Confidence = r.Confidence

	p.Tokens = encodeTokens(r.Tokens)
	p.CostMicros = r.CostMicros
	p.Charges = encodeEach(r.Charges, encodeCharge)
	p.CallCount, p.CallLatency = clampInt32(r.Calls), encodeDuration(r.Latency)
	p.ToolCallCount, p.ToolTime = clampInt32(r.Tools), encodeDuration(r.ToolTime)
	p.LargestPromptBytes = r.Prompt
	p.Elapsed = encodeDuration(r.Elapsed)
	p.Savings = encodeSavings(r.Savings)
	p.Models, p.FailingModels = validTexts(r.Models), validTexts(r.Failing)

	p.FailureClass = encodeChoice[pb.FailureClass](r.Class)
	p.Errors = validTexts(r.Errors)
	p.RetryAfter = encodeDuration(r.RetryAfter)
	p.Breaker = validText(r.Breaker)
	p.Parking = encodeParking(r.Parking)
}

// maxModelName bounds the name of a model that answered, in bytes.
const maxModelName = 1024

// checkModels returns what a worker says of which models answered, as far as there is room for it: what
// is too much is left out, because the unit's output is worth more.
func checkModels(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" || len(name) > maxModelName })
	return names[:min(len(names), mapreduce.MaxModels)]
}

func decodeReport(d *decoder, p *pb.Report) protocol.Report {
	r := protocol.Report{
		Job:     d.jobID("job_id", p.GetJobId()),
		Unit:    d.unitID("unit_id", p.GetUnitId()),
		Attempt: d.decodeCount("attempt", p.GetAttempt()),
		Outcome: decodeEnum(d, "outcome", p.GetOutcome(), lastOutcome),

		Output:     p.GetOutput(),
		Length:     d.decodeCount64("output_bytes", p.GetOutputBytes()),
		SHA256:     p.GetSha256(),
		Size:       d.decodeCount64("prompt_tokens", p.GetPromptTokens()),
		Confidence: d.decodeFraction("confidence", p.GetConfidence()),

		Tokens:     decodePart(d, "tokens", p.GetTokens(), checkTokens),
		CostMicros: d.decodeCount64("cost_micros", p.GetCostMicros()),
		Charges:    decodeCharges(p.GetCharges()),
		Calls:      d.decodeCount("call_count", p.GetCallCount()),
		Latency:    d.decodeDuration("call_latency", p.GetCallLatency()),
		Tools:      d.decodeCount("tool_call_count", p.GetToolCallCount()),
		ToolTime:   d.decodeDuration("tool_time", p.GetToolTime()),
		Prompt:     d.decodeCount64("largest_prompt_bytes", p.GetLargestPromptBytes()),
		Elapsed:    d.decodeDuration("elapsed", p.GetElapsed()),
		Savings:    decodePart(d, "savings", p.GetSavings(), checkSavings),
		Models:     checkModels(p.GetModels()),
		Failing:    checkModels(p.GetFailingModels()),

		Class:      decodeEnumOrDefault(d, "failure_class", p.GetFailureClass(), lastFailureClass),
		Errors:     p.GetErrors(),
		RetryAfter: d.decodeDuration("retry_after", p.GetRetryAfter()),
		Breaker:    p.GetBreaker(),
		Parking:    decodeOptional(d, "parking", p.GetParking(), decodeParking),
	}

	if r.Outcome == protocol.Parked && r.Parking == nil {
		d.refuseField("parking", "is missing")
	}

	return r
}

// checkTokens refuses negative counts of tokens.
func checkTokens(d *decoder, p *pb.Tokens) mapreduce.Tokens {
	return mapreduce.Tokens{
		In:  d.decodeCount64("input", p.GetInput()),
		Out: d.decodeCount64("output", p.GetOutput()),
	}
}

func encodeReserve(p *pb.ReserveRequest, r *protocol.ReserveRequest) {
	p.Held, p.Tokens = encodeHeld(r.Held), r.Tokens
}

func decodeReserve(d *decoder, p *pb.ReserveRequest) protocol.ReserveRequest {
	return protocol.ReserveRequest{
		Held:   decodePart(d, "held", p.GetHeld(), decodeHeld),
		Tokens: d.decodeCount64("tokens", p.GetTokens()),
	}
}

func encodeHeartbeat(h *protocol.Heartbeat) *pb.Heartbeat {
	if h == nil {
		return nil
	}

	return &pb.Heartbeat{
		Progress: encodeEach(h.Progress, func(p *pb.Progress, v *protocol.Progress) {
			p.Held, p.Tokens, p.Note, p.NoteNumber = encodeHeld(v.Held), encodeTokens(v.Tokens), validText(v.Note), v.Number
		}),
		Breakers: encodeEach(h.Breakers, func(p *pb.BreakerState, b *protocol.BreakerState) {
			p.Name, p.OpenFor = validText(b.Name), encodeDuration(b.OpenFor)
		}),
	}
}

func decodeHeartbeat(d *decoder, p *pb.Heartbeat) protocol.Heartbeat {
	return protocol.Heartbeat{
		Progress: decodeList(d, "progress", p.GetProgress(), decodeProgress),
		Breakers: decodeList(d, "breakers", p.GetBreakers(), decodeBreaker),
	}
}

func decodeProgress(d *decoder, p *pb.Progress) protocol.Progress {
	return protocol.Progress{
		Held:   decodePart(d, "held", p.GetHeld(), decodeHeld),
		Tokens: decodePart(d, "tokens", p.GetTokens(), checkTokens),
		Note:   p.GetNote(),
		Number: d.decodeCount64("note_number", p.GetNoteNumber()),
	}
}

func decodeBreaker(d *decoder, p *pb.BreakerState) protocol.BreakerState {
	return protocol.BreakerState{
		Name:    d.decodeID("name", p.GetName(), MaxUnitID),
		OpenFor: d.decodeDuration("open_for", p.GetOpenFor()),
	}
}
