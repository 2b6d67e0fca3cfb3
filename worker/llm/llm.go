// Package llm is the port to models: one small interface, what is asked and answered,
// the schemas of answers, errors and prices. The packages below it are
//
//	vendors             the table of vendors; New returns the provider of a name
//	anthropic, openai…  a package for each vendor, by its wire format
//	decorator           providers that check, retry, meter, guard, limit and cache calls
//	fakellm             a scripted model, for tests
//
// Nothing here knows of jobs, stores or prompts. Of the project it imports the
// classes of failures (api/mapreduce, worker/agent) and the parameters of answers alone.
package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm/answer"
)

// A Provider asks models of one vendor. It is safe for concurrent use.
//
// Complete makes one attempt and waits for the whole answer:
//  1. the model ended its turn, for whatever reason: a Response. See its Stop;
//     a refusal, or an answer that was cut off at MaxTokens, is a Response too;
//  2. anything else: an *Error, with the tokens that were paid for in vain. An
//     answer whose stream broke off is always one, never a short Response;
//  3. ctx ended: an *Error that wraps its cause.
type Provider interface {
	// Name is how users call the vendor: "anthropic".
	Name() string

	// Can returns the capabilities of the vendor's interface.
	Can() Capabilities

	Complete(ctx context.Context, req *Request) (*Response, error)
}

// A Counter is a Provider that can be asked how many tokens a request has.
type Counter interface {
	Count(ctx context.Context, req *Request) (int64, error)
}

// A ModelChecker is a Provider that knows of some models that they cannot be asked where it asks.
type ModelChecker interface {
	// CheckModel returns an *Error of the kind Invalid that says why, and what can be asked there.
	// It asks nobody.
	CheckModel(model Model) error
}

// Capabilities are the capabilities of a vendor's interface.
type Capabilities struct {
	Dialect   Dialect // of the schemas it constrains answers by
	Untold    bool    // an answer is held to its schema, and the model is not told of it
	ForceTool bool    // it can be made to call a given tool
	Cache     bool    // Part.Cache has an effect
	Window    int64   // tokens of prompt and answer that fit; 0 if that depends on the model
}

// Model is a vendor's name of a model.
type Model string

// A Request is one turn asked of a model. Providers do not change it.
type Request struct {
	Model     Model
	System    string    // instructions; the part that requests of a stage have in common
	Tools     []Tool    // what the model may call
	Force     string    // the tool that it has to call; "" leaves it free
	NoCalls   bool      // it may call none of Tools now: they are there for the calls that Messages hold
	Messages  []Message // the last is the user's, but to continue a paused turn
	Schema    *Schema   // what the answer has to look like; nil for prose
	MaxTokens int64     // of the answer, without what Parameters let the model think. Defaults to DefaultMaxTokens
	Prompt    int64     // tokens of the prompt by our count, 0 if not counted
	Cache     TTL       // how long System and Tools are kept warm; "" not at all
	Trace     Trace     // for whom

	// Parameters are sent as far as the vendor's interface has them and the server takes them.
	Parameters parameters.Set

	// CacheKey is the same for requests that begin alike, so that a vendor with many machines sends
	// them to one that has their beginning in its cache; "" says nothing.
	CacheKey string
}

// DefaultMaxTokens bounds an answer if its request does not.
const DefaultMaxTokens = 8192

// AnswerBound returns the most tokens that the model may write: those of the answer, and those that
// its parameters let it think. All vendors count both together.
func (r *Request) AnswerBound() int64 {
	return cmp.Or(r.MaxTokens, DefaultMaxTokens) + r.Parameters.Room()
}

// Check refuses requests that no vendor would take.
func (r *Request) Check() error {
	switch {
	case r.Model == "":
		return NewError(Invalid, "no model is named")
	case len(r.Messages) == 0:
		return NewError(Invalid, "there is no message")
	case r.MaxTokens < 0:
		return NewError(Invalid, "the bound of the answer is negative: %d", r.MaxTokens)
	case r.Force != "" && !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == r.Force }):
		return NewError(Invalid, "the tool to be called, %q, is not among the tools", r.Force)
	case r.Force != "" && r.NoCalls:
		return NewError(Invalid, "the tool %q is to be called, and none may be", r.Force)
	case r.Force != "" && r.Schema != nil:
		return NewError(Invalid, "an answer by a schema and a call of a tool exclude each other")
	}

	for _, t := range r.Tools {
		if !validName(t.Name) {
			return NewError(Invalid, "the name of tool %q is not 1 to 64 of a-z, A-Z, 0-9, _ and -", t.Name)
		}
	}

	return r.checkPictures()
}

// validName reports whether every vendor takes name for a tool or a schema.
func validName(name string) bool {
	return len(name) > 0 && len(name) <= 64 && strings.Trim(name, nameLetters) == ""
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// TTL is how long a prefix stays in the vendor's cache.
type TTL string

// The lifetimes that vendors offer.
const (
	FiveMinutes TTL = "5m"
	OneHour     TTL = "1h"
)

// A Trace names the attempt that a call is made for. It is sent, as headers,
// only if Config.SendTrace says so.
type Trace struct {
	Job     string
	Unit    string
	Attempt int
	Fence   int64
	Turn    int // of an agent with tools, from 1; it is not sent
}

// Role is the speaker of a message.
type Role string

// The roles of a conversation. Results of tools are the user's.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one turn of a conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// Say returns a message of plain text.
func Say(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Text: text}}}
}

// A Part is a piece of a message: text, or exactly one of the others.
type Part struct {
	Text    string          `json:"text,omitempty"`
	Call    *ToolCall       `json:"call,omitempty"`
	Result  *ToolResult     `json:"result,omitempty"`
	Picture *Picture        `json:"picture,omitempty"` // of a user's message
	Opaque  json.RawMessage `json:"opaque,omitempty"`  // of a vendor, to be handed back as it is: thinking, calls of its own tools
	Of      string          `json:"of,omitempty"`      // the provider whose Opaque that is, or that gave Call its id; "" where no other could be asked

	// Cache marks the end of a prefix that requests have in common.
	Cache TTL `json:"cache,omitempty"`
}

// AnswerTool is the tool that the model must call to give its answer.
const AnswerTool = "answer"

// A Tool is what a model may call.
type Tool struct {
	Name        string
	Description string
	Schema      *Schema // of its input, an object
}

// A ToolCall is a model's wish to call a tool. Input is what it wrote: valid
// JSON, but not yet checked against the tool's schema.
type ToolCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// A ToolResult answers a ToolCall.
type ToolResult struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"`
}

// Stop is why a model ended its turn. A reason that is not known here is kept
// in the vendor's spelling.
type Stop string

// The reasons to stop.
const (
	StopEnd      Stop = "end"           // it had said what it wanted
	StopSequence Stop = "stop_sequence" // a text that was to end it
	StopTool     Stop = "tool"          // it wants tools called
	StopMax      Stop = "max_tokens"    // MaxTokens: the answer is cut off
	StopWindow   Stop = "window"        // the context window was full: the answer is cut off
	StopPause    Stop = "pause"         // it is to be asked to go on
	StopRefusal  Stop = "refusal"       // it would not
	StopFilter   Stop = "filter"        // a filter of the vendor cut in
)

// Cut reports whether the answer is cut off for want of room.
func (s Stop) Cut() bool { return s == StopMax || s == StopWindow }

// Known reports whether the reason is one of those above.
func (s Stop) Known() bool {
	switch s {
	case StopEnd, StopSequence, StopTool, StopMax, StopWindow, StopPause, StopRefusal, StopFilter:
		return true
	}
	return false
}

// A Response is a turn of a model, whole as far as the model brought it.
type Response struct {
	Model     Model           `json:"model"`        // that answered, by its own account
	By        string          `json:"by,omitempty"` // the name by which it was asked, "provider/model"; "" where no other could be
	RequestID string          `json:"request_id,omitempty"`
	Parts     []Part          `json:"parts"`
	Answer    json.RawMessage `json:"answer,omitempty"`  // what was said to a Schema; valid only once Structured has seen it
	Repairs   []answer.Kind   `json:"repairs,omitempty"` // kinds of what Structured mended in the Answer
	Stop      Stop            `json:"stop"`
	Reason    string          `json:"reason,omitempty"` // why it refused, in its words
	Usage     Usage           `json:"usage"`
	Tier      string          `json:"tier,omitempty"`    // that the vendor answered in, as parameters.Tiers has it; "" if it did not say
	Written   *int64          `json:"written,omitempty"` // tokens of Parts by the vendor's count, without thinking; nil if it gave none
	Asked     Usage           `json:"-"`                 // of the call that brought it, be it in an earlier attempt; zero if that is not known
	Limits    Limits          `json:"-"`                 // what the vendor says is left
	Cached    bool            `json:"-"`                 // from our own cache: nothing was asked
}

// TierNamed returns the tier that a vendor's word for it means: "default" of OpenAI and "on_demand" of
// Groq are the standard one. A word that is not known says nothing.
func TierNamed(word string) string {
	switch word = strings.ToLower(word); word {
	case parameters.Flex, parameters.Priority, parameters.Standard:
		return word
	case "default", "on_demand":
		return parameters.Standard
	case "fast": // another name of OpenAI's
		return parameters.Priority
	}
	return ""
}

// Text returns the text of all parts.
func (r *Response) Text() string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls returns the tools that the model wants called.
func (r *Response) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range r.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}

// Usage is what a call took, in tokens, as its vendor reported it. The whole
// input is the sum of the first four.
type Usage struct {
	Input        int64 `json:"input"`          // neither written to nor read from a cache
	CacheWrite   int64 `json:"cache_write"`    // for five minutes, or for as long as the vendor likes
	CacheWrite1h int64 `json:"cache_write_1h"` // for an hour
	CacheRead    int64 `json:"cache_read"`
	Output       int64 `json:"output"` // thinking included
	Reported     bool  `json:"reported"`
}

// In is the whole input.
func (u Usage) In() int64 { return u.Input + u.CacheWrite + u.CacheWrite1h + u.CacheRead }

// Total is input and output.
func (u Usage) Total() int64 { return u.In() + u.Output }

// Add returns the sum; it counts as reported if both are.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:        u.Input + v.Input,
		CacheWrite:   u.CacheWrite + v.CacheWrite,
		CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		CacheRead:    u.CacheRead + v.CacheRead,
		Output:       u.Output + v.Output,
		Reported:     u.Reported && v.Reported,
	}
}

// maxUsage is more tokens than any call takes, and so few that sums of them are right.
const maxUsage = 1 << 34

// Possible reports whether a call can have these numbers: none is negative, and none is larger
// than any call's.
func (u Usage) Possible() bool { return u == u.clampTo(maxUsage) }

// IfPossible returns u, or, of numbers that no call has, none: then nobody knows what the call
// took.
func (u Usage) IfPossible() Usage {
	if !u.Possible() {
		return Usage{}
	}
	return u
}

// clampTo returns u with no number below zero, or above most.
func (u Usage) clampTo(most int64) Usage {
	within := func(n int64) int64 { return min(max(n, 0), most) }
	return Usage{
		Input: within(u.Input), CacheWrite: within(u.CacheWrite), CacheWrite1h: within(u.CacheWrite1h),
		CacheRead: within(u.CacheRead), Output: within(u.Output), Reported: u.Reported,
	}
}

// String gives both numbers.
func (u Usage) String() string { return fmt.Sprintf("%d in, %d out", u.In(), u.Output) }
