package llm_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm"
)

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

func TestCost(t *testing.T) {
	p := prices(t, "openai: {gpt-4o: {input: 1, output: 2}, mine: {input: 0.000001, output: 0}}\nlocal: {'*': {input: 0, output: 0}}")
	for _, c := range []struct {
		name, provider string
		model          llm.Model
		usage          llm.Usage
		tier           string
		want           int64
	}{
		{"every kind of token", "anthropic", "claude-sonnet-4-5", llm.Usage{Input: 1000, CacheWrite: 1000, CacheWrite1h: 1000, CacheRead: 1000, Output: 1000}, "", 3000 + 3750 + 6000 + 300 + 15000},
		{"half in a batch", "anthropic", "claude-sonnet-4", llm.Usage{Input: 1000, Output: 1000}, llm.Batch, 9000},
		{"a date", "anthropic", "claude-sonnet-4-5-20250929", llm.Usage{Input: 1000}, "", 3000},
		{"a fraction is rounded up, once", "openai", "gpt-4o-mini", llm.Usage{Input: 1, CacheRead: 1}, "", 1},
		{"exactly one", "openai", "gpt-4o-mini", llm.Usage{CacheRead: 40, Output: 5}, "", 6},
		{"overridden", "openai", "gpt-4o-2024-08-06", llm.Usage{Input: 10, CacheRead: 10}, "", 20},
		{"no batches", "openai", "mine", llm.Usage{Input: 1_000_000}, llm.Batch, 1},
		{"a short prompt", "anthropic", "claude-haiku-5-5", llm.Usage{Input: 90_000, CacheRead: 10_000, Output: 1000}, "", 9000 + 100 + 500},
		{"a long prompt", "anthropic", "claude-haiku-5-5", llm.Usage{Input: 90_000, CacheRead: 10_001, Output: 1000}, "", 45_000 + 501 + 2500},
		{"a prompt that is not long", "openai", "gpt-6.1-terra", llm.Usage{Input: 172_000, CacheWrite: 100_000, Output: 1000}, "", 172_000 + 125_000 + 5000},
		{"a long prompt, whose output costs more by less", "openai", "gpt-6.1-terra", llm.Usage{Input: 172_001, CacheWrite: 100_000, Output: 1000}, "", 344_002 + 250_000 + 7500},
		{"half of that in a batch", "openai", "gpt-6.1-terra", llm.Usage{Input: 172_001, CacheWrite: 100_000, Output: 1000}, llm.Batch, 172_001 + 125_000 + 3750},
		{"what is read from the cache costs half in a batch, too", "anthropic", "claude-haiku-4-5", llm.Usage{Input: 1000, CacheRead: 1000, Output: 1000}, llm.Batch, 500 + 50 + 2500},
		{"or all of it", "gemini", "gemini-2.5-flash", llm.Usage{Input: 1000, CacheRead: 1000, Output: 1000}, llm.Batch, 150 + 30 + 1250},
		{"but nowhere else", "gemini", "gemini-2.5-flash", llm.Usage{Input: 1000, CacheRead: 1000, Output: 1000}, "flex", 150 + 15 + 1250},
		{"flex", "openai", "gpt-5.5", llm.Usage{Input: 1000, CacheRead: 1000, Output: 1000}, "flex", 2500 + 250 + 15_000},
		{"priority", "openai", "gpt-5-mini", llm.Usage{Input: 1000, CacheRead: 1000, Output: 1000}, "priority", 450 + 45 + 3600},
		{"standard", "openai", "gpt-5-mini", llm.Usage{Input: 1000}, "standard", 250},
		{"a tier that is not known", "openai", "gpt-5.1", llm.Usage{Input: 1000}, "flex", 1250},
		{"any model", "ollama", "qwen3:8b", llm.Usage{Input: 1_000_000}, "", 0},
		{"no credit", "openai", "gpt-5", llm.Usage{Input: -5_000_000, Output: 1}, "", 10},
		{"too much to count", "anthropic", "claude-opus-4-1", llm.Usage{Output: math.MaxInt64}, "", math.MaxInt64},
	} {
		got, known := p.Cost(c.provider, c.model, c.usage, c.tier)
		if got != c.want || !known {
			t.Errorf("%s: %d (known %v), want %d", c.name, got, known, c.want)
		}
	}
	for _, model := range []llm.Model{"gpt-4o-realtime", "gpt-4", "claude-sonnet-4-5"} {
		if _, known := p.Cost("openai", model, llm.Usage{}, ""); known {
			t.Errorf("the price of openai's %s is not known", model)
		}
	}
}

// The list has each model with its source; a window that no source gives is 0.
func TestNewModelsHavePricesAndWindows(t *testing.T) {
	p := prices(t, "")
	for model, window := range map[llm.Model]int64{
		"claude-fable-5-2": 1_000_000, "claude-opus-5-5": 1_000_000, "claude-sonnet-5-5": 1_000_000, "claude-haiku-5-5": 1_000_000,
		"gpt-6.2-sol": 1_050_000, "gpt-6.1-sol": 1_050_000, "gpt-6.1-terra": 1_050_000, "gpt-6-astra": 1_050_000,
		"gpt-6-luna": 1_050_000, "gpt-6-sol": 0, "gpt-5.6-sol": 0, "gpt-5.6-terra": 0, "gpt-5.6-luna": 1_050_000,
	} {
		provider := "openai"
		if strings.HasPrefix(string(model), "claude") {
			provider = "anthropic"
		}
		tariff, known := p.Tariff(provider, model)
		if !known || tariff.Input == 0 || tariff.Output == 0 || tariff.CacheRead == nil || tariff.CacheWrite == nil || tariff.Window != window {
			t.Errorf("%s: %+v (known %v), want all prices and a window of %d", model, tariff, known, window)
		}
	}
}

// Models of vendors that others than the vendor list, with what a million tokens of a prompt and of
// its answer cost, and a prompt that is longer than those which the vendor charges as it lists them.
func TestPricesOfOtherVendors(t *testing.T) {
	p := prices(t, "")
	for _, tt := range []struct {
		provider    string
		model       llm.Model
		cost, above int64
	}{
		{"gemini", "gemini-2.5-pro", 11_250_000, 200_000},
		{"vertex", "gemini-3.5-flash", 10_500_000, 0},
		{"vertex-claude", "claude-opus-4-8", 30_000_000, 200_000},
		{"bedrock", "global.anthropic.claude-sonnet-5", 12_000_000, 0},
		{"bedrock", "amazon.nova-micro-v1:0", 175_000, 0},
		{"mistral", "mistral-large-latest", 2_000_000, 0},
		{"deepseek", "deepseek-v4-pro", 5_280_000, 0},
		{"groq", "openai/gpt-oss-120b", 750_000, 0},
		{"xai", "grok-4.3", 3_750_000, 200_000},
		{"cerebras", "zai-glm-4.7", 5_000_000, 0},
		{"llamacpp", "any", 0, 0},
	} {
		tariff, known := p.Tariff(tt.provider, tt.model)
		if got := int64(tariff.Input + tariff.Output); !known || got != tt.cost || tariff.Above != tt.above {
			t.Errorf("%s/%s costs %d, above %d (known %v), want %d, above %d", tt.provider, tt.model, got, tariff.Above, known, tt.cost, tt.above)
		}
	}
	if _, known := p.Tariff("azure", "gpt-5"); known {
		t.Error("a deployment of Azure, which may be of any model, has a price")
	}
}

func TestCostAgreesWithRationals(t *testing.T) {
	p := prices(t, "x: {m: {input: 2.5, output: 10, cache_write: 3.125, cache_write_1h: 5, cache_read: 0.25, batch: 50%}}")
	tokens := rapid.Int64Range(0, 1<<40)
	rapid.Check(t, func(t *rapid.T) {
		u := llm.Usage{
			Input: tokens.Draw(t, "input"), CacheWrite: tokens.Draw(t, "write"), CacheWrite1h: tokens.Draw(t, "write 1h"),
			CacheRead: tokens.Draw(t, "read"), Output: tokens.Draw(t, "output"),
		}
		want := new(big.Rat)
		for price, n := range map[string]int64{"2.5": u.Input, "3.125": u.CacheWrite, "5": u.CacheWrite1h, "0.25": u.CacheRead, "10": u.Output} {
			r, _ := new(big.Rat).SetString(price)
			want.Add(want, r.Mul(r, new(big.Rat).SetInt64(n)))
		}
		want.Mul(want, big.NewRat(1, 2))
		got, _ := p.Cost("x", "m", u, llm.Batch)
		over := new(big.Rat).Sub(new(big.Rat).SetInt64(got), want)
		if over.Sign() < 0 || over.Cmp(big.NewRat(1, 1)) >= 0 {
			t.Fatalf("%v costs %d, want %s rounded up", u, got, want.FloatString(3))
		}
	})
}

// What a job carries along of a file of prices says the same.
func TestPricesOfOneModel(t *testing.T) {
	p := prices(t, "x: {m: {input: 0.1, output: 10, cache_write: 3.125, cache_read: 0.000001, batch: 50%, batch_cache: 75%, flex: 40%, priority: 175%, above: 9, times: 2, output_above: 12.5}, free: {input: 0, output: 0}}")
	u := llm.Usage{Input: 1_000_003, CacheWrite: 77, CacheRead: 50_000_001, Output: 13}
	for _, model := range []llm.Model{"m", "m-2026-01-01", "free"} {
		file, err := p.For("x/" + string(model))
		if err != nil {
			t.Fatal(err)
		}
		one, err := (&llm.Prices{}).With(file)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		for _, tier := range []string{"", llm.Batch, "flex", "priority"} {
			want, _ := p.Cost("x", model, u, tier)
			if got, known := one.Cost("x", model, u, tier); got != want || !known {
				t.Errorf("%s costs %d (known: %t), want %d by\n%s", model, got, known, want, file)
			}
		}
	}
	if file, err := p.For("x", "other"); file != nil || err != nil {
		t.Errorf("%s, %v of a model that is not there", file, err)
	}
}

func TestBadPrices(t *testing.T) {
	for _, file := range []string{
		"openai: {m: {input: -1}}", "openai: {m: {input: 1e3}}", "openai: {m: {input: 1.1234567}}",
		"openai: {m: {inputs: 1}}", "openai: {m: {input: 1, batch: 0.5}}", "openai: {m: {batch: 101%}}", "[]",
		"openai: {m: {input: 1, above: 10}}", "openai: {m: {input: 1, times: 2}}", "openai: {m: {input: 1, above: -1, times: 2}}",
		"openai: {m: {input: 1, output: 1, flex: 101%}}", "openai: {m: {input: 1, output: 1, batch_cache: 101%}}", "openai: {m: {input: 1, output: 1, priority: 1001%}}",
		"openai: {m: {input: 1, output_above: 2}}", "openai: {m: {input: 1, window: -1}}",
	} {
		if _, err := (&llm.Prices{}).With([]byte(file)); err == nil {
			t.Errorf("%s was taken", file)
		}
	}
}

// TestFaultsOfPrices: each says the line, the key, and what has to stand there.
func TestFaultsOfPrices(t *testing.T) {
	for file, want := range map[string]string{
		"openai:\n  m: {input: cheap, output: 1}": `line 2: openai.m.input: "cheap" is no price in dollars, such as 3 or 0.25`,
		"openai: 3":                "line 1: openai: must be a mapping of models, as in openai:",
		"- a":                      "line 1: must be a mapping of providers",
		"openai: {m: {inptu: 3}}":  `line 1: openai.m: there is no price "inptu"; there are input, output, `,
		"openai: {m: {output: 3}}": "line 1: openai.m: needs both input and output",
		"openai: {m: {input: 1, output: 3, batch: half}}":                 `openai.m.batch: "half" is no share`,
		"openai: {m: {input: 1, output: 3, window: lots}}":                `openai.m.window: "lots" is no whole number of tokens`,
		"openai: {m: {input: 1, output: 3, times: 2}}":                    "above and times belong together",
		"openai:\n  m: {input: 1, output: 1}\n  m: {input: 1, output: 1}": `line 3: openai: "m" stands in line 2 already`,
		"openai: {m: {input: 1":                                           "a brace { is not closed",
	} {
		if _, err := (&llm.Prices{}).With([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", file, err, want)
		}
	}
}

// TestNothingCostsMoreThanMost: whatever a vendor makes of the tokens of a call, what was set aside for
// it is enough.
func TestNothingCostsMoreThanMost(t *testing.T) {
	price := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%d.%06d", rapid.IntRange(0, 99).Draw(t, "dollars"), rapid.IntRange(0, 999_999).Draw(t, "rest"))
	})
	tokens := rapid.Int64Range(0, 1<<20)
	rapid.Check(t, func(t *rapid.T) {
		file := "v: {m: {input: " + price.Draw(t, "input") + ", output: " + price.Draw(t, "output")
		for _, key := range []string{"cache_write", "cache_write_1h", "cache_read"} {
			if rapid.Bool().Draw(t, key) {
				file += ", " + key + ": " + price.Draw(t, key)
			}
		}
		if rapid.Bool().Draw(t, "long") {
			file += fmt.Sprintf(", above: %d, times: %d", rapid.Int64Range(1, 1<<20).Draw(t, "above"), rapid.IntRange(1, 5).Draw(t, "times"))
			if rapid.Bool().Draw(t, "output_above") {
				file += ", output_above: " + price.Draw(t, "output_above")
			}
		}
		file += fmt.Sprintf(", flex: %d%%, priority: %d%%", rapid.IntRange(0, 100).Draw(t, "flex"), rapid.IntRange(1, 1000).Draw(t, "priority"))
		prices, err := (&llm.Prices{}).With([]byte(file + "}}"))
		if err != nil {
			t.Fatal(err)
		}

		// An answer may be in the tier that was asked for, or in the standard one.
		asked := rapid.SampledFrom([]string{"", "flex", "standard", "priority"}).Draw(t, "asked")
		tier := rapid.SampledFrom([]string{asked, "standard"}).Draw(t, "tier")
		u := llm.Usage{Input: tokens.Draw(t, "in"), CacheWrite: tokens.Draw(t, "write"), CacheWrite1h: tokens.Draw(t, "hour"), CacheRead: tokens.Draw(t, "read"), Output: tokens.Draw(t, "out")}
		in, out := u.In()+tokens.Draw(t, "fewer in"), u.Output+tokens.Draw(t, "fewer out")
		most, known := prices.Most("v", "m", in, out, asked)
		if cost, _ := prices.Cost("v", "m", u, tier); !known || cost > most {
			t.Fatalf("%s: %v costs %d, and %d was set aside for %d and %d", file, u, cost, most, in, out)
		}
	})
}
