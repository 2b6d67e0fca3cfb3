package model

import (
	"hash/maphash"
	"sync"

	"github.com/coditect/mapreduce/orchestrator/token"
)

// sizes remembers how many tokens long texts have. Each turn of a conversation holds all
// texts of the turns before, and is counted several times.
type sizes struct {
	mu    sync.Mutex // guards known
	known map[textHash]int64
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

// countText returns the tokens of a text.
func (s *sizes) countText(c *token.Counter, text string) int64 {
	if len(text) < minSized {
		return int64(c.Count(text))
	}
	key := textHash{maphash.String(sizeSeed, text), len(text)}
	s.mu.Lock()
	n, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return n
	}
	n = int64(c.Count(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) == maxSized {
		s.known = make(map[textHash]int64)
	}
	s.known[key] = n
	return n
}
