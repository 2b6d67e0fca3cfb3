package batches

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// openai speaks OpenAI's files and batches.
type openai struct{ *Server }

func (o openai) fail(w http.ResponseWriter, status int, kind, message string) {
	var code any
	switch kind {
	case "authentication_error":
		kind, code = "invalid_request_error", "invalid_api_key"
	case "rate_limit_error":
		kind, code = "requests", "rate_limit_exceeded"
	case "not_found_error":
		kind = "invalid_request_error"
	case "api_error":
		kind = "server_error"
	}
	writeJSON(w, status, fields{"error": fields{"message": message, "type": kind, "param": nil, "code": code}})
}

func (o openai) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	_, path, ok := strings.Cut(r.URL.Path, "/v1/")
	if !ok {
		return false
	}
	parts := strings.Split(path, "/")
	is := func(method string, steps ...string) bool {
		return r.Method == method && slices.EqualFunc(parts, steps, func(part, step string) bool { return step == "*" || part == step })
	}

	switch {
	case is(http.MethodPost, "files"):
		o.upload(w, r, body)
	case is(http.MethodGet, "files", "*", "content"):
		f, ok := o.files[parts[1]]
		if !ok {
			o.fail(w, http.StatusNotFound, "not_found_error", "No such File object: "+parts[1])
			return true
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(f.content) // a client that left is noticed elsewhere
	case is(http.MethodPost, "batches"):
		o.create(w, body)
	case is(http.MethodGet, "batches"):
		o.list(w, r)
	case is(http.MethodGet, "batches", "*"), is(http.MethodPost, "batches", "*", "cancel"):
		m := o.find(parts[1])
		if m == nil {
			o.fail(w, http.StatusNotFound, "not_found_error", "No batch found with id '"+parts[1]+"'.")
			return true
		}
		if len(parts) == 3 {
			o.cancel(w, m)
			return true
		}
		writeJSON(w, http.StatusOK, o.show(m))
	default:
		return false
	}
	return true
}

// upload keeps a file.
func (o openai) upload(w http.ResponseWriter, r *http.Request, body []byte) {
	o.uploads++
	loss := o.lossOf(w, o.uploads, true)
	if loss == Refused {
		return
	}
	purpose, f, err := readForm(r.Header.Get("Content-Type"), body)
	if err != nil || purpose != "batch" || f.name == "" {
		o.fail(w, http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("purpose is %q, and the file is named %q: %v", purpose, f.name, err))
		return
	}
	if !strings.HasSuffix(f.name, ".jsonl") {
		o.fail(w, http.StatusBadRequest, "invalid_request_error", "Invalid file format. Supported formats: ['jsonl']")
		return
	}
	if len(f.content) > o.cfg.Limits.Bytes {
		o.fail(w, http.StatusRequestEntityTooLarge, "invalid_request_error", "File is too large.")
		return
	}

	id := o.name("file-")
	o.files[id] = f
	if o.answered(w, &made{}, loss) == nil {
		return
	}
	writeJSON(w, http.StatusOK, fields{
		"id": id, "object": "file", "bytes": len(f.content), "created_at": o.cfg.Now().Unix(), "filename": f.name, "purpose": purpose,
		"status": "processed", "status_details": nil, "expires_at": o.cfg.Now().Add(o.cfg.Limits.Kept).Unix(),
	})
}

// readForm reads an upload.
func readForm(media string, body []byte) (purpose string, f file, err error) {
	kind, params, err := mime.ParseMediaType(media)
	if err != nil || kind != "multipart/form-data" {
		return "", f, fmt.Errorf("the media type is %q", media)
	}

	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := form.NextPart()
		if err == io.EOF { //nolint:errorlint // it is that very value
			return purpose, f, nil
		}
		if err != nil {
			return "", f, err
		}

		content, err := io.ReadAll(part)
		if err != nil {
			return "", f, err
		}
		switch part.FormName() {
		case "purpose":
			purpose = string(content)
		case "file":
			f = file{part.FileName(), content}
		}
	}
}

// create makes a batch. What is wrong with its file shows only later.
func (o openai) create(w http.ResponseWriter, body []byte) {
	var in struct {
		Input    string            `json:"input_file_id"`
		Endpoint string            `json:"endpoint"`
		Window   string            `json:"completion_window"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		o.fail(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	f, ok := o.files[in.Input]
	switch {
	case !ok:
		o.fail(w, http.StatusBadRequest, "invalid_request_error", "Invalid input file: "+in.Input)
		return
	case in.Window != "24h":
		o.fail(w, http.StatusBadRequest, "invalid_request_error", "Invalid value for completion_window: only 24h is supported")
		return
	case in.Endpoint != "/v1/chat/completions" && in.Endpoint != "/v1/responses":
		o.fail(w, http.StatusBadRequest, "invalid_request_error", "Invalid value for endpoint: "+in.Endpoint)
		return
	}
	for k, v := range in.Metadata {
		if len(in.Metadata) > 16 || len(k) > 64 || len(v) > 512 {
			o.fail(w, http.StatusBadRequest, "invalid_request_error", "metadata is too large")
			return
		}
	}

	m := &made{id: o.name("batch_"), input: in.Input, endpoint: in.Endpoint, metadata: in.Metadata}
	m.lines, m.failed = o.readFile(f.content, in.Endpoint)
	if m = o.makeBatch(w, m); m != nil {
		writeJSON(w, http.StatusOK, o.show(m))
	}
}

// readFile reads the lines of a file, and says with which code its batch fails.
func (o openai) readFile(content []byte, endpoint string) (lines []line, code string) {
	seen, model := make(map[string]bool), ""
	for raw := range bytes.Lines(content) {
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var in struct {
			CustomID string `json:"custom_id"`
			Method   string
			URL      string
			Body     json.RawMessage
		}
		var body struct{ Model string }
		switch {
		case json.Unmarshal(raw, &in) != nil || json.Unmarshal(in.Body, &body) != nil:
			return nil, "invalid_json_line"
		case in.CustomID == "" || in.Method != http.MethodPost:
			return nil, "missing_required_parameter"
		case in.URL != endpoint:
			return nil, "url_mismatch"
		case seen[in.CustomID]:
			return nil, "duplicate_custom_id"
		case model != "" && body.Model != model:
			return nil, "model_mismatch"
		}
		seen[in.CustomID], model = true, body.Model
		lines = append(lines, line{id: in.CustomID, body: in.Body})
	}

	switch n := len(lines); {
	case n == 0:
		return nil, "empty_file"
	case n > o.cfg.Limits.Lines:
		return nil, "too_many_tasks"
	}
	return lines, ""
}

// status returns the vendor's word for how far a batch is.
func (o openai) status(m *made) string {
	switch {
	case m.failed != "":
		if o.cfg.Now().Sub(m.at) < time.Second {
			return "validating"
		}
		return "failed"
	case m.done && o.hasExpired(m):
		return "expired"
	case m.done && !m.cancelled.IsZero():
		return "cancelled"
	case m.done:
		return "completed"
	case !m.cancelled.IsZero():
		return "cancelling"
	case o.cfg.Now().Equal(m.at):
		return "validating"
	}
	return "in_progress"
}

// show returns a batch as the vendor tells of it.
func (o openai) show(m *made) fields {
	status := o.status(m)
	out := fields{
		"id": m.id, "object": "batch", "endpoint": m.endpoint, "errors": nil, "input_file_id": m.input, "completion_window": "24h",
		"status": status, "output_file_id": nil, "error_file_id": nil, "created_at": m.at.Unix(),
		"in_progress_at": nil, "expires_at": m.at.Add(o.cfg.Limits.Window).Unix(), "finalizing_at": nil, "completed_at": nil, "failed_at": nil,
		"expired_at": nil, "cancelling_at": nil, "cancelled_at": nil,
		"request_counts": fields{"total": len(m.lines), "completed": 0, "failed": 0}, "metadata": m.metadata,
	}

	switch status {
	case "failed":
		out["failed_at"] = m.at.Unix()
		out["errors"] = fields{"object": "list", "data": []any{fields{"code": m.failed, "message": "The batch failed: " + m.failed, "param": nil, "line": nil}}}
	case "completed", "expired", "cancelled":
		out[status+"_at"] = o.endsAt(m).Unix()
		succeeded, _, _, _ := m.counts()
		out["request_counts"] = fields{"total": len(m.lines), "completed": succeeded, "failed": m.countFailed(status != "expired")}
		o.writeFiles(m)
		for name, id := range map[string]string{"output_file_id": m.output, "error_file_id": m.errors} {
			if id != "" {
				out[name] = id
			}
		}
	}
	return out
}

// writeFiles writes the files of a batch that has ended: what was answered is in one, and the rest in the
// other. An empty one is not made.
func (o openai) writeFiles(m *made) {
	if m.output != "" || m.errors != "" {
		return
	}

	var answers, failures []any
	for _, r := range m.told() {
		one := fields{"id": "batch_req_" + m.id + r.id, "custom_id": r.id, "response": nil, "error": nil}
		switch r.status {
		case 0:
			code, message := "batch_cancelled", "This request was not executed because the batch was cancelled."
			if r.expired {
				code, message = "batch_expired", "This request could not be executed before the completion window expired."
			}
			one["error"] = fields{"code": code, "message": message}
		default:
			one["response"] = fields{"status_code": r.status, "request_id": r.requestID, "body": r.body}
		}
		if r.status == http.StatusOK {
			answers = append(answers, one)
		} else {
			failures = append(failures, one)
		}
	}

	if answers != nil {
		m.output = o.name("file-")
		o.files[m.output] = file{m.id + "_output.jsonl", encodeLines(answers)}
	}
	if failures != nil {
		m.errors = o.name("file-")
		o.files[m.errors] = file{m.id + "_error.jsonl", encodeLines(failures)}
	}
}

// cancel begins to cancel a batch.
func (o openai) cancel(w http.ResponseWriter, m *made) {
	switch status := o.status(m); status {
	case "completed", "expired", "failed":
		o.fail(w, http.StatusConflict, "invalid_request_error", "Cannot cancel a batch with status '"+status+"'.")
		return
	}
	if m.cancelled.IsZero() {
		m.cancelled = o.cfg.Now()
	}
	writeJSON(w, http.StatusOK, o.show(m))
}

// list lists batches, the newest first.
func (o openai) list(w http.ResponseWriter, r *http.Request) {
	all, limit := o.newestFirst(), 20
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil {
		limit = n
	}
	if limit < 1 || limit > 100 {
		o.fail(w, http.StatusBadRequest, "invalid_request_error", "limit must be between 1 and 100")
		return
	}
	if after := r.URL.Query().Get("after"); after != "" {
		all = behind(all, after)
	}

	more := len(all) > limit
	all = all[:min(len(all), limit)]
	page, first, last := []any{}, any(nil), any(nil)
	for _, m := range all {
		page = append(page, o.show(m))
		last = m.id
	}
	if len(all) > 0 {
		first = all[0].id
	}
	writeJSON(w, http.StatusOK, fields{"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": more})
}
