package jobspec

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/coditect/mapreduce/api/schema"
)

// A digest is that of the text of a schema.
type digest [sha256.Size]byte

// schemas are those that jobs at hand have, read. One can take a hundred times its text, and
// thousands of jobs may have the same: they share it. It is forgotten with the last of them.
type schemas struct {
	mu     sync.Mutex // guards parsed
	parsed map[digest]weak.Pointer[schema.Schema]
}

// parse reads a schema, unless an equal one is at hand.
func (s *schemas) parse(text []byte) (*schema.Schema, error) {
	key := digest(sha256.Sum256(text))
	if found := s.find(key); found != nil {
		return found, nil
	}

	parsed, err := schema.Parse("schema", text)
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.parsed[key].Value(); found != nil { // another has read it meanwhile
		return found, nil
	}

	s.parsed[key] = weak.Make(parsed)
	runtime.AddCleanup(parsed, s.forget, key)
	return parsed, nil
}

func (s *schemas) find(key digest) *schema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parsed[key].Value()
}

// forget forgets a schema that no job has any more, unless it was read again since.
func (s *schemas) forget(key digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed[key].Value() == nil {
		delete(s.parsed, key)
	}
}
