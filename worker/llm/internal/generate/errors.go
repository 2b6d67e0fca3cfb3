package generate

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// A failure is an error of Google's interfaces.
type failure struct {
	Code    int
	Message string
	Status  string
	Details []struct {
		Type       string `json:"@type"`
		Reason     string
		RetryDelay string
		Violations []struct {
			QuotaID string `json:"quotaId"`
		}
	}
}

// readFailure reads {"error": {…}}, or a list with that.
func readFailure(raw []byte) (failure, bool) {
	var body struct{ Error *failure }
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
			return failure{}, false
		}
		raw = list[0]
	}

	if json.Unmarshal(raw, &body) != nil || body.Error == nil {
		return failure{}, false
	}

	return *body.Error, true
}

// has reports whether a detail gives a reason.
func (f *failure) has(reason string) bool {
	for _, d := range f.Details {
		if d.Reason == reason {
			return true
		}
	}
	return false
}

// isUsedUp reports whether a quota is used up that waiting does not fill: that of a day, or one
// of nothing, which is how a plan says that it does not have the model.
func (f *failure) isUsedUp() bool {
	for _, d := range f.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.QuotaID, "PerDay") {
				return true
			}
		}
	}
	low := strings.ToLower(f.Message)
	return strings.Contains(low, "limit: 0,") || strings.HasSuffix(low, "limit: 0") || strings.Contains(low, "billing account") || strings.Contains(low, "credits are depleted") || strings.Contains(low, "spending cap")
}

// judgeError returns the kind of an error, and what it says.
func judgeError(status int, raw []byte) (llm.Kind, string) {
	f, ok := readFailure(raw)
	if !ok {
		return 0, ""
	}
	return f.kind(status), f.Message
}

// kind tells errors apart by the word of their status; a wrong key comes as an invalid request.
func (f *failure) kind(status int) llm.Kind {
	low := strings.ToLower(f.Message)
	// Reasons in the details say more than the word of the status.
	switch {
	case f.has("API_KEY_INVALID"), f.has("API_KEY_EXPIRED"), f.has("ACCESS_TOKEN_TYPE_UNSUPPORTED"), f.has("ACCESS_TOKEN_EXPIRED"):
		return llm.Auth
	case f.has("BILLING_DISABLED"):
		return llm.Billing
	case strings.Contains(low, "api key not valid"), strings.Contains(low, "api key expired"):
		return llm.Auth
	}

	switch f.Status {
	case "UNAUTHENTICATED":
		return llm.Auth
	case "PERMISSION_DENIED":
		return llm.Permission
	case "RESOURCE_EXHAUSTED":
		if f.isUsedUp() {
			return llm.Billing
		}
		return llm.RateLimited
	case "UNAVAILABLE":
		return llm.Overloaded
	case "DEADLINE_EXCEEDED":
		return llm.Timeout
	case "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED", "DATA_LOSS":
		return llm.Server
	case "NOT_FOUND":
		return llm.NotFound
	case "FAILED_PRECONDITION":
		if strings.Contains(low, "location") || strings.Contains(low, "region") {
			return llm.Permission
		}
		if strings.Contains(low, "billing") {
			return llm.Billing
		}
	}

	if status < 300 {
		return llm.Server
	}
	if strings.Contains(low, "input token count") && strings.Contains(low, "exceed") || strings.Contains(low, "request payload size exceeds") {
		return llm.TooLarge
	}

	kind := wire.ByStatus(status)
	if kind == llm.Invalid {
		kind = wire.JudgeInvalid(f.Message)
	}
	return kind
}

// pauseOf returns the pause that an error asks for in its details; 0 if it asks for none.
func pauseOf(raw []byte) time.Duration {
	f, _ := readFailure(raw)
	for _, d := range f.Details {
		if pause, err := time.ParseDuration(d.RetryDelay); err == nil && pause > 0 {
			return pause
		}
	}
	return 0
}
