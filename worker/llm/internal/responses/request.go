package responses

import (
	"fmt"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// The body of a request.
type (
	body struct {
		Model             string    `json:"model"`
		Instructions      string    `json:"instructions,omitempty"`
		Input             []any     `json:"input"`
		Tools             []tool    `json:"tools,omitempty"`
		ToolChoice        any       `json:"tool_choice,omitempty"` // "none", or a tool
		ParallelToolCalls *bool     `json:"parallel_tool_calls,omitempty"`
		Text              *textForm `json:"text,omitempty"`
		MaxOutputTokens   int64     `json:"max_output_tokens"`
		Include           []string  `json:"include,omitempty"`
		Store             bool      `json:"store"`
		Stream            bool      `json:"stream"`
		Reasoning         any       `json:"reasoning,omitempty"`
		Temperature       *float64  `json:"temperature,omitempty"`
		TopP              *float64  `json:"top_p,omitempty"`
		PromptCacheKey    string    `json:"prompt_cache_key,omitempty"`
		ServiceTier       string    `json:"service_tier,omitempty"`
	}
	textForm struct {
		Format    any    `json:"format,omitempty"`
		Verbosity string `json:"verbosity,omitempty"`
	}
	tool struct {
		Type        string         `json:"type"`
		Name        string         `json:"name"`
		Description string         `json:"description,omitempty"`
		Strict      bool           `json:"strict"` // it is true if it is left out
		Parameters  map[string]any `json:"parameters"`
	}
)

// Items of the input.
type (
	messageItem struct {
		Role    llm.Role `json:"role"`
		Content any      `json:"content"` // a text, or a list with pictures
	}
	inputText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	inputImage struct {
		Type     string `json:"type"`
		Detail   string `json:"detail"`
		ImageURL string `json:"image_url"`
	}
	callItem struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
)

// sealed asks for what a model thought, sealed by its vendor.
const sealed = "reasoning.encrypted_content"

// newBody puts a request into the vendor's words, without what the server refuses.
func (p *provider) newBody(req *llm.Request, with manners.Manners) (*body, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	b := &body{Model: string(req.Model), MaxOutputTokens: wire.AnswerBound(req, with), Stream: !with.NoStream}
	if len(req.Tools) > 0 && !with.NoSealed { // else no turn follows
		b.Include = []string{sealed}
	}

	b.addParameters(req, with)

	messages, system := req.Messages, req.System+wire.TellForm(req, with)
	if with.NoSystem {
		messages = wire.WithInstructions(system, messages)
	} else {
		b.Instructions = system
	}
	for _, m := range messages {
		b.Input = append(b.Input, itemsOf(m)...)
	}
	d := p.server.Dialect
	if with.Plain {
		d.Keywords = nil
	}
	return b, b.addTools(req, with, d)
}

// addParameters adds the parameters of the answer. The interface has no seed, and no texts that end
// an answer.
func (b *body) addParameters(req *llm.Request, with manners.Manners) {
	set := wire.ParametersOf(req, with)
	b.Temperature, b.TopP, b.PromptCacheKey = set.Temperature, set.TopP, wire.CacheKeyOf(req, with)
	if b.ServiceTier = set.Tier; set.Tier == parameters.Standard {
		b.ServiceTier = "default"
	}

	if set.Effort != "" {
		b.Reasoning = map[string]string{"effort": set.Effort}
	}
	if set.Verbosity != "" {
		b.Text = &textForm{Verbosity: set.Verbosity}
	}
}

// setFormat sets the form of the answer.
func (b *body) setFormat(form any) {
	if b.Text == nil {
		b.Text = new(textForm)
	}
	b.Text.Format = form
}

// itemsOf returns the items of a message, in its order. Texts that follow each other are one, and one
// item with the pictures beside them.
func itemsOf(m llm.Message) []any {
	var items, shown []any
	text := ""
	// What was said and shown ends before each item of another kind, so that the order stays.
	flush := func() {
		if text != "" && shown != nil {
			shown = append(shown, inputText{"input_text", text})
			text = ""
		}
		switch {
		case shown != nil:
			items = append(items, messageItem{m.Role, shown})
		case text != "":
			items = append(items, messageItem{m.Role, text})
		}
		text, shown = "", nil
	}

	for _, p := range m.Parts {
		text += p.Text
		switch {
		case p.Picture != nil:
			if text != "" {
				shown = append(shown, inputText{"input_text", text})
				text = ""
			}
			shown = append(shown, inputImage{"input_image", llm.PictureDetail, p.Picture.URL()})
		case p.Opaque != nil:
			flush()
			items = append(items, p.Opaque)
		case p.Call != nil:
			flush()
			items = append(items, callItem{"function_call", p.Call.ID, p.Call.Name, string(p.Call.Input)})
		case p.Result != nil:
			flush()
			items = append(items, resultItem{"function_call_output", p.Result.ID, p.Result.Text})
		}
	}

	flush()
	return items
}

// addTools adds tools and the answer's schema.
func (b *body) addTools(req *llm.Request, with manners.Manners, d llm.Dialect) error {
	tools, force := req.Tools, req.Force
	switch {
	case req.Schema == nil:
	case with.Form == manners.ByTool:
		tools, force = wire.WithAnswer(req)
	case with.Form == manners.ByObject:
		b.setFormat(map[string]any{"type": "json_object"})
	case with.Form == manners.BySchema:
		schema, err := wire.SchemaMap(req.Schema, d)
		if err != nil {
			return err
		}
		form := map[string]any{"type": "json_schema", "name": req.Schema.Name(), "schema": schema}
		if !with.NoStrict {
			form["strict"] = true
		}
		b.setFormat(form)
	}

	for _, t := range tools {
		schema, strict, err := wire.ToolFields(t, d)
		if err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
		b.Tools = append(b.Tools, tool{"function", t.Name, t.Description, strict && !with.NoStrict, schema})
	}
	if with.FreeTools {
		return nil
	}
	if req.NoCalls && force == "" && len(tools) > 0 {
		b.ToolChoice = "none"
	}
	if force != "" {
		b.ToolChoice = map[string]string{"type": "function", "name": force}
		if !with.NoParallel {
			b.ParallelToolCalls = new(false)
		}
	}
	return nil
}
