package batches

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// gemini speaks the batches of the Gemini API.
type gemini struct{ *Server }

// statusWord returns the word and the number of gRPC for an error of HTTP.
func statusWord(status int) (word string, code int) {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED", 16
	case http.StatusForbidden:
		return "PERMISSION_DENIED", 7
	case http.StatusNotFound:
		return "NOT_FOUND", 5
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED", 8
	case http.StatusServiceUnavailable:
		return "UNAVAILABLE", 14
	case http.StatusInternalServerError:
		return "INTERNAL", 13
	}
	return "INVALID_ARGUMENT", 3
}

func (gemini) fail(w http.ResponseWriter, status int, _, message string) {
	word, _ := statusWord(status)
	writeJSON(w, status, fields{"error": fields{"code": status, "message": message, "status": word}})
}

func (g gemini) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	path := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case path == "upload/v1beta/files" && r.Method == http.MethodPost:
		g.upload(w, r, body)
		return true
	case strings.HasPrefix(path, "download/v1beta/files/"):
		g.giveFile(w, r, strings.TrimPrefix(path, "download/v1beta/"))
		return true
	}

	path, ok := strings.CutPrefix(path, "v1beta/")
	if !ok {
		return false
	}
	name, method, _ := strings.Cut(path, ":")
	switch {
	case method == "batchGenerateContent" && r.Method == http.MethodPost:
		g.create(w, strings.TrimPrefix(name, "models/"), body)
	case name == "batches" && r.Method == http.MethodGet:
		g.list(w, r)
	case strings.HasPrefix(name, "batches/"):
		m := g.find(name)
		if m == nil {
			g.fail(w, http.StatusNotFound, "", "Requested entity was not found.")
			return true
		}
		return g.one(w, r, m, method)
	default:
		return false
	}
	return true
}

// one answers what is asked of a batch.
func (g gemini) one(w http.ResponseWriter, r *http.Request, m *made, method string) bool {
	switch {
	case method == "" && r.Method == http.MethodGet:
		writeJSON(w, http.StatusOK, g.show(m))
	case method == "cancel" && r.Method == http.MethodPost:
		if m.done || m.failed != "" {
			g.fail(w, http.StatusBadRequest, "", "The batch has ended already.")
			return true
		}
		if m.cancelled.IsZero() {
			m.cancelled = g.cfg.Now()
		}
		writeJSON(w, http.StatusOK, fields{})
	default:
		return false
	}
	return true
}

// upload begins an upload, or takes the file of one that has begun.
func (g gemini) upload(w http.ResponseWriter, r *http.Request, body []byte) {
	switch command := r.Header.Get("X-Goog-Upload-Command"); command {
	case "start":
		g.uploads++
		if g.lossOf(w, g.uploads, true) == Refused {
			return
		}

		size, err := strconv.Atoi(r.Header.Get("X-Goog-Upload-Header-Content-Length"))
		if r.Header.Get("X-Goog-Upload-Protocol") != "resumable" || err != nil || size > g.cfg.Limits.Bytes {
			g.fail(w, http.StatusBadRequest, "", "the upload has no protocol, or no size that is taken")
			return
		}

		w.Header().Set("X-Goog-Upload-Url", "http://"+r.Host+"/upload/v1beta/files?upload_id="+g.name("up")+"&upload_protocol=resumable")
		w.Header().Set("X-Goog-Upload-Status", "active")
		w.WriteHeader(http.StatusOK)
	case "upload, finalize":
		if r.URL.Query().Get("upload_id") == "" || r.Header.Get("X-Goog-Upload-Offset") != "0" {
			g.fail(w, http.StatusBadRequest, "", "no upload has begun")
			return
		}

		name := "files/" + g.name("f")
		g.files[name] = file{name, body}
		w.Header().Set("X-Goog-Upload-Status", "final")
		writeJSON(w, http.StatusOK, fields{"file": fields{"name": name, "mimeType": r.Header.Get("Content-Type"), "sizeBytes": strconv.Itoa(len(body)), "state": "ACTIVE"}})
	default:
		g.fail(w, http.StatusBadRequest, "", "no such command: "+command)
	}
}

// giveFile gives a file.
func (g gemini) giveFile(w http.ResponseWriter, r *http.Request, path string) {
	name, method, _ := strings.Cut(path, ":")
	f, ok := g.files[name]
	if !ok || method != "download" || r.URL.Query().Get("alt") != "media" {
		g.fail(w, http.StatusNotFound, "", "Requested entity was not found.")
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(f.content) // a client that left is noticed elsewhere
}

// create makes a batch, of requests in a file or in the order itself.
func (g gemini) create(w http.ResponseWriter, model string, body []byte) {
	type one struct {
		Key      string
		Metadata struct{ Key string }
		Request  json.RawMessage
	}
	var in struct {
		Batch struct {
			DisplayName string
			InputConfig struct {
				FileName string
				Requests struct{ Requests []one }
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Batch.DisplayName == "" {
		g.fail(w, http.StatusBadRequest, "", "batch.display_name is required")
		return
	}

	all := in.Batch.InputConfig.Requests.Requests
	if name := in.Batch.InputConfig.FileName; name != "" {
		f, ok := g.files[name]
		if !ok {
			g.fail(w, http.StatusNotFound, "", "Requested entity was not found.")
			return
		}
		for raw := range bytes.Lines(f.content) {
			var l one
			if err := json.Unmarshal(raw, &l); err != nil {
				g.fail(w, http.StatusBadRequest, "", err.Error())
				return
			}
			all = append(all, l)
		}
	}

	m := &made{id: g.name("batches/"), model: model, mark: in.Batch.DisplayName, input: in.Batch.InputConfig.FileName}
	for _, l := range all {
		m.lines = append(m.lines, line{id: l.Key + l.Metadata.Key, body: l.Request})
	}
	if len(m.lines) == 0 {
		g.fail(w, http.StatusBadRequest, "", "the batch has no requests")
		return
	}
	if m = g.makeBatch(w, m); m != nil {
		writeJSON(w, http.StatusOK, g.show(m))
	}
}

// show returns a batch as the vendor tells of it: an operation. It has no results if it expired.
func (g gemini) show(m *made) fields {
	state := "RUNNING"
	stats := fields{"requestCount": strconv.Itoa(len(m.lines)), "pendingRequestCount": strconv.Itoa(len(m.lines))}
	op := fields{"name": m.id}
	meta := fields{
		"@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch", "model": "models/" + m.model,
		"displayName": m.mark, "createTime": stamp(m.at), "updateTime": stamp(g.cfg.Now()), "name": m.id,
	}

	switch {
	case m.failed != "":
		state = "FAILED"
		op["done"], op["error"] = true, fields{"code": 3, "message": "The batch failed: " + m.failed}
	case m.done && g.hasExpired(m):
		state, op["done"] = "EXPIRED", true
	case m.done:
		state, op["done"] = "SUCCEEDED", true
		if !m.cancelled.IsZero() {
			state = "CANCELLED"
		}
		succeeded, _, _, _ := m.counts()
		failed := m.countFailed(m.cancelled.IsZero())
		stats = fields{"requestCount": strconv.Itoa(len(m.lines)), "successfulRequestCount": strconv.Itoa(succeeded), "failedRequestCount": strconv.Itoa(failed)}
		output := g.output(m)
		meta["output"] = output
		op["response"] = output
	case g.cfg.Now().Equal(m.at):
		state = "PENDING"
	}

	if m.done {
		meta["endTime"] = stamp(g.endsAt(m))
	}
	meta["state"], meta["batchStats"], op["metadata"] = "BATCH_STATE_"+state, stats, meta
	return op
}

// output returns where the results are: as the requests came.
func (g gemini) output(m *made) fields {
	var all []any
	for _, r := range m.told() {
		one := fields{"key": r.id}
		switch r.status {
		case 0:
			one["error"] = fields{"code": 1, "message": "The operation was cancelled."}
			if r.expired {
				one["error"] = fields{"code": 4, "message": "Deadline expired before operation could complete."}
			}
		case http.StatusOK:
			one["response"] = r.body
		default:
			var failure struct{ Error fields }
			if err := json.Unmarshal(r.body, &failure); err != nil {
				panic(err) // of fakellm
			}
			_, code := statusWord(r.status)
			one["error"] = fields{"code": code, "message": failure.Error["message"]}
		}

		if m.input == "" { // the vendor does not give back the metadata of these
			delete(one, "key")
		}
		all = append(all, one)
	}

	if m.input == "" {
		return fields{"inlinedResponses": fields{"inlinedResponses": all}}
	}
	if m.output == "" {
		m.output = "files/batch-" + strings.TrimPrefix(m.id, "batches/")
		g.files[m.output] = file{m.output, encodeLines(all)}
	}
	return fields{"responsesFile": m.output}
}

// list lists batches, in no order that anybody promised.
func (g gemini) list(w http.ResponseWriter, r *http.Request) {
	size, from := 50, 0
	if n, err := strconv.Atoi(r.URL.Query().Get("pageSize")); err == nil {
		size = n
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("pageToken")); err == nil {
		from = n
	}

	all := g.newestFirst()
	if len(all) > 1 && all[0].n%2 == 0 {
		all[0], all[1] = all[1], all[0]
	}
	page := []any{}
	for _, m := range all[min(from, len(all)):min(from+size, len(all))] {
		page = append(page, g.show(m))
	}

	out := fields{"operations": page}
	if from+size < len(all) {
		out["nextPageToken"] = strconv.Itoa(from + size)
	}
	writeJSON(w, http.StatusOK, out)
}
