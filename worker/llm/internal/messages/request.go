package messages

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// The body of a request. The vendor caches tools, then instructions, then messages.
type (
	body struct {
		Version      string        `json:"anthropic_version,omitempty"`
		Model        string        `json:"model,omitempty"`
		MaxTokens    int64         `json:"max_tokens,omitempty"` // 0 in requests to count
		Stream       bool          `json:"stream,omitempty"`
		Tools        []tool        `json:"tools,omitempty"`
		ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
		System       []textBlock   `json:"system,omitempty"`
		Messages     []message     `json:"messages"`
		OutputConfig *outputConfig `json:"output_config,omitempty"`
		Thinking     *thinking     `json:"thinking,omitempty"`
		Temperature  *float64      `json:"temperature,omitempty"`
		TopP         *float64      `json:"top_p,omitempty"`
		Stop         []string      `json:"stop_sequences,omitempty"`
		ServiceTier  string        `json:"service_tier,omitempty"`
	}
	outputConfig struct {
		Format any    `json:"format,omitempty"`
		Effort string `json:"effort,omitempty"`
	}
	thinking struct {
		Type         string `json:"type"`
		BudgetTokens int64  `json:"budget_tokens,omitempty"`
	}
	tool struct {
		Name         string         `json:"name"`
		Description  string         `json:"description,omitempty"`
		Strict       *bool          `json:"strict,omitempty"`
		InputSchema  map[string]any `json:"input_schema"`
		CacheControl *cacheControl  `json:"cache_control,omitempty"`
	}
	toolChoice struct {
		Type            string `json:"type"`
		Name            string `json:"name,omitempty"`
		DisableParallel bool   `json:"disable_parallel_tool_use,omitempty"`
	}
	message struct {
		Role    llm.Role `json:"role"`
		Content []any    `json:"content"` // blocks
	}
	cacheControl struct {
		Type string  `json:"type"`
		TTL  llm.TTL `json:"ttl"`
	}
)

// Blocks of messages.
type (
	textBlock struct {
		Type         string        `json:"type"`
		Text         string        `json:"text"`
		CacheControl *cacheControl `json:"cache_control,omitempty"`
	}
	imageBlock struct {
		Type         string        `json:"type"`
		Source       imageSource   `json:"source"`
		CacheControl *cacheControl `json:"cache_control,omitempty"`
	}
	imageSource struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      []byte `json:"data"`
	}
	useBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultBlock struct {
		Type         string        `json:"type"`
		ToolUseID    string        `json:"tool_use_id"`
		Content      []textBlock   `json:"content"`
		IsError      bool          `json:"is_error"`
		CacheControl *cacheControl `json:"cache_control,omitempty"`
	}
)

// newBody puts a request into the vendor's words, without what the server refuses.
func newBody(req *llm.Request, with manners.Manners) (*body, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	b := &body{Model: string(req.Model), MaxTokens: wire.AnswerBound(req, with)}
	// The request is copied, since providers do not change it.
	if with.NoCache {
		uncached := *req
		uncached.Cache, req = "", &uncached
	}
	if err := b.addTools(req, with); err != nil {
		return nil, err
	}
	b.addParameters(req, with)

	if system := req.System + wire.TellForm(req, with); system != "" {
		b.System = []textBlock{{"text", system, cacheFor(req.Cache)}}
	}
	for _, m := range req.Messages {
		blocks := make([]any, 0, len(m.Parts))
		for _, part := range m.Parts {
			if with.NoCache {
				part.Cache = ""
			}
			blocks = append(blocks, blockOf(part))
		}
		b.Messages = append(b.Messages, message{m.Role, blocks})
	}
	return b, nil
}

// addParameters adds the parameters of the answer. The interface has no seed and no verbosity.
func (b *body) addParameters(req *llm.Request, with manners.Manners) {
	set := wire.ParametersOf(req, with)
	b.Temperature, b.TopP, b.Stop = set.Temperature, set.TopP, set.Stop
	b.Thinking = thinkingFor(req.Model, set)

	// What an account has bought ahead is used as far as it goes, or not at all.
	switch set.Tier {
	case parameters.Standard:
		b.ServiceTier = "standard_only"
	case parameters.Priority:
		b.ServiceTier = "auto"
	}

	if set.Effort != "" && set.Effort != parameters.NoEffort {
		b.outputConfig().Effort = set.Effort
	}
}

// thinkingFor returns how a model is to think; nil leaves it to the model. An effort alone changes
// what a model thinks only if it may think as long as it likes, which Opus 4.5 cannot.
func thinkingFor(model llm.Model, set parameters.Set) *thinking {
	switch {
	case set.Thinking != nil && *set.Thinking > 0:
		return &thinking{Type: "enabled", BudgetTokens: *set.Thinking}
	case set.Thinking != nil, set.Effort == parameters.NoEffort:
		return &thinking{Type: "disabled"}
	case set.Effort == "", strings.Contains(string(model), "opus-4-5"):
		return nil
	}
	return &thinking{Type: "adaptive"}
}

// outputConfig returns what the request says of the output.
func (b *body) outputConfig() *outputConfig {
	if b.OutputConfig == nil {
		b.OutputConfig = new(outputConfig)
	}
	return b.OutputConfig
}

// dialectFor returns the dialect of a server's schemas.
func dialectFor(with manners.Manners) llm.Dialect {
	d := dialect()
	if with.Plain {
		d.Keywords = nil
	}
	return d
}

// addTools adds tools and the answer's schema.
func (b *body) addTools(req *llm.Request, with manners.Manners) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, dialectFor(with))
		if err != nil {
			return err
		}
		b.outputConfig().Format = map[string]any{"type": "json_schema", "schema": schema}
	}

	for _, t := range tools {
		one, err := newTool(t, with)
		if err != nil {
			return err
		}
		b.Tools = append(b.Tools, one)
	}
	if len(tools) > 0 && req.System == "" { // else the mark behind the instructions covers them
		b.Tools[len(tools)-1].CacheControl = cacheFor(req.Cache)
	}

	if req.NoCalls && force == "" && len(tools) > 0 {
		b.ToolChoice = &toolChoice{Type: "none"}
	}
	if force != "" && !with.FreeTools {
		b.ToolChoice = &toolChoice{Type: "tool", Name: force, DisableParallel: !with.NoParallel}
	}
	return nil
}

func newTool(t llm.Tool, with manners.Manners) (tool, error) {
	schema, strict, err := wire.ToolFields(t, dialectFor(with))
	if err != nil {
		return tool{}, fmt.Errorf("tool %s: %w", t.Name, err)
	}
	schema["type"] = "object" // and nothing else may be there
	out := tool{Name: t.Name, Description: t.Description, InputSchema: schema}
	if !with.NoStrict {
		out.Strict = &strict
	}
	return out, nil
}

// cacheFor returns the mark of the end of what is kept warm; nil if nothing is.
func cacheFor(ttl llm.TTL) *cacheControl {
	if ttl == "" {
		return nil
	}
	return &cacheControl{"ephemeral", ttl}
}

// blockOf returns a part as a block of a message.
func blockOf(part llm.Part) any {
	switch {
	case part.Opaque != nil:
		return part.Opaque
	case part.Picture != nil:
		return imageBlock{"image", imageSource{"base64", part.Picture.MediaType, part.Picture.Data}, cacheFor(part.Cache)}
	case part.Call != nil:
		return useBlock{"tool_use", part.Call.ID, part.Call.Name, part.Call.Input}
	case part.Result != nil:
		said := []textBlock{{Type: "text", Text: part.Result.Text}}
		return resultBlock{"tool_result", part.Result.ID, said, part.Result.Error, cacheFor(part.Cache)}
	}
	return textBlock{"text", part.Text, cacheFor(part.Cache)}
}
