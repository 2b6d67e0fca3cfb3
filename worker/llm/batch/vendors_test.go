package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

const key = "sk-test-0123456789abcdefghij"

// A place is where a vendor is asked.
type place struct {
	vendor, base string
	wire         fakellm.Wire
}

// places are one for each format.
var places = []place{
	{"anthropic", "http://vendor.test/", fakellm.Anthropic},
	{"openai", "http://vendor.test/v1", fakellm.OpenAI},
	{"openai", "http://vendor.test/v1/responses", fakellm.Responses},
	{"gemini", "http://vendor.test/v1beta", fakellm.Gemini},
}

func (p place) config(transport http.RoundTripper) llm.Config {
	return llm.Config{Key: llm.NewKey(key), BaseURL: p.base, Transport: transport}
}

// each runs a test at each place, in virtual time.
func each(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	for _, p := range places {
		t.Run(string(p.wire), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, p) }) })
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// start returns a vendor whose server is scripted, and what its requests were.
func start(t *testing.T, p place, script batches.Config) (batch.Vendor, *batches.Server, *recorder) {
	t.Helper()
	script.Wire, script.Key = p.wire, key
	fake := batches.New(script)
	r := &recorder{next: fake.Transport()}
	v, err := vendors.All().NewBatches(p.vendor, p.config(r))
	if err != nil {
		t.Fatal(err)
	}
	return v, fake, r
}

// A recorder keeps what is sent.
type recorder struct {
	next   http.RoundTripper
	bodies []string
	paths  []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(strings.NewReader(string(body)))
	}
	r.bodies, r.paths = append(r.bodies, string(body)), append(r.paths, req.Method+" "+req.URL.Path)
	return r.next.RoundTrip(req)
}

// create makes a batch.
func create(t *testing.T, v batch.Vendor, o batch.Order) batch.Batch {
	t.Helper()
	made, err := v.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if made.ID == "" || made.Mark != o.Mark || made.Status != batch.Running || made.Created.IsZero() {
		t.Errorf("made %+v", made)
	}
	return made
}

// results returns the results of a batch by their lines. Each has the mark of the order.
func results(t *testing.T, v batch.Vendor, id string) map[string]batch.Result {
	t.Helper()
	all := make(map[string]batch.Result)
	n := 0
	for r, err := range v.Results(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := all[r.CustomID]; twice || r.Mark != mark {
			t.Errorf("a result of line %q of %q, twice: %v", r.CustomID, r.Mark, twice)
		}
		want := -1
		if v.Limits("m-1").Ordered {
			want = n
		}
		if r.N != want {
			t.Errorf("result %d has the place %d, want %d", n, r.N, want)
		}
		all[r.CustomID] = r
		n++
	}
	return all
}

// echo answers with what was asked.
func echo(c fakellm.Call) fakellm.Reply {
	return fakellm.Reply{Text: `{"said":"` + c.Prompt() + `"}`, Thinking: strings.Repeat("Hm. ", len(c.Prompt())%2)}
}

// whole asks for each line by one provider in real time.
func whole(t *testing.T, p place, script fakellm.Config, o batch.Order) (map[string]*llm.Response, []fakellm.Entry) {
	t.Helper()
	fake := fakellm.New(script)
	provider, err := vendors.New(p.vendor, p.config(fake.Transport()))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*llm.Response)
	for _, line := range o.Lines {
		res, err := provider.Complete(t.Context(), &line.Request)
		if err != nil {
			t.Fatal(err)
		}
		all[line.CustomID] = res
	}
	return all, fake.Entries()
}

// rich returns an order whose lines have all that a request can have.
func rich(t *testing.T) batch.Order {
	t.Helper()
	schema, err := llm.NewSchema("said", []byte(`{"type":"object","required":["said"],"properties":{"said":{"type":"string","minLength":1},"at":{"type":"string","format":"date"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	o := order(5)
	for i := range o.Lines {
		r := &o.Lines[i].Request
		r.Messages = []llm.Message{llm.Say(llm.User, fmt.Sprintf("text %d with <marks> & \"quotes\" – 金", i))}
	}
	o.Lines[1].Request.Schema = schema
	o.Lines[2].Request.Tools = []llm.Tool{{Name: "look", Schema: schema}}
	o.Lines[3].Request.Cache, o.Lines[3].Request.CacheKey = llm.OneHour, "k"
	o.Lines[4].Request.Parameters = parameters.Set{Tier: parameters.Flex, Stop: []string{"END"}}
	return o
}

// A line asks for what the provider asks for in real time, byte for byte, but for the stream and the
// tier; and what comes of it is what would have come then.
func TestLinesAreAskedAsInRealTime(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		o := rich(t)
		v, _, sent := start(t, p, batches.Config{Model: echo})
		made := create(t, v, o)
		var file string
		for _, body := range sent.bodies {
			if strings.Contains(body, o.Lines[0].CustomID) {
				file = body
			}
		}

		now, entries := whole(t, p, fakellm.Config{Model: echo, Lax: true, Forgets: true}, o)
		for i, e := range entries {
			body := string(e.Body)
			for old, with := range map[string]string{
				`"stream":true,"stream_options":{"include_usage":true}`: `"stream":false`,
				`"service_tier":"flex"`:                                 "", `"serviceTier":"flex"`: "",
			} {
				body = strings.ReplaceAll(body, old, with)
			}
			if p.wire == fakellm.Anthropic {
				body = strings.Replace(body, `"stream":true,`, "", 1)
			}
			body = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(body, `"stream":true`, `"stream":false`), `,}`, `}`), `,,`, `,`)
			if !strings.Contains(file, body) {
				t.Errorf("line %d is not asked as in real time:\n%s\nis not in\n%s", i, body, file)
			}
		}

		pass(time.Hour)
		got := results(t, v, made.ID)
		for _, line := range o.Lines {
			r := got[line.CustomID]
			if r.Outcome != batch.Succeeded || r.Response == nil || r.Err != nil {
				t.Errorf("line %q: %+v", line.CustomID, r)
				continue
			}
			if r.Response.Tier != llm.Batch || r.Response.RequestID == "" && p.wire != fakellm.Anthropic {
				t.Errorf("line %q was answered in the tier %q by request %q", line.CustomID, r.Response.Tier, r.Response.RequestID)
			}
			apart := cmpopts.IgnoreFields(llm.Response{}, "RequestID", "Limits", "Tier", "Asked")
			if diff := cmp.Diff(now[line.CustomID], r.Response, apart); diff != "" {
				t.Errorf("line %q is not read as in real time (-real time +batch):\n%s", line.CustomID, diff)
			}
		}
	})
}

// Every way in which a line can end is told apart, whatever the order of results.
func TestEachOutcome(t *testing.T) {
	faults := []fakellm.Fault{fakellm.None, fakellm.Overloaded, fakellm.ServerError, fakellm.TooLong, fakellm.UnknownModel, fakellm.Truncated, fakellm.NoMoney, fakellm.RateLimit, fakellm.EmptyAnswer}
	kinds := map[fakellm.Fault]llm.Kind{
		fakellm.Overloaded: llm.Overloaded, fakellm.ServerError: llm.Server, fakellm.TooLong: llm.TooLarge, fakellm.UnknownModel: llm.NotFound,
		fakellm.NoMoney: llm.Billing, fakellm.RateLimit: llm.RateLimited,
	}
	each(t, func(t *testing.T, p place) {
		o := order(45)
		for i := range o.Lines {
			o.Lines[i].Request.Messages = []llm.Message{llm.Say(llm.User, fmt.Sprint("text ", i%len(faults), " of this"))}
		}
		faultOf := func(c fakellm.Call) fakellm.Fault {
			var n int
			if _, err := fmt.Sscanf(c.Prompt(), "text %d", &n); err != nil {
				t.Error(err)
			}
			return faults[n]
		}
		v, fake, _ := start(t, p, batches.Config{Model: echo, Fault: faultOf, Seed: 3, Fate: func(n int, _ string) batches.Fate {
			return map[int]batches.Fate{7: batches.Twice, 8: batches.Dropped}[n]
		}})
		made := create(t, v, o)
		pass(time.Hour)
		now, err := v.Get(t.Context(), made.ID)
		if err != nil || now.Status != batch.Ended || now.Rest != batch.Errored || now.Counts.Total != 45 || now.Counts.Succeeded != 15 || now.Counts.Errored != 30 || now.Ended.IsZero() {
			t.Errorf("%+v, %v", now, err)
		}

		got := results(t, v, made.ID)
		lost := 8
		if p.wire == fakellm.Gemini {
			lost = len(o.Lines) // none
		}
		if _, has := got[o.Lines[8].CustomID]; has != (lost != 8) || len(got) < 44 {
			t.Errorf("%d results, want one for each line but the one that was lost", len(got))
		}
		for i, line := range o.Lines {
			r, fault := got[line.CustomID], faults[i%len(faults)]
			kind := kinds[fault]
			if p.wire == fakellm.Gemini && fault == fakellm.NoMoney {
				kind = llm.Permission // a line tells nothing of why
			}
			switch {
			case i == lost:
			case kind == 0:
				if r.Outcome != batch.Succeeded || fault == fakellm.Truncated && r.Response.Stop != llm.StopMax {
					t.Errorf("%s: %+v", fault, r)
				}
			case r.Outcome != batch.Errored || r.Err == nil || r.Err.Kind != kind || r.Err.Class != kind.Class():
				t.Errorf("%s: %+v with %v, want an error of kind %v", fault, r, r.Err, kind)
			}
		}
		if n := len(fake.Bill()); n != 15 {
			t.Errorf("%d lines were charged, want those that were answered", n)
		}
	})
}

// Money is reckoned from what results tell as the vendor reckons it from its own journal.
func TestUsageIsTheVendors(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, fake, _ := start(t, p, batches.Config{Model: echo, Seed: 1})
		made := create(t, v, rich(t))
		pass(time.Hour)
		got := results(t, v, made.ID)
		for _, c := range fake.Bill() {
			_, id, _ := batch.CutID(c.CustomID)
			u := got[id].Response.Usage
			if !u.Reported || u.In() != c.Entry.In() || u.CacheRead != c.Entry.CacheRead || u.Output != c.Entry.Output {
				t.Errorf("line %q: %+v, and the vendor charged %+v", id, u, c.Entry)
			}
		}
	})
}

// An order is made once, whatever becomes of the answer: after a lost one, the vendor is asked whether
// there is a batch with its mark.
func TestALostAnswerMakesNoSecondBatch(t *testing.T) {
	for _, loss := range []batches.Loss{batches.After, batches.ErrAfter, batches.Before} {
		each(t, func(t *testing.T, p place) {
			v, fake, _ := start(t, p, batches.Config{Hidden: 3 * time.Minute, Creates: func(n int, upload bool) batches.Loss {
				if upload || n != 2 {
					return batches.Kept
				}
				return loss
			}})
			other := order(3)
			other.Mark = "anotherOrder"
			create(t, v, other)
			began := time.Now()
			_, err := v.Create(t.Context(), order(3))
			if e, ok := errors.AsType[*llm.Error](err); !batch.Lost(err) || !ok || e.Message == "" {
				t.Fatalf("%s: error %v, want one that says that nobody knows", loss, err)
			}

			// It may be hidden until the vendor settles, and some vendors tell whose it is only then.
			pass(max(v.Limits("m-1").Settle, time.Hour))
			found, err := v.Find(t.Context(), mark, began)
			want := 1
			if loss == batches.Before {
				want = 0
			}
			if err != nil || len(found) != want || fake.Made() != 1+want {
				t.Fatalf("%s: found %+v, %v, want %d; %d were made", loss, found, err, want, fake.Made())
			}
			if want == 1 && (found[0].Mark != mark || len(results(t, v, found[0].ID)) != 3) {
				t.Errorf("%s: found %+v", loss, found)
			}
		})
	}
}

// While a batch runs, Anthropic does not tell whose it is: it is found without a mark.
func TestBatchesThatRunAreFound(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, _, _ := start(t, p, batches.Config{})
		began := time.Now()
		made := create(t, v, order(3))
		want := mark
		if p.wire == fakellm.Anthropic {
			want = ""
		}
		found, err := v.Find(t.Context(), mark, began)
		if err != nil || len(found) != 1 || found[0].ID != made.ID || found[0].Mark != want {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// A refusal to make a batch, before or after its file was uploaded, leaves none behind.
func TestRefusedOrders(t *testing.T) {
	for _, upload := range []bool{false, true} {
		each(t, func(t *testing.T, p place) {
			if upload && p.wire == fakellm.Anthropic {
				return // it has no files
			}
			v, fake, _ := start(t, p, batches.Config{Creates: func(_ int, of bool) batches.Loss {
				if of == upload {
					return batches.Refused
				}
				return batches.Kept
			}})
			_, err := v.Create(t.Context(), order(2))
			e, ok := errors.AsType[*llm.Error](err)
			if !ok || batch.Lost(err) || e.Kind != llm.RateLimited || e.RetryAfter != time.Minute || fake.Made() != 0 {
				t.Errorf("error %v, lost: %v, %d batches", err, batch.Lost(err), fake.Made())
			}
		})
	}
}

// nowhere has no connection to anybody.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

func TestWithoutAConnectionThereIsNoBatch(t *testing.T) {
	for _, p := range places {
		v, err := vendors.All().NewBatches(p.vendor, p.config(nowhere{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Create(t.Context(), order(2)); err == nil || batch.Lost(err) {
			t.Errorf("%s: error %v", p.wire, err)
		}
	}
}

// A batch that was just made may not be found for minutes.
func TestNewBatchesMayBeHidden(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, _, _ := start(t, p, batches.Config{Hidden: 4 * time.Minute})
		made := create(t, v, order(1))
		_, err := v.Get(t.Context(), made.ID)
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.NotFound || v.Limits("m-1").Settle < 5*time.Minute {
			t.Errorf("error %v", err)
		}
		pass(4 * time.Minute)
		if now, err := v.Get(t.Context(), made.ID); err != nil || now.Status != batch.Running || now.Expires.Before(time.Now()) {
			t.Errorf("%+v, %v", now, err)
		}
	})
}

// What is done by the time a batch is cancelled, or expires, has results and is charged.
func TestBatchesThatDoNotFinish(t *testing.T) {
	for _, cancel := range []bool{true, false} {
		each(t, func(t *testing.T, p place) {
			v, fake, _ := start(t, p, batches.Config{Model: echo, Takes: func(int) time.Duration { return 96 * time.Hour }})
			made := create(t, v, order(48))
			rest, want := batch.Expired, 12
			if p.wire == fakellm.Gemini {
				want = 0 // its batches expire after two days, without a result
			}
			pass(23 * time.Hour)
			if cancel {
				rest, want = batch.Cancelled, 11
				if err := v.Cancel(t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
				if now, err := v.Get(t.Context(), made.ID); err != nil || now.Status.Over() {
					t.Errorf("%+v, %v, want it to end later", now, err)
				}
			}
			pass(30 * time.Hour)

			now, err := v.Get(t.Context(), made.ID)
			if err != nil || now.Status != batch.Ended || now.Rest != rest && p.wire != fakellm.Anthropic {
				t.Fatalf("%+v, %v; want the rest %v", now, err, rest)
			}
			done, other := 0, 0
			for _, r := range results(t, v, made.ID) {
				switch {
				case r.Outcome == batch.Succeeded:
					done++
				case r.Outcome == rest, p.wire == fakellm.Gemini && cancel && r.Outcome == batch.Cancelled:
					other++
				default:
					t.Errorf("%+v, %v", r, r.Err)
				}
			}
			if done != want || len(fake.Bill()) != want || other != 48-want && (p.wire != fakellm.Gemini || cancel) {
				t.Errorf("%d lines are done and %d not, %d were charged; want %d", done, other, len(fake.Bill()), want)
			}
			if err := v.Cancel(t.Context(), made.ID); err != nil {
				t.Errorf("to cancel a batch that has ended: %v", err)
			}
		})
	}
}

// Limits are kept before the vendor says so: nothing is sent.
func TestLimitsAreKeptUnsent(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, _, sent := start(t, p, batches.Config{})
		limits := v.Limits("m-1")
		o := order(2)
		o.Lines[1].CustomID = strings.Repeat("a", limits.LongestID+1)
		if _, err := v.Create(t.Context(), o); err == nil {
			t.Error("a long id is taken")
		}
		if limits.Lines > 0 {
			many := batch.Order{Mark: mark, Model: "m-1", Lines: slices.Repeat(o.Lines[:1], limits.Lines+1)}
			if _, err := v.Create(t.Context(), many); err == nil {
				t.Error("an order of too many lines is taken")
			}
		}
		if len(sent.paths) > 0 {
			t.Errorf("sent %v", sent.paths)
		}
	})
}

// The sizes of lines are no less than what they take in what is sent.
func TestSizes(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, _, sent := start(t, p, batches.Config{})
		o := rich(t)
		var sizes int64
		for _, line := range o.Lines {
			n, err := v.Size(line)
			if err != nil {
				t.Fatal(err)
			}
			sizes += n
		}
		create(t, v, o)
		longest := 0
		for _, body := range sent.bodies {
			longest = max(longest, len(body))
		}
		frame := 500 // of a form, which is no part of the file
		if int64(longest) > sizes+int64(frame) || int64(longest) < sizes-int64(batch.LongestMark*len(o.Lines)) {
			t.Errorf("the lines have %d bytes by their sizes, and %d were sent", sizes, longest)
		}
	})
}

// A batch that a vendor refuses late says why.
func TestBatchesThatFail(t *testing.T) {
	for code, kind := range map[string]llm.Kind{"token_limit_exceeded": llm.RateLimited, "invalid_json_line": llm.Invalid, "model_not_found": llm.NotFound, "billing_hard_limit_reached": llm.Billing} {
		each(t, func(t *testing.T, p place) {
			if p.wire == fakellm.Anthropic {
				return // its batches do not
			}
			v, fake, _ := start(t, p, batches.Config{Fails: func(int) string { return code }})
			made, err := v.Create(t.Context(), order(2))
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
			now, err := v.Get(t.Context(), made.ID)
			if err != nil || now.Status != batch.Failed || now.Err == nil || !strings.Contains(now.Err.Message, code) || len(fake.Bill()) > 0 {
				t.Fatalf("%+v, %v", now, err)
			}
			kind := kind
			if p.wire == fakellm.Gemini && kind != llm.Billing { // which its words say
				kind = llm.Invalid // as its number says
			}
			if now.Err.Kind != kind || now.Err.Class != kind.Class() {
				t.Errorf("%s: %v, want the kind %v", code, now.Err, kind)
			}
		})
	}
}

// Among hundreds of batches the one with the mark is found, and of those from before none is looked at.
func TestFindLooksThroughPages(t *testing.T) {
	each(t, func(t *testing.T, p place) {
		v, _, sent := start(t, p, batches.Config{Takes: func(int) time.Duration { return time.Minute }, Limits: batches.Limits{Lines: 10, Bytes: 1 << 20, Window: 24 * time.Hour, Kept: 100 * 24 * time.Hour}})
		create(t, v, order(1)) // of an earlier run, with the same mark
		pass(48 * time.Hour)
		began := time.Now()
		made := create(t, v, order(1))
		for i := range 130 {
			pass(time.Second)
			other := order(1)
			other.Mark = fmt.Sprintf("other%07d", i)
			create(t, v, other)
		}
		pass(time.Hour)
		sent.paths = nil
		found, err := v.Find(t.Context(), mark, began)
		if err != nil || len(found) != 1 || found[0].ID != made.ID || found[0].Mark != mark {
			t.Errorf("found %+v, %v", found, err)
		}
		lists := 0
		for _, path := range sent.paths {
			if strings.HasSuffix(path, "/batches") {
				lists++
			}
		}
		if lists != 2 {
			t.Errorf("%d pages were looked at: %v", lists, sent.paths)
		}
	})
}

// A batch that has ended, and whose results are not there yet, may be anybody's: it is neither taken for
// another's nor an error.
func TestResultsThatAreNotThereYet(t *testing.T) {
	gone := true
	away := transport(func(r *http.Request) (*http.Response, error) {
		status, body := 200, `{"data":[{"id":"msgbatch_1","processing_status":"ended","created_at":"2026-11-29T12:00:00Z","request_counts":{"succeeded":1}}],"has_more":false}`
		if strings.HasSuffix(r.URL.Path, "/results") {
			body = `{"custom_id":"anotherOrder-u","result":{"type":"expired"}}`
			if gone {
				status, body = 404, `{"type":"error","error":{"type":"not_found_error","message":"Message Batch msgbatch_1 has no available results."}}`
			}
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
	v, err := vendors.All().NewBatches("anthropic", places[0].config(away))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := v.Find(t.Context(), mark, time.Time{}); err != nil || len(found) != 1 || found[0].Mark != "" {
		t.Errorf("found %+v, %v", found, err)
	}
	gone = false
	if found, err := v.Find(t.Context(), mark, time.Time{}); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v, of another order", found, err)
	}
}

// A vendor of which every third answer fails is searched through all the same: what one search learns of whose batches
// are, the next need not ask.
func TestFindWhereRequestsFail(t *testing.T) {
	const others = 60
	for name, status := range map[string]string{"one that goes on": "in_progress", "one that has ended": "ended"} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			failing := transport(func(r *http.Request) (*http.Response, error) {
				asked++
				if asked%3 == 0 {
					return nil, io.ErrUnexpectedEOF
				}

				var body strings.Builder
				if path, results := strings.CutSuffix(r.URL.Path, "/results"); results {
					fmt.Fprintf(&body, `{"custom_id":"%s-1","result":{"type":"expired"}}`, path[strings.LastIndex(path, "_")+1:])
				} else {
					body.WriteString(`{"data":[`)
					for i := range others {
						fmt.Fprintf(&body, `{"id":"msgbatch_other%07d","processing_status":"ended","created_at":"2026-11-29T12:00:00Z","request_counts":{"expired":1}},`, i)
					}
					fmt.Fprintf(&body, `{"id":"msgbatch_%s","processing_status":%q,"created_at":"2026-11-29T11:00:00Z"}],"has_more":false}`, mark, status)
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body.String())), Request: r}, nil
			})

			v, err := vendors.All().NewBatches("anthropic", places[0].config(failing))
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				found, err := v.Find(t.Context(), mark, time.Time{})
				if err != nil {
					continue
				}
				if len(found) != 1 || found[0].ID != "msgbatch_"+mark || (found[0].Mark == mark) != (status == "ended") {
					t.Errorf("found %+v", found)
				}
				return
			}
			t.Errorf("twenty searches with %d requests have not looked through %d batches", asked, others)
		})
	}
}

// script answers requests one after the other, whatever they ask.
type script []string

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Words of tomorrow are passed over: a state is one that may change, and an outcome an error that may be
// tried again.
func TestUnknownWords(t *testing.T) {
	for _, tt := range []struct {
		at             place
		state, results string
	}{
		{places[0], `{"id":"b","processing_status":"pondering"}`, `{"custom_id":"job7unitA1b2-u","result":{"type":"bored"}}`},
		{places[1], `{"id":"b","status":"pondering","output_file_id":"f"}`, `{"custom_id":"job7unitA1b2-u","response":null,"error":{"code":"bored","message":"no"}}`},
		{places[3], `{"name":"batches/b","metadata":{"state":"BATCH_STATE_PONDERING","output":{"responsesFile":"files/f"}}}`, `{"key":"job7unitA1b2-u","error":{"code":99,"message":"no"}}`},
	} {
		s := script{tt.state}
		v, err := vendors.All().NewBatches(tt.at.vendor, tt.at.config(&s))
		if err != nil {
			t.Fatal(err)
		}
		now, err := v.Get(t.Context(), "b")
		if err != nil || now.Status != batch.Running || !strings.HasSuffix(strings.ToLower(now.Word), "pondering") {
			t.Errorf("%s: %+v, %v", tt.at.wire, now, err)
		}

		s = script{tt.state, tt.results}
		if tt.at.wire == fakellm.Anthropic {
			s = script{tt.results}
		}
		got := results(t, v, "b")
		if r := got["u"]; len(got) != 1 || r.Outcome != batch.Errored || r.Err == nil || r.Err.Class != llm.Server.Class() {
			t.Errorf("%s: %+v", tt.at.wire, got)
		}
	}
}

// A line's error has two envelopes, or, from gateways, one.
func TestEnvelopesOfErrors(t *testing.T) {
	s := script{`{"custom_id":"job7unitA1b2-u","result":{"type":"errored","error":{"type":"error","request_id":"req_1","error":{"type":"overloaded_error","message":"busy"}}}}` + "\n" +
		`{"custom_id":"job7unitA1b2-v","result":{"type":"errored","error":{"type":"overloaded_error","message":"busy"}}}`}
	v, err := vendors.All().NewBatches("anthropic", places[0].config(&s))
	if err != nil {
		t.Fatal(err)
	}
	got := results(t, v, "b")
	for id, request := range map[string]string{"u": "req_1", "v": ""} {
		if r := got[id]; r.Err == nil || r.Err.Kind != llm.Overloaded || r.Err.Message != "busy" || r.Err.RequestID != request {
			t.Errorf("line %q: %+v, %v", id, r, r.Err)
		}
	}
}

// Results that break off are an error, and what came before it stands.
func TestResultsThatBreakOff(t *testing.T) {
	s := script{`{"custom_id":"job7unitA1b2-u","result":{"type":"expired"}}` + "\n" + `{"custom_id":"job7unitA1b2-v","resu`}
	v, err := vendors.All().NewBatches("anthropic", places[0].config(&s))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var last error
	for r, err := range v.Results(t.Context(), "b") {
		if last = err; err == nil && r.CustomID == "u" && r.Outcome == batch.Expired {
			n++
		}
	}
	if e, ok := errors.AsType[*llm.Error](last); n != 1 || !ok || e.Class != llm.CutOff.Class() {
		t.Errorf("%d results, then %v", n, last)
	}
}

// What is called off says why, and makes no batch that was not asked for.
func TestCalledOff(t *testing.T) {
	for _, p := range places {
		why := errors.New("the worker drains")
		ctx, cancel := context.WithCancelCause(t.Context())
		waits := transport(func(r *http.Request) (*http.Response, error) {
			cancel(why)
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})
		v, err := vendors.All().NewBatches(p.vendor, p.config(waits))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Create(ctx, order(1)); !errors.Is(err, why) || batch.Lost(err) {
			t.Errorf("%s: error %v, lost: %v", p.wire, err, batch.Lost(err))
		}
	}
}

// A key is not sent to an address that the server names, unless it is the server's own.
func TestUploadsStayAtTheServer(t *testing.T) {
	away := transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "vendor.test" {
			t.Errorf("%s got %v", r.URL, r.Header)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"X-Goog-Upload-Url": {"http://elsewhere.test/upload"}}, Body: http.NoBody, Request: r}, nil
	})
	v, err := vendors.All().NewBatches("gemini", places[3].config(away))
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Create(t.Context(), order(1))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.NotAPI || batch.Lost(err) {
		t.Errorf("error %v", err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The table says which vendors make batches.
func TestVendorsWithoutBatches(t *testing.T) {
	_, err := vendors.All().NewBatches("ollama", llm.Config{})
	if err == nil || !strings.Contains(err.Error(), "anthropic, openai, gemini, azure and groq") {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"anthropic", "openai", "gemini", "groq"} {
		_, err := vendors.All().NewBatches(name, llm.Config{})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Auth {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
}

// What is posted is JSON whose lines each are a document.
func TestFilesAreLines(t *testing.T) {
	v, _, sent := start(t, places[3], batches.Config{})
	create(t, v, order(3))
	lines := strings.Split(strings.TrimSuffix(sent.bodies[1], "\n"), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q", line)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines", len(lines))
	}
}
