package wire

import (
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func encodeCharge(p *pb.Charge, c *mapreduce.Charge) {
	p.Model, p.Tier = validText(c.Model), validText(c.Tier)
	p.CallCount, p.Tokens, p.CostMicros, p.UnpricedTokens = c.Calls, encodeTokens(c.Tokens), c.CostMicros, c.Unpriced
}

func decodeCharge(p *pb.Charge) mapreduce.Charge {
	return mapreduce.Charge{
		Model: p.GetModel(), Tier: p.GetTier(),
		Calls: p.GetCallCount(), Tokens: decodeTokens(p.GetTokens()), CostMicros: p.GetCostMicros(), Unpriced: p.GetUnpricedTokens(),
	}
}

// maxTierName bounds the name of a tier, in bytes.
const maxTierName = 64

// decodeCharges returns what a worker says of whose its spending is, as far as there is room for it: what is
// left out counts as not known, because the unit's output is worth more.
func decodeCharges(all []*pb.Charge) []mapreduce.Charge {
	charges := convertEach(all[:min(len(all), mapreduce.MaxCharges)], decodeCharge)
	return slices.DeleteFunc(charges, func(c mapreduce.Charge) bool { return len(c.Model) > maxModelName || len(c.Tier) > maxTierName })
}

// EncodeCostQuery encodes a question for costs.
func EncodeCostQuery(q *mapreduce.CostQuery) *pb.SumCostsRequest {
	return &pb.SumCostsRequest{
		TenantId: string(q.Tenant), SinceDay: encodeDay(q.Since), UntilDay: encodeDay(q.Until), Labels: encodeLabelFilters(q.Labels),
		Models: validTexts(q.Models), Tiers: validTexts(q.Tiers),
		By: convertEach(q.By, func(d mapreduce.CostDimension) string { return validText(string(d)) }),
	}
}

func encodeDay(day time.Time) string {
	if day.IsZero() {
		return ""
	}
	return day.UTC().Format(time.DateOnly)
}

// DecodeCostQuery decodes a question for costs.
func DecodeCostQuery(p *pb.SumCostsRequest) (mapreduce.CostQuery, error) {
	var d decoder
	q := mapreduce.CostQuery{
		Tenant: mapreduce.TenantID(d.decodeName("tenant_id", p.GetTenantId(), MaxNames)),
		Labels: decodeLabelFilters(&d, p.GetLabels()),
		Models: decodeFilter(&d, "models", p.GetModels()),
		Tiers:  decodeFilter(&d, "tiers", p.GetTiers()),
	}

	var err error
	if err = d.firstError(); err != nil {
		return q, err
	}
	if q.Since, err = mapreduce.ReadDay("since_day", p.GetSinceDay()); err != nil {
		return q, err
	}
	if q.Until, err = mapreduce.ReadDay("until_day", p.GetUntilDay()); err != nil {
		return q, err
	}
	q.By, err = mapreduce.ParseCostDimensions(p.GetBy())
	return q, err
}

// decodeFilter decodes values any of which is asked for.
func decodeFilter(d *decoder, field string, values []string) []string {
	if len(values) > mapreduce.MaxCostFilters {
		d.refuseField(field, "has %d values; at most %d may be given", len(values), mapreduce.MaxCostFilters)
	}
	return values
}

// EncodeCostSums encodes costs.
func EncodeCostSums(s *mapreduce.CostSums) *pb.SumCostsResponse {
	p := &pb.SumCostsResponse{Sum: encodeCostRow(&mapreduce.CostRow{Charge: s.Sum})}
	for i := range s.Rows {
		p.Rows = append(p.Rows, encodeCostRow(&s.Rows[i]))
	}
	return p
}

func encodeCostRow(r *mapreduce.CostRow) *pb.CostRow {
	return &pb.CostRow{
		Group: r.Group, CallCount: r.Calls, InputTokens: r.Tokens.In, OutputTokens: r.Tokens.Out,
		CostMicros: r.CostMicros, UnpricedTokens: r.Unpriced,
	}
}

// DecodeCostSums decodes costs.
func DecodeCostSums(p *pb.SumCostsResponse) *mapreduce.CostSums {
	s := &mapreduce.CostSums{Sum: decodeCostRow(p.GetSum()).Charge}
	for _, r := range p.GetRows() {
		s.Rows = append(s.Rows, decodeCostRow(r))
	}
	return s
}

func decodeCostRow(p *pb.CostRow) mapreduce.CostRow {
	return mapreduce.CostRow{Group: p.GetGroup(), Charge: mapreduce.Charge{
		Calls: p.GetCallCount(), Tokens: mapreduce.Tokens{In: p.GetInputTokens(), Out: p.GetOutputTokens()},
		CostMicros: p.GetCostMicros(), Unpriced: p.GetUnpricedTokens(),
	}}
}
