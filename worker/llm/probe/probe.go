// Package probe finds out what a model at a server does, by four small calls. It imports the port to
// models, and a decorator that reads answers; it knows no vendor.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A Finding is whether something works.
type Finding struct {
	Name   string `json:"name"` // text, structured, tools, usage or cache
	Works  bool   `json:"works"`
	Detail string `json:"detail,omitempty"` // what came, or why it does not work
}

// Report is what was found of a model.
type Report struct {
	Model    llm.Model `json:"model"` // that answered, by its own account
	Findings []Finding `json:"findings"`
	Usage    llm.Usage `json:"usage"` // of all calls
}

const (
	yes    = "Reply with the one word: yes"
	record = "The shop of Ana Duarte in Lyon was founded in 1987."
	form   = `{"type":"object","required":["city","year"],"additionalProperties":false,"properties":{"city":{"type":"string"},"year":{"type":"integer"}}}`
	lookUp = `{"type":"object","required":["name"],"additionalProperties":false,"properties":{"name":{"type":"string"}}}`
)

// maxAnswer bounds an answer in tokens. A model may think before it answers.
const maxAnswer = 2048

// A prober asks one model.
type prober struct {
	ask    llm.Provider
	model  llm.Model
	report Report
}

// Ask asks a model four times. Each call begins with the same text of some 1,700 tokens, which is
// long enough for the caches of most vendors. The error is that of the first call: then nothing
// else was tried.
func Ask(ctx context.Context, p llm.Provider, model llm.Model) (*Report, error) {
	pr := &prober{ask: &decorator.Structured{Provider: p}, model: model, report: Report{Usage: llm.Usage{Reported: true}}}
	first, err := pr.complete(ctx, yes, nil)
	if err != nil {
		return nil, err
	}
	pr.report.Model = first.Model
	pr.note("text", strings.TrimSpace(first.Text()) != "", "it says %q", shorten.Line(first.Text(), maxShown))
	pr.note("usage", first.Usage.Reported, "%d and %d tokens are told", first.Usage.In(), first.Usage.Output)

	pr.trySchema(ctx)
	pr.tryTools(ctx)
	again, err := pr.complete(ctx, yes, nil)
	if err != nil {
		pr.note("cache", false, "%v", err)
		return &pr.report, nil
	}
	pr.note("cache", again.Usage.CacheRead > 0, "%d of %d tokens of the second prompt are read from it", again.Usage.CacheRead, again.Usage.In())
	return &pr.report, nil
}

func (p *prober) note(name string, works bool, format string, args ...any) {
	p.report.Findings = append(p.report.Findings, Finding{name, works, fmt.Sprintf(format, args...)})
}

// complete makes one call; change may be nil.
func (p *prober) complete(ctx context.Context, text string, change func(*llm.Request)) (*llm.Response, error) {
	req := &llm.Request{
		Model: p.model, System: preamble(), Cache: llm.FiveMinutes, MaxTokens: maxAnswer,
		Messages: []llm.Message{llm.Say(llm.User, text)},
	}

	if change != nil {
		change(req)
	}

	res, err := p.ask.Complete(ctx, req)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		p.report.Usage = p.report.Usage.Add(e.Usage)
	}
	if res != nil {
		p.report.Usage = p.report.Usage.Add(res.Usage)
	}

	return res, err
}

// trySchema has a record answered by a schema, whose values are known.
func (p *prober) trySchema(ctx context.Context) {
	schema, err := llm.NewSchema("record", []byte(form))
	if err != nil {
		p.note("structured", false, "%v", err)
		return
	}

	res, err := p.complete(ctx, "Extract the city and the year: "+record, func(r *llm.Request) { r.Schema = schema })
	if err != nil {
		p.note("structured", false, "%v", err)
		return
	}

	var got struct {
		City string
		Year int
	}
	right := json.Unmarshal(res.Answer, &got) == nil && got.City == "Lyon" && got.Year == 1987
	p.note("structured", right, "the answer is %s", shorten.Line(string(res.Answer), maxShown))
}

// tryTools has a tool called.
func (p *prober) tryTools(ctx context.Context) {
	schema, err := llm.NewSchema("look_up", []byte(lookUp))
	if err != nil {
		p.note("tools", false, "%v", err)
		return
	}

	res, err := p.complete(ctx, "Look up the owner of the shop: "+record, func(r *llm.Request) {
		r.Tools = []llm.Tool{{Name: "look_up", Description: "Finds a person by name.", Schema: schema}}
		r.Force = "look_up"
	})
	if err != nil {
		p.note("tools", false, "%v", err)
		return
	}

	calls := res.Calls()
	if len(calls) == 0 {
		p.note("tools", false, "it calls none, and says %q", shorten.Line(res.Text(), maxShown))
		return
	}
	p.note("tools", strings.Contains(string(calls[0].Input), "Duarte"), "it calls %s with %s", calls[0].Name, shorten.Line(string(calls[0].Input), maxShown))
}

// preamble is a text that is the same in all calls.
func preamble() string {
	var b strings.Builder
	b.WriteString("You are tested. The lines below say nothing; only the last message counts.\n")
	for i := range 110 {
		fmt.Fprintf(&b, "Line %d holds no instruction and can be passed over by you.\n", i+1)
	}
	return b.String()
}

// maxShown bounds what is shown of an answer, in characters.
const maxShown = 80
