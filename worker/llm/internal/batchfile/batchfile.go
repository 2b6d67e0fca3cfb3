// Package batchfile makes batches as OpenAI has them, wherever that is served: a file of requests is
// uploaded, a batch is made of it, and two files come of that, one of answers and one of errors. What a
// line asks, and how its answer is read, the package of its format says.
package batchfile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

// A Server serves batches of one format.
type Server struct {
	Dialer *wire.Dialer
	Limits batch.Limits

	// Path returns where files and batches are, below the base, from their names at the vendor:
	// "files/ID", "batches?limit=100". Defaults to the same.
	Path func(string) string

	// Endpoint is the path of the vendor's that each line is for: "/v1/chat/completions".
	Endpoint string

	// Body returns the body of the request of a line.
	Body func(batch.Line) (any, error)

	// Read reads the answer to a line, which came whole.
	Read func(*wire.Call, json.RawMessage) (*llm.Response, error)

	// Expires is after what time files are to be gone, those of requests and those of results. Zero leaves
	// it to the server, which may keep few of those that have no end.
	Expires time.Duration
}

var _ batch.Vendor = (*vendor)(nil)

type vendor struct{ Server }

// New returns what makes batches at a server.
func New(s Server) batch.Vendor {
	if s.Path == nil {
		s.Path = func(path string) string { return path }
	}
	return &vendor{s}
}

// OpenAI are the limits of the vendor. How many tokens may wait at once depends on the account.
func OpenAI() batch.Limits {
	return batch.Limits{
		Lines: 50_000, Bytes: 200_000_000, CreatesPerHour: 2000, LongestID: 64,
		Within: 24 * time.Hour, Kept: 30 * 24 * time.Hour, Settle: 10 * time.Minute,
	}
}

// markKey is where a batch has the mark of its order among its metadata.
const markKey = "coditect_mark"

// Limits implements batch.Vendor.
func (v *vendor) Limits(llm.Model) batch.Limits { return v.Server.Limits }

// lineEnd ends each line of a file.
const lineEnd = "\n"

// Size implements batch.Vendor.
func (v *vendor) Size(line batch.Line) (int64, error) {
	return wire.LineSize(line, len(lineEnd), v.encode)
}

// encode returns a line of an order.
func (v *vendor) encode(sentID string, line batch.Line) ([]byte, error) {
	body, err := v.Body(line)
	if err != nil {
		return nil, err
	}

	return json.Marshal(struct {
		CustomID string `json:"custom_id"`
		Method   string `json:"method"`
		URL      string `json:"url"`
		Body     any    `json:"body"`
	}{sentID, "POST", v.Endpoint, body})
}

// Create implements batch.Vendor. A file whose batch was never made is left at the vendor, which
// deletes it in time and charges nothing for it.
func (v *vendor) Create(ctx context.Context, order batch.Order) (batch.Batch, error) {
	frame, media, err := v.formOf(order.Mark)
	if err != nil {
		return batch.Batch{}, llm.WrapError(llm.Invalid, err)
	}
	form, err := wire.EncodeLines(order, v.Server.Limits, frame, v.encode)
	if err != nil {
		return batch.Batch{}, err
	}
	file, err := v.upload(ctx, form, media)
	if err == nil {
		err = v.awaitFile(ctx, &file)
	}
	if err != nil {
		return batch.Batch{}, err
	}

	body := map[string]any{
		"input_file_id": file.ID, "endpoint": v.Endpoint, "completion_window": "24h",
		"metadata": map[string]string{markKey: order.Mark},
	}
	if v.Expires > 0 {
		body["output_expires_after"] = map[string]any{"anchor": "created_at", "seconds": int64(v.Expires.Seconds())}
	}
	c := v.Dialer.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var made state
	err = c.SendFor(wire.Request{Path: v.Path("batches"), Body: body}, &made)
	if err == nil && made.ID == "" {
		err = llm.NewError(llm.Garbled, "the answer names no batch")
	}
	if err != nil {
		return batch.Batch{}, notThereYet(c.Lost(err), file.ID)
	}

	out := v.batchOf(ctx, &made)
	out.Mark = order.Mark
	return out, nil
}

// A stored is a file as the vendor tells of it.
type stored struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// upload uploads a form with the file of an order.
func (v *vendor) upload(ctx context.Context, form []byte, media string) (file stored, err error) {
	c := v.Dialer.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	if err := c.SendFor(wire.Request{Path: v.Path("files"), Raw: form, Type: media}, &file); err != nil {
		return file, err
	}
	if file.ID == "" {
		return file, c.FailError(llm.NewError(llm.Garbled, "the answer names no file"))
	}
	return file, nil
}

// The pauses before a file is asked for again.
const firstLook, slowestLook = time.Second, 15 * time.Second

// awaitFile waits until a server that looks at files first, and says so, has done that: it makes no batch of
// one before. The end of ctx bounds it.
func (v *vendor) awaitFile(ctx context.Context, file *stored) error {
	for pause := firstLook; file.Status == "pending" || file.Status == "running"; pause = min(2*pause, slowestLook) {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return llm.BrokenError(ctx, context.Cause(ctx))
		}

		// A file may not be found for some seconds after its upload.
		now := stored{ID: file.ID, Status: file.Status}
		err := v.Dialer.Get(ctx, v.Path("files/"+url.PathEscape(file.ID)), &now)
		if e, ok := errors.AsType[*llm.Error](err); err != nil && !(ok && e.Kind == llm.NotFound) {
			return err
		}
		file.Status = now.Status
	}

	if file.Status == "error" {
		return llm.NewError(llm.Server, "the vendor could not take in the file of the batch, and does not say why")
	}
	return nil
}

// notThereYet returns a refusal to make a batch of a file that was uploaded a moment ago, and that the server
// says it does not have, as one that passes: copies of it are on their way.
func notThereYet(err error, file string) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || batch.Lost(err) || e.Status != http.StatusBadRequest && e.Status != http.StatusNotFound {
		return err
	}
	if !strings.Contains(e.Message, file) && !strings.Contains(strings.ToLower(e.Message), "file not found") {
		return err
	}

	out := *e
	out.Kind, out.Class = llm.Server, llm.Server.Class()
	return &out
}

// formOf returns the form in which the lines of an order are uploaded as a file, and its media type. No line of JSON is
// the boundary.
func (v *vendor) formOf(mark string) (frame wire.Frame, media string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.SetBoundary("part-of-" + mark); err != nil {
		return frame, "", err
	}

	fields := [][2]string{{"purpose", "batch"}}
	if v.Expires > 0 {
		fields = append(fields, [2]string{"expires_after[anchor]", "created_at"}, [2]string{"expires_after[seconds]", strconv.FormatInt(int64(v.Expires.Seconds()), 10)})
	}
	for _, f := range fields {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return frame, "", err
		}
	}

	header := make(textproto.MIMEHeader)
	header.Set("Content-Disposition", `form-data; name="file"; filename="`+mark+`.jsonl"`)
	header.Set("Content-Type", "application/jsonl")
	if _, err := w.CreatePart(header); err != nil {
		return frame, "", err
	}

	// What is written behind the head is the end of the form: the lines go between.
	frame.Head, frame.Between = b.String(), lineEnd
	b.Reset()
	err = w.Close()
	frame.Tail = lineEnd + b.String()
	return frame, w.FormDataContentType(), err
}

// A state is a batch as the vendor tells of it.
type state struct {
	ID         string            `json:"id"`
	Status     string            `json:"status"`
	Metadata   map[string]string `json:"metadata"`
	InputFile  string            `json:"input_file_id"`
	OutputFile fileID            `json:"output_file_id"`
	ErrorFile  fileID            `json:"error_file_id"`
	Created    unix              `json:"created_at"`
	Expires    unix              `json:"expires_at"`
	Completed  unix              `json:"completed_at"`
	Failed     unix              `json:"failed_at"`
	Expired    unix              `json:"expired_at"`
	Cancelled  unix              `json:"cancelled_at"`
	Counts     struct {
		Total     int `json:"total"`
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"request_counts"`
	Errors struct {
		Data []failure `json:"data"`
	} `json:"errors"`
}

// fileID names a file. Where there is none, some servers have "" or null, and others an empty object.
type fileID string

// UnmarshalJSON implements json.Unmarshaler.
func (f *fileID) UnmarshalJSON(raw []byte) error {
	var id string
	if err := json.Unmarshal(raw, &id); err != nil && string(raw) != "{}" {
		return err
	}
	*f = fileID(id)
	return nil
}

// unix is a time in seconds; some servers write it with a fraction, some as RFC 3339 has it, and none as null
// or as an empty text.
type unix float64

// UnmarshalJSON implements json.Unmarshaler.
func (u *unix) UnmarshalJSON(raw []byte) error {
	if string(raw) == `""` {
		return nil
	}
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, (*float64)(u))
	}

	var at time.Time
	if err := json.Unmarshal(raw, &at); err != nil {
		return err
	}
	*u = unix(at.Unix())
	return nil
}

func (u unix) time() time.Time {
	if u <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(u), 0)
}

// A failure is why a batch was refused.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    *int64 `json:"line"`
}

// batchOf returns the batch.
func (v *vendor) batchOf(ctx context.Context, s *state) batch.Batch {
	out := batch.Batch{
		ID: s.ID, Mark: s.Metadata[markKey], Word: s.Status, Status: batch.Running, Rest: batch.Errored,
		Created: s.Created.time(), Expires: s.Expires.time(),
		Ended:  cmp.Or(s.Completed, s.Failed, s.Expired, s.Cancelled).time(),
		Counts: batch.Counts{Total: s.Counts.Total, Succeeded: s.Counts.Completed, Errored: s.Counts.Failed},
	}

	rest := max(s.Counts.Total-s.Counts.Completed-s.Counts.Failed, 0)
	switch strings.ToLower(s.Status) { // some write it with a capital
	case "completed":
		out.Status = batch.Ended
	case "expired":
		out.Status, out.Rest, out.Counts.Expired = batch.Ended, batch.Expired, rest
	case "cancelled":
		out.Status, out.Rest, out.Counts.Cancelled = batch.Ended, batch.Cancelled, rest
	case "cancelling":
		out.Status = batch.Cancelling
	case "failed":
		out.Status, out.Err = batch.Failed, v.failureOf(ctx, s)
		// Some servers fail a batch after lines of it were done, which are paid for.
		if s.OutputFile != "" {
			out.Status = batch.Ended
		}
	}
	return out
}

// failureOf returns why a batch failed, by the first reason that is given.
func (v *vendor) failureOf(ctx context.Context, s *state) *llm.Error {
	if len(s.Errors.Data) == 0 {
		return llm.NewError(llm.Server, "the batch failed, and the vendor does not say why")
	}

	first := s.Errors.Data[0]
	raw, err := json.Marshal(map[string]any{"error": map[string]string{"message": first.Message, "code": first.Code}})
	if err != nil {
		return llm.WrapError(llm.Garbled, err)
	}
	e := v.Dialer.BeginLine(ctx, 400, "").LineError(raw)
	// More waits than the account may have: it passes when other batches end.
	if first.Code == "token_limit_exceeded" {
		e = llm.NewError(llm.RateLimited, "%s", e.Message)
	}
	// What took in the file, and what makes batches, do not always know of the same files.
	if s.InputFile != "" && strings.Contains(e.Message, s.InputFile) {
		e = llm.NewError(llm.Server, "%s", e.Message)
	}
	e.Status = 0
	return e
}

// onePath is where a batch is.
func (v *vendor) onePath(id, method string) string {
	return v.Path("batches/" + url.PathEscape(id) + method)
}

// Get implements batch.Vendor.
func (v *vendor) Get(ctx context.Context, id string) (batch.Batch, error) {
	c := v.Dialer.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	s, err := v.state(c, id)
	if err != nil {
		return batch.Batch{}, err
	}
	return v.batchOf(ctx, s), nil
}

// state asks for a batch. Some servers answer with an error as if that were one.
func (v *vendor) state(c *wire.Call, id string) (*state, error) {
	var s struct {
		state
		Error json.RawMessage `json:"error"`
	}
	if err := c.SendFor(wire.Request{Path: v.onePath(id, "")}, &s); err != nil {
		return nil, err
	}

	if s.ID == "" && len(s.Error) > 0 {
		return nil, c.LineError(enveloped(s.Error))
	}
	return &s.state, nil
}

// Cancel implements batch.Vendor. The vendor refuses it of some that have ended.
func (v *vendor) Cancel(ctx context.Context, id string) error {
	c := v.Dialer.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var s state
	err := c.SendFor(wire.Request{Path: v.onePath(id, "/cancel"), Post: true}, &s)
	if err == nil {
		return nil
	}

	if now, also := v.Get(ctx, id); also == nil && now.Status.Over() {
		return nil
	}
	return err
}

// Find implements batch.Vendor. Of servers that give a page again and again, it ends with one that has nothing new.
func (v *vendor) Find(ctx context.Context, mark string, since time.Time) ([]batch.Batch, error) {
	var out []batch.Batch
	seen := make(map[string]bool)
	after := ""
	for {
		var page struct {
			Data []state `json:"data"`
			More bool    `json:"has_more"`
			Last string  `json:"last_id"`
		}
		if err := v.Dialer.Get(ctx, v.Path("batches?limit=100"+after), &page); err != nil {
			return nil, err
		}

		before := len(seen)
		for i := range page.Data {
			s := &page.Data[i]
			page.Last = s.ID
			if seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			if made := s.Created.time(); !made.IsZero() && made.Before(since.Truncate(time.Second)) {
				return out, nil // the newest come first; some servers do not say when each was made
			}
			if s.Metadata[markKey] == mark {
				out = append(out, v.batchOf(ctx, s))
			}
		}
		if !page.More || len(seen) == before {
			return out, nil
		}
		after = "&after=" + url.QueryEscape(page.Last)
	}
}

// A resultLine is a line of either file.
type resultLine struct {
	CustomID string `json:"custom_id"`
	Response *struct {
		Status    int             `json:"status_code"`
		RequestID string          `json:"request_id"`
		Body      json.RawMessage `json:"body"`
	} `json:"response"`
	Error json.RawMessage `json:"error"` // an object, or a text alone
}

// failure returns the code of the error of a line, of one that has an error. Servers that are only alike write none,
// or a number.
func (l *resultLine) failure() (code string, failed bool) {
	if isNothing(l.Error) {
		return "", false
	}

	var e struct{ Code any }
	_ = json.Unmarshal(l.Error, &e) // it may be a text
	code, _ = e.Code.(string)
	return code, true
}

// refusal returns the error of a line that was refused: that in the answer, or the one beside it, where servers that
// are only alike have it.
func (l *resultLine) refusal() json.RawMessage {
	if body := l.Response.Body; !isNothing(body) && string(body) != "{}" {
		return body
	}
	return enveloped(l.Error)
}

// isNothing reports whether a field is null or not there.
func isNothing(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// enveloped returns an error in the envelope in which a call in real time has it.
func enveloped(raw json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"error":`), raw...), '}')
}

// Results implements batch.Vendor: those of the file of answers, and then those of the other.
func (v *vendor) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		c := v.Dialer.BeginDownload(ctx)
		defer c.EndCall()
		s, err := v.state(c, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}

		wire.Results(v.filesOf(ctx, s), c, func(raw json.RawMessage) (string, batch.Result, error) {
			var line resultLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return "", batch.Result{}, err
			}
			return line.CustomID, v.resultOf(ctx, &line), nil
		})(yield)
	}
}

// filesOf returns the lines of the files of a batch, of which either may be missing.
func (v *vendor) filesOf(ctx context.Context, s *state) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		for _, file := range []fileID{s.OutputFile, s.ErrorFile} {
			if file != "" && !v.fileOf(ctx, string(file), yield) {
				return
			}
		}
	}
}

// fileOf yields the lines of a file. It is false once nobody wants more.
func (v *vendor) fileOf(ctx context.Context, id string, yield func(wire.Event, error) bool) bool {
	c := v.Dialer.BeginDownload(ctx)
	defer c.EndCall()
	lines, err := c.SendLines(wire.Request{Path: v.Path("files/" + url.PathEscape(id) + "/content")})
	if err != nil {
		yield(wire.Event{}, err)
		return false
	}

	for e, err := range lines {
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}

// resultOf returns what became of a line.
func (v *vendor) resultOf(ctx context.Context, line *resultLine) batch.Result {
	r := line.Response
	code, failed := line.failure()
	switch {
	case r != nil && r.Status/100 == 2:
		return wire.LineResult(v.Read(v.Dialer.BeginLine(ctx, r.Status, r.RequestID), r.Body))
	case r != nil && r.Status > 0:
		return wire.FailedLine(v.Dialer.BeginLine(ctx, r.Status, r.RequestID).LineError(line.refusal()))
	case !failed:
		return wire.FailedLine(llm.NewError(llm.Garbled, "a line of results has neither an answer nor an error"))
	case code == "batch_expired":
		return wire.Undone(batch.Expired)
	case strings.HasPrefix(code, "batch_cancel"), code == "cancelled":
		return wire.Undone(batch.Cancelled)
	}
	return wire.FailedLine(v.Dialer.BeginLine(ctx, 200, "").LineError(enveloped(line.Error)))
}
