package manners_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm/manners"
)

const address = "models.example/v1/secret-key"

// words are refusals that teach something.
var words = []string{
	"unknown parameter: stream_options", "strict is not permitted", "parallel_tool_calls is not supported", "tool_choice is not supported", "streaming is not supported",
	"the system role is not supported", "cache_control: extra inputs are not permitted", "temperature is not supported", "seed is not supported", "top_p is not supported",
	"response_format json_schema is not supported", "response_format is not supported", "max_tokens is not supported, use max_completion_tokens", "at most 4096 completion tokens", "at most 1000 completion tokens",
	"effort must be one of low, medium", "effort must be one of high, max", "invalid schema: keyword minimum", "thought_signature is missing", "encrypted_content is not supported", "bad request",
}

// learn has a store learn from a refusal.
func learn(s *manners.Store, text string) {
	known := s.Of(address, "m")
	s.Refused(address, "m", known, known, manners.Refusal{Status: 400, Text: text}, manners.Sent{
		Schema: true, Tools: true, Stream: true, Sealed: true, System: true, Cache: true, Bound: 8192, Parameters: 1<<8 - 1, Effort: "minimal",
	})
}

// Processes that tell each other come to know the same, and stop telling; nothing that one has learned
// is lost, and nothing but words of this package is told.
func TestProcessesComeToKnowTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*manners.Store
		var told []string
		for range rapid.IntRange(2, 4).Draw(t, "processes") {
			s := manners.NewStore(func(line string) { told = append(told, line) })
			for _, text := range rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "refusals") {
				learn(s, text)
			}
			all = append(all, s)
		}
		first := all[0].Of(address, "m")

		for round := 0; ; round++ {
			var news []manners.Known
			for _, s := range all {
				news = append(news, s.News()...)
			}
			if len(news) == 0 {
				break
			}
			if round == 20 {
				t.Fatalf("they go on telling each other: %v", news)
			}
			for _, k := range news {
				if len(k.Server) != 32 || len(k.Refuses) > 512 || strings.Contains(k.Server+k.Refuses, "example") || strings.Contains(k.Refuses, "secret") {
					t.Fatalf("told: %+v", k)
				}
				for _, s := range all {
					s.Learn(k, false)
				}
			}
		}
		for _, s := range all[1:] {
			if diff := cmp.Diff(all[0].All(), s.All()); diff != "" {
				t.Fatalf("they know different things (-first +other):\n%s\nsaid: %q", diff, told)
			}
		}
		if now := all[0].Of(address, "m"); now.Omit&first.Omit != first.Omit || now.Form < first.Form || first.NoUsage && !now.NoUsage {
			t.Fatalf("%+v became %+v", first, now)
		}
	})
}

// What is told is read again as it was, and what a later version tells in words of its own is passed
// over.
func TestWordsOfOthers(t *testing.T) {
	for _, text := range words {
		one, other := manners.NewStore(nil), manners.NewStore(nil)
		learn(one, text)
		news := one.News()
		if len(news) != 1 || len(one.News()) != 0 {
			t.Fatalf("%s: news %+v", text, news)
		}
		news[0].Refuses += ", minds=always, telepathy"
		other.Learn(news[0], false)
		if diff := cmp.Diff(fmt.Sprintf("%+v", one.Of(address, "m")), fmt.Sprintf("%+v", other.Of(address, "m"))); diff != "" {
			t.Errorf("%s (-learned +told):\n%s", text, diff)
		}
		if more := other.News(); len(more) > 0 {
			t.Errorf("%s: %+v is told again", text, more)
		}
		if got := other.Of("elsewhere.example/v1", "m"); got != (manners.Manners{}) {
			t.Errorf("%s: another server is taken for this one: %+v", text, got)
		}
	}
	s := manners.NewStore(nil)
	for _, hostile := range []string{"", ",", "most=-5", "most=x", "levels=+", strings.Repeat("strict, ", 9999), "\x00"} {
		s.Learn(manners.Known{Server: "x", Model: "m", Refuses: hostile}, true)
	}
	if got := s.All(); len(got) != 1 || got[0].Refuses != "strict" {
		t.Errorf("of hostile words is known: %+v", got)
	}
}
