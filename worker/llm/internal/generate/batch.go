package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
)

var _ batch.Vendor = batches{}

// batches are those of a provider. Requests go as a file: of requests within the order itself the
// vendor does not give back what tells them apart, and each look at such a batch brings all answers.
type batches struct{ *provider }

// NewBatches returns what makes batches at the Gemini API. The error is an *llm.Error of the kind
// Invalid, if the address is no address.
func NewBatches(cfg llm.Config, server Server) (batch.Vendor, error) {
	p, err := newProvider(cfg, server)
	if err != nil {
		return nil, err
	}
	return batches{p}, nil
}

// Limits implements batch.Vendor. How much may wait at once depends on the account.
func (batches) Limits(llm.Model) batch.Limits {
	return batch.Limits{Bytes: 2_000_000_000, QueueBatches: 100, LongestID: 64, Within: 48 * time.Hour, Settle: 10 * time.Minute, Ordered: true}
}

// lineEnd ends each line of a file.
const lineEnd = "\n"

// Size implements batch.Vendor.
func (b batches) Size(line batch.Line) (int64, error) {
	return wire.LineSize(line, len(lineEnd), b.encode)
}

// encode returns a line of an order.
func (b batches) encode(sentID string, line batch.Line) ([]byte, error) {
	req, with := b.LineRequest(line, b)
	body, err := newBody(req, with)
	if err != nil {
		return nil, err
	}

	return json.Marshal(struct {
		Key     string `json:"key"`
		Request any    `json:"request"`
	}{sentID, body})
}

// Create implements batch.Vendor. A file whose batch was never made is deleted by the vendor in time.
func (b batches) Create(ctx context.Context, order batch.Order) (batch.Batch, error) {
	lines, err := wire.EncodeLines(order, b.Limits(order.Model), wire.Frame{Between: lineEnd, Tail: lineEnd}, b.encode)
	if err != nil {
		return batch.Batch{}, err
	}
	file, err := b.upload(ctx, order.Mark, lines)
	if err != nil {
		return batch.Batch{}, err
	}

	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var made operation
	err = c.SendFor(wire.Request{Path: b.server.Path(order.Model) + ":batchGenerateContent", Body: map[string]any{
		"batch": map[string]any{"displayName": order.Mark, "inputConfig": map[string]string{"fileName": file}},
	}}, &made)
	if err == nil && made.Name == "" {
		err = llm.NewError(llm.Garbled, "the answer names no batch")
	}
	if err != nil {
		return batch.Batch{}, c.Lost(err)
	}

	out := b.batchOf(ctx, &made)
	out.Mark = order.Mark
	return out, nil
}

// upload uploads the file of an order, and returns its name: the server says where to, and the file
// follows in one piece.
func (b batches) upload(ctx context.Context, mark string, lines []byte) (string, error) {
	const media = "application/jsonl"
	at, err := b.beginUpload(ctx, mark, http.Header{
		"X-Goog-Upload-Protocol": {"resumable"}, "X-Goog-Upload-Command": {"start"},
		"X-Goog-Upload-Header-Content-Length": {strconv.Itoa(len(lines))}, "X-Goog-Upload-Header-Content-Type": {media},
	})
	if err != nil {
		return "", err
	}

	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var made struct {
		File struct {
			Name string `json:"name"`
		} `json:"file"`
	}
	header := http.Header{"X-Goog-Upload-Offset": {"0"}, "X-Goog-Upload-Command": {"upload, finalize"}}
	if err := c.SendFor(wire.Request{Address: at, Raw: lines, Type: media, Header: header}, &made); err != nil {
		return "", err
	}
	if made.File.Name == "" {
		return "", c.FailError(llm.NewError(llm.Garbled, "the answer names no file"))
	}
	return made.File.Name, nil
}

// beginUpload returns where a file is to go.
func (b batches) beginUpload(ctx context.Context, mark string, header http.Header) (string, error) {
	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()

	at, err := c.SendHeader(wire.Request{
		Path: b.beside("upload") + "files", Header: header,
		Body: map[string]any{"file": map[string]string{"displayName": mark}},
	}, "X-Goog-Upload-Url")
	if err != nil {
		return "", err
	}
	if at == "" {
		return "", c.FailError(llm.NewError(llm.NotAPI, "the server does not say where a file is to be uploaded"))
	}
	return at, nil
}

// beside returns where files go to and come from: the same version of the interface, below another
// path.
func (b batches) beside(name string) string {
	return "../" + name + "/" + path.Base(b.Base.Path) + "/"
}

// An operation is a batch as the vendor tells of it.
type operation struct {
	Name     string `json:"name"`
	Metadata struct {
		DisplayName string    `json:"displayName"`
		State       string    `json:"state"`
		Created     time.Time `json:"createTime"`
		Ended       time.Time `json:"endTime"`
		Stats       struct {
			All       wire.Count `json:"requestCount"`
			Succeeded wire.Count `json:"successfulRequestCount"`
			Failed    wire.Count `json:"failedRequestCount"`
		} `json:"batchStats"`
		Output output `json:"output"`
	} `json:"metadata"`
	Done     bool            `json:"done"`
	Error    json.RawMessage `json:"error"`
	Response output          `json:"response"`
}

// An output is where the results are.
type output struct {
	File   string `json:"responsesFile"`
	Inline struct {
		All []json.RawMessage `json:"inlinedResponses"`
	} `json:"inlinedResponses"`
}

// batchOf returns the batch. It has no results if it expired.
func (b batches) batchOf(ctx context.Context, o *operation) batch.Batch {
	m := &o.Metadata
	all, succeeded, failed := int(m.Stats.All.N), int(m.Stats.Succeeded.N), int(m.Stats.Failed.N)
	out := batch.Batch{
		ID: o.Name, Mark: m.DisplayName, Word: m.State, Status: batch.Running, Rest: batch.Errored,
		Created: m.Created, Ended: m.Ended,
		Counts: batch.Counts{Total: all, Succeeded: succeeded, Errored: failed},
	}
	if !m.Created.IsZero() {
		out.Expires = m.Created.Add(48 * time.Hour)
	}

	_, word, _ := strings.Cut(m.State, "_STATE_") // of a batch, or of a job
	switch rest := max(all-succeeded-failed, 0); word {
	case "SUCCEEDED", "PARTIALLY_SUCCEEDED":
		out.Status = batch.Ended
	case "EXPIRED":
		out.Status, out.Rest, out.Counts.Expired = batch.Ended, batch.Expired, rest
	case "CANCELLED":
		out.Status, out.Rest, out.Counts.Cancelled = batch.Ended, batch.Cancelled, rest
	case "CANCELLING":
		out.Status = batch.Cancelling
	case "FAILED":
		out.Status, out.Err = batch.Failed, b.failureOf(ctx, o.Error)
	}
	return out
}

// failureOf returns the error that a batch or a line has: a status of gRPC, whose code is a number.
func (b batches) failureOf(ctx context.Context, raw json.RawMessage) *llm.Error {
	var f failure
	if len(raw) == 0 || wire.Decode(raw, &f) != nil {
		return llm.NewError(llm.Server, "the vendor does not say why it failed")
	}

	// A word that is not known says nothing, so that the line may be asked again.
	status, e := 0, (*llm.Error)(nil)
	switch {
	case f.Code >= 100:
		status = f.Code
		e = llm.NewError(f.kind(f.Code), "")
	case f.Status == "" && statusWord(f.Code) == "":
		e = llm.NewError(llm.Server, "")
	default:
		f.Status = cmp.Or(f.Status, statusWord(f.Code))
		e = llm.NewError(f.kind(http.StatusBadRequest), "")
	}
	e.Status, e.Message = status, b.BeginLine(ctx, status, "").CleanText(f.Message)
	return e
}

// statusWord returns the word for a code of gRPC.
func statusWord(code int) string {
	words := []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if code < 0 || code >= len(words) {
		return ""
	}
	return words[code]
}

// pathOf returns where a batch is.
func pathOf(id string) string {
	return "batches/" + url.PathEscape(strings.TrimPrefix(id, "batches/"))
}

// Get implements batch.Vendor.
func (b batches) Get(ctx context.Context, id string) (batch.Batch, error) {
	o, err := b.operation(ctx, id)
	if err != nil {
		return batch.Batch{}, err
	}
	return b.batchOf(ctx, o), nil
}

// operation returns a batch, which has its answers in it if its requests were.
func (b batches) operation(ctx context.Context, id string) (*operation, error) {
	c := b.BeginDownload(ctx)
	defer c.EndCall()
	o := new(operation)
	return o, c.SendFor(wire.Request{Path: pathOf(id)}, o)
}

// Cancel implements batch.Vendor.
func (b batches) Cancel(ctx context.Context, id string) error {
	c := b.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	var nothing struct{}
	err := c.SendFor(wire.Request{Path: pathOf(id) + ":cancel", Post: true}, &nothing)
	if err == nil {
		return nil
	}

	if now, also := b.Get(ctx, id); also == nil && now.Status.Over() {
		return nil
	}
	return err
}

// Find implements batch.Vendor. In which order batches are listed the vendor does not say.
func (b batches) Find(ctx context.Context, mark string, since time.Time) ([]batch.Batch, error) {
	var out []batch.Batch
	token := ""
	for {
		var page struct {
			Operations []operation `json:"operations"`
			Next       string      `json:"nextPageToken"`
		}
		if err := b.Dialer.Get(ctx, "batches?pageSize=100"+token, &page); err != nil {
			return nil, err
		}

		for i := range page.Operations {
			o := &page.Operations[i]
			made := o.Metadata.Created
			if o.Metadata.DisplayName == mark && (made.IsZero() || !made.Before(since)) {
				out = append(out, b.batchOf(ctx, o))
			}
		}
		if page.Next == "" {
			return out, nil
		}
		token = "&pageToken=" + url.QueryEscape(page.Next)
	}
}

// A resultLine is a line of results, in a file or within the batch.
type resultLine struct {
	Key      string `json:"key"`
	Metadata struct {
		Key string `json:"key"`
	} `json:"metadata"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// Results implements batch.Vendor.
func (b batches) Results(ctx context.Context, id string) iter.Seq2[batch.Result, error] {
	return func(yield func(batch.Result, error) bool) {
		o, err := b.operation(ctx, id)
		if err != nil {
			yield(batch.Result{}, err)
			return
		}
		at := o.Response
		if at.File == "" && at.Inline.All == nil {
			at = o.Metadata.Output
		}

		c := b.BeginDownload(ctx)
		defer c.EndCall()
		lines := wire.EachLine(at.Inline.All)
		if at.File != "" {
			lines, err = c.SendLines(wire.Request{Path: b.beside("download") + at.File + ":download?alt=media"})
		}
		if err != nil {
			yield(batch.Result{}, err)
			return
		}

		isCancelled := b.batchOf(ctx, o).Rest == batch.Cancelled
		wire.Results(lines, c, func(raw json.RawMessage) (string, batch.Result, error) {
			var line resultLine
			if err := json.Unmarshal(raw, &line); err != nil {
				return "", batch.Result{}, err
			}
			r := b.resultOf(ctx, &line, isCancelled)
			r.N = 0 // results are in the order of the lines
			return line.Key + line.Metadata.Key, r, nil
		})(yield)
	}
}

// resultOf returns what became of a line. In a batch that was cancelled, a line with the error of that
// was not asked; in others it may be asked again.
func (b batches) resultOf(ctx context.Context, line *resultLine, isCancelled bool) batch.Result {
	if len(line.Error) > 0 || len(line.Response) == 0 {
		var f failure
		if isCancelled && wire.Decode(line.Error, &f) == nil && cmp.Or(f.Status, statusWord(f.Code)) == "CANCELLED" {
			return wire.Undone(batch.Cancelled)
		}
		return wire.FailedLine(b.failureOf(ctx, line.Error))
	}

	c := b.BeginLine(ctx, 200, "")
	events, ok := wholeEvents(line.Response)
	if !ok {
		return wire.FailedLine(llm.NewError(llm.Garbled, "the answer to a line is none of this interface"))
	}

	var t turn
	if err := t.takeAll(c, wire.OneByOne(events)); err != nil {
		return wire.FailedLine(t.noteWaste(err))
	}
	return wire.LineResult(t.toResponse(c, true), nil)
}
