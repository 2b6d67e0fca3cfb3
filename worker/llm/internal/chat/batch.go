package chat

import (
	"encoding/json"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/batchfile"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// NewBatches returns what makes batches at a server that has the vendor's. Files has its limits, and where and for how
// long files and batches are; all else of it is set here. The error is an *llm.Error of the kind Invalid, if the
// address is no address.
func NewBatches(cfg llm.Config, server Server, files batchfile.Server) (batch.Vendor, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}

	files.Dialer, files.Endpoint, files.Read = p.Dialer, "/v1/chat/completions", readWhole
	files.Body = func(line batch.Line) (any, error) {
		req, with := p.LineRequest(line, p)
		return p.newBody(req, with)
	}
	return batchfile.New(files), nil
}

// readWhole reads an answer that came whole.
func readWhole(c *wire.Call, raw json.RawMessage) (*llm.Response, error) {
	events, ok := wholeEvents(raw)
	if !ok {
		return nil, c.LineError(raw)
	}

	var t turn
	if err := t.takeAll(c, wire.OneByOne(events)); err != nil {
		return nil, t.noteWaste(err)
	}
	return t.toResponse(c, true)
}
