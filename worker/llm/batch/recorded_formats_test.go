package batch_test

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
)

// recordedOpenAI is the format of OpenAI and of those that are alike, with lines of one endpoint.
func recordedOpenAI(name, base string) *recordedWire {
	isResponses := strings.HasSuffix(base, "/responses")
	words := []string{"validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"}
	return &recordedWire{
		name: name, vendor: "openai", base: base, page: `{"object":"list","data":[],"has_more":false}`,
		isBatch: func(doc map[string]any) bool {
			return doc["object"] == "batch" && slices.Contains(words, strings.ToLower(str(doc, "status"))) && strings.HasSuffix(str(doc, "endpoint"), "/responses") == isResponses
		},
		isLine: func(line map[string]any) bool {
			_, answered := line["response"]
			_, failed := line["error"]
			return line["custom_id"] != nil && (answered || failed) && (dig(line, "response.body.object") == "response") == isResponses
		},
		batch: openAIBatch, line: openAILine,
		files: func(doc map[string]any) (all []string) {
			for _, name := range []string{"output_file_id", "error_file_id"} {
				if id := str(doc, name); id != "" {
					all = append(all, id)
				}
			}
			return all
		},
		serve: func(lines string) map[string]string {
			return map[string]string{"/batches/b": `{"id":"b","status":"completed","output_file_id":"file-out"}`, "/files/file-out/content": lines}
		},
	}
}

// secondsAt returns the first time at names, be it in seconds or as RFC 3339 has it.
func secondsAt(doc map[string]any, names ...string) time.Time {
	for _, name := range names {
		if n := num(doc, name); n > 0 {
			return time.Unix(n, 0)
		}
		if at, err := time.Parse(time.RFC3339, str(doc, name)); err == nil {
			return at
		}
	}
	return time.Time{}
}

func openAIBatch(doc map[string]any) batch.Batch {
	total, done, failed := int(num(doc, "request_counts.total")), int(num(doc, "request_counts.completed")), int(num(doc, "request_counts.failed"))
	at := func(names ...string) time.Time { return secondsAt(doc, names...).Truncate(time.Second) }
	b := batch.Batch{
		ID: str(doc, "id"), Mark: str(doc, "metadata.coditect_mark"), Word: str(doc, "status"), Status: batch.Running, Rest: batch.Errored,
		Created: at("created_at"), Expires: at("expires_at"), Ended: at("completed_at", "failed_at", "expired_at", "cancelled_at"),
		Counts: batch.Counts{Total: total, Succeeded: done, Errored: failed},
	}
	switch strings.ToLower(b.Word) {
	case "completed":
		b.Status = batch.Ended
	case "expired":
		b.Status, b.Rest, b.Counts.Expired = batch.Ended, batch.Expired, total-done-failed
	case "cancelled":
		b.Status, b.Rest, b.Counts.Cancelled = batch.Ended, batch.Cancelled, total-done-failed
	case "cancelling":
		b.Status = batch.Cancelling
	case "failed":
		if b.Status = batch.Failed; str(doc, "output_file_id") != "" {
			b.Status = batch.Ended
		}
	}
	return b
}

func openAILine(line map[string]any) recordedLine {
	l := recordedLine{id: str(line, "custom_id"), outcome: batch.Errored}
	body, status := dig(line, "response.body"), num(line, "response.status_code")
	for _, at := range []string{"error", "error.message", "response.body.message", "response.body.error", "response.body.error.message"} {
		if why := str(line, at); why != "" {
			l.message = strings.TrimSpace(why)
		}
	}
	switch code := str(line, "error.code"); {
	case status >= 300:
		l.kinds = kindsOf(status)
		return l
	case code == "batch_expired":
		l.outcome, l.message = batch.Expired, ""
		return l
	case strings.HasPrefix(code, "batch_cancel"):
		l.outcome, l.message = batch.Cancelled, ""
		return l
	case dig(body, "choices.0.message") != nil:
		l.text, l.stop = str(body, "choices.0.message.content"), stopNamed(str(body, "choices.0.finish_reason"))
		l.in, l.out, l.cached = num(body, "usage.prompt_tokens"), num(body, "usage.completion_tokens"), num(body, "usage.prompt_tokens_details.cached_tokens")
	case dig(body, "output") != nil:
		l.text, l.stop = outputText(body), stopNamed(str(body, "status"))
		l.in, l.out, l.cached = num(body, "usage.input_tokens"), num(body, "usage.output_tokens"), num(body, "usage.input_tokens_details.cached_tokens")
	default: // vectors and scores are no answer
		return l
	}
	l.outcome, l.message = batch.Succeeded, ""
	return l
}

// outputText returns the text of an answer of the Responses interface.
func outputText(body any) (text string) {
	output, _ := dig(body, "output").([]any)
	for _, item := range output {
		parts, _ := dig(item, "content").([]any)
		for _, part := range parts {
			if str(part, "type") == "output_text" {
				text += str(part, "text")
			}
		}
	}
	return text
}

// recordedAnthropic is the format of Message Batches.
func recordedAnthropic() *recordedWire {
	return &recordedWire{
		name: "anthropic", vendor: "anthropic", base: "http://vendor.test", page: `{"data":[],"has_more":false,"first_id":null,"last_id":null}`,
		isBatch: func(doc map[string]any) bool { return str(doc, "processing_status") != "" && str(doc, "id") != "" },
		isLine:  func(line map[string]any) bool { return line["custom_id"] != nil && str(line, "result.type") != "" },
		batch:   anthropicBatch, line: anthropicLine,
		files: func(doc map[string]any) []string { return []string{str(doc, "id") + "/results"} },
		serve: func(lines string) map[string]string { return map[string]string{"/batches/b/results": lines} },
	}
}

func anthropicBatch(doc map[string]any) batch.Batch {
	at := func(name string) time.Time { return secondsAt(doc, name) }
	n := func(name string) int { return int(num(doc, "request_counts."+name)) }
	b := batch.Batch{
		ID: str(doc, "id"), Word: str(doc, "processing_status"), Status: batch.Running, Rest: batch.Errored,
		Created: at("created_at"), Ended: at("ended_at"), Expires: at("expires_at"), KeptUntil: at("archived_at"),
		Counts: batch.Counts{
			Total:     n("processing") + n("succeeded") + n("errored") + n("canceled") + n("expired"),
			Succeeded: n("succeeded"), Errored: n("errored"), Cancelled: n("canceled"), Expired: n("expired"),
		},
	}
	if b.KeptUntil.IsZero() {
		b.KeptUntil = b.Created.AddDate(0, 0, 29)
	}
	switch b.Word {
	case "ended":
		b.Status = batch.Ended
	case "canceling":
		b.Status = batch.Cancelling
	}
	if str(doc, "cancel_initiated_at") != "" {
		b.Rest = batch.Cancelled
	}
	return b
}

func anthropicLine(line map[string]any) recordedLine {
	l := recordedLine{id: str(line, "custom_id"), outcome: batch.Errored}
	switch str(line, "result.type") {
	case "succeeded":
		message := dig(line, "result.message")
		l.outcome, l.stop = batch.Succeeded, stopNamed(str(message, "stop_reason"))
		content, _ := dig(message, "content").([]any)
		for _, block := range content {
			l.text += str(block, "text")
		}
		l.cached, l.out = num(message, "usage.cache_read_input_tokens"), num(message, "usage.output_tokens")
		l.in = num(message, "usage.input_tokens") + num(message, "usage.cache_creation_input_tokens") + l.cached
	case "expired":
		l.outcome = batch.Expired
	case "canceled":
		l.outcome = batch.Cancelled
	default:
		if l.message = str(line, "result.error.error.message"); l.message == "" {
			l.message = str(line, "result.error.message")
		}
		if str(line, "result.error.error.type") == "invalid_request_error" {
			l.kinds = kindsOf(http.StatusBadRequest)
		}
	}
	return l
}

// recordedGemini is the format of the Gemini API.
func recordedGemini() *recordedWire {
	return &recordedWire{
		name: "gemini", vendor: "gemini", base: "http://vendor.test/v1beta", page: `{}`,
		isBatch: func(doc map[string]any) bool {
			return strings.HasPrefix(str(doc, "name"), "batches/") && str(doc, "metadata.state") != ""
		},
		isLine: func(line map[string]any) bool {
			return dig(line, "response.candidates") != nil || dig(line, "response.promptFeedback") != nil || line["key"] != nil && line["error"] != nil
		},
		batch: geminiBatch, line: geminiLine,
		files: func(doc map[string]any) (all []string) {
			if file := str(doc, "response.responsesFile"); file != "" {
				all = append(all, file+":download")
			}
			return all
		},
		inline: func(doc map[string]any) (lines []map[string]any) {
			all, _ := dig(doc, "response.inlinedResponses.inlinedResponses").([]any)
			for _, one := range all {
				line, _ := one.(map[string]any)
				lines = append(lines, line)
			}
			return lines
		},
		serve: func(lines string) map[string]string {
			return map[string]string{"/batches/b": `{"name":"batches/b","metadata":{"state":"BATCH_STATE_SUCCEEDED"},"done":true,"response":{"responsesFile":"files/f"}}`, "/files/f:download": lines}
		},
	}
}

func geminiBatch(doc map[string]any) batch.Batch {
	n := func(name string) int { return int(num(doc, "metadata.batchStats."+name)) }
	all, done, failed := n("requestCount"), n("successfulRequestCount"), n("failedRequestCount")
	meta, _ := doc["metadata"].(map[string]any)
	b := batch.Batch{
		ID: str(doc, "name"), Mark: str(meta, "displayName"), Word: str(meta, "state"), Status: batch.Running, Rest: batch.Errored,
		Created: secondsAt(meta, "createTime"), Ended: secondsAt(meta, "endTime"),
		Counts: batch.Counts{Total: all, Succeeded: done, Errored: failed},
	}
	b.Expires = b.Created.Add(48 * time.Hour)
	_, word, _ := strings.Cut(b.Word, "_STATE_")
	switch word {
	case "SUCCEEDED", "PARTIALLY_SUCCEEDED":
		b.Status = batch.Ended
	case "EXPIRED":
		b.Status, b.Rest, b.Counts.Expired = batch.Ended, batch.Expired, all-done-failed
	case "CANCELLED":
		b.Status, b.Rest, b.Counts.Cancelled = batch.Ended, batch.Cancelled, all-done-failed
	case "CANCELLING":
		b.Status = batch.Cancelling
	case "FAILED":
		b.Status = batch.Failed
	}
	return b
}

func geminiLine(line map[string]any) recordedLine {
	l := recordedLine{id: str(line, "key") + str(line, "metadata.key"), outcome: batch.Errored, message: str(line, "error.message")}
	if dig(line, "response") == nil {
		return l
	}
	response := dig(line, "response")
	l.outcome, l.stop = batch.Succeeded, stopNamed(str(response, "candidates.0.finishReason"))
	parts, _ := dig(response, "candidates.0.content.parts").([]any)
	for _, part := range parts {
		if dig(part, "thought") != true {
			l.text += str(part, "text")
		}
	}
	l.cached = num(response, "usageMetadata.cachedContentTokenCount")
	l.in = num(response, "usageMetadata.promptTokenCount") + num(response, "usageMetadata.toolUsePromptTokenCount")
	l.out = num(response, "usageMetadata.candidatesTokenCount") + num(response, "usageMetadata.thoughtsTokenCount")
	if str(response, "promptFeedback.blockReason") != "" {
		l.stop = llm.StopFilter
	}
	return l
}
