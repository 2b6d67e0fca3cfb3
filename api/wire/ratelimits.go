package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
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
		Requests: d.decodeCount64("requests", p.GetRequests()),
		Input:    d.decodeCount64("input_tokens", p.GetInputTokens()),
		Output:   d.decodeCount64("output_tokens", p.GetOutputTokens()),
	}
}

func encodeLimitNote(p *pb.LimitNote, n *protocol.LimitNote) {
	p.Name, p.Successes, p.Refused = validText(n.Name), n.Successes, n.Refused
	p.Pause, p.Told, p.Left = encodeDuration(n.Pause), encodeRates(n.Told), encodeRates(n.Left)
}

func decodeLimitNote(d *decoder, p *pb.LimitNote) protocol.LimitNote {
	return protocol.LimitNote{
		Name:      d.decodeID("name", p.GetName(), MaxUnitID),
		Successes: d.decodeCount64("successes", p.GetSuccesses()),
		Refused:   p.GetRefused(),
		Pause:     d.decodeDuration("pause", p.GetPause()),
		Told:      decodePart(d, "told", p.GetTold(), decodeRates),
		Left:      decodePart(d, "left", p.GetLeft(), decodeRates),
	}
}

func encodeManners(p *pb.ModelManners, m *protocol.ModelManners) {
	p.Name, p.Server, p.Refuses = validText(m.Name), validText(m.Server), validText(m.Refuses)
}

func decodeManners(d *decoder, p *pb.ModelManners) protocol.ModelManners {
	return protocol.ModelManners{
		Name:    d.decodeID("name", p.GetName(), MaxUnitID),
		Server:  d.decodeID("server", p.GetServer(), protocol.MaxServer),
		Refuses: d.decodeName("refuses", p.GetRefuses(), protocol.MaxRefuses),
	}
}

func encodeLimitShare(p *pb.LimitShare, s *protocol.LimitShare) {
	p.Name, p.ValidFor, p.Calls = validText(s.Name), encodeDuration(s.For), s.Calls
	p.Rates, p.Left, p.Part = encodeRates(s.Rates), encodeRates(s.Left), s.Part
	p.Pause, p.OpenFor, p.Probe = encodeDuration(s.Pause), encodeDuration(s.OpenFor), s.Probe
}

func decodeLimitShare(d *decoder, p *pb.LimitShare) protocol.LimitShare {
	return protocol.LimitShare{
		Name:    d.decodeID("name", p.GetName(), MaxUnitID),
		For:     d.decodeDuration("valid_for", p.GetValidFor()),
		Calls:   d.decodeCount64("calls", p.GetCalls()),
		Rates:   decodePart(d, "rates", p.GetRates(), decodeRates),
		Left:    decodePart(d, "left", p.GetLeft(), decodeRates),
		Part:    d.decodeFraction("part", p.GetPart()),
		Pause:   d.decodeDuration("pause", p.GetPause()),
		OpenFor: d.decodeDuration("open_for", p.GetOpenFor()),
		Probe:   p.GetProbe(),
	}
}
