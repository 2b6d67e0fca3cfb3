package fakellm

import (
	"encoding/json"
	"errors"
)

// A Rebuff is what a server says to a request that it would not take.
type Rebuff struct {
	Status int
	Body   string // as it is sent; its type is JSON if it is some
}

// A Style is how a server that speaks a vendor's interface writes its answers, where that is not
// how the vendor does. Only OpenAI's, Google's and Bedrock's have others.
type Style struct {
	Whole       bool   // not in a stream, although one was asked for
	Type        string // the media type of a stream. Defaults to the vendor's
	NoDone      bool   // without the mark of the end
	NoFinish    bool   // without the reason for the end
	NoUsage     bool
	Finish      string // the word for the end. Defaults to the vendor's
	Comment     bool   // a line that keeps the connection open comes first
	NullContent bool   // a piece without text comes first
	NullChoices bool   // the chunk with the usage has null for its choices
}

// errStrict is of requests that the vendors' servers take, and a scripted one does not: they would
// hide what a test is about.
var errStrict = errors.New("this server wants streams, with their usage")

// isAnswerable reports whether a request can be answered that was read with err.
func (s *Server) isAnswerable(err error) bool {
	return err == nil || s.cfg.Lax && errors.Is(err, errStrict)
}

// rebuffCall refuses a request that the script does not take.
func (x *exchange) rebuffCall() bool {
	if x.s.cfg.Rebuff == nil {
		return false
	}

	r := x.s.cfg.Rebuff(x.Call)
	if r == nil {
		return false
	}

	media := "text/plain"
	if json.Valid([]byte(r.Body)) {
		media = "application/json"
	}

	x.writeRaw(r.Status, media, r.Body)
	return true
}

// isWhole reports whether an answer is to be written at once.
func (x *exchange) isWhole() bool {
	if x.Wire == Gemini || x.Wire == Bedrock {
		return x.whole || x.style.Whole
	}
	var in struct{ Stream bool }
	asked := json.Unmarshal(x.Body, &in) == nil && !in.Stream
	return (x.Wire == OpenAI || x.Wire == Responses) && (x.style.Whole || asked) || x.Wire == Anthropic && asked
}

// writeWhole writes an answer at once: of OpenAI's, if the format has no way of its own.
func (x *exchange) writeWhole(parts []part, r Reply) {
	if w, ok := x.wire.(interface {
		writeWhole(x *exchange, parts []part, r Reply)
	}); ok {
		w.writeWhole(x, parts, r)
		return
	}

	message := fields{"role": "assistant", "content": nil}
	var calls []any
	for _, p := range parts {
		switch p.kind {
		case "text":
			message["content"] = p.text
		case "thinking":
			message["reasoning_content"] = p.text
		default:
			calls = append(calls, fields{"id": p.id, "type": "function", "function": fields{"name": p.name, "arguments": p.text}})
		}
	}

	if calls != nil {
		message["tool_calls"] = calls
	}

	x.Output = r.tokens()
	answer := fields{
		"id": "chatcmpl-" + x.RequestID, "object": "chat.completion", "created": 1, "model": x.Model,
		"choices": []any{fields{"index": 0, "message": message, "finish_reason": r.Stop}},
	}
	if !x.style.NoUsage {
		answer["usage"] = fields{"prompt_tokens": x.In(), "completion_tokens": x.Output, "total_tokens": x.In() + x.Output}
	}

	x.writeAtOnce("application/json", answer)
}
