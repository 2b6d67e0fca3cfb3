package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ollamaProvider speaks Ollama's own interface: only there can the context
// window be set, and by default a prompt that is longer than 4,096 tokens is
// silently cut.
type ollamaProvider struct{ *dialer }

func newOllama(cfg Config) (Provider, error) {
	d, err := newDialer(cfg, "http://127.0.0.1:11434/")
	if err != nil {
		return nil, err
	}
	d.stream, d.judge = "application/x-ndjson", judgeOllama
	d.limits = openaiLimits // it has none; a proxy before it may
	return &ollamaProvider{d}, nil
}

// Name implements Provider.
func (*ollamaProvider) Name() string { return "ollama" }

// Can implements Provider.
func (p *ollamaProvider) Can() Capabilities {
	return Capabilities{Dialect: ollamaDialect(), Untold: true, ForceTool: true, Window: p.cfg.Window}
}

// Complete implements Provider.
func (p *ollamaProvider) Complete(ctx context.Context, req *Request) (*Response, error) {
	payload, err := p.buildPayload(req)
	if err != nil {
		return nil, err
	}
	c := p.beginCall(ctx, req)
	defer c.endCall()
	post, err := http.NewRequestWithContext(c.ctx, http.MethodPost, p.base.JoinPath("api/chat").String(), bytes.NewReader(payload))
	if err != nil {
		return nil, wrapError(Invalid, err)
	}
	post.Header.Set("Content-Type", "application/json")
	if !p.cfg.Key.IsZero() {
		post.Header.Set("Authorization", "Bearer "+p.cfg.Key.secret)
	}
	res, err := c.doRequest(post, p.client.Do)
	if err != nil {
		return nil, c.failError(err)
	}
	defer res.Body.Close()
	var chat ollamaChat
	if err := chat.readLines(res.Body); err != nil {
		if sent, ok := errors.AsType[*ollamaError](err); ok {
			return nil, c.midstreamError(sent.line)
		}
		return nil, c.cutError(err)
	}
	return chat.toResponse(c, req)
}

// The messages to the server.
type (
	ollamaRequest struct {
		Model    string          `json:"model"`
		Messages []ollamaMessage `json:"messages"`
		Tools    []ollamaTool    `json:"tools,omitempty"`
		Format   json.RawMessage `json:"format,omitempty"`
		Stream   bool            `json:"stream"`
		Options  ollamaOptions   `json:"options"`
	}
	ollamaOptions struct {
		NumCtx     int64 `json:"num_ctx"`
		NumPredict int64 `json:"num_predict"`
	}
	ollamaMessage struct {
		Role      string       `json:"role"`
		Content   string       `json:"content"`
		Thinking  string       `json:"thinking,omitempty"`
		ToolName  string       `json:"tool_name,omitempty"`
		ToolCalls []ollamaCall `json:"tool_calls,omitempty"`
	}
	ollamaCall struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	ollamaTool struct {
		Type     string         `json:"type"`
		Function ollamaFunction `json:"function"`
	}
	ollamaFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// buildPayload refuses what the window cannot hold, if the caller has counted: the
// server would cut it without a word.
func (p *ollamaProvider) buildPayload(req *Request) ([]byte, error) {
	if err := req.checkRequest(); err != nil {
		return nil, err
	}
	if need := req.Prompt + req.maxTokens(); req.Prompt > 0 && need > p.cfg.Window {
		return nil, newError(TooLarge, "prompt and answer take %d tokens (%d and %d), and the context window has %d",
			need, req.Prompt, req.maxTokens(), p.cfg.Window)
	}
	body := ollamaRequest{
		Model: string(req.Model), Stream: true,
		Options: ollamaOptions{NumCtx: p.cfg.Window, NumPredict: req.maxTokens()},
	}
	if req.System != "" {
		body.Messages = append(body.Messages, ollamaMessage{Role: "system", Content: req.System})
	}
	for _, m := range req.Messages {
		body.Messages = append(body.Messages, ollamaMessages(m)...)
	}
	if err := p.addTools(req, &body); err != nil {
		return nil, err
	}
	return json.Marshal(body)
}

// addTools adds tools and the answer's schema. A tool cannot be forced there; an
// answer by its schema is the same.
func (*ollamaProvider) addTools(req *Request, body *ollamaRequest) error {
	schema := req.Schema
	for _, t := range req.Tools {
		if t.Name == req.Force {
			schema = t.Schema
		}
	}
	if schema != nil {
		format, err := schema.In(ollamaDialect())
		body.Format = format
		return err
	}
	for _, t := range req.Tools {
		params, err := t.Schema.In(ollamaDialect())
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		body.Tools = append(body.Tools, ollamaTool{"function", ollamaFunction{t.Name, t.Description, params}})
	}
	return nil
}

func ollamaMessages(m Message) []ollamaMessage {
	said := ollamaMessage{Role: string(m.Role)}
	var out []ollamaMessage
	for _, p := range m.Parts {
		said.Content += p.Text
		if p.Call != nil {
			var c ollamaCall
			c.Function.Name, c.Function.Arguments = p.Call.Name, p.Call.Input
			said.ToolCalls = append(said.ToolCalls, c)
		}
		if p.Result != nil {
			out = append(out, ollamaMessage{Role: "tool", Content: p.Result.Text, ToolName: p.Result.Name})
		}
	}
	if said.Content != "" || said.ToolCalls != nil {
		out = append(out, said)
	}
	return out
}

// An ollamaLine is one line of an answer.
type ollamaLine struct {
	Model           string `json:"model"`
	Message         ollamaMessage
	Done            bool            `json:"done"`
	DoneReason      string          `json:"done_reason"`
	PromptEvalCount int64           `json:"prompt_eval_count"`
	EvalCount       int64           `json:"eval_count"`
	Error           json.RawMessage `json:"error"`
}

// An ollamaChat is put together from the lines of an answer.
type ollamaChat struct {
	text    bytes.Buffer
	thought bool // and that is counted with the rest
	calls   []ollamaCall
	last    ollamaLine
}

// An ollamaError is a line with an error.
type ollamaError struct{ line []byte }

func (*ollamaError) Error() string { return "an error in mid-stream" }

// maxLine bounds one line of an answer, in bytes.
const maxLine = 16 << 20

// readLines takes lines until one says that the answer is done. Without it the
// answer is not whole, however the stream ended.
func (t *ollamaChat) readLines(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		raw := bytes.TrimSpace(lines.Bytes())
		if len(raw) == 0 {
			continue
		}
		var line ollamaLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return err
		}
		if len(line.Error) > 0 {
			return &ollamaError{bytes.Clone(raw)}
		}
		t.text.WriteString(line.Message.Content)
		t.thought = t.thought || line.Message.Thinking != ""
		t.calls = append(t.calls, line.Message.ToolCalls...)
		if line.Done {
			t.last = line
			return nil
		}
	}
	if lines.Err() != nil {
		return lines.Err()
	}
	return io.ErrUnexpectedEOF
}

// toResponse is the finished turn, unless the server gives away that it had cut
// the prompt: it read far less than there was.
func (t *ollamaChat) toResponse(c *call, req *Request) (*Response, error) {
	usage := Usage{Input: t.last.PromptEvalCount, Output: t.last.EvalCount, Reported: true}.nonNegative()
	if req.Prompt > 0 && usage.Input > 0 && usage.Input < req.Prompt/2 {
		e := c.failError(newError(TooLarge, "the server read %d of about %d tokens of the prompt: its context window is smaller than that", usage.Input, req.Prompt))
		e.Usage = usage
		return nil, e
	}
	r := &Response{
		Model: Model(t.last.Model), RequestID: c.requestID(), Stop: ollamaStop(t.last.DoneReason),
		Usage: usage, Limits: c.parseLimits(),
	}
	if usage.Output > 0 && !t.thought {
		r.Written = &usage.Output
	}
	if t.text.Len() > 0 {
		r.Parts = append(r.Parts, Part{Text: t.text.String()})
	}
	for i, call := range t.calls {
		r.Parts = append(r.Parts, Part{Call: &ToolCall{ID: fmt.Sprintf("call_%d", i), Name: call.Function.Name, Input: call.Function.Arguments}})
		r.Stop = StopTool
	}
	switch {
	case req.Schema != nil:
		r.Answer = answerOf(r, false)
	case req.Force != "" && !r.Stop.Cut():
		text := json.RawMessage(bytes.Clone(t.text.Bytes()))
		if !json.Valid(text) {
			e := c.failError(newError(Garbled, "the input for tool %s is no JSON", req.Force))
			e.Usage = usage
			return nil, e
		}
		r.Parts = []Part{{Call: &ToolCall{ID: "call_0", Name: req.Force, Input: text}}}
		r.Stop = StopTool
	}
	return r, nil
}

// ollamaStop translates the server's word.
func ollamaStop(s string) Stop {
	switch s {
	case "stop":
		return StopEnd
	case "length":
		return StopMax
	default:
		return Stop("ollama:" + s)
	}
}

// judgeOllama reads {"error": "text"}.
func judgeOllama(status int, raw []byte) (Kind, string) {
	kind, message := judgeOpenAI(status, raw)
	if kind == NotFound {
		message += " (is the model pulled?)"
	}
	return kind, message
}
