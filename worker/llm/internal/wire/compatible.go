package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
)

// CompatibleLimits reads headers whose resets are durations as Go writes them.
func CompatibleLimits(h http.Header, _ time.Time) llm.Limits {
	read := func(name string) llm.Bucket {
		b := ParseBucket(h.Get("x-ratelimit-limit-"+name), h.Get("x-ratelimit-remaining-"+name))
		if d, err := time.ParseDuration(h.Get("x-ratelimit-reset-" + name)); err == nil && b.Known {
			b.Reset = max(d, 0)
		}
		return b
	}
	return llm.Limits{Requests: read("requests"), Tokens: read("tokens")}
}

// JudgeCompatible reads {"error":{"message","type","param","code"}}; the error may
// be a plain text in servers that are only alike. A quota that is used up comes
// with the status of a rate limit, and waiting does not mend it.
func JudgeCompatible(status int, raw []byte) (llm.Kind, string) {
	var body struct{ Error json.RawMessage }
	if json.Unmarshal(raw, &body) != nil || len(body.Error) == 0 || string(body.Error) == "null" {
		return 0, ""
	}

	var e struct {
		Message, Type string
		Code          any
	}
	if json.Unmarshal(body.Error, &e) != nil && json.Unmarshal(body.Error, &e.Message) != nil {
		return 0, ""
	}

	names := []string{e.Type, fmt.Sprint(e.Code)}
	has := func(name string) bool { return slices.Contains(names, name) }
	// Names come before the status: servers that are only alike often answer with another
	// one.
	switch {
	case has("insufficient_quota"), has("billing_hard_limit_reached"), has("billing_not_active"):
		return llm.Billing, e.Message
	case has("invalid_api_key"), has("authentication_error"):
		return llm.Auth, e.Message
	case has("model_not_found"):
		return llm.NotFound, e.Message
	case has("context_length_exceeded"), has("string_above_max_length"):
		return llm.TooLarge, e.Message
	case has("content_filter"), has("content_policy_violation"):
		return llm.Filtered, e.Message
	case has("rate_limit_exceeded"), has("rate_limit_error"), has("tokens"), has("requests"), has("quotaExceeded"):
		return llm.RateLimited, e.Message
	case has("overloaded_error"), has("engine_overloaded"):
		return llm.Overloaded, e.Message
	case status < 300:
		return llm.Server, e.Message
	}

	kind := ByStatus(status)
	if kind == llm.Invalid {
		kind = JudgeInvalid(e.Message)
	}
	return kind, e.Message
}

// JudgeInvalid tells apart what vendors call an invalid request.
func JudgeInvalid(message string) llm.Kind {
	low := strings.ToLower(message)
	switch {
	case strings.Contains(low, "credit balance"), strings.Contains(low, "billing"):
		return llm.Billing
	case strings.Contains(low, "prompt is too long"), strings.Contains(low, "context length"),
		strings.Contains(low, "context window"), strings.Contains(low, "exceed context limit"):
		return llm.TooLarge
	}
	return llm.Invalid
}
