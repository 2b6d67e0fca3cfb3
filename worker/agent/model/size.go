package model

import (
	"hash/maphash"
	"sync"

	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/llm"
)

// A TokenCounter counts the tokens of requests. It remembers how many long texts have: each turn
// of a conversation holds all texts of the turns before, and is counted several times. It is
// safe for concurrent use.
type TokenCounter struct {
	tokens *token.Counter

	mu    sync.Mutex // guards known
	known map[textHash]int64
}

// NewTokenCounter returns a TokenCounter that counts with another that remembers nothing.
func NewTokenCounter(tokens *token.Counter) *TokenCounter {
	return &TokenCounter{tokens: tokens, known: make(map[textHash]int64)}
}

// A textHash stands for a text.
type textHash struct {
	sum    uint64
	length int
}

const (
	minSized = 256     // bytes of a text that is worth remembering
	maxSized = 1 << 15 // texts
)

// sizeSeed keeps texts from being made that are taken for others.
var sizeSeed = maphash.MakeSeed()

// Prompt counts a request's prompt, by a vocabulary that is not quite any model's own.
func (c *TokenCounter) Prompt(req *llm.Request) int64 {
	return c.promptText(req) + req.PictureTokens()
}

// promptText counts what a prompt says.
func (c *TokenCounter) promptText(req *llm.Request) (n int64) {
	for _, text := range promptTexts(req) {
		n += c.countText(text) + 8 // for what stands around it
	}
	return n
}

// Worst is no fewer tokens than any model's vocabulary makes of a prompt: there
// are none that need twice as many as another for a text of any length, nor more
// than one for two bytes. What pictures count as is published, and counted as it is.
func (c *TokenCounter) Worst(req *llm.Request) int64 {
	return max(2*c.promptText(req), RequestBytes(req)/2) + 256 + req.PictureTokens()
}

// Least is no more tokens than any model's vocabulary makes of what a prompt says, by the
// same measure. Schemas and tools are left out: some servers hold an answer to its schema
// without showing it to the model. So are pictures, which some servers do not count.
func (c *TokenCounter) Least(req *llm.Request) int64 {
	n := c.countText(req.System)
	for _, m := range req.Messages {
		n += c.countParts(m.Parts)
	}
	return n / 2
}

// LeastOf is Least of what a model answered. What it thought may be shown shortened, or not
// at all, and is left out.
func (c *TokenCounter) LeastOf(res *llm.Response) int64 { return c.countParts(res.Parts) / 2 }

func (c *TokenCounter) countParts(parts []llm.Part) (n int64) {
	for _, p := range parts {
		n += c.countText(p.Text)
		if p.Call != nil {
			n += c.countText(string(p.Call.Input))
		}
		if p.Result != nil {
			n += c.countText(p.Result.Text)
		}
	}
	return n
}

// RequestBytes returns how many bytes the texts of a prompt have.
func RequestBytes(req *llm.Request) (n int64) {
	for _, text := range promptTexts(req) {
		n += int64(len(text))
	}
	return n
}

// promptTexts are the parts of a prompt.
func promptTexts(req *llm.Request) []string {
	out := []string{req.System}

	add := func(s *llm.Schema) {
		if s != nil {
			out = append(out, s.Document())
		}
	}

	add(req.Schema)
	for _, t := range req.Tools {
		out = append(out, t.Name+t.Description)
		add(t.Schema)
	}

	for _, m := range req.Messages {
		for _, part := range m.Parts {
			out = append(out, part.Text)
			if part.Opaque != nil {
				out = append(out, string(part.Opaque))
			}
			if part.Call != nil {
				out = append(out, part.Call.Name+string(part.Call.Input))
			}
			if part.Result != nil {
				out = append(out, part.Result.Text)
			}
		}
	}

	return out
}

// countText returns the tokens of a text.
func (c *TokenCounter) countText(text string) int64 {
	if len(text) < minSized {
		return int64(c.tokens.Count(text))
	}

	key := textHash{maphash.String(sizeSeed, text), len(text)}
	c.mu.Lock()
	n, ok := c.known[key]
	c.mu.Unlock()

	if ok {
		return n
	}

	// Without the lock, so that others can count meanwhile; the same text twice does no
	// harm.
	n = int64(c.tokens.Count(text))

	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == maxSized {
		c.known = make(map[textHash]int64)
	}
	c.known[key] = n
	return n
}
