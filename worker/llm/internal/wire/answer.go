package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
)

// AnswerOf returns the answer of a response to a schema: the input of the forced tool,
// or the text. Nil means that there is none.
func AnswerOf(r *llm.Response, tool bool) json.RawMessage {
	if !tool {
		if text := strings.TrimSpace(r.Text()); text != "" {
			return json.RawMessage(text)
		}
		return nil
	}
	for _, c := range r.Calls() {
		if c.Name == llm.AnswerTool {
			return c.Input
		}
	}
	if len(r.Calls()) == 0 && json.Valid([]byte(strings.TrimSpace(r.Text()))) {
		return json.RawMessage(strings.TrimSpace(r.Text())) // where the tool was not forced
	}
	return nil
}

// ToolFields returns a tool's schema, and whether the vendor may be strict about
// it. Tools of others often take what no dialect can express: their input is
// then only checked by us.
func ToolFields(t llm.Tool, d llm.Dialect) (fields map[string]any, strict bool, err error) {
	if fields, err = SchemaMap(t.Schema, d); err == nil {
		return fields, true, nil
	}
	fields, err = SchemaMap(t.Schema, llm.Dialect{Name: "any", All: true})
	return fields, false, err
}

// WithAnswer returns the tools and which of them is forced, with the one that
// takes the answer. It is forced if no other may be called.
func WithAnswer(req *llm.Request) (tools []llm.Tool, force string) {
	if len(req.Tools) == 0 || req.NoCalls {
		force = llm.AnswerTool
	}
	one := llm.Tool{Name: llm.AnswerTool, Description: "Give the answer.", Schema: req.Schema}
	return append(slices.Clip(req.Tools), one), force
}

// SchemaMap returns In in the form that the SDKs need. Below the top, properties keep
// their order.
func SchemaMap(s *llm.Schema, d llm.Dialect) (map[string]any, error) {
	raw, err := s.In(d)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, llm.WrapError(llm.BadSchema, err)
	}
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		out[k] = v
	}
	return out, nil
}
