// Package manners has what servers of models would not take. Servers that speak a vendor's
// interface refuse parts of it: a parameter, a way to constrain answers, a role. What one refuses
// is learned from its words, once for an address and a model, and is not sent there again. Processes
// tell each other what they have learned.
//
// Of the project it imports the parameters of answers alone. It asks nobody: the vendors' packages do.
package manners

import (
	"fmt"
	"strings"
	"sync"
)

// A Form is how an answer is held to its schema, from the closest on.
type Form uint8

// The forms of answers.
const (
	BySchema Form = iota // the server constrains the answer by the schema
	ByTool               // the model is made to call a tool whose input is the answer
	ByObject             // the server constrains it to be a JSON object; the prompt has the schema
	ByPrompt             // the prompt alone has the schema
)

// String says what is done instead of what was refused.
func (f Form) String() string {
	switch f {
	case ByTool:
		return "answers are asked for as calls of a tool"
	case ByObject:
		return "answers are asked for as JSON objects, and the prompt has their schema"
	case ByPrompt:
		return "answers are asked for by the prompt alone"
	}
	return "answers are constrained by their schema"
}

// Manners are what is known of one model at one address. The zero value takes everything.
type Manners struct {
	Form       Form
	NoFormat   bool       // response_format is refused whatever it holds
	Plain      bool       // schemas have no keywords that bound values
	NoStrict   bool       // nothing is marked as strict
	FreeTools  bool       // no tool can be forced
	NoParallel bool       // whether tools are called at once is not said
	NoSealed   bool       // what a model thought is not asked for, to be handed back
	NoThoughts bool       // what a model thought is not handed back
	NoUsage    bool       // usage of streams is not asked for
	NoStream   bool       // answers come whole
	OtherBound bool       // the bound of the answer has its other name
	Most       int64      // tokens of an answer; 0 is no limit
	NoSystem   bool       // there is no system role
	NoCache    bool       // no part of a prompt is marked for a cache
	Unsigned   bool       // calls of tools without a signature of what was thought say that they have none
	Omit       Parameters // are left out
	Efforts    Levels     // of effort that are taken; 0 if all may be
	bare       bool       // all that can be left out was, for a reason that the server did not give
}

// With returns what is refused by m or by known.
func (m Manners) With(known Manners) Manners {
	out := Manners{
		Form:     max(m.Form, known.Form),
		NoFormat: m.NoFormat || known.NoFormat, Plain: m.Plain || known.Plain, NoStrict: m.NoStrict || known.NoStrict,
		FreeTools: m.FreeTools || known.FreeTools, NoParallel: m.NoParallel || known.NoParallel, NoSealed: m.NoSealed || known.NoSealed,
		NoThoughts: m.NoThoughts || known.NoThoughts,
		NoUsage:    m.NoUsage || known.NoUsage, NoStream: m.NoStream || known.NoStream, OtherBound: m.OtherBound || known.OtherBound,
		Most: m.Most, NoSystem: m.NoSystem || known.NoSystem, NoCache: m.NoCache || known.NoCache, Unsigned: m.Unsigned || known.Unsigned,
		Omit: m.Omit | known.Omit, Efforts: m.Efforts, bare: m.bare || known.bare,
	}

	// Levels that are taken cannot be joined as refusals are: those of known count.
	if known.Efforts != 0 {
		out.Efforts = known.Efforts
	}
	if m.Most == 0 || known.Most > 0 && known.Most < m.Most {
		out.Most = known.Most
	}

	return out
}

// A Refusal is an answer of a server that would not take a request.
type Refusal struct {
	Status int
	Param  string // what it names as the reason; "" if it names nothing
	Text   string // all of its words
}

// A Sent says what a request held that a server may refuse.
type Sent struct {
	Schema   bool  // the answer was to be by a schema, in the way of Manners.Form
	Tools    bool  // the model could call tools of others
	Stream   bool  // the answer was to come in a stream
	Sealed   bool  // what the model thinks was asked for
	Thoughts bool  // what the model thought before was handed back
	System   bool  // there were instructions
	Cache    bool  // parts of the prompt were marked for a cache
	Bound    int64 // tokens of the answer

	Parameters Parameters // of the answer
	Effort     string     // the level, if there is one

	// Lone says that the interface is a server's own, of which nothing but Parameters and Schema is
	// left out.
	Lone bool
}

// Learn returns the manners of a server after a refusal, and what was learned in words. It is
// false if the refusal has nothing to do with manners: then the request is at fault, or the key.
func (m Manners) Learn(r Refusal, sent Sent) (_ Manners, what string, ok bool) {
	if !mayRefuse(r.Status) {
		return m, "", false
	}

	text := withoutFields(strings.ToLower(r.Param + " " + r.Text))
	known := traits
	if sent.Lone {
		known = loneTraits
	}

	for _, t := range known {
		if next, what, ok := t(m, text, sent); ok {
			return next, what, true
		}
	}

	return m, "", false
}

// withoutFields returns the words of a refusal without the list of all fields that the server knows.
func withoutFields(text string) string {
	before, list, ok := strings.Cut(text, "expected one of")
	if ok && strings.Contains(list, "messages") {
		return before
	}
	return text
}

// mayRefuse reports whether servers refuse parameters with a status. Some fail over what they do
// not know, and some have no route for it.
func mayRefuse(status int) bool {
	switch status {
	case 400, 403, 404, 405, 406, 415, 422, 500, 501, 503:
		return true
	}
	return false
}

// Bare returns the manners that leave out everything that can be, for a server that refuses a
// request without saying why. It is false if that was done already.
func (m Manners) Bare(r Refusal, sent Sent) (_ Manners, what string, ok bool) {
	if m.bare || r.Status != 400 && r.Status != 422 && !blamesParameters(r) {
		return m, "", false
	}

	if sent.Lone {
		if sent.Parameters == 0 {
			return m, "", false
		}
		m.Omit, m.bare = allParameters, true
		return m, "it does not say what it refuses: no parameters of answers are sent", true
	}

	return Manners{
		Form: ByPrompt, NoFormat: true, Plain: true, NoStrict: true, FreeTools: true, NoParallel: true, NoSealed: true, NoThoughts: m.NoThoughts, NoUsage: true, NoCache: true,
		OtherBound: m.OtherBound, Most: m.Most, NoStream: m.NoStream, NoSystem: m.NoSystem, Omit: allParameters, bare: true,
	}, "it does not say what it refuses: everything that can be is left out", true
}

// blamesParameters reports whether a router says that no server takes all that a request holds, with
// the status of a model that is not there.
func blamesParameters(r Refusal) bool {
	return r.Status == 404 && strings.Contains(strings.ToLower(r.Text), "requested parameters")
}

// A Store keeps the manners of the servers that a process asks. A nil one keeps nothing. It is
// safe for concurrent use.
type Store struct {
	announce func(line string)

	mu  sync.Mutex // guards the fields below
	all map[key]*entry
}

type key struct{ server, model string } // by the name that serverOf gives

type entry struct {
	manners Manners
	works   bool // an answer came with them
	news    bool // other processes are to be told of them
}

// maxKept bounds the models of which something is known: jobs name them as they like.
const maxKept = 1024

// NewStore returns a store that knows nothing. What is learned is announced in one line, without
// locks; announce may be nil.
func NewStore(announce func(line string)) *Store {
	return &Store{announce: announce, all: make(map[key]*entry)}
}

// Of returns what is known of a model at an address.
func (s *Store) Of(address, model string) Manners {
	if s == nil {
		return Manners{}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all[key{serverOf(address), model}]; e != nil {
		return e.manners
	}
	return Manners{}
}

// Works notes that a model at an address answers.
func (s *Store) Works(address, model string) {
	if s == nil {
		return
	}
	s.mu.Lock()

	defer s.mu.Unlock()
	s.entryOf(key{serverOf(address), model}).works = true
}

// Refused learns from a refusal of a request that was made by the manners with, which are those
// that were known, or of a form that the job asks for. It returns the manners to try next, or
// false if the refusal stands.
func (s *Store) Refused(address, model string, known, with Manners, r Refusal, sent Sent) (Manners, bool) {
	if s == nil {
		next, _, ok := with.Learn(r, sent)
		return next, ok
	}

	s.mu.Lock()
	e := s.entryOf(key{serverOf(address), model})
	if e.manners != known { // another call has learned it
		next := e.manners
		s.mu.Unlock()
		return next, true
	}

	next, what, ok := with.Learn(r, sent)
	if !ok && !e.works {
		next, what, ok = with.Bare(r, sent)
	}

	// The form that the job asks for holds for this request alone, and is not learned.
	if ok && next.Form == with.Form {
		next.Form = known.Form
	}

	if ok {
		e.manners, e.news = next, true
	}
	s.mu.Unlock()

	if ok && s.announce != nil {
		s.announce(fmt.Sprintf("%s at %s: %s", model, address, what))
	}
	return next, ok
}

// entryOf returns the entry of a model. The caller holds the lock.
func (s *Store) entryOf(k key) *entry {
	e := s.all[k]
	if e == nil {
		if len(s.all) == maxKept {
			clear(s.all)
		}
		e = new(entry)
		s.all[k] = e
	}
	return e
}
