package schema

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"
)

// Shared reads the schema of a job or of a stage, as Parse does. Equal texts come to the same
// schema for as long as anybody has it, and nobody may change it: thousands of jobs and units may
// have equal ones, and one can take a hundred times its text, and a millisecond to be read.
func Shared(text []byte) (*Schema, error) { return shared.parse(text) }

var shared = newSharing()

// A sharing knows the schemas that somebody has, by their texts, and keeps none of them.
type sharing struct {
	mu     sync.Mutex // guards parsed
	parsed map[digest]weak.Pointer[Schema]
}

// A digest is that of the text of a schema.
type digest [sha256.Size]byte

func newSharing() *sharing { return &sharing{parsed: make(map[digest]weak.Pointer[Schema])} }

// parse reads a schema, unless somebody has an equal one.
func (s *sharing) parse(text []byte) (*Schema, error) {
	key := digest(sha256.Sum256(text))
	if found := s.find(key); found != nil {
		return found, nil
	}

	parsed, err := Parse("schema", text)
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

func (s *sharing) find(key digest) *Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parsed[key].Value()
}

// forget forgets a schema that nobody has any more, unless it was read again since.
func (s *sharing) forget(key digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed[key].Value() == nil {
		delete(s.parsed, key)
	}
}
