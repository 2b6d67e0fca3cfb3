package decorator_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A script is a provider that does as it is told.
type script struct {
	do func(ctx context.Context, n int) (*llm.Response, error)

	mu    sync.Mutex // guards calls
	calls int
}

func (*script) Name() string          { return "script" }
func (*script) Can() llm.Capabilities { return llm.Capabilities{} }

func (s *script) Complete(ctx context.Context, _ *llm.Request) (*llm.Response, error) {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	return s.do(ctx, n)
}

func failure(kind llm.Kind, after time.Duration) *llm.Error {
	return &llm.Error{Kind: kind, Class: kind.Class(), RetryAfter: after, Status: 429, Message: "scripted"}
}

func done(in, out int64) *llm.Response {
	return &llm.Response{Parts: []llm.Part{{Text: "yes"}}, Stop: llm.StopEnd, Usage: llm.Usage{Input: in, Output: out, Reported: true}}
}

func half() float64 { return 0.5 }

func TestRetryPauses(t *testing.T) {
	for _, c := range []struct {
		name   string
		fails  []*llm.Error // and then it succeeds
		calls  int
		took   time.Duration
		failed bool
	}{
		{"at once", nil, 1, 0, false},
		{"doubling", []*llm.Error{failure(llm.Server, 0), failure(llm.Network, 0), failure(llm.CutOff, 0)}, 4, 250*time.Millisecond + 500*time.Millisecond + time.Second, false},
		{"as it is asked to", []*llm.Error{failure(llm.RateLimited, 7*time.Second)}, 2, 7250 * time.Millisecond, false},
		{"too long a pause", []*llm.Error{failure(llm.RateLimited, 2*time.Minute)}, 1, 0, true},
		{"permanent", []*llm.Error{failure(llm.Refused, 0)}, 1, 0, true},
		{"for ever", []*llm.Error{failure(llm.Server, 0), failure(llm.Server, 0), failure(llm.Server, 0), failure(llm.Server, 0)}, 4, 1750 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: func(_ context.Context, n int) (*llm.Response, error) {
					if n <= len(c.fails) {
						return nil, c.fails[n-1]
					}
					return done(1, 1), nil
				}}
				start := time.Now()
				_, err := (&decorator.Retry{Provider: s, Random: half}).Complete(t.Context(), ask(nil))
				if s.calls != c.calls || time.Since(start) != c.took || (err != nil) != c.failed {
					t.Errorf("%d calls in %v, error %v; want %d in %v, failed %v", s.calls, time.Since(start), err, c.calls, c.took, c.failed)
				}
			})
		})
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		s := &script{do: func(context.Context, int) (*llm.Response, error) {
			return nil, failure(llm.RateLimited, 30*time.Second)
		}}
		start := time.Now()
		_, err := (&decorator.Retry{Provider: s, Random: half}).Complete(ctx, ask(nil))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.RateLimited || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v; want the rate limit after 3s", time.Since(start), err)
		}
	})
}

// A purse remembers what was asked of it.
type purse struct {
	scripted.Calls
	refuse bool
	log    []string
}

func (p *purse) Reserve(_ context.Context, tokens, _ int64) error {
	if p.refuse {
		return fmt.Errorf("no: %w", agent.ErrBudget)
	}
	p.log = append(p.log, fmt.Sprint("reserve ", tokens))
	return nil
}

func (p *purse) Spent(c mapreduce.Charge) {
	p.log = append(p.log, fmt.Sprint("spent ", c.Tokens.In, " ", c.Tokens.Out, " ", c.CostMicros))
}

// The worker's own calls are what these decorators are made for.
var (
	_ decorator.Purse  = agent.Calls(nil)
	_ decorator.Caller = agent.Calls(nil)
)

func TestMeterSettlesEveryCall(t *testing.T) {
	broken := func(status int, u llm.Usage) *llm.Error {
		return &llm.Error{Kind: llm.CutOff, Class: protocol.Retryable, Status: status, Usage: u}
	}
	for _, c := range []struct {
		name  string
		res   *llm.Response
		err   error
		spent string
	}{
		{"answered", done(90, 20), nil, "spent 90 20 380"},
		{"answered from a cache", &llm.Response{Cached: true}, nil, "spent 0 0 0"},
		{"usage not told", &llm.Response{Stop: llm.StopEnd}, nil, "spent 100 500 5200"},
		{"refused before it began", nil, broken(429, llm.Usage{}), "spent 0 0 0"},
		{"no connection", nil, broken(0, llm.Usage{}), "spent 0 0 0"},
		{"broken once it was sent", nil, &llm.Error{Kind: llm.Network, Class: protocol.Retryable, Sent: true}, "spent 100 500 5200"},
		{"refused once it was sent", nil, &llm.Error{Kind: llm.RateLimited, Status: 429, Sent: true}, "spent 0 0 0"},
		{"broken, nothing told", nil, broken(200, llm.Usage{}), "spent 100 500 5200"},
		{"broken, input told", nil, broken(200, llm.Usage{Input: 80, Output: 1}), "spent 80 500 5160"},
		{"broken, all told", nil, broken(200, llm.Usage{Input: 80, Output: 9, Reported: true}), "spent 80 9 250"},
		{"breaker is open", nil, &agent.BreakerError{}, "spent 0 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &purse{}
			s := &script{do: func(context.Context, int) (*llm.Response, error) { return c.res, c.err }}
			m := &decorator.Meter{
				Provider: s, Purse: p, Prices: prices(t, "script: {m-1: {input: 2, output: 10, batch: 50%}}"),
				Count: func(*llm.Request) int64 { return 100 },
			}
			res, err := m.Complete(t.Context(), ask(nil))
			if res != c.res || !errors.Is(err, c.err) {
				t.Errorf("got %v, %v", res, err)
			}
			if diff := cmp.Diff([]string{"reserve 600", c.spent}, p.log); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A thrifty purse knows what caches saved too.
type thrifty struct {
	purse
	saved mapreduce.Savings
}

func (p *thrifty) Saved(s mapreduce.Savings) { p.saved = p.saved.Add(s) }

func TestMeterTellsWhatTheVendorsCacheSaved(t *testing.T) {
	for _, c := range []struct {
		name  string
		usage llm.Usage
		want  mapreduce.Savings
	}{
		{"nothing", llm.Usage{Input: 1000, Output: 10}, mapreduce.Savings{}},
		{"written, which is dearer", llm.Usage{Input: 100, CacheWrite: 1000, CacheWrite1h: 100, Output: 10}, mapreduce.Savings{CacheWrite: 1100, PromptMicros: -700}},
		{"read", llm.Usage{Input: 100, CacheRead: 1000, Output: 10}, mapreduce.Savings{CacheRead: 1000, PromptMicros: 1800}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.usage.Reported = true
			p := &thrifty{}
			s := &script{do: func(context.Context, int) (*llm.Response, error) { return &llm.Response{Usage: c.usage}, nil }}
			m := &decorator.Meter{
				Provider: s, Purse: p, Prices: prices(t, "script: {m-1: {input: 2, output: 10, cache_write: 2.5, cache_write_1h: 4, cache_read: 0.2}}"),
				Count: func(*llm.Request) int64 { return 100 },
			}
			if _, err := m.Complete(t.Context(), ask(nil)); err != nil || p.saved != c.want {
				t.Errorf("saved %+v, want %+v (%v)", p.saved, c.want, err)
			}
		})
	}
}

func TestMeterMakesNoCallWithoutMoney(t *testing.T) {
	s := &script{do: func(context.Context, int) (*llm.Response, error) { return done(1, 1), nil }}
	m := &decorator.Meter{Provider: s, Purse: &purse{refuse: true}, Prices: prices(t, ""), Count: func(*llm.Request) int64 { return 1 }}
	if _, err := m.Complete(t.Context(), ask(nil)); !errors.Is(err, agent.ErrBudget) || s.calls != 0 {
		t.Errorf("error %v after %d calls", err, s.calls)
	}
}

// A caller is a breaker that only watches.
type caller struct {
	scripted.Calls
	name string
	err  error
}

func (c *caller) Call(ctx context.Context, name string, call func(context.Context) error) error {
	c.name, c.err = name, call(ctx)
	return c.err
}

func TestGuardTellsTheClass(t *testing.T) {
	for kind, want := range map[llm.Kind]protocol.FailureClass{
		llm.Auth: protocol.PermanentJob, llm.Refused: protocol.PermanentUnit, llm.Overloaded: protocol.Retryable,
	} {
		c := &caller{}
		s := &script{do: func(context.Context, int) (*llm.Response, error) { return nil, failure(kind, time.Minute) }}
		_, err := (&decorator.Guard{Provider: s, Caller: c}).Complete(t.Context(), ask(nil))
		class, after := agent.Classify(c.err)
		if class != want || after != time.Minute || c.name != "script/m-1" || !errors.Is(err, c.err) {
			t.Errorf("%v: class %d after %v under %q, error %v", kind, class, after, c.name, err)
		}
	}
}

// answers keeps responses in memory.
type answers map[string][]byte

func (a answers) Answer(_ context.Context, key []byte) ([]byte, error) { return a[string(key)], nil }

func (a answers) Share(key, raw []byte) { a[string(key)] = raw }

// A cached provider is a Cache that notes what it saves.
func cached(t *testing.T, p llm.Provider, a decorator.Answers, scope string) (*decorator.Cache, *mapreduce.Savings) {
	saved := new(mapreduce.Savings)
	return &decorator.Cache{
		Provider: p, Answers: a, Origin: decorator.Origin{Scope: scope, Provider: "script"},
		Prices: prices(t, "script: {m-1: {input: 2, output: 10}}"),
		Saved:  func(s mapreduce.Savings) { *saved = saved.Add(s) },
	}, saved
}

// B15: a count is of all of an answer, or none.
func TestWhatIsWrittenIsOfTheWholeAnswer(t *testing.T) {
	turn := func(stop llm.Stop, answer string, written int64) *llm.Response {
		return &llm.Response{Parts: []llm.Part{{Text: answer}}, Answer: []byte(answer), Stop: stop, Written: &written}
	}
	paused, wrong, right := turn(llm.StopPause, "{", 5), turn(llm.StopEnd, `{"total":"x"}`, 7), turn(llm.StopEnd, goodReceipt, 30)
	for _, tt := range []struct {
		name  string
		turns []*llm.Response
		want  int64 // -1: it is not known
	}{
		{"one turn", []*llm.Response{right}, 30},
		{"mended", []*llm.Response{wrong, right}, 30},
		{"paused", []*llm.Response{paused, right}, -1},
		{"mended after a pause", []*llm.Response{paused, wrong, right}, 30},
		{"paused while it was mended", []*llm.Response{wrong, paused, right}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &decorator.Structured{Provider: &script{do: func(_ context.Context, n int) (*llm.Response, error) {
				turn := *tt.turns[n-1]
				return &turn, nil
			}}}
			req := ask(nil)
			req.Schema = schema(t, receipt)
			res, err := s.Complete(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			got := int64(-1)
			if res.Written != nil {
				got = *res.Written
			}
			if got != tt.want {
				t.Errorf("%d tokens, want %d", got, tt.want)
			}
		})
	}
}

// A turn that calls a tool is returned, and what is said beside the call is no answer.
func TestToolsBesideASchema(t *testing.T) {
	free := llm.Tool{Name: "look_up", Schema: schema(t, `{"type":"object","properties":{"filter":{"type":"object","additionalProperties":{"type":"string"}}}}`)}
	req := ask(schema(t, receipt))
	req.Tools = []llm.Tool{free}
	s := &script{do: func(context.Context, int) (*llm.Response, error) {
		call := &llm.ToolCall{ID: "1", Name: "look_up", Input: json.RawMessage(`{"filter":{"a":"b"}}`)}
		return &llm.Response{Parts: []llm.Part{{Text: "Let me see."}, {Call: call}}, Answer: json.RawMessage("Let me see."), Stop: llm.StopTool}, nil
	}}
	res, err := (&decorator.Structured{Provider: s}).Complete(t.Context(), req)
	if err != nil || res.Answer != nil || len(res.Calls()) != 1 || s.calls != 1 {
		t.Errorf("a turn that calls a tool: %+v, %v after %d calls", res, err, s.calls)
	}
}

func TestCacheAsksOnce(t *testing.T) {
	s := &script{do: func(_ context.Context, n int) (*llm.Response, error) {
		res := done(10, int64(n))
		res.Written = new(int64(0))
		return res, nil
	}}
	kept := answers{}
	c, saved := cached(t, s, kept, "tenant")
	for range 2 {
		if _, err := c.Complete(t.Context(), ask(nil)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := c.Complete(t.Context(), ask(nil))
	if err != nil || s.calls != 1 || !res.Cached || res.Usage.Total() != 0 || res.Text() != "yes" {
		t.Errorf("%d calls; %+v, %v", s.calls, res, err)
	}
	if res.Written == nil || *res.Written != 0 { // B15
		t.Error("the vendor's count of the answer is lost, and so is the tree that it gives")
	}
	if want := (mapreduce.Savings{Answers: 2, AnswerMicros: 2 * 30}); *saved != want {
		t.Errorf("saved %+v, want %+v", *saved, want)
	}
	for name, change := range map[string]func(*llm.Request, *decorator.Origin){
		"model":    func(r *llm.Request, _ *decorator.Origin) { r.Model = "m-2" },
		"system":   func(r *llm.Request, _ *decorator.Origin) { r.System += " " },
		"document": func(r *llm.Request, _ *decorator.Origin) { r.Messages = []llm.Message{llm.Say(llm.User, "other")} },
		"schema":   func(r *llm.Request, _ *decorator.Origin) { r.Schema = schema(t, receipt) },
		"bound":    func(r *llm.Request, _ *decorator.Origin) { r.MaxTokens = 501 },
		"tool":     func(r *llm.Request, _ *decorator.Origin) { r.Tools = []llm.Tool{{Name: "t"}} },
		"tenant":   func(_ *llm.Request, o *decorator.Origin) { o.Scope = "other" },
		"provider": func(_ *llm.Request, o *decorator.Origin) { o.Provider = "other" },
		"address":  func(_ *llm.Request, o *decorator.Origin) { o.BaseURL = "http://other" },
		"window":   func(_ *llm.Request, o *decorator.Origin) { o.Window = 4096 },
		"way":      func(_ *llm.Request, o *decorator.Origin) { o.ToolMode = true },
	} {
		other, req, before := *c, ask(nil), s.calls
		change(req, &other.Origin)
		if _, err := other.Complete(t.Context(), req); s.calls != before+1 {
			t.Errorf("another %s is the same to the cache (%v)", name, err)
		}
	}
	same := ask(nil)
	same.Trace, same.Cache, same.Prompt = llm.Trace{Unit: "other"}, llm.OneHour, 99
	if res, err := c.Complete(t.Context(), same); err != nil || !res.Cached {
		t.Errorf("who asks makes a difference: %+v, %v", res, err)
	}
}

func TestCacheKeepsOnlyWholeAnswers(t *testing.T) {
	for name, res := range map[string]*llm.Response{
		"cut off":    {Stop: llm.StopMax, Answer: []byte(goodReceipt)},
		"refused":    {Stop: llm.StopRefusal, Answer: []byte(goodReceipt)},
		"paused":     {Stop: llm.StopPause, Answer: []byte(goodReceipt)},
		"filtered":   {Stop: llm.StopFilter, Answer: []byte(goodReceipt)},
		"unknown":    {Stop: "x:bored", Answer: []byte(goodReceipt)},
		"empty":      {Stop: llm.StopEnd},
		"not JSON":   {Stop: llm.StopEnd, Answer: []byte("{")},
		"misshaped":  {Stop: llm.StopEnd, Answer: []byte(`{"total": "much"}`)},
		"wrong tool": {Stop: llm.StopTool, Parts: []llm.Part{{Call: &llm.ToolCall{Name: "none", Input: []byte("{}")}}}},
	} {
		s := &script{do: func(context.Context, int) (*llm.Response, error) { return res, nil }}
		c, _ := cached(t, s, answers{}, "")
		for range 2 {
			req := ask(nil)
			req.Schema = schema(t, receipt)
			if _, err := c.Complete(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		if s.calls != 2 {
			t.Errorf("an answer that is %s was kept", name)
		}
	}
}

// An answer that other parameters brought is no answer to a question; without parameters, its key is
// that of earlier versions.
func TestParametersAreAPartOfTheQuestion(t *testing.T) {
	keys := make(map[string]string)
	for _, given := range [][2]string{
		{"", ""}, {"effort", "low"}, {"effort", "high"}, {"thinking_budget", "0"}, {"verbosity", "low"}, {"temperature", "0"}, {"temperature", "1"}, {"top_p", "1"}, {"seed", "0"}, {"seed", "1"}, {"stop", "END"},
	} {
		req := ask(nil)
		if given[0] != "" {
			if err := req.Parameters.Put(parameters.Name(given[0]), given[1]); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := decorator.AnswerKey(decorator.Origin{Provider: "p"}, req)
		if err != nil {
			t.Fatal(err)
		}
		key := hex.EncodeToString(raw)
		if other, known := keys[key]; known {
			t.Errorf("%v has the key of %s", given, other)
		}
		keys[key] = given[0] + " " + given[1]
		req.CacheKey = "of a job"
		if again, err := decorator.AnswerKey(decorator.Origin{Provider: "p"}, req); err != nil || !bytes.Equal(again, raw) {
			t.Errorf("%v: what a vendor is told of its cache changes the key: %v", given, err)
		}
	}
}

// What a model may think is reserved before a call, and charged if nobody says what it took.
func TestThinkingIsReserved(t *testing.T) {
	for want, set := range map[int64]parameters.Set{
		510: {Effort: "none"}, 510 + 2000: {Thinking: new(int64(2000))}, 510 + 16384: {Effort: "high"},
	} {
		p := new(purse)
		s := &script{do: func(context.Context, int) (*llm.Response, error) { return &llm.Response{Stop: llm.StopEnd}, nil }}
		m := &decorator.Meter{Provider: s, Purse: p, Prices: new(llm.Prices), Count: func(*llm.Request) int64 { return 10 }}
		req := ask(nil)
		req.MaxTokens, req.Parameters = 500, set
		_, err := m.Complete(t.Context(), req)
		if log := []string{fmt.Sprint("reserve ", want), fmt.Sprintf("spent 10 %d 0", want-10)}; err != nil || !slices.Equal(p.log, log) {
			t.Errorf("%v: %v, %q; want %q", set, err, p.log, log)
		}
	}
}

// Whatever is found in place of an answer, it is never given.
func TestCacheDoubtsWhatItFinds(t *testing.T) {
	kept := answers{}
	s := &script{do: func(context.Context, int) (*llm.Response, error) {
		return &llm.Response{Stop: llm.StopEnd, Answer: []byte(goodReceipt), Usage: llm.Usage{Reported: true}}, nil
	}}
	c, _ := cached(t, s, kept, "")
	one, two := ask(nil), ask(nil)
	one.Schema, two.Schema = schema(t, receipt), schema(t, receipt)
	two.System = "another question"
	if _, err := c.Complete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	var good []byte
	for _, raw := range kept {
		good = raw
	}
	key, err := decorator.AnswerKey(c.Origin, two)
	if err != nil {
		t.Fatal(err)
	}
	own := func(response string) []byte {
		raw, err := json.Marshal(map[string]any{"key": key, "response": json.RawMessage(response)})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, raw := range map[string][]byte{
		"of another question": good,
		"cut":                 good[:len(good)/2],
		"nothing":             {},
		"null":                own("null"),
		"misshaped":           own(`{"stop": "end", "answer": {"total": "much"}, "usage": {}}`),
		"refused":             own(`{"stop": "refusal", "answer": ` + goodReceipt + `, "usage": {}}`),
	} {
		kept[string(key)] = raw
		before := s.calls
		if res, err := c.Complete(t.Context(), two); err != nil || res.Cached || s.calls != before+1 {
			t.Errorf("%s: %+v after %d calls (%v)", name, res, s.calls-before, err)
		}
	}
	if res, err := c.Complete(t.Context(), two); err != nil || !res.Cached {
		t.Errorf("what was asked anew was not kept: %+v, %v", res, err)
	}
}

// many makes n calls at once and returns when the last has ended.
func many(t *testing.T, n int, p llm.Provider) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if _, err := p.Complete(t.Context(), ask(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestLimitKeepsRates(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates decorator.Rates
		took  time.Duration
	}{
		{"none", decorator.Rates{}, time.Second},
		{"at once", decorator.Rates{Concurrent: 5}, 6 * time.Second},
		{"requests", decorator.Rates{Requests: 10}, 121 * time.Second},
		{"input", decorator.Rates{Input: 1500}, 61 * time.Second},
		{"output, of which less comes than was reckoned", decorator.Rates{Output: 2000}, 43 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				flight, peak := 0, 0
				s := &script{do: func(context.Context, int) (*llm.Response, error) {
					mu.Lock()
					flight++
					peak = max(peak, flight)
					mu.Unlock()
					time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
					mu.Lock()
					flight--
					mu.Unlock()
					return done(100, 100), nil
				}}
				l := &decorator.Limit{
					Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return c.rates }),
					Count: func(*llm.Request) int64 { return 100 },
				}
				start := time.Now()
				many(t, 30, l)
				if took := time.Since(start).Truncate(time.Second); took != c.took {
					t.Errorf("30 calls took %v, want %v", took, c.took)
				}
				if most := c.rates.Concurrent; most > 0 && peak != most {
					t.Errorf("%d calls at once, want %d", peak, most)
				}
			})
		})
	}
}

func TestLimitFreezesTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex // two of the calls begin at one time
		var times []time.Duration
		s := &script{do: func(_ context.Context, n int) (*llm.Response, error) {
			mu.Lock()
			times = append(times, time.Since(start))
			mu.Unlock()
			if n == 1 {
				return nil, failure(llm.RateLimited, 20*time.Second)
			}
			return done(1, 1), nil
		}}
		l := &decorator.Limit{Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} }), Count: func(*llm.Request) int64 { return 1 }}
		var all sync.WaitGroup
		all.Go(func() { many(t, 1, l) }) // it is refused, and made again
		synctest.Wait()
		many(t, 1, l)
		all.Wait()
		if diff := cmp.Diff([]time.Duration{0, 20 * time.Second, 20 * time.Second}, times); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// A refusal in mid-stream was paid for: whoever pays has to hear of it.
func TestLimitDoesNotRepeatWhatWasPaid(t *testing.T) {
	s := &script{do: func(context.Context, int) (*llm.Response, error) {
		e := failure(llm.RateLimited, time.Second)
		e.Status, e.Usage = 200, llm.Usage{Input: 80}
		return nil, e
	}}
	l := &decorator.Limit{Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} }), Count: func(*llm.Request) int64 { return 1 }}
	_, err := l.Complete(t.Context(), ask(nil))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Usage.Input != 80 || s.calls != 1 {
		t.Errorf("error %v after %d calls, want the first", err, s.calls)
	}
}

func TestLimitLearnsFromHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(_ context.Context, n int) (*llm.Response, error) {
			res := done(1, 1)
			if n == 1 {
				res.Limits.Requests = llm.Bucket{Known: true, Limit: 6, Remaining: 0}
			}
			return res, nil
		}}
		l := &decorator.Limit{Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{} }), Count: func(*llm.Request) int64 { return 1 }}
		start := time.Now()
		for range 3 {
			if _, err := l.Complete(t.Context(), ask(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start).Truncate(time.Second); took != 20*time.Second {
			t.Errorf("3 calls at 6 a minute, of which none were left after the first, took %v; want 20s", took)
		}
	})
}

func TestLimitHalvesWithoutHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		flight, peak := 0, 0
		s := &script{do: func(_ context.Context, n int) (*llm.Response, error) {
			if n == 1 {
				return nil, failure(llm.Overloaded, 0)
			}
			mu.Lock()
			flight++
			peak = max(peak, flight)
			mu.Unlock()
			time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble
			mu.Lock()
			flight--
			mu.Unlock()
			return done(1, 1), nil
		}}
		l := &decorator.Limit{
			Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{Concurrent: 16} }),
			Count: func(*llm.Request) int64 { return 1 },
		}
		if _, err := l.Complete(t.Context(), ask(nil)); err == nil {
			t.Fatal("no error")
		}
		many(t, 8, l)
		if peak != 8 {
			t.Errorf("%d calls at once after the refusal, want 8", peak)
		}
		many(t, 100, l)
		if peak <= 8 || peak > 16 {
			t.Errorf("%d calls at once after 100 successes, want more than 8 and at most 16", peak)
		}
	})
}

func TestLimitLetsGoOfACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := &script{do: func(context.Context, int) (*llm.Response, error) {
			<-hold
			return done(1, 1), nil
		}}
		l := &decorator.Limit{
			Provider: s, Gates: decorator.NewGates(func(string) decorator.Rates { return decorator.Rates{Concurrent: 1} }),
			Count: func(*llm.Request) int64 { return 1 },
		}
		var all sync.WaitGroup
		all.Go(func() { many(t, 1, l) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Complete(ctx, ask(nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
		close(hold)
		all.Wait()
		if _, err := l.Complete(t.Context(), ask(nil)); err != nil {
			t.Errorf("the gate stays shut: %v", err)
		}
	})
}
