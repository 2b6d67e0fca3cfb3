package responses

import (
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/batchfile"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// NewBatches returns what makes batches at a server. The error is an *llm.Error of the kind Invalid, if
// the address is no address.
func NewBatches(cfg llm.Config, server Server, limits batch.Limits) (batch.Vendor, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}

	return batchfile.New(batchfile.Server{
		Dialer: p.Dialer, Limits: limits, Endpoint: "/v1/" + path,
		Body: func(line batch.Line) (any, error) {
			req, with := p.LineRequest(line, p)
			return p.newBody(req, with)
		},
		Read: readWhole,
	}), nil
}

// readWhole reads an answer that came whole.
func readWhole(c *wire.Call, raw json.RawMessage) (*llm.Response, error) {
	events, ok := wholeEvents(raw)
	if !ok {
		return nil, c.LineError(raw)
	}

	var t turn
	if err := t.takeAll(c, wire.OneByOne(events)); err != nil {
		err.Usage = t.usage()
		return nil, err
	}
	return t.toResponse(c, true)
}
