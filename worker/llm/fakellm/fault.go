package fakellm

import "math/rand/v2"

// A Fault is one way for a call to go wrong.
type Fault string

// The faults, by where they happen. Every format has them, in its own words, unless the
// comment of a fault names those that have it.
const (
	None Fault = ""

	// Instead of an answer.
	RateLimit    Fault = "rate_limit"    // 429, to come back in a second
	Overloaded   Fault = "overloaded"    // 529; 503 in other formats
	ServerError  Fault = "server_error"  // 500
	Unauthorized Fault = "unauthorized"  // 401, with the key repeated
	NoMoney      Fault = "no_money"      // 400, 402, 403 or 429, as the vendors do
	SpendLimit   Fault = "spend_limit"   // 429 without a time to come back, as a limit of the account's own
	UnknownModel Fault = "unknown_model" // 404
	TooLong      Fault = "too_long"      // 400
	WebPage      Fault = "web_page"      // 200 and HTML, by a proxy
	BadGateway   Fault = "bad_gateway"   // 502 and HTML
	Redirect     Fault = "redirect"      // 302 to elsewhere
	Hangup       Fault = "hangup"        // no response at all

	// After 200, in the middle of the answer.
	MidStream Fault = "mid_stream" // an error, in the format
	Cut       Fault = "cut"        // the end, without its marks
	Reset     Fault = "reset"      // the connection breaks
	Stall     Fault = "stall"      // nothing more, until the client leaves
	Drip      Fault = "drip"       // bytes that say nothing, until the client leaves
	NotJSON   Fault = "not_json"   // an event that is no JSON

	// In an answer that is whole.
	Truncated   Fault = "truncated" // cut off at the bound of the answer
	EmptyAnswer Fault = "empty"
	Refusal     Fault = "refusal"
	Filter      Fault = "filter"
	Pause       Fault = "pause" // pause_turn; a fault only of Anthropic's
	UnknownStop Fault = "unknown_stop"
	WrongShape  Fault = "wrong_shape" // JSON, but not by the schema
	Prose       Fault = "prose"       // no JSON at all
	NoUsage     Fault = "no_usage"    // not reported; a fault of all but Anthropic's and Ollama's
)

// Faults are all of them.
func Faults() []Fault {
	return []Fault{
		RateLimit, Overloaded, ServerError, Unauthorized, NoMoney, SpendLimit, UnknownModel, TooLong, WebPage, BadGateway,
		Redirect, Hangup, MidStream, Cut, Reset, Stall, Drip, NotJSON, Truncated, EmptyAnswer, Refusal, Filter, Pause,
		UnknownStop, WrongShape, Prose, NoUsage,
	}
}

// Mix lets a share of calls, from 0 to 1, go wrong in one of some ways, equal for
// equal seeds and numbers of calls.
func Mix(seed uint64, share float64, faults ...Fault) func(Call) Fault {
	return func(c Call) Fault {
		random := rand.New(rand.NewPCG(seed, uint64(c.N)))
		if random.Float64() >= share {
			return None
		}
		return faults[random.IntN(len(faults))]
	}
}

// First lets the first n calls go wrong.
func First(n int, f Fault) func(Call) Fault {
	return func(c Call) Fault {
		if c.N <= n {
			return f
		}
		return None
	}
}
