// Package ollama asks the models of an Ollama server.
package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A provider speaks Ollama's own interface: only there can the context
// window be set, and by default a prompt that is longer than 4,096 tokens is
// silently cut.
type provider struct{ *wire.Dialer }

// New returns the provider. The error is an *llm.Error of the kind Invalid if the address is
// no address.
func New(cfg llm.Config) (llm.Provider, error) {
	// It states no limits; a proxy before it may.
	d, err := wire.NewDialer(cfg, "http://127.0.0.1:11434/", wire.Format{Stream: "application/x-ndjson", Events: wire.Lines, Judge: judgeError})
	if err != nil {
		return nil, err
	}
	return &provider{d}, nil
}

// Name implements Provider.
func (*provider) Name() string { return "ollama" }

// Can implements Provider.
func (p *provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: dialect(), Untold: true, ForceTool: true, Window: p.Config.Window}
}

// dialect returns the dialect of the grammars that Ollama's engine makes of schemas.
func dialect() llm.Dialect {
	return llm.Dialect{Name: "ollama", Keywords: []string{
		"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "pattern", "format", "prefixItems",
	}}
}

// Complete implements Provider.
func (p *provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	return p.CompleteBy(ctx, req, p)
}

// OwnForm implements wire.Asker.
func (*provider) OwnForm(m manners.Manners) manners.Manners { return m }

// SentBy implements wire.Asker. Servers refuse parameters of answers, and schemas; which models call
// tools is known.
func (p *provider) SentBy(req *llm.Request, with manners.Manners) manners.Sent {
	sent := p.Dialer.SentBy(req, with)
	return manners.Sent{Schema: req.Schema != nil && !answersByTool(req), Parameters: sent.Parameters, Effort: sent.Effort, Lone: true}
}

// Ask implements wire.Asker.
func (p *provider) Ask(c *wire.Call, req *llm.Request, with manners.Manners) (*llm.Response, error) {
	payload, err := p.buildPayload(req, with)
	if err != nil {
		return nil, err
	}

	lines, err := c.SendStream(wire.Request{Path: "api/chat", Body: payload})
	if err != nil {
		return nil, err
	}

	var chat chatAnswer
	if err := chat.readLines(lines); err != nil {
		if sent, ok := errors.AsType[*lineError](err); ok {
			return nil, c.StreamError(sent.line, chat.text.Len() > 0)
		}
		return nil, c.CutError(err)
	}

	return chat.toResponse(c, req)
}

// The messages to the server.
type (
	chatRequest struct {
		Model    string          `json:"model"`
		Messages []chatMessage   `json:"messages"`
		Tools    []chatTool      `json:"tools,omitempty"`
		Format   json.RawMessage `json:"format,omitempty"`
		Stream   bool            `json:"stream"`
		Think    any             `json:"think,omitempty"` // true, false, or how much
		Options  chatOptions     `json:"options"`
	}
	chatOptions struct {
		NumCtx      int64    `json:"num_ctx"`
		NumPredict  int64    `json:"num_predict"`
		Temperature *float64 `json:"temperature,omitempty"`
		TopP        *float64 `json:"top_p,omitempty"`
		Seed        *int64   `json:"seed,omitempty"`
		Stop        []string `json:"stop,omitempty"`
	}
	chatMessage struct {
		Role      string     `json:"role"`
		Content   string     `json:"content"`
		Thinking  string     `json:"thinking,omitempty"`
		Images    [][]byte   `json:"images,omitempty"`
		ToolName  string     `json:"tool_name,omitempty"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	chatTool struct {
		Type     string       `json:"type"`
		Function toolFunction `json:"function"`
	}
	toolFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// buildPayload refuses what the window cannot hold, if the caller has counted: the
// server would cut it without a word.
func (p *provider) buildPayload(req *llm.Request, with manners.Manners) (*chatRequest, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}

	if need := req.Prompt + req.AnswerBound(); req.Prompt > 0 && need > p.Config.Window {
		return nil, llm.NewError(llm.TooLarge, "prompt and answer take %d tokens (%d and %d), and the context window has %d",
			need, req.Prompt, req.AnswerBound(), p.Config.Window)
	}

	set := wire.ParametersOf(req, with)
	body := chatRequest{
		Model: string(req.Model), Stream: true, Think: thinkFor(req.Model, set.Effort),
		Options: chatOptions{
			NumCtx: p.Config.Window, NumPredict: req.AnswerBound(), Temperature: set.Temperature, TopP: set.TopP, Seed: set.Seed, Stop: set.Stop,
		},
	}

	if system := req.System + tellForm(req, with); system != "" {
		body.Messages = append(body.Messages, chatMessage{Role: "system", Content: system})
	}
	for _, m := range req.Messages {
		body.Messages = append(body.Messages, chatMessages(m)...)
	}

	if err := p.addTools(req, with, &body); err != nil {
		return nil, err
	}
	return &body, nil
}

// thinkFor returns whether a model is to think; nil leaves it to the model. Most models only know
// whether; gpt-oss knows how much, and always thinks.
func thinkFor(model llm.Model, effort string) any {
	switch {
	case effort == "":
		return nil
	case strings.Contains(string(model), "gpt-oss"):
		return effort
	}
	return effort != parameters.NoEffort
}

// addTools adds tools and the answer's schema. A tool cannot be forced there; an
// answer by its schema is the same. A schema keeps the model from calling tools, so where
// it may call some, it gives its answer by one.
func (*provider) addTools(req *llm.Request, with manners.Manners, body *chatRequest) error {
	schema, tools := req.Schema, req.Tools
	for _, t := range req.Tools {
		if t.Name == req.Force {
			schema = t.Schema
		}
	}

	if answersByTool(req) {
		tools, _ = wire.WithAnswer(req)
		schema = nil
	}

	// With a schema the server is sent no tools: the model could not call them.
	switch {
	case schema == nil:
	case schema == req.Schema && with.Form == manners.ByPrompt:
		return nil
	case schema == req.Schema && with.Form != manners.BySchema:
		body.Format = json.RawMessage(`"json"`)
		return nil
	default:
		format, err := schema.In(dialect())
		body.Format = format
		return err
	}

	if req.NoCalls {
		return nil
	}

	for _, t := range tools {
		params, err := t.Schema.In(dialect())
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		body.Tools = append(body.Tools, chatTool{"function", toolFunction{t.Name, t.Description, params}})
	}
	return nil
}

// tellForm returns the instructions that stand for a schema that the server does not take.
func tellForm(req *llm.Request, with manners.Manners) string {
	if answersByTool(req) {
		return ""
	}
	return wire.TellForm(req, with)
}

// answersByTool reports whether the answer to a request is the input of a tool.
func answersByTool(req *llm.Request) bool {
	return req.Schema != nil && len(req.Tools) > 0 && !req.NoCalls
}

// A thought is what a model thought, as a part that is handed back.
type thought struct {
	Thinking string `json:"thinking"`
}

func chatMessages(m llm.Message) []chatMessage {
	said := chatMessage{Role: string(m.Role)}
	var out []chatMessage
	for _, p := range m.Parts {
		said.Content += p.Text
		if p.Picture != nil {
			said.Images = append(said.Images, p.Picture.Data)
		}
		if p.Opaque != nil {
			var t thought
			if json.Unmarshal(p.Opaque, &t) == nil {
				said.Thinking += t.Thinking
			}
		}
		if p.Call != nil {
			var c toolCall
			c.Function.Name, c.Function.Arguments = p.Call.Name, p.Call.Input
			said.ToolCalls = append(said.ToolCalls, c)
		}
		if p.Result != nil {
			out = append(out, chatMessage{Role: "tool", Content: p.Result.Text, ToolName: p.Result.Name})
		}
	}

	// Results stand before what the user says besides.
	if said.Content != "" || said.ToolCalls != nil || said.Images != nil {
		out = append(out, said)
	}
	return out
}

// A chatLine is one line of an answer.
type chatLine struct {
	Model           string `json:"model"`
	Message         chatMessage
	Done            bool            `json:"done"`
	DoneReason      string          `json:"done_reason"`
	PromptEvalCount wire.Count      `json:"prompt_eval_count"`
	EvalCount       wire.Count      `json:"eval_count"`
	Error           json.RawMessage `json:"error"`
}

// A chatAnswer is put together from the lines of an answer.
type chatAnswer struct {
	text    bytes.Buffer
	thought bytes.Buffer // which is counted with the rest
	calls   []toolCall
	last    chatLine
}

// A lineError is a line with an error.
type lineError struct{ line []byte }

func (*lineError) Error() string { return "an error in mid-stream" }

// readLines takes lines until one says that the answer is done. Without it the
// answer is not whole, however the stream ended.
func (t *chatAnswer) readLines(lines iter.Seq2[wire.Event, error]) error {
	for e, err := range lines {
		if err != nil {
			return err
		}

		var line chatLine
		if err := json.Unmarshal(e.Data, &line); err != nil {
			return err
		}

		if len(line.Error) > 0 {
			return &lineError{e.Data}
		}

		t.text.WriteString(line.Message.Content)
		t.thought.WriteString(line.Message.Thinking)
		t.calls = append(t.calls, line.Message.ToolCalls...)

		if line.Done {
			t.last = line
			return nil
		}
	}
	return io.ErrUnexpectedEOF
}

// toResponse is the finished turn, unless the server gives away that it had cut
// the prompt: it read far less than there was.
func (t *chatAnswer) toResponse(c *wire.Call, req *llm.Request) (*llm.Response, error) {
	usage := llm.Usage{Input: t.last.PromptEvalCount.N, Output: t.last.EvalCount.N, Reported: true}.IfPossible()
	// What a picture takes differs from model to model, so the texts alone are held against it.
	if texts := req.Prompt - req.PictureTokens(); texts > 0 && usage.Input > 0 && usage.Input < texts/2 {
		e := c.FailError(llm.NewError(llm.TooLarge, "the server read %d of about %d tokens of the prompt: its context window is smaller than that", usage.Input, req.Prompt))
		e.Usage = usage
		return nil, e
	}

	r := &llm.Response{
		Model: llm.Model(t.last.Model), RequestID: c.RequestID(), Stop: stopOf(t.last.DoneReason),
		Usage: usage, Limits: c.ParseLimits(),
	}

	if usage.Output > 0 && t.thought.Len() == 0 {
		r.Written = &usage.Output
	}

	if t.thought.Len() > 0 {
		if raw, err := json.Marshal(thought{t.thought.String()}); err == nil { // of a text
			r.Parts = append(r.Parts, llm.Part{Opaque: raw})
		}
	}
	if t.text.Len() > 0 {
		r.Parts = append(r.Parts, llm.Part{Text: t.text.String()})
	}

	for i, call := range t.calls {
		r.Parts = append(r.Parts, llm.Part{Call: &llm.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: call.Function.Name, Input: call.Function.Arguments}})
		r.Stop = llm.StopTool
	}

	switch {
	case req.Schema != nil:
		r.Answer = wire.AnswerOf(r, answersByTool(req))
	case req.Force != "" && !r.Stop.Cut():
		text := json.RawMessage(bytes.Clone(t.text.Bytes()))
		if !json.Valid(text) {
			e := c.FailError(llm.NewError(llm.Garbled, "the input for tool %s is no JSON", req.Force))
			e.Usage = usage
			return nil, e
		}
		r.Parts = []llm.Part{{Call: &llm.ToolCall{ID: "call_0", Name: req.Force, Input: text}}}
		r.Stop = llm.StopTool
	}

	return r, nil
}

// stopOf translates the server's word.
func stopOf(s string) llm.Stop {
	switch s {
	case "stop":
		return llm.StopEnd
	case "length":
		return llm.StopMax
	default:
		return llm.Stop("ollama:" + s)
	}
}

// judgeError reads {"error": "text"}.
func judgeError(status int, raw []byte) (llm.Kind, string) {
	kind, message := wire.JudgeCompatible(status, raw)
	if kind == llm.NotFound {
		message += " (is the model pulled?)"
	}
	return kind, message
}
