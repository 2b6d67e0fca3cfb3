// Package meter is what a scripted vendor of models counts: the tokens of a prompt, which prefixes
// of prompts its cache holds, and what is left of its limits. It must import nothing of the
// project, so that a mistake in how providers count cannot be repeated here; and it knows no format.
package meter

import (
	"crypto/sha256"
	"fmt"
	"io"
)

// A Prompt is what a model reads, in the order in which the vendor reads it, as prefixes of it are cached.
type Prompt []Section

// A Section is a part of a prompt; a prefix that ends with a marked one is cached.
type Section struct {
	Text   string
	Marked bool
	Size   int64 // tokens of a picture, whose text is its bytes; 0 of a text
}

// Tokens is how many tokens the server takes a section for.
func (s Section) Tokens() int64 {
	if s.Size > 0 {
		return s.Size
	}
	return Tokens(s.Text)
}

// Tokens is how many tokens the server takes a prompt for.
func (p Prompt) Tokens() int64 {
	var n int64
	for _, s := range p {
		n += s.Tokens()
	}
	return n
}

// Tokens is how many tokens the server takes a text for.
func Tokens(text string) int64 { return int64(len(text)+3) / 4 }

// PictureTokens is how many tokens the server takes a picture for: those of Claude's models.
func PictureTokens(width, height int) int64 {
	return int64((width+27)/28)*int64((height+27)/28) + 4
}

// A Cache has prefixes of prompts. It is not safe for use by several goroutines at once.
type Cache struct {
	least int64           // tokens of a prefix that is cached
	warm  map[string]bool // by their keys
}

// NewCache returns a cache of prefixes that have at least so many tokens.
func NewCache(least int64) *Cache { return &Cache{least: least, warm: make(map[string]bool)} }

// An Input is how the tokens of a prompt count.
type Input struct {
	Fresh, Written, Read int64  // neither of the cache nor for it; written to it; read from it
	Prefix               string // the key of the longest prefix that is to be cached; "" if none is
}

// Reckon says how the tokens of a prompt count. What it writes to the cache others find once Warm was told: of
// those that ask meanwhile each writes it too.
func (c *Cache) Reckon(model string, p Prompt) Input {
	in := Input{Fresh: p.Tokens()}

	var size int64
	best, all := -1, sha256.New()
	keys := make([]string, len(p))
	sizes := make([]int64, len(p))
	for i, s := range p {
		size += s.Tokens()
		io.WriteString(all, s.Text+"\x00") //nolint:errcheck // a hash takes everything
		keys[i], sizes[i] = fmt.Sprintf("%s %x", model, all.Sum(nil)), size
		if s.Marked && size >= c.least {
			best = i
		}
	}

	if best < 0 {
		return in
	}

	// The longest prefix that is warm is read, and what is marked behind it is written.
	for i := best; i >= 0; i-- {
		if c.warm[keys[i]] {
			in.Read = sizes[i]
			break
		}
	}

	in.Written = sizes[best] - in.Read
	in.Fresh -= sizes[best]
	in.Prefix = keys[best]
	return in
}

// Warm keeps the prefix of a prompt, if it has one, from when its answer begins.
func (c *Cache) Warm(in Input) {
	if in.Prefix != "" {
		c.warm[in.Prefix] = true
	}
}
