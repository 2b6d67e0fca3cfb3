package batches

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// anthropic speaks Anthropic's Message Batches.
type anthropic struct{ *Server }

// validID is how the vendor takes the ids of lines.
var validID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (a anthropic) fail(w http.ResponseWriter, status int, kind, message string) {
	writeJSON(w, status, fields{"type": "error", "error": fields{"type": kind, "message": message}, "request_id": a.name("req_")})
}

func (a anthropic) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	_, rest, ok := strings.Cut(r.URL.Path, "/v1/messages/batches")
	if !ok {
		return false
	}
	if v := r.Header.Get("Anthropic-Version"); v != "2026-10-21" && v != "2023-06-01" {
		a.fail(w, http.StatusBadRequest, "invalid_request_error", "anthropic-version: header is required")
		return true
	}

	id, method, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	switch {
	case id == "" && r.Method == http.MethodPost:
		a.create(w, body)
	case id == "" && r.Method == http.MethodGet:
		a.list(w, r)
	default:
		m := a.find(id)
		if m == nil {
			a.fail(w, http.StatusNotFound, "not_found_error", "Message Batch "+id+" not found.")
			return true
		}
		return a.one(w, r, m, method)
	}
	return true
}

// one answers what is asked of a batch.
func (a anthropic) one(w http.ResponseWriter, r *http.Request, m *made, method string) bool {
	switch {
	case method == "" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, a.show(m))
	case method == "cancel" && r.Method == http.MethodPost:
		if m.done {
			a.fail(w, http.StatusBadRequest, "invalid_request_error", "Batch "+m.id+" cannot be canceled because it has already finished processing.")
			return true
		}
		if m.cancelled.IsZero() {
			m.cancelled = a.cfg.Now()
		}
		writeJSON(w, http.StatusOK, a.show(m))
	case method == "results" && r.Method == http.MethodGet:
		a.results(w, m)
	default:
		return false
	}
	return true
}

// create makes a batch.
func (a anthropic) create(w http.ResponseWriter, body []byte) {
	var in struct {
		Requests []struct {
			CustomID string          `json:"custom_id"`
			Params   json.RawMessage `json:"params"`
		} `json:"requests"`
	}
	if len(body) > a.cfg.Limits.Bytes {
		a.fail(w, http.StatusRequestEntityTooLarge, "request_too_large", "Request exceeds the maximum size")
		return
	}
	if err := json.Unmarshal(body, &in); err != nil {
		a.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}

	m := &made{id: a.name("msgbatch_")}
	seen := make(map[string]bool)
	for i, one := range in.Requests {
		if why := a.refuses(one.CustomID, one.Params, seen); why != "" {
			a.fail(w, http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("requests.%d.%s", i, why))
			return
		}
		seen[one.CustomID] = true
		m.lines = append(m.lines, line{id: one.CustomID, body: one.Params})
	}
	if n := len(m.lines); n == 0 || n > a.cfg.Limits.Lines {
		a.fail(w, http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("requests: List should have at least 1 and at most %d items, not %d", a.cfg.Limits.Lines, n))
		return
	}

	if m = a.makeBatch(w, m); m != nil {
		writeJSON(w, http.StatusOK, a.show(m))
	}
}

// refuses says what is wrong with a line as it stands; "" if nothing is.
func (a anthropic) refuses(id string, params json.RawMessage, seen map[string]bool) string {
	var in struct {
		Model     string
		MaxTokens *int64 `json:"max_tokens"`
		Stream    bool
		Messages  []json.RawMessage
	}
	switch {
	case !validID.MatchString(id):
		return fmt.Sprintf("custom_id: String should match pattern '%s', and %q does not", validID, id)
	case seen[id]:
		return fmt.Sprintf("custom_id: %q is not unique", id)
	case json.Unmarshal(params, &in) != nil, in.Model == "", in.Messages == nil, in.MaxTokens == nil:
		return "params: model, max_tokens and messages are required"
	case in.Stream:
		return "params.stream: streaming is not supported in batches"
	}
	return ""
}

// show returns a batch as the vendor tells of it: how lines ended shows only at the end.
func (a anthropic) show(m *made) fields {
	status, counts := "in_progress", fields{"processing": len(m.lines), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	var ended, results any
	switch {
	case m.done:
		status, ended = "ended", stamp(a.endsAt(m))
		results = "https://api.anthropic.com/v1/messages/batches/" + m.id + "/results"
		counts["processing"] = 0
		counts["succeeded"], counts["errored"], counts["expired"], counts["canceled"] = m.counts()
	case !m.cancelled.IsZero():
		status = "canceling"
	}

	return fields{
		"id": m.id, "type": "message_batch", "processing_status": status, "request_counts": counts,
		"created_at": stamp(m.at), "ended_at": ended, "expires_at": stamp(m.at.Add(a.cfg.Limits.Window)),
		"cancel_initiated_at": stamp(m.cancelled), "archived_at": nil, "results_url": results,
	}
}

// list lists batches, the newest first.
func (a anthropic) list(w http.ResponseWriter, r *http.Request) {
	all, limit := a.newestFirst(), 20
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil {
		limit = n
	}
	if limit < 1 || limit > 1000 {
		a.fail(w, http.StatusBadRequest, "invalid_request_error", "limit: Input should be between 1 and 1000")
		return
	}
	if after := r.URL.Query().Get("after_id"); after != "" {
		all = behind(all, after)
	}

	more := len(all) > limit
	all = all[:min(len(all), limit)]
	page, first, last := []any{}, any(nil), any(nil)
	for _, m := range all {
		page = append(page, a.show(m))
		last = m.id
	}
	if len(all) > 0 {
		first = all[0].id
	}
	writeJSON(w, http.StatusOK, fields{"data": page, "has_more": more, "first_id": first, "last_id": last})
}

// behind returns the batches that follow the one of an id.
func behind(all []*made, id string) []*made {
	for i, m := range all {
		if m.id == id {
			return all[i+1:]
		}
	}
	return nil
}

// results gives what became of the lines.
func (a anthropic) results(w http.ResponseWriter, m *made) {
	if !m.done || a.cfg.Now().Sub(m.at) > a.cfg.Limits.Kept {
		a.fail(w, http.StatusNotFound, "not_found_error", "Message Batch "+m.id+" has no available results.")
		return
	}

	var all []any
	for _, r := range m.told() {
		var one fields
		switch {
		case r.status == 0 && r.expired:
			one = fields{"type": "expired"}
		case r.status == 0:
			one = fields{"type": "canceled"}
		case r.status == http.StatusOK:
			one = fields{"type": "succeeded", "message": r.body}
		default:
			var failure fields
			if err := json.Unmarshal(r.body, &failure); err != nil {
				panic(err) // of fakellm
			}
			failure["request_id"] = r.requestID
			one = fields{"type": "errored", "error": failure}
		}
		all = append(all, fields{"custom_id": r.id, "result": one})
	}
	writeLines(w, "application/x-jsonl", all)
	if a.cfg.Lean {
		for i := range m.results {
			m.results[i] = result{status: m.results[i].status, expired: m.results[i].expired}
		}
	}
}
