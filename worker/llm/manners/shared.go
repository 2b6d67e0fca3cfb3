package manners

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
)

// A Known is what one process tells others of a server. It holds no address, because an address may
// have a key in it, and no word of a request or an answer.
type Known struct {
	Server  string // 32 hexadecimal digits: a hash of the address
	Model   string
	Refuses string // words of those below, separated by commas: "strict, most=8192, temperature"
}

// hashBytes is how much of the hash of an address tells servers apart.
const hashBytes = 16

// serverOf returns the name of a server for others.
func serverOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:hashBytes])
}

// A flagWord is the word for a trait that is there or not.
type flagWord struct {
	word string
	of   func(*Manners) *bool
}

// flagWords are known to processes of other versions: a word never changes what it means.
func flagWords() []flagWord {
	return []flagWord{
		{"response_format", func(m *Manners) *bool { return &m.NoFormat }},
		{"bounds of values", func(m *Manners) *bool { return &m.Plain }},
		{"strict", func(m *Manners) *bool { return &m.NoStrict }},
		{"tool_choice", func(m *Manners) *bool { return &m.FreeTools }},
		{"parallel_tool_calls", func(m *Manners) *bool { return &m.NoParallel }},
		{"encrypted_content", func(m *Manners) *bool { return &m.NoSealed }},
		{"thoughts", func(m *Manners) *bool { return &m.NoThoughts }},
		{"stream_options", func(m *Manners) *bool { return &m.NoUsage }},
		{"streams", func(m *Manners) *bool { return &m.NoStream }},
		{"the usual name of the bound", func(m *Manners) *bool { return &m.OtherBound }},
		{"the system role", func(m *Manners) *bool { return &m.NoSystem }},
		{"cache_control", func(m *Manners) *bool { return &m.NoCache }},
		{"calls without signature", func(m *Manners) *bool { return &m.Unsigned }},
		{"it does not say what", func(m *Manners) *bool { return &m.bare }},
	}
}

// formWords are the words for forms of answers, by their numbers.
func formWords() []string {
	return []string{"", "schemas", "schemas and tools", "all forms of answers"}
}

// parameterWords are the words for parameters, in the order of their bits.
func parameterWords() []string {
	return []string{"effort", "thinking_budget", "verbosity", "top_p", "temperature", "seed", "stop", "prompt_cache_key"}
}

// The words that have a value.
const (
	mostWord   = "most="   // tokens of an answer
	levelsWord = "levels=" // of effort that are taken, separated by +
)

// words returns manners in words, always in the same order.
func (m Manners) words() string {
	var all []string
	if m.Form > BySchema && int(m.Form) < len(formWords()) {
		all = append(all, formWords()[m.Form])
	}

	for _, f := range flagWords() {
		if *f.of(&m) {
			all = append(all, f.word)
		}
	}

	if m.Most > 0 {
		all = append(all, mostWord+strconv.FormatInt(m.Most, 10))
	}

	for i, word := range parameterWords() {
		if m.Omit&(1<<i) != 0 {
			all = append(all, word)
		}
	}

	var taken []string
	for i, level := range parameters.Efforts() {
		if m.Efforts&(1<<i) != 0 {
			taken = append(taken, level)
		}
	}
	if len(taken) > 0 {
		all = append(all, levelsWord+strings.Join(taken, "+"))
	}

	return strings.Join(all, ", ")
}

// fromWords returns manners that others tell of. Words that are not known here are passed over: they
// are of a later version.
func fromWords(text string) (m Manners) {
	for word := range strings.SplitSeq(text, ", ") {
		m.addWord(word)
	}
	return m
}

func (m *Manners) addWord(word string) {
	if word == "" {
		return
	}

	// A word is of at most one of the kinds below.
	if i := slices.Index(formWords(), word); i > 0 {
		m.Form = max(m.Form, Form(i))
	}

	for _, f := range flagWords() {
		if f.word == word {
			*f.of(m) = true
		}
	}

	if i := slices.Index(parameterWords(), word); i >= 0 {
		m.Omit |= 1 << i
	}
	if number, ok := strings.CutPrefix(word, mostWord); ok {
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n > 0 {
			m.Most = n
		}
	}

	if list, ok := strings.CutPrefix(word, levelsWord); ok {
		for level := range strings.SplitSeq(list, "+") {
			if i := slices.Index(parameters.Efforts(), level); i >= 0 {
				m.Efforts |= 1 << i
			}
		}
	}
}

// join returns what is refused by m or by other, the same whichever of them is m: processes that tell
// each other come to the same.
func (m Manners) join(other Manners) Manners {
	out := m.With(other)
	if m.Efforts != 0 && other.Efforts != 0 {
		out.Efforts = m.Efforts & other.Efforts
		if out.Efforts == 0 {
			out.Efforts = min(m.Efforts, other.Efforts)
		}
	}
	return out
}

// Learn takes what another process tells of a server, and announces what is new. It is news for the
// others if pass says so and something is new, or if this process knows still more.
func (s *Store) Learn(k Known, pass bool) {
	if s == nil {
		return
	}

	said := fromWords(k.Refuses)

	s.mu.Lock()
	e := s.entryOf(key{k.Server, k.Model})
	before := e.manners
	e.manners = before.join(said)
	isNew := e.manners != before
	e.news = e.news || pass && isNew || e.manners != said
	s.mu.Unlock()

	if isNew && s.announce != nil {
		s.announce(fmt.Sprintf("%s: its server refuses, as was learned before: %s", k.Model, said.words()))
	}
}

// News returns what was learned here since the last call, in order.
func (s *Store) News() []Known { return s.known(func(e *entry) bool { return e.news }) }

// All returns everything that is known, in order.
func (s *Store) All() []Known {
	return s.known(func(e *entry) bool { return e.manners != Manners{} })
}

// known returns some of what is known, which is no news any more.
func (s *Store) known(some func(*entry) bool) (all []Known) {
	if s == nil {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for k, e := range s.all {
		if some(e) {
			e.news = false
			all = append(all, Known{Server: k.server, Model: k.model, Refuses: e.manners.words()})
		}
	}

	slices.SortFunc(all, func(a, b Known) int { return strings.Compare(a.Model+"\x00"+a.Server, b.Model+"\x00"+b.Server) })
	return all
}
