// Package tool is the port to the tools that agents use: what a tool says of itself, what
// it is given, and what it brings. Each tool is a package below this one. A worker has the
// tools that its operator chose, each with the policy that the operator gave it.
//
//	Kit      tools that share what they need: a browser, a server of MCP, a folder
//	Session  what one unit has of a kit; nothing of it is seen by another unit
//	Spec     what a model reads about a tool, and the bounds of its calls
//	Result   what a call brought: a text for the model, and evidence that can be cited
//
// The package imports the vocabulary alone. It knows no model and no job.
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Kit is a set of tools that come from one place. It is safe for concurrent use.
type Kit interface {
	// Name is how pipelines and workers name the kit: "fetch", "browser", "mcp:docs".
	Name() string

	// Tools returns what the kit has, in an order that does not change.
	Tools() []Spec

	// Open returns what one unit uses of the kit. The caller closes it.
	Open(ctx context.Context) (Session, error)

	// Close ends all that the kit started. No session is open any more.
	Close() error
}

// A Session is what one unit has of a kit. Calls may run at the same time.
type Session interface {
	// Call runs a tool of the kit with an input that fits its schema. It returns
	//  1. a Result, when the tool did what it was asked;
	//  2. a *Refused, when the policy of the worker forbids it;
	//  3. another error, when the tool failed: its text goes to the model, so it
	//     says what was wrong and holds no secret.
	// It ends when ctx ends.
	Call(ctx context.Context, name string, input json.RawMessage) (*Result, error)

	Close() error
}

// A Spec describes a tool.
type Spec struct {
	Name string // 1 to 64 of a-z, A-Z, 0-9, _ and -; unique among all tools of a worker

	// Member is how pipelines name the tool within its kit, if not by Name: the tool search
	// of the kit mcp:docs is mcp:docs/search to pipelines, and docs_search to models.
	Member string

	Description string          // for a model: what it does, and when to use it
	Input       json.RawMessage // JSON Schema of an object

	// Idempotent says that a call which is made twice does no more than one: it only
	// reads. A call of any other tool is never made twice for a unit.
	Idempotent bool

	Timeout   time.Duration // of a call; 0 is DefaultTimeout
	MaxOutput int           // bytes of Result.Text; 0 is DefaultOutput

	// Query names the property of the input that takes what is searched for, and Address
	// the one that takes a URL or a path. Either may be empty. A step that asks no model
	// calls tools by them.
	Query, Address string
	// Listing is an input by which the tool lists all that another tool of its kit reads:
	// its links are addresses for that one. Empty if there is none.
	Listing json.RawMessage
}

// PipelineName returns how pipelines name a tool of a kit: KIT/TOOL.
func (s Spec) PipelineName(kit string) string { return kit + "/" + s.memberName() }

func (s Spec) memberName() string { return cmp.Or(s.Member, s.Name) }

// Bounds of a call, where its tool states none, and of what any call may bring.
const (
	DefaultTimeout = 30 * time.Second
	DefaultOutput  = 32 << 10 // bytes
	MaxOutput      = 256 << 10
	MaxInput       = 64 << 10
	MaxEvidence    = 4 << 20 // bytes of the text of one piece of evidence
	MaxLinks       = 500     // of a result
	MaxPictures    = 4       // of a result
	MaxPicture     = 1 << 20 // bytes of one picture
)

// A Result is what a call brought.
type Result struct {
	// Text is what the model reads. Where evidence is shown in it, an agent puts the name
	// of the evidence before it, so Text holds what is not in Evidence.
	Text string

	Evidence []Evidence // what may be cited, in the order in which it is shown

	// Pictures are for people, who see them beside what is cited of the same place. At most
	// MaxPictures.
	Pictures []Picture

	// Links are where the text leads, in order: what was found by a search, or the links of
	// a page. Models read them in Text; a step that asks no model follows some of them.
	// At most MaxLinks.
	Links []Link

	// Cut says how many bytes were left out, as the bound of the output was reached.
	Cut int64
}

// A Link is a place to which a text leads.
type Link struct {
	Text    string // that stands for the place
	Address string // absolute; an input of a tool with Spec.Address
}

// Evidence is a text that a tool brought: a page, a file, a passage with its surroundings.
type Evidence struct {
	URI       string    // where it is from: an address, or a path below the root of the tool
	Title     string    // may be empty
	Media     string    // type of what the text was made of, such as text/html
	Retrieved time.Time // when it was read
	Text      string    // all that can be cited of it; UTF-8

	// Shown are the parts of Text that the model is shown, as half-open byte ranges in
	// order; none if it is shown all of it, as far as the output has room.
	Shown []Range

	Metadata map[string]string // of the source, such as the date or the author; may be nil
}

// A Picture is a picture of what a tool used, such as a page.
type Picture struct {
	URI       string // the URI of the evidence that it is a picture of
	Title     string // may be empty
	Media     string // image/png or image/jpeg
	Retrieved time.Time
	Data      []byte // at most MaxPicture
}

// A Range is a half-open range of bytes.
type Range struct{ Start, End int }

// Refused is the error of a call that the policy of the worker forbids.
type Refused struct {
	What string // what was tried, without secrets: "a request to 169.254.169.254"
	Why  string // the rule: "link-local addresses are never reached"
}

// Error says both.
func (r *Refused) Error() string { return fmt.Sprintf("%s is refused: %s", r.What, r.Why) }

// ErrNoTool is wrapped by the error for a tool that a session does not have.
var ErrNoTool = errors.New("there is no such tool")
