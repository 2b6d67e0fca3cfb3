package oracle_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/anthropic"
	"github.com/coditect/mapreduce/worker/llm/internal/wire"
	"github.com/coditect/mapreduce/worker/llm/manners"
	"github.com/coditect/mapreduce/worker/llm/openai"
)

const (
	key  = "sk-test-0123456789abcdefghij"
	base = "http://vendor.test/below/"
)

// newProvider has our providers by their names. The table of all vendors would bring with it what
// others of them need.
var newProvider = map[string]func(llm.Config) (llm.Provider, error){"anthropic": anthropic.New, "openai": openai.New}

// A sent is what goes over the wire, as far as it matters.
type sent struct {
	Method, Address string
	Header          map[string]string // of matter
	Body            any               // decoded
}

// matter are the headers that tell a vendor something.
var matter = []string{"Content-Type", "Authorization", "X-Api-Key", "Anthropic-Version", "Anthropic-Beta", "OpenAI-Organization", "OpenAI-Project"}

// errNotAsked is what becomes of all requests.
var errNotAsked = errors.New("nobody is asked")

// A recorder keeps the last request, and sends none.
type recorder struct{ last sent }

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.last = sent{Method: req.Method, Address: req.URL.String(), Header: map[string]string{}}
	for _, name := range matter {
		if v := req.Header.Get(name); v != "" {
			r.last.Header[name] = v
		}
	}
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber()
	if err := numbers.Decode(&r.last.Body); err != nil {
		return nil, err
	}
	return nil, errNotAsked
}

// A manneredProvider is a provider of ours that can be told the manners of its server.
type manneredProvider interface {
	wire.Asker
	BeginCall(context.Context, *llm.Request) *wire.Call
}

// sendOurs returns what our provider sends by some manners.
func sendOurs(t *rapid.T, vendor, at string, req *llm.Request, with manners.Manners) sent {
	r := new(recorder)
	p, err := newProvider[vendor](llm.Config{Key: llm.NewKey(key), BaseURL: at, Transport: r})
	if err != nil {
		t.Fatal(err)
	}
	ours := p.(manneredProvider)
	c := ours.BeginCall(context.Background(), req)
	defer c.EndCall()
	if _, err := ours.Ask(c, req, with); !errors.Is(err, errNotAsked) {
		t.Fatal(err)
	}
	return r.last
}

func compare(t *rapid.T, ours, theirs sent) {
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Fatalf("requests differ (-theirs +ours):\n%s", diff)
	}
}

func TestRequestsToAnthropic(t *testing.T) {
	opaque := []string{
		`{"type":"thinking","thinking":"Hm, <so>.","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`,
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"gardenia"}}`,
	}
	rapid.Check(t, func(t *rapid.T) {
		req := drawRequest(t, opaque)
		drawParameters(t, req, parameters.Effort, parameters.Thinking, parameters.Stop, parameters.Tier)
		with := drawManners(t, manners.BySchema, manners.ByTool, manners.ByPrompt)
		compare(t, sendOurs(t, "anthropic", base, req, with), sendByAnthropic(t, base, req, with))
	})
}

func TestCountsOfAnthropic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := drawRequest(t, nil)
		with := *plain
		req := &with
		drawParameters(t, req, parameters.Names()...) // which are of an answer, and none is asked for
		r := new(recorder)
		p, err := newProvider["anthropic"](llm.Config{Key: llm.NewKey(key), BaseURL: base, Transport: r})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.(llm.Counter).Count(context.Background(), req); !errors.Is(err, errNotAsked) {
			t.Fatal(err)
		}
		compare(t, r.last, countByAnthropic(t, base, plain))
	})
}

func TestRequestsToOpenAI(t *testing.T) {
	opaque := []string{`{"reasoning_content":"Hm, <so>."}`, `{"reasoning":"金"}`}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.SampledFrom([]string{base, "", "https://api.openai.com/v1"}).Draw(t, "base")
		req := drawRequest(t, opaque)
		drawParameters(t, req, parameters.Effort, parameters.Verbosity, parameters.Temperature, parameters.TopP, parameters.Seed, parameters.Stop, parameters.Tier)
		with := drawManners(t, manners.BySchema, manners.ByTool, manners.ByObject, manners.ByPrompt)
		compare(t, sendOurs(t, "openai", at, req, with), sendByOpenAI(t, at, req, with))
	})
}

// dialectOf returns the dialect of a vendor's schemas by some manners.
func dialectOf(vendor string, with manners.Manners) llm.Dialect {
	p, err := newProvider[vendor](llm.Config{Key: llm.NewKey(key)})
	if err != nil {
		panic(err) // there is a key
	}
	d := p.Can().Dialect
	if with.Plain {
		d.Keywords = nil
	}
	return d
}
