// Package manners has what servers of models would not take. Servers that speak a vendor's
// interface refuse parts of it: a parameter, a way to constrain answers, a role. What one refuses
// is learned from its words, once for an address and a model, and is not sent there again.
//
// It imports nothing of the project, and asks nobody: the vendors' packages do.
package manners

import (
	"fmt"
	"regexp"
	"strconv"
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
		NoUsage: m.NoUsage || known.NoUsage, NoStream: m.NoStream || known.NoStream, OtherBound: m.OtherBound || known.OtherBound,
		Most: m.Most, NoSystem: m.NoSystem || known.NoSystem, NoCache: m.NoCache || known.NoCache, Unsigned: m.Unsigned || known.Unsigned,
		Omit: m.Omit | known.Omit, Efforts: m.Efforts, bare: m.bare || known.bare,
	}
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
	Schema bool  // the answer was to be by a schema, in the way of Manners.Form
	Tools  bool  // the model could call tools of others
	Stream bool  // the answer was to come in a stream
	Sealed bool  // what the model thinks was asked for
	System bool  // there were instructions
	Cache  bool  // parts of the prompt were marked for a cache
	Bound  int64 // tokens of the answer

	Parameters Parameters // of the answer
	Effort     string     // the level, if there is one

	// Lone says that the interface is a server's own, of which nothing but Parameters is left out.
	Lone bool
}

// Learn returns the manners of a server after a refusal, and what was learned in words. It is
// false if the refusal has nothing to do with manners: then the request is at fault, or the key.
func (m Manners) Learn(r Refusal, sent Sent) (_ Manners, what string, ok bool) {
	if !mayRefuse(r.Status) {
		return m, "", false
	}
	text := strings.ToLower(r.Param + " " + r.Text)
	if sent.Lone {
		return parameterTrait(m, text, sent)
	}
	for _, t := range traits {
		if next, what, ok := t(m, text, sent); ok {
			return next, what, true
		}
	}
	return m, "", false
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
	if m.bare || r.Status != 400 && r.Status != 422 {
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
		Form: ByPrompt, NoFormat: true, Plain: true, NoStrict: true, FreeTools: true, NoParallel: true, NoSealed: true, NoUsage: true, NoCache: true,
		OtherBound: m.OtherBound, Most: m.Most, NoStream: m.NoStream, NoSystem: m.NoSystem, Omit: allParameters, bare: true,
	}, "it does not say what it refuses: everything that can be is left out", true
}

// A trait is something that a server may refuse. It finds the refusal in the server's words.
type trait func(m Manners, text string, sent Sent) (Manners, string, bool)

// traits are tried in order: those that are named by a word of their own first.
var traits = []trait{
	signatureTrait, streamedToolsTrait, usageTrait, sealedTrait, forcedTrait, parameterTrait, parallelTrait, cacheTrait, boundTrait, mostTrait, strictTrait, systemTrait, choiceTrait, keywordTrait, toolTrait, formatTrait, streamTrait,
}

// signatureTrait is of Google's models, which want to know what was thought before a tool was called.
// Of calls that another model made, nobody has that.
func signatureTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.Unsigned || !strings.Contains(text, "thought_signature") {
		return m, "", false
	}
	m.Unsigned = true
	return m, "calls of tools that other models made say that they bear no signature", true
}

// streamedToolsTrait is of models that call tools, and do so whole.
func streamedToolsTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoStream || !sent.Stream || !hasAny(text, "tool use in streaming mode", "unsupported for streaming") {
		return m, "", false
	}
	m.NoStream = true
	return m, "it does not stream: answers come whole", true
}

func usageTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoUsage || !sent.Stream || !hasAny(text, "stream_options", "include_usage", "stream options") {
		return m, "", false
	}
	m.NoUsage = true
	return m, "it takes no stream_options", true
}

func sealedTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoSealed || !sent.Sealed || !hasAny(text, "encrypted_content", "encrypted content", "'include'", `"include"`) {
		return m, "", false
	}
	m.NoSealed = true
	return m, "it does not give back what a model thought", true
}

func parallelTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.NoParallel || !hasAny(text, "parallel_tool_calls", "parallel tool", "parallel function", "disable_parallel_tool_use", "multiple tool") {
		return m, "", false
	}
	m.NoParallel = true
	return m, "it takes no parallel_tool_calls", true
}

func cacheTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoCache || !sent.Cache || !hasAny(text, "cache_control", "cachepoint", "prompt caching", "prompt-caching") {
		return m, "", false
	}
	m.NoCache = true
	return m, "it takes no marks for its cache", true
}

func boundTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	const older, newer = "max_tokens", "max_completion_tokens"
	if m.OtherBound || !strings.Contains(text, older) && !strings.Contains(text, newer) || hasNumberBound(text) {
		return m, "", false
	}
	if !refuses(text) {
		return m, "", false
	}
	m.OtherBound = true
	return m, "it has another name for the bound of an answer", true
}

// bounds are how servers say how long an answer may be.
var bounds = []*regexp.Regexp{
	regexp.MustCompile(`at most (\d+) (?:completion|output)`),
	regexp.MustCompile(`max(?:_completion)?_tokens[^0-9]{0,80}(?:less than or equal to|<=|at most|not exceed|no more than|cannot exceed|up to|maximum (?:value )?(?:is|of)|must be between \d+ and|range (?:is|of) \[\d+,) ?[\x60'"]?(\d+)`),
	regexp.MustCompile(`max_tokens: \d+ > (\d+)`),
	regexp.MustCompile(`range of max_tokens should be \[\d+, ?(\d+)\]`),
	regexp.MustCompile(`maximum tokens you requested exceeds the model limit of (\d+)`),
	regexp.MustCompile(`maxoutputtokens[^(]*\(inclusive\) to (\d+) \(exclusive\)`),
	regexp.MustCompile(`(?:maximum|max) (?:allowed |number of )?(?:output|completion) tokens[^0-9]{0,40}(\d+)`),
}

func hasNumberBound(text string) bool { _, ok := numberBound(text); return ok }

func numberBound(text string) (int64, bool) {
	for _, b := range bounds {
		if found := b.FindStringSubmatch(text); found != nil {
			n, err := strconv.ParseInt(found[1], 10, 64)
			if strings.HasSuffix(found[0], "(exclusive)") {
				n--
			}
			return n, err == nil && n > 0
		}
	}
	return 0, false
}

func mostTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	n, ok := numberBound(text)
	if !ok || n >= sent.Bound || m.Most > 0 && n >= m.Most {
		return m, "", false
	}
	m.Most = n
	return m, fmt.Sprintf("its answers have at most %d tokens", n), true
}

func strictTrait(m Manners, text string, _ Sent) (Manners, string, bool) {
	if m.NoStrict || !wholeWord.MatchString(text) {
		return m, "", false
	}
	m.NoStrict = true
	return m, "nothing can be marked as strict", true
}

// wholeWord finds strict as a name, and not in "restricted".
var wholeWord = regexp.MustCompile(`(?:^|[^a-z])strict(?:$|[^a-z])`)

func systemTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoSystem || !sent.System {
		return m, "", false
	}
	role := hasAny(text, "system role", "role 'system'", `role "system"`, "system message", "system prompt", "'system' with this model", "developer instruction", "role: system", "role not supported", "system_instruction") ||
		strings.Contains(text, "role") && hasAny(text, "system", "'user' or 'assistant'")
	alternate := hasAny(text, "roles must alternate", "must alternate", "first message must be", "unexpected role")
	if !role && !alternate || role && !alternate && !refuses(text) && !strings.Contains(text, "input should be") {
		return m, "", false
	}
	m.NoSystem = true
	return m, "it has no system role: instructions stand in the first message", true
}

func choiceTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.FreeTools || m.Form != ByTool && !sent.Tools || strings.Contains(text, "enable-auto-tool-choice") {
		return m, "", false
	}
	if !hasAny(text, "tool_choice", "tool choice", "toolchoice", "forced function", "forced tool", "forces tool", "function_calling_config") {
		return m, "", false
	}
	m.FreeTools = true
	return m, "no tool can be forced", true
}

// keywordTrait is of servers that take schemas, and not everything in them.
func keywordTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.Plain || !sent.Schema && !sent.Tools || m.Form > ByTool {
		return m, "", false
	}
	if !hasAny(text, "invalid schema", "invalid_json_schema", "invalid json schema", "schema is not valid", "schema validation", "unsupported schema", "grammar", "keyword", "schema too complex",
		"unsupported_schema", "not permitted in schema", "properties are not supported", "'minimum'", "'maximum'", "minimum", "maxitems", "minitems", "'pattern'", "'format'", "exclusiveminimum", "multipleof", "schemas contains too many", "schema produces a constraint") {
		return m, "", false
	}
	if hasAny(text, "response_format is not", "does not support") && !hasAny(text, "keyword", "minimum", "maximum", "pattern", "items") {
		return m, "", false
	}
	m.Plain = true
	return m, "its schemas take no bounds of values", true
}

func toolTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !sent.Schema || m.Form != ByTool || !hasAny(text, "tool", "function") {
		return m, "", false
	}
	m.Form = ByObject
	if m.NoFormat {
		m.Form = ByPrompt
	}
	return m, "it takes no tools: " + m.Form.String(), true
}

func formatTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if !sent.Schema || m.Form == ByPrompt || m.Form == ByTool {
		return m, "", false
	}
	if !hasAny(text, "response_format", "response format", "responseformat", "json_schema", "json schema", "json_object", "json mode", "structured output", "structured_output", "output_config", "outputconfig", "output_format", "output format",
		"text.format", "guided", "grammar", "response_schema", "responseschema", "schema", "response mime type", "response_mime_type", "format") {
		return m, "", false
	}
	if m.Form == ByObject {
		m.Form = ByPrompt
		return m, "it takes no response_format: " + m.Form.String(), true
	}
	m.NoFormat = m.NoFormat || hasAny(text, "response_format", "response format") && !hasAny(text, "json_schema", "json schema", "type")
	m.Form = ByTool
	return m, "it does not constrain answers by a schema: " + m.Form.String(), true
}

func streamTrait(m Manners, text string, sent Sent) (Manners, string, bool) {
	if m.NoStream || !sent.Stream || !strings.Contains(text, "stream") || !refuses(text) && !hasAny(text, "verified", "not yet", "disabled") {
		return m, "", false
	}
	m.NoStream = true
	return m, "it does not stream: answers come whole", true
}

func hasAny(text string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// refuses reports whether words say that something is not taken, and not that it is wrong.
func refuses(text string) bool {
	return hasAny(text, "support", "unknown", "unrecognized", "unrecognised", "unexpected", "extra", "not permitted", "not allowed", "invalid", "not available", "unavailable", "not implemented",
		"cannot", "can't", "must be", "only ", "deprecated", "no longer", "removed", "disabled", "does not accept", "not accept", "cannot find field", "not a valid", "reject", "refuse", "use 'max", "use max", "instead", "not enabled", "exception", "forbidden")
}

// A Store keeps the manners of the servers that a process asks. A nil one keeps nothing. It is
// safe for concurrent use.
type Store struct {
	announce func(line string)

	mu  sync.Mutex // guards the fields below
	all map[key]*entry
}

type key struct{ address, model string }

type entry struct {
	manners Manners
	works   bool // an answer came with them
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
	if e := s.all[key{address, model}]; e != nil {
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
	s.entryOf(address, model).works = true
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
	e := s.entryOf(address, model)
	if e.manners != known { // another call has learned it
		next := e.manners
		s.mu.Unlock()
		return next, true
	}
	next, what, ok := with.Learn(r, sent)
	if !ok && !e.works {
		next, what, ok = with.Bare(r, sent)
	}
	if ok && next.Form == with.Form {
		next.Form = known.Form
	}
	if ok {
		e.manners = next
	}
	s.mu.Unlock()
	if ok && s.announce != nil {
		s.announce(fmt.Sprintf("%s at %s: %s", model, address, what))
	}
	return next, ok
}

// entryOf returns the entry of a model. The caller holds the lock.
func (s *Store) entryOf(address, model string) *entry {
	k := key{address, model}
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
