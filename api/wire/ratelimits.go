package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func encodeRates(r mapreduce.Rates) *pb.Rates {
	if r == (mapreduce.Rates{}) {
		return nil
	}
	return &pb.Rates{Requests: r.Requests, InputTokens: r.Input, OutputTokens: r.Output}
}

func decodeRates(d *decoder, p *pb.Rates) mapreduce.Rates {
	return mapreduce.Rates{
		Requests: d.count64("requests", p.GetRequests()),
		Input:    d.count64("input_tokens", p.GetInputTokens()),
		Output:   d.count64("output_tokens", p.GetOutputTokens()),
	}
}

func encodeLimitNote(p *pb.LimitNote, n *mapreduce.LimitNote) {
	p.Name, p.Successes, p.Refused = text(n.Name), n.Successes, n.Refused
	p.Pause, p.Told, p.Left = encodeDuration(n.Pause), encodeRates(n.Told), encodeRates(n.Left)
}

func decodeLimitNote(d *decoder, p *pb.LimitNote) mapreduce.LimitNote {
	return mapreduce.LimitNote{
		Name:      d.id("name", p.GetName(), MaxUnitID),
		Successes: d.count64("successes", p.GetSuccesses()),
		Refused:   p.GetRefused(),
		Pause:     d.duration("pause", p.GetPause()),
		Told:      part(d, "told", p.GetTold(), decodeRates),
		Left:      part(d, "left", p.GetLeft(), decodeRates),
	}
}

func encodeLimitShare(p *pb.LimitShare, s *mapreduce.LimitShare) {
	p.Name, p.ValidFor, p.Calls = text(s.Name), encodeDuration(s.For), s.Calls
	p.Rates, p.Left, p.Part = encodeRates(s.Rates), encodeRates(s.Left), s.Part
	p.Pause, p.OpenFor = encodeDuration(s.Pause), encodeDuration(s.OpenFor)
}

func decodeLimitShare(d *decoder, p *pb.LimitShare) mapreduce.LimitShare {
	return mapreduce.LimitShare{
		Name:    d.id("name", p.GetName(), MaxUnitID),
		For:     d.duration("valid_for", p.GetValidFor()),
		Calls:   d.count64("calls", p.GetCalls()),
		Rates:   part(d, "rates", p.GetRates(), decodeRates),
		Left:    part(d, "left", p.GetLeft(), decodeRates),
		Part:    d.fraction("part", p.GetPart()),
		Pause:   d.duration("pause", p.GetPause()),
		OpenFor: d.duration("open_for", p.GetOpenFor()),
	}
}
