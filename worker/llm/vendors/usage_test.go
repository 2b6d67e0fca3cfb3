package vendors_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// usageNames are the vendors' words for the tokens of a prompt, of an answer, and of what a
// cache held.
var usageNames = map[string][3]string{
	"anthropic": {"input_tokens", "output_tokens", "cache_read_input_tokens"},
	"openai":    {"prompt_tokens", "completion_tokens", "cached_tokens"},
	"bedrock":   {"inputTokens", "outputTokens", "cacheReadInputTokens"},
	"gemini":    {"promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount"},
	"ollama":    {"prompt_eval_count", "eval_count", ""},
}

// A lie changes the usage that a server tells, whose numbers have these names.
type lie func(told map[string]any, names [3]string)

// lies are ways to tell numbers that cannot be: each of the values for the prompt, the answer
// or both, and what a cache cannot have held.
var lies = func() map[string]lie {
	all := make(map[string]lie)
	values := map[string]any{
		"negative": -5, "very negative": math.MinInt64, "null": nil, "zero": 0, "one": 1, "2^34+1": int64(1<<34 + 1),
		"largest": math.MaxInt64, "1e30": 1e30, "a fraction": 0.5, "a word": "many", "an empty text": "", "true": true,
		"a list": []int{100}, "an object": map[string]int{"tokens": 100}, "text of a negative number": "-7", "a hundred million": 100_000_000,
	}
	for name, value := range values {
		for which, at := range map[string][]int{"prompt": {0}, "answer": {1}, "both": {0, 1}} {
			all[which+" "+name] = func(told map[string]any, names [3]string) {
				for _, i := range at {
					told[names[i]] = value
				}
			}
		}
	}
	all["both left out"] = func(told map[string]any, names [3]string) { delete(told, names[0]); delete(told, names[1]) }
	for name, value := range map[string]any{"negative": -1_000_000, "too much": 1_000_000, "largest": math.MaxInt64} {
		all["cache "+name] = func(told map[string]any, names [3]string) { told[names[0]] = 1; setCached(told, names, value) }
	}
	return all
}()

func setCached(told map[string]any, names [3]string, value any) {
	if details, ok := told["prompt_tokens_details"].(map[string]any); ok {
		told = details
	}
	if names[2] != "" {
		told[names[2]] = value
	}
}

// A purse refuses what would take more than its budget, and adds up what is charged.
type purse struct {
	scripted.Calls
	budget, spent int64
}

func (p *purse) Reserve(_ context.Context, tokens, _ int64) error {
	if p.spent+tokens > p.budget {
		return agent.ErrBudget
	}
	return nil
}

func (p *purse) Spent(c mapreduce.Charge) { p.spent += c.Tokens.Total() }

// TestUsageThatCannotBeIsNotFree spends budgets on servers that lie about usage, each call in
// a way that is drawn. By the servers' own counts no budget is passed by more than one call.
func TestUsageThatCannotBeIsNotFree(t *testing.T) {
	if len(lies) < 40 {
		t.Fatalf("there are %d ways to lie, want 40", len(lies))
	}
	answer := `{"company":"Gardenia Bakeries","total":60.30,"date":"2018-12-25"}`
	document := strings.Repeat("GARDENIA BAKERIES, 12 bread rolls and one cake of 3 layers\n", 20)
	ways := slices.Sorted(maps.Keys(lies))
	sizes := model.NewTokenCounter(token.New())

	for _, name := range vendorNames {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%s/seed %d", name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				var told []string
				vendor, fake := start(t, name, fakellm.Config{Model: says(answer), Usage: func(_ fakellm.Call, usage map[string]any) {
					way := ways[random.IntN(len(ways))]
					told = append(told, way)
					lies[way](usage, usageNames[name])
				}})
				p := &purse{budget: 30_000 + random.Int64N(30_000)}
				doubted := 0
				ask := &decorator.Meter{
					Purse: p, Prices: new(llm.Prices), Count: sizes.Worst,
					Provider: decorator.NewDoubter(func(string, string) { doubted++ }).Around(vendor, sizes),
				}

				var err error
				calls := int64(0)
				for ; err == nil && calls < 1000; calls++ {
					_, err = ask.Complete(t.Context(), &llm.Request{
						Model: "m-1", System: "Extract the receipt.", MaxTokens: 1000, Messages: []llm.Message{llm.Say(llm.User, document)},
					})
				}

				var spent, largest int64
				for _, e := range fake.Entries() {
					spent += e.In() + e.Output
					largest = max(largest, e.In()+e.Output)
				}
				if err == nil || spent > p.budget+largest {
					t.Errorf("after %d calls and %d tokens of a budget of %d: %v; the last lies were %q", calls, spent, p.budget, err, told[max(0, len(told)-5):])
				}
				if doubted != 1 {
					t.Errorf("%d lines tell of the model's usage, want 1", doubted)
				}
			})
		}
	}
}

// TestEachImpossibleUsageChargesTheReservation asks once in each way.
func TestEachImpossibleUsageChargesTheReservation(t *testing.T) {
	answer := strings.Repeat("Gardenia Bakeries sold rolls. ", 4)
	document := strings.Repeat("GARDENIA BAKERIES, 12 bread rolls and one cake of 3 layers\n", 20)
	req := &llm.Request{Model: "m-1", System: "Read.", MaxTokens: 1000, Messages: []llm.Message{llm.Say(llm.User, document)}}
	sizes := model.NewTokenCounter(token.New())

	for _, name := range vendorNames {
		var way string
		vendor, _ := start(t, name, fakellm.Config{Model: says(answer), Usage: func(_ fakellm.Call, usage map[string]any) {
			if f := lies[way]; f != nil {
				f(usage, usageNames[name])
			}
		}})
		for _, way = range append(slices.Sorted(maps.Keys(lies)), "") {
			p := &purse{budget: 1 << 40}
			ask := &decorator.Meter{Purse: p, Prices: new(llm.Prices), Count: sizes.Worst, Provider: &decorator.Plausible{Provider: vendor, Sizes: sizes}}
			_, err := ask.Complete(t.Context(), req)
			reserved := sizes.Worst(req) + req.AnswerBound()
			if honest := way == "" || name == "ollama" && strings.HasPrefix(way, "cache "); honest && way == "" && p.spent >= reserved || !honest && p.spent != reserved {
				t.Errorf("%s, %q: %d tokens are charged of %d that were reserved: %v", name, way, p.spent, reserved, err)
			}
		}
	}
}

// TestTheBoundOfAnAnswerCountsItsFrames has answers whose frames take more than any answer of
// the usual length: if it may be long, it is read.
func TestTheBoundOfAnAnswerCountsItsFrames(t *testing.T) {
	answer := events(t, "openai", []string{
		`{"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":1}}`,
	})
	frames := strings.Repeat(": "+strings.Repeat("x", 1<<15)+"\n\n", 2100) // above 64 MiB
	for tokens, read := range map[int64]bool{8192: false, 100_000: true} {
		req := ask(nil)
		req.MaxTokens = tokens
		res, err := offline(t, "openai", canned{media("openai"), strings.NewReader(frames + answer)}).Complete(t.Context(), req)
		if (err == nil) != read || read && res.Text() != "yes" {
			t.Errorf("an answer of up to %d tokens: %v", tokens, err)
		}
	}
}
