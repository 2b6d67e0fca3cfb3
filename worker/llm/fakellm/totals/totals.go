// Package totals is an example, for tests, of a vendor of models: all that it takes to add
// one is a package like this and a row in the table of vendors. Its models have no
// server. Asked for the company, date and total of a receipt, they find the total.
package totals

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/coditect/mapreduce/worker/llm"
)

// New returns the provider. It needs neither key nor address.
func New(llm.Config) (llm.Provider, error) { return provider{}, nil }

type provider struct{}

// Name implements llm.Provider.
func (provider) Name() string { return "totals" }

// Can implements llm.Provider.
func (provider) Can() llm.Capabilities {
	return llm.Capabilities{Dialect: llm.Dialect{Name: "totals", All: true}, Window: 16384}
}

var total = regexp.MustCompile(`TOTAL RM (\d+\.\d+)`)

// Complete implements llm.Provider.
func (provider) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if ctx.Err() != nil {
		return nil, llm.WrapError(llm.Timeout, context.Cause(ctx))
	}
	if err := req.Check(); err != nil {
		return nil, err
	}

	fields := map[string]any{"company": []any{}, "date": []any{}, "total": []any{}} // not found
	for _, p := range req.Messages[0].Parts {
		if m := total.FindStringSubmatch(p.Text); m != nil {
			fields["total"] = []any{map[string]any{"value": json.Number(m[1]), "quotes": []string{m[0]}, "confidence": 0.5}}
		}
	}

	answer, err := json.Marshal(map[string]any{"fields": fields, "not_found": []any{}})
	if err != nil {
		return nil, llm.WrapError(llm.Garbled, err)
	}

	return &llm.Response{
		Model: req.Model, Parts: []llm.Part{{Text: string(answer)}}, Answer: answer, Stop: llm.StopEnd,
		Usage: llm.Usage{Input: promptTokens(req), Output: tokens(string(answer)), Reported: true},
	}, nil
}

// promptTokens counts the tokens of a prompt.
func promptTokens(req *llm.Request) int64 {
	n := tokens(req.System)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			n += tokens(p.Text)
		}
	}
	return n
}

// tokens counts as the models of this vendor read: four bytes at a time.
func tokens(text string) int64 { return int64(len(text)+3) / 4 }
