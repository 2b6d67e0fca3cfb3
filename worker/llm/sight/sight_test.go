package sight_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/sight"
)

// measured are tokens that vendors charged for one picture, with a prompt of a few words
// (huggingface.co/datasets/JOHNISKING/image-token-cost; OpenAI's at the detail high), and those of the
// examples of the vendors' own guides.
var measured = []struct {
	provider      string
	model         llm.Model
	width, height int
	tokens        int64
}{
	{"anthropic", "claude-haiku-4-5", 256, 256, 165 - 61},
	{"anthropic", "claude-haiku-4-5", 512, 512, 426 - 61},
	{"anthropic", "claude-haiku-4-5", 768, 768, 849 - 61},
	{"anthropic", "claude-haiku-4-5", 1024, 1024, 1434 - 61},
	{"anthropic", "claude-haiku-4-5", 1280, 720, 1261 - 61},
	{"anthropic", "claude-sonnet-5-5", 1024, 1024, 1446 - 73},
	{"bedrock", "eu.anthropic.claude-haiku-4-5-20251001-v1:0", 1024, 1024, 1434 - 61},
	{"openai", "gpt-6-astra", 512, 512, 308},
	{"openai", "gpt-6-astra", 1024, 1024, 1229},
	{"openai", "gpt-6-astra", 1920, 1080, 2448},
	{"openai", "gpt-6-astra", 4032, 3024, 2942},
	{"openai", "gpt-5.5", 768, 768, 692},
	{"openai", "gpt-5-mini", 1024, 1024, 1659},
	{"openai", "gpt-5-mini", 1800, 2400, 2352},
	{"openai", "gpt-4o", 1024, 1024, 765},
	{"openai", "gpt-4o", 2048, 4096, 1105},
	{"openai", "gpt-4o-mini", 1024, 1024, 25501},
	{"gemini", "gemini-3-flash-preview", 1024, 1024, 1090},
	{"gemini", "gemini-3-flash-preview", 1920, 1080, 1101},
	{"gemini", "gemini-2.5-flash", 384, 384, 258},
	{"gemini", "gemini-2.5-flash", 960, 540, 1548},
}

// No picture counts as more than was reckoned, and where the rule of its model is known not as much
// less that a budget would hold far fewer calls.
func TestTokensThatVendorsCharged(t *testing.T) {
	for _, m := range measured {
		got := sight.Of(m.provider, m.model).Tokens(m.width, m.height)
		if got < m.tokens || float64(got) > 1.08*float64(m.tokens)+50 {
			t.Errorf("%s, %d×%d: %d tokens, and the vendor charged %d", m.model, m.width, m.height, got, m.tokens)
		}
	}
}

var (
	providers = rapid.SampledFrom([]string{"anthropic", "vertex-claude", "bedrock", "openai", "azure", "gemini", "vertex", "mistral", "openrouter", "ollama", "vllm"})
	models    = rapid.SampledFrom([]llm.Model{"claude-haiku-4-5", "gpt-4o", "gpt-5-nano", "gpt-6-sol", "gemini-3-flash", "gemini-2.0-flash", "anthropic/claude-opus-5", "openai/gpt-5-mini", "qwen2.5vl:7b", "eu.anthropic.claude-haiku-4-5-20251001-v1:0"})
)

func pictureOf(r sight.Rule, width, height, bytes int) *llm.Picture {
	return llm.NewPicture("image/png", width, height, r.Tokens(width, height), make([]byte, bytes))
}

func showing(all ...*llm.Picture) *llm.Request {
	m := llm.Message{Role: llm.User}
	for _, p := range all {
		m.Parts = append(m.Parts, llm.Part{Picture: p})
	}
	return &llm.Request{Model: "m", Messages: []llm.Message{m}}
}

// What fits is no larger than it was, of about the same shape, passes the check, and counts as no more
// than before.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := sight.Of(providers.Draw(t, "provider"), models.Draw(t, "model"))
		if rapid.Bool().Draw(t, "two models") {
			r = r.Both(sight.Of(providers.Draw(t, "other"), models.Draw(t, "its model")))
		}
		width, height := rapid.IntRange(1, 20_000).Draw(t, "width"), rapid.IntRange(1, 20_000).Draw(t, "height")
		w, h := r.Fit(width, height)
		if w < 1 || h < 1 || w > width || h > height {
			t.Fatalf("%d×%d fits as %d×%d", width, height, w, h)
		}
		if again, high := r.Fit(w, h); again != w || high != h {
			t.Fatalf("%d×%d fits as %d×%d, and that as %d×%d", width, height, w, h, again, high)
		}
		if skew := w*height - h*width; max(skew, -skew) > max(width, height) { // a pixel of rounding
			t.Fatalf("%d×%d fits as %d×%d, of another shape", width, height, w, h)
		}
		if err := r.Check(showing(pictureOf(r, w, h, 100))); err != nil {
			t.Fatal(err)
		}
		if r.Tokens(w, h) < 1 {
			t.Fatalf("%d×%d counts as %d", w, h, r.Tokens(w, h))
		}
	})
}

// Two models see no more than either, and count as the dearer.
func TestBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := sight.Of(providers.Draw(t, "provider"), models.Draw(t, "model")), sight.Of(providers.Draw(t, "other"), models.Draw(t, "its model"))
		both := a.Both(b)
		w, h := both.Fit(rapid.IntRange(1, 5000).Draw(t, "width"), rapid.IntRange(1, 5000).Draw(t, "height"))
		for _, one := range []sight.Rule{a, b} {
			if err := one.Check(showing(pictureOf(both, w, h, 10))); err != nil {
				t.Fatal(err)
			}
			if one.Tokens(w, h) > both.Tokens(w, h) {
				t.Fatalf("%d×%d counts as %d, and both as %d", w, h, one.Tokens(w, h), both.Tokens(w, h))
			}
		}
	})
}

// What a vendor refuses is refused before, with what to do.
func TestCheck(t *testing.T) {
	r := sight.Of("bedrock", "amazon.nova-lite-v1:0")
	many := make([]*llm.Picture, 21)
	for i := range many {
		many[i] = pictureOf(r, 10, 10, 10)
	}
	for name, c := range map[string]struct {
		req  *llm.Request
		want string
	}{
		"none":           {showing(), ""},
		"some":           {showing(many[:20]...), ""},
		"too many":       {showing(many...), "takes 20 at once"},
		"too many bytes": {showing(pictureOf(r, 10, 10, 3<<20)), "make it smaller"},
		"too wide":       {showing(pictureOf(r, 1569, 10, 10)), "see 1568"},
		"too much":       {showing(pictureOf(r, 9, 9, 5<<19), pictureOf(r, 9, 9, 5<<19), pictureOf(r, 9, 9, 5<<19), pictureOf(r, 9, 9, 5<<19), pictureOf(r, 9, 9, 5<<19)), "fewer pages"},
	} {
		err := r.Check(c.req)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if e, ok := errors.AsType[*llm.Error](err); err != nil && (!ok || e.Kind != llm.Invalid) {
			t.Errorf("%s: the error is %T of another kind", name, err)
		}
	}
}
