package bedrock

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// judgeError reads {"message": …}. Only the status and the words show what went wrong.
func (p *provider) judgeError(status int, raw []byte) (llm.Kind, string) {
	var body struct{ Message string }
	if json.Unmarshal(raw, &body) != nil || body.Message == "" {
		return 0, ""
	}

	if status < 300 {
		return llm.Server, body.Message
	}

	kind := kindOf(status, strings.ToLower(body.Message))
	if kind == llm.NotFound {
		return kind, body.Message + " (asked in the region " + p.region + ")"
	}

	return kind, body.Message
}

// kindOf returns the kind of an error by its status and its words in small letters.
func kindOf(status int, says string) llm.Kind {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(says, w) {
				return true
			}
		}
		return false
	}

	// Money comes before limits of rate: the vendor answers both with 429.
	switch {
	case has("security token", "signature we calculated", "signature expired", "api key", "authentication failed", "missing authentication", "credential"):
		return llm.Auth
	case has("tokens per day", "requests per day", "exceeds your account quota", "payment"):
		return llm.Billing
	case has("model identifier is invalid", "on-demand throughput isn", "end of its life", "could not resolve the foundation model", "model not found", "use case details"):
		return llm.NotFound
	case has("don't have access to the model", "not authorized", "operation not allowed", "not available in your region", "access to this model is not available", "access denied"):
		return llm.Permission
	case has("input is too long", "too many input tokens", "prompt is too long", "exceeds the context", "maximum context length", "request body is too large"):
		return llm.TooLarge
	case status == http.StatusTooManyRequests && has("not ready"):
		return llm.Overloaded
	case status == http.StatusBadRequest && has("too many requests", "throttl"):
		return llm.RateLimited
	}

	kind := wire.ByStatus(status)
	if kind == llm.Invalid {
		return wire.JudgeInvalid(says)
	}

	return kind
}

// exceptionKind returns the kind of an exception in mid-stream; 0 if the name is that of an event.
func exceptionKind(name string) llm.Kind {
	switch name {
	case "throttlingException":
		return llm.RateLimited
	case "serviceUnavailableException", "modelNotReadyException":
		return llm.Overloaded
	case "modelTimeoutException":
		return llm.Timeout
	case "validationException":
		return llm.Invalid
	case "accessDeniedException":
		return llm.Permission
	}

	// Names that are not known are of failures at the vendor's.
	if strings.HasSuffix(strings.ToLower(name), "exception") {
		return llm.Server
	}

	return 0
}
