package fakellm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// The messages of Google's format.
type (
	geminiRequest struct {
		System   geminiContent `json:"systemInstruction"`
		Contents []geminiContent
		Tools    []struct {
			Functions []geminiFunction `json:"functionDeclarations"`
		}
		Rules struct {
			Calling struct {
				Mode    string
				Allowed []string `json:"allowedFunctionNames"`
			} `json:"functionCallingConfig"`
		} `json:"toolConfig"`
		Generation struct {
			Max    int64           `json:"maxOutputTokens"`
			Type   string          `json:"responseMimeType"`
			Schema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	geminiContent struct {
		Role  string
		Parts []geminiPart
	}
	geminiFunction struct {
		Name   string
		Schema json.RawMessage `json:"parametersJsonSchema"`
	}
	geminiPart struct {
		Text      string
		Signature string `json:"thoughtSignature"`
		Inline    *struct {
			MediaType string `json:"mimeType"`
			Data      string
		} `json:"inlineData"`
		Call *struct {
			ID, Name string
			Args     json.RawMessage
		} `json:"functionCall"`
		Result *struct {
			ID, Name string
			Response map[string]string
		} `json:"functionResponse"`
	}
)

type geminiWire struct{}

// geminiModel returns the model that a path names, and whether the answer is to come whole. It
// is false if the path is none of this format.
func geminiModel(path string) (model string, whole, ok bool) {
	path, method, ok := cutLast(path, ":")
	if !ok || method != "streamGenerateContent" && method != "generateContent" {
		return "", false, false
	}
	_, model, ok = cutLast(path, "/models/")
	return model, method == "generateContent", ok
}

// cutLast cuts a text at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (geminiWire) readCall(c *Call, body []byte) error {
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	c.MaxTokens, c.Schema = in.Generation.Max, in.Generation.Schema
	c.NoCalls = in.Rules.Calling.Mode == "NONE"

	for _, t := range in.Tools {
		for _, f := range t.Functions {
			c.prompt = append(c.prompt, meter.Section{Text: f.Name + string(f.Schema)})
			c.Tools = append(c.Tools, f.Name)
			if in.Rules.Calling.Mode == "ANY" && slices.Contains(in.Rules.Calling.Allowed, f.Name) {
				c.Tool, c.Schema = f.Name, f.Schema
			}
		}
	}

	for _, p := range in.System.Parts {
		c.System += p.Text
	}
	c.prompt = append(c.prompt, meter.Section{Text: c.System})

	var l ledger
	for _, m := range in.Contents {
		text, err := l.readContent(m)
		if err != nil {
			return err
		}
		c.prompt = append(c.prompt, meter.Section{Text: text})
		for _, p := range m.Parts {
			if p.Inline == nil {
				continue
			}
			if err := c.show(p.Inline.MediaType, p.Inline.Data); err != nil {
				return err
			}
		}
		c.Turns = append(c.Turns, Turn{m.Role, text})
	}
	if err := l.settled(); err != nil {
		return err
	}

	c.Uses = l.uses
	// The vendor takes no form of the answer beside tools that may be called.
	if len(in.Tools) > 0 && in.Generation.Type != "" && !c.NoCalls {
		return errors.New("Function calling with a response mime type: 'application/json' is unsupported")
	}
	return checkRequest(c.Model, len(in.Contents), true)
}

// readContent notes a message of Google's, and returns its text. All results of a turn's calls
// are in one message.
func (l *ledger) readContent(m geminiContent) (text string, err error) {
	var calls []Use
	for _, p := range m.Parts {
		text += p.Text
		switch {
		case p.Call != nil:
			text += string(p.Call.Args)
			calls = append(calls, Use{ID: p.Call.ID, Name: p.Call.Name, Input: p.Call.Args})
		case p.Result != nil:
			said, failed := p.Result.Response["error"]
			if !failed {
				said = p.Result.Response["output"]
			}
			text += said
			if err := l.answer(p.Result.ID, said, failed); err != nil {
				return "", err
			}
		}
	}

	switch m.Role {
	case "model":
		return text, l.say(calls)
	case "user":
		return text, l.settled()
	}
	return "", fmt.Errorf("Please use a valid role: user, model. The role %q is none", m.Role)
}

func (geminiWire) mediaType() string { return "text/event-stream" }

// writeParts writes an event with parts, and with more fields.
func (geminiWire) writeParts(x *exchange, parts []any, candidate, more fields) {
	x.writeEvent("", geminiAnswer(x, parts, candidate, more))
}

// geminiAnswer returns an answer, or an event of one.
func geminiAnswer(x *exchange, parts []any, candidate, more fields) fields {
	one := fields{"content": fields{"role": "model", "parts": parts}, "index": 0}
	maps.Copy(one, candidate)
	all := fields{"candidates": []any{one}, "modelVersion": x.Model, "responseId": x.RequestID}
	maps.Copy(all, more)
	return all
}

func (geminiWire) openAnswer(x *exchange) { x.signature = "" }

func (geminiWire) openPart(*exchange, int, part) {}

// writePiece writes a bit of text. Calls come whole, and what was thought is signed on the first.
func (w geminiWire) writePiece(x *exchange, _ int, p part, text string) {
	switch p.kind {
	case "text":
		w.writeParts(x, []any{fields{"text": text}}, nil, nil)
	case "thinking":
		x.signature = geminiSign(p.text)
		w.writeParts(x, []any{fields{"text": text, "thought": true}}, nil, nil)
	}
}

func (w geminiWire) closePart(x *exchange, _ int, p part) {
	if p.kind == "tool" {
		w.writeParts(x, []any{geminiCall(x, p)}, nil, nil)
	}
}

// geminiCall returns a call as a part.
func geminiCall(x *exchange, p part) fields {
	var input any = fields{}
	if json.Unmarshal([]byte(p.text), &input) != nil {
		input = fields{"text": strings.ToValidUTF8(p.text, "")}
	}
	one := fields{"functionCall": fields{"id": p.id, "name": p.name, "args": orderedInput(p.text, input)}}
	if x.signature != "" {
		one["thoughtSignature"] = x.signature
		x.signature = ""
	}
	return one
}

// orderedInput returns the input of a call as it was written, if it is JSON.
func orderedInput(text string, otherwise any) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return otherwise
}

// geminiSign is what stands for what was thought.
func geminiSign(thinking string) string { return base64.StdEncoding.EncodeToString([]byte(thinking)) }

// closeAnswer tells why the answer ended, and its tokens.
func (w geminiWire) closeAnswer(x *exchange, r Reply) {
	w.writeParts(x, []any{fields{"text": ""}}, fields{"finishReason": r.Stop, "finishMessage": r.Why}, geminiUsage(x, r))
}

// geminiUsage returns the field with the tokens of an answer, if they are reported.
func geminiUsage(x *exchange, r Reply) fields {
	x.Output = r.tokens()
	if x.Fault == NoUsage || x.style.NoUsage {
		x.clearUsage()
		return nil
	}

	thoughts := meter.Tokens(r.Thinking)
	told := fields{
		"promptTokenCount": x.In(), "candidatesTokenCount": x.Output - thoughts, "thoughtsTokenCount": thoughts,
		"cachedContentTokenCount": x.CacheRead, "totalTokenCount": x.In() + x.Output,
	}

	x.tellUsage(told)
	return fields{"usageMetadata": told}
}

// writeWhole writes an answer at once.
func (geminiWire) writeWhole(x *exchange, parts []part, r Reply) {
	var all []any
	for _, p := range parts {
		switch p.kind {
		case "text":
			all = append(all, fields{"text": p.text})
		case "tool":
			all = append(all, geminiCall(x, p))
		}
	}

	x.writeAtOnce("application/json; charset=UTF-8", geminiAnswer(x, all, fields{"finishReason": r.Stop}, geminiUsage(x, r)))
}

func (w geminiWire) writeBroken(x *exchange) {
	x.clearUsage()
	_, body := w.errorBody(500, "api_error", "An internal error has occurred.")
	x.writeEvent("", body)
}

func (geminiWire) errorBody(status int, kind, message string) (int, any) {
	word, details := "INVALID_ARGUMENT", []any{}
	switch kind {
	case "billing_error":
		status, word = http.StatusForbidden, "PERMISSION_DENIED"
		details = append(details, fields{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "BILLING_DISABLED"})
	case spendLimit:
		word = "RESOURCE_EXHAUSTED"
		details = append(details, fields{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{fields{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}}})
	case "authentication_error":
		status = http.StatusBadRequest
		details = append(details, fields{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"})
	case "not_found_error":
		word = "NOT_FOUND"
	case "rate_limit_error":
		word = "RESOURCE_EXHAUSTED"
	case "overloaded_error":
		status, word = http.StatusServiceUnavailable, "UNAVAILABLE"
	case "api_error":
		word = "INTERNAL"
	}

	return status, fields{"error": fields{"code": status, "message": message, "status": word, "details": details}}
}

func (geminiWire) stopReason(f Fault, _ bool) string {
	switch f {
	case Truncated:
		return "MAX_TOKENS"
	case Filter, Refusal:
		return "SAFETY"
	case UnknownStop, Pause:
		return "bored"
	}
	return "STOP"
}

// lacksSignature reports whether a turn of the model has calls before which it thought, without
// the signature of that.
func (s *Server) lacksSignature(body []byte) bool {
	var in geminiRequest
	if json.Unmarshal(body, &in) != nil {
		return false // it is refused already
	}

	for _, m := range in.Contents {
		for _, p := range m.Parts {
			if p.Call == nil {
				continue
			}
			// Only the first call of a turn bears the signature.
			if want := s.thoughtOf(p.Call.ID); want != "" && p.Signature != geminiSign(want) {
				return true
			}
			break // the first call of a turn bears it
		}
	}

	return false
}
