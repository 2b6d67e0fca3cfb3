package messages

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// JudgeError reads {"type":"error","error":{"type","message","details"}}. That an account
// has no money also comes as an invalid request, which shows in its words, and as a rate
// limit, which shows in details.error_code.
func JudgeError(status int, raw []byte) (llm.Kind, string) {
	var body struct {
		Error struct {
			Type, Message string
			Details       json.RawMessage
		}
	}

	if json.Unmarshal(raw, &body) != nil || body.Error.Type == "" {
		return 0, ""
	}

	message := body.Error.Message
	// The code in the details says more than the type.
	if kind := judgeCode(body.Error.Details); kind != 0 {
		return kind, message
	}

	switch body.Error.Type {
	case "authentication_error":
		return llm.Auth, message
	case "permission_error":
		return llm.Permission, message
	case "billing_error":
		return llm.Billing, message
	case "not_found_error":
		return llm.NotFound, message
	case "request_too_large":
		return llm.TooLarge, message
	case "rate_limit_error":
		return llm.RateLimited, message
	case "timeout_error":
		return llm.Timeout, message
	case "overloaded_error":
		return llm.Overloaded, message
	case "api_error":
		return llm.Server, message
	case "invalid_request_error":
		return wire.JudgeInvalid(message), message
	}

	if status < 300 {
		return llm.Server, message
	}
	return wire.ByStatus(status), message
}

// judgeCode reads {"error_code"}, and returns 0 for a code that says no
// more than the type of its error. A spend limit comes as a rate limit, but it
// does not pass while a job waits.
func judgeCode(details []byte) llm.Kind {
	var d struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(details, &d) != nil {
		return 0
	}

	switch d.Code {
	case "enforced_spend_limit_reached", "contract_spend_limit_reached",
		"linked_organization_spend_limit_reached", "linked_organization_billing_unavailable",
		"user_profile_billing_not_authorized", "user_profile_not_billable":
		return llm.Billing
	case "organization_on_hold", "user_profile_required",
		"user_profile_not_found":
		return llm.Permission
	}
	return 0
}

// readLimits reads headers whose resets are points in time.
func readLimits(h http.Header, now time.Time) llm.Limits {
	read := func(name string) llm.Bucket {
		name = "anthropic-ratelimit-" + name
		b := wire.ParseBucket(h.Get(name+"-limit"), h.Get(name+"-remaining"))
		if at, err := time.Parse(time.RFC3339, h.Get(name+"-reset")); err == nil && b.Known {
			b.Reset = max(at.Sub(now), 0)
		}
		return b
	}

	return llm.Limits{
		Requests: read("requests"), Input: read("input-tokens"),
		Output: read("output-tokens"), Tokens: read("tokens"),
	}
}
