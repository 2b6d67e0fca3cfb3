package decorator_test

import (
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
)

const receipt = `{
	"type": "object",
	"required": ["company", "total"],
	"properties": {
		"company": {"type": "string", "description": "Name of the shop", "minLength": 1, "x-coditect": {"pick": "first"}},
		"total": {"type": "number", "minimum": 0},
		"date": {"type": "string", "format": "date"}
	}
}`

const goodReceipt = `{"company":"Gardenia Bakeries — 金","total":60.30,"date":"2018-12-25"}`

func schema(t testing.TB, doc string) *llm.Schema {
	t.Helper()
	s, err := llm.NewSchema("receipt", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(s *llm.Schema) *llm.Request {
	return &llm.Request{
		Model: "m-1", System: "Extract the receipt.", Schema: s, MaxTokens: 500,
		Messages: []llm.Message{llm.Say(llm.User, "GARDENIA BAKERIES\nTOTAL 60.30")},
	}
}

func prices(t testing.TB, over string) *llm.Prices {
	t.Helper()
	p, err := llm.ListPrices()
	if err != nil {
		t.Fatal(err)
	}
	if p, err = p.With([]byte(over)); err != nil {
		t.Fatal(err)
	}
	return p
}
