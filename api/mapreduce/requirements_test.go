package mapreduce_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestRequirementsMetBy(t *testing.T) {
	offer := mapreduce.Offer{Providers: []string{"rules", "openai"}, Tools: []string{"grep", "read"}, Parsers: []string{"text"}, Batches: []string{"openai"}}
	for _, tt := range []struct {
		name  string
		needs mapreduce.Requirements
		offer mapreduce.Offer
		want  string
	}{
		{"nothing", mapreduce.Requirements{}, mapreduce.Offer{}, ""},
		{"a provider", mapreduce.Requirements{Provider: "openai", Model: "any", Weight: 3}, offer, ""},
		{"another provider", mapreduce.Requirements{Provider: "ollama"}, offer, `provider "ollama"`},
		{"a provider of nobody", mapreduce.Requirements{Provider: "rules"}, mapreduce.Offer{}, `provider "rules"`},
		{"a name that is part of one", mapreduce.Requirements{Provider: "open"}, offer, `provider "open"`},
		{"a parser", mapreduce.Requirements{Parser: "text"}, offer, ""},
		{"another parser", mapreduce.Requirements{Parser: "pdf"}, offer, `parser "pdf"`},
		{"tools", mapreduce.Requirements{Provider: "rules", Tools: []string{"read", "grep"}}, offer, ""},
		{"one tool of several", mapreduce.Requirements{Tools: []string{"read", "browser", "fetch"}}, offer, `tool "browser"`},
		{"batches", mapreduce.Requirements{Provider: "openai", Batched: true}, offer, ""},
		{"batches of a worker that makes none", mapreduce.Requirements{Provider: "rules", Batched: true}, offer, `a version that makes batches of "rules"`},
		{"reviews", mapreduce.Requirements{Reviewed: true}, mapreduce.Offer{Reviews: true}, ""},
		{"reviews of a worker that knows none", mapreduce.Requirements{Provider: "rules", Reviewed: true}, offer, `a version that knows "--review"`},
		{"a deadline", mapreduce.Requirements{Placed: true}, mapreduce.Offer{Deadlines: true}, ""},
		{"a deadline of a worker that knows none", mapreduce.Requirements{Provider: "rules", Placed: true}, offer, `a version that knows "--deadline"`},
		{"the provider first", mapreduce.Requirements{Provider: "x", Tools: []string{"y"}, Parser: "z"}, offer, `provider "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.needs.Missing(tt.offer); got != tt.want {
				t.Errorf("missing %q, want %q", got, tt.want)
			}
			if got := tt.needs.MetBy(tt.offer); got != (tt.want == "") {
				t.Errorf("all is there: %t, and what is missing is %q", got, tt.want)
			}
		})
	}
}
