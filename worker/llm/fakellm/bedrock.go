package fakellm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"net/http"
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/worker/llm/fakellm/meter"
)

// The messages of Bedrock's format.
type (
	bedrockRequest struct {
		System   []bedrockBlock
		Messages []struct {
			Role    string
			Content []bedrockBlock
		}
		Inference struct {
			MaxTokens int64 `json:"maxTokens"`
		} `json:"inferenceConfig"`
		Tools struct {
			Tools []struct {
				Spec *struct {
					Name   string
					Schema struct{ JSON json.RawMessage } `json:"inputSchema"`
				} `json:"toolSpec"`
				CachePoint *struct{} `json:"cachePoint"`
			}
			Choice struct {
				Tool struct{ Name string }
			} `json:"toolChoice"`
		} `json:"toolConfig"`
		Output struct {
			TextFormat struct {
				Structure struct {
					JSONSchema struct{ Schema string } `json:"jsonSchema"`
				}
			} `json:"textFormat"`
		} `json:"outputConfig"`
	}
	bedrockBlock struct {
		Text    *string
		ToolUse *struct {
			ID    string `json:"toolUseId"`
			Name  string
			Input json.RawMessage
		} `json:"toolUse"`
		ToolResult *struct {
			ID      string `json:"toolUseId"`
			Status  string
			Content []bedrockBlock
		} `json:"toolResult"`
		Reasoning *struct {
			Text struct{ Text, Signature string } `json:"reasoningText"`
		} `json:"reasoningContent"`
		CachePoint *struct{} `json:"cachePoint"`
		Image      *struct {
			Format string
			Source struct{ Bytes string }
		}
	}
)

type bedrockWire struct{}

// bedrockModel returns the model that a path names, and whether the answer is to come whole. It
// is false if the path is none of this format.
func bedrockModel(u *url.URL) (model string, whole, ok bool) {
	path, method, ok := cutLast(u.EscapedPath(), "/")
	if !ok || method != "converse-stream" && method != "converse" {
		return "", false, false
	}
	_, model, ok = cutLast(path, "/model/")
	model, err := url.PathUnescape(model)
	return model, method == "converse", ok && err == nil
}

func (bedrockWire) readCall(c *Call, body []byte) error {
	var in bedrockRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}

	c.MaxTokens = in.Inference.MaxTokens
	if s := in.Output.TextFormat.Structure.JSONSchema.Schema; s != "" {
		c.Schema = json.RawMessage(s)
		if !json.Valid(c.Schema) {
			return errors.New("outputConfig: the schema is no JSON")
		}
	}

	for _, t := range in.Tools.Tools {
		if t.Spec == nil {
			c.markPrefix()
			continue
		}
		c.prompt = append(c.prompt, meter.Section{Text: t.Spec.Name + string(t.Spec.Schema.JSON)})
		c.Tools = append(c.Tools, t.Spec.Name)
		if t.Spec.Name == in.Tools.Choice.Tool.Name {
			c.Tool, c.Schema = t.Spec.Name, t.Spec.Schema.JSON
		}
	}

	for _, b := range in.System {
		if b.CachePoint != nil {
			c.markPrefix()
			continue
		}
		c.System += b.joinText()
		c.prompt = append(c.prompt, meter.Section{Text: b.joinText()})
	}
	// The format has no choice that forbids calls: the client says so in words.
	c.NoCalls = strings.Contains(c.System, "Call no tool now.")

	var l ledger
	speaker := ""
	for _, m := range in.Messages {
		if m.Role == speaker {
			return errors.New("A conversation must alternate between user and assistant roles.")
		}
		speaker = m.Role
		text, err := l.readBedrock(c, m.Role, m.Content)
		if err != nil {
			return err
		}
		c.Turns = append(c.Turns, Turn{m.Role, text})
	}

	c.Uses = l.uses
	if len(c.Uses) > 0 && len(c.Tools) == 0 {
		return errors.New("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}

	return checkRequest(c.Model, len(in.Messages), true)
}

// markPrefix marks what of the prompt was read so far.
func (c *Call) markPrefix() {
	if n := len(c.prompt); n > 0 {
		c.prompt[n-1].Marked = true
	}
}

// joinText is all of a block.
func (b bedrockBlock) joinText() string {
	text := ""
	if b.Text != nil {
		text = *b.Text
	}

	if b.Reasoning != nil {
		text += b.Reasoning.Text.Text
	}

	if b.ToolUse != nil {
		text += string(b.ToolUse.Input)
	}

	if b.ToolResult != nil {
		for _, inner := range b.ToolResult.Content {
			text += inner.joinText()
		}
	}
	return text
}

// readBedrock notes a message of Bedrock's, and returns its text.
func (l *ledger) readBedrock(c *Call, role string, blocks []bedrockBlock) (text string, err error) {
	var calls []Use
	for _, b := range blocks {
		switch {
		case b.CachePoint != nil:
			c.markPrefix()
			continue
		case b.Image != nil:
			if err := c.show("image/"+b.Image.Format, b.Image.Source.Bytes); err != nil {
				return "", err
			}
			continue
		case b.Text != nil && strings.TrimSpace(*b.Text) == "":
			return "", errors.New("The text field in the ContentBlock object is blank. Add text to the text field, and try again.")
		case b.ToolUse != nil:
			calls = append(calls, Use{ID: b.ToolUse.ID, Name: b.ToolUse.Name, Input: b.ToolUse.Input})
		case b.Reasoning != nil && b.Reasoning.Text.Signature != sign(b.Reasoning.Text.Text):
			return "", errors.New("invalid signature in a reasoning block")
		case b.ToolResult != nil:
			said := b.joinText()
			if said == "" {
				return "", errors.New("The content field of toolResult cannot be empty.")
			}
			if err := l.answer(b.ToolResult.ID, said, b.ToolResult.Status == "error"); err != nil {
				return "", err
			}
		}

		text += b.joinText()
		c.prompt = append(c.prompt, meter.Section{Text: b.joinText()})
	}

	// A message of the user has to answer all calls of the turn before.
	if role == "assistant" {
		return text, l.say(calls)
	}
	return text, l.settled()
}

func (bedrockWire) mediaType() string { return "application/vnd.amazon.eventstream" }

// writeFrame writes an event as a frame of AWS.
func (bedrockWire) writeFrame(x *exchange, kind, name string, data any) {
	payload := encode(data)

	// A header is the length of its name in one byte, the name, the type of its value, and
	// the value.
	var headers []byte
	for _, h := range [][2]string{{":" + kind + "-type", name}, {":content-type", "application/json"}, {":message-type", kind}} {
		headers = append(headers, byte(len(h[0])))
		headers = append(headers, h[0]...)
		headers = append(headers, 7) // a text
		headers = binary.BigEndian.AppendUint16(headers, uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}

	// The length counts itself, the rest of the prelude, and both sums.
	frame := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(headers)))
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	frame = append(append(frame, headers...), payload...)
	frame = binary.BigEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
	x.write(string(frame))
}

func (w bedrockWire) openAnswer(x *exchange) {
	w.writeFrame(x, "event", "messageStart", fields{"role": "assistant", "p": "abcd"})
}

func (w bedrockWire) openPart(x *exchange, n int, p part) {
	if p.kind == "tool" {
		w.writeFrame(x, "event", "contentBlockStart", fields{"contentBlockIndex": n, "start": fields{"toolUse": fields{"toolUseId": p.id, "name": p.name}}})
	}
}

func (w bedrockWire) writePiece(x *exchange, n int, p part, text string) {
	delta := fields{"text": text}
	switch p.kind {
	case "tool":
		delta = fields{"toolUse": fields{"input": text}}
	case "thinking":
		delta = fields{"reasoningContent": fields{"text": text}}
	}
	w.writeFrame(x, "event", "contentBlockDelta", fields{"contentBlockIndex": n, "delta": delta})
}

func (w bedrockWire) closePart(x *exchange, n int, p part) {
	if p.kind == "thinking" {
		w.writeFrame(x, "event", "contentBlockDelta", fields{"contentBlockIndex": n, "delta": fields{"reasoningContent": fields{"signature": sign(p.text)}}})
	}
	w.writeFrame(x, "event", "contentBlockStop", fields{"contentBlockIndex": n})
}

func (w bedrockWire) closeAnswer(x *exchange, r Reply) {
	w.writeFrame(x, "event", "messageStop", fields{"stopReason": r.Stop})
	more := fields{"metrics": fields{"latencyMs": 1}}
	if told := bedrockUsage(x, r); told != nil {
		more["usage"] = told
	}
	w.writeFrame(x, "event", "metadata", more)
}

// bedrockUsage returns the tokens of an answer; nil if they are not reported.
func bedrockUsage(x *exchange, r Reply) fields {
	x.Output = r.tokens()
	if x.Fault == NoUsage || x.style.NoUsage {
		x.clearUsage()
		return nil
	}

	told := fields{
		"inputTokens": x.Input, "outputTokens": x.Output, "totalTokens": x.In() + x.Output,
		"cacheReadInputTokens": x.CacheRead, "cacheWriteInputTokens": x.CacheWrite,
	}

	x.tellUsage(told)
	return told
}

// writeWhole writes an answer at once.
func (bedrockWire) writeWhole(x *exchange, parts []part, r Reply) {
	var blocks []any
	for _, p := range parts {
		switch p.kind {
		case "text":
			blocks = append(blocks, fields{"text": p.text})
		case "thinking":
			blocks = append(blocks, fields{"reasoningContent": fields{"reasoningText": fields{"text": p.text, "signature": sign(p.text)}}})
		default:
			blocks = append(blocks, fields{"toolUse": fields{"toolUseId": p.id, "name": p.name, "input": json.RawMessage(p.text)}})
		}
	}

	answer := fields{"output": fields{"message": fields{"role": "assistant", "content": blocks}}, "stopReason": r.Stop}
	if told := bedrockUsage(x, r); told != nil {
		answer["usage"] = told
	}

	x.writeAtOnce("application/json", answer)
}

func (w bedrockWire) writeBroken(x *exchange) {
	x.clearUsage()
	w.writeFrame(x, "exception", "internalServerException", fields{"message": "The system encountered an unexpected error during processing. Try your request again."})
}

func (bedrockWire) errorBody(status int, kind, message string) (int, any) {
	switch kind {
	case "billing_error", spendLimit:
		status, message = http.StatusTooManyRequests, "Too many tokens per day, please wait before trying again."
	case "authentication_error":
		status, message = http.StatusForbidden, "The security token included in the request is invalid: "+message
	case "not_found_error":
		status, message = http.StatusBadRequest, "The provided model identifier is invalid."
	case "overloaded_error":
		status = http.StatusServiceUnavailable
	}
	return status, fields{"message": message}
}

func (bedrockWire) stopReason(f Fault, tool bool) string {
	switch f {
	case Truncated:
		return "max_tokens"
	case Filter, Refusal:
		return "content_filtered"
	case UnknownStop, Pause:
		return "bored"
	}
	if tool {
		return "tool_use"
	}
	return "end_turn"
}

// lacksReasoning reports whether a message has calls before which the model thought, without that.
func (s *Server) lacksReasoning(blocks []bedrockBlock) bool {
	thinks, lacks := false, false
	for _, b := range blocks {
		thinks = thinks || b.Reasoning != nil
		lacks = lacks || b.ToolUse != nil && s.thoughtOf(b.ToolUse.ID) != ""
	}
	return lacks && !thinks
}
