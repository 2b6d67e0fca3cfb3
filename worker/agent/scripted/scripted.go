// Package scripted is an agent for tests that does what a job's variables say:
// how long it thinks, what it spends, how often it fails, and in which way. It
// runs the units of all steps, and calls no model. Its outputs fit the schema of
// their stage. Beside it are Calls to give to any agent in place of a worker's, and a Keeper
// of evidence.
//
// Its behaviour is decided by the seed, the unit and the attempt alone, and its
// output by the seed, the unit and its inputs, so whichever worker runs a unit,
// and however often, the result is the same. The one exception is
// script.breaker, which counts the calls of this agent.
//
// It may import nothing of the project but the vocabulary, package agent, and what
// outputs are made with.
package scripted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/worker/agent"
)

// Errors that a script makes units fail with.
var (
	ErrScripted  = errors.New("scripted failure")
	ErrPermanent = errors.New("scripted permanent failure")
	ErrProvider  = errors.New("scripted failure of the provider")
)

// An Agent runs units by script. Its zero value is ready.
type Agent struct {
	// Encode makes the output of a payload. Defaults to one without records, whose
	// reason is the payload as JSON.
	Encode func(task *agent.Task, p Payload) []byte
	// Ledger records every call, before and after. Defaults to none.
	Ledger Ledger
	// Release ends units that hang. Defaults to never.
	Release <-chan struct{}
	// Exit ends the process, for units that do. Defaults to os.Exit.
	Exit func(code int)

	calls atomic.Int64 // made by this agent, for script.breaker
}

var _ agent.Agent = (*Agent)(nil)

// A Payload is what a unit comes to.
type Payload struct {
	Unit   mapreduce.UnitID `json:"unit"`
	Level  int              `json:"level"`
	Hash   string           `json:"hash"`             // of the seed, the unit and its inputs; hex
	Quote  string           `json:"quote,omitempty"`  // from the core of its text
	Wrong  bool             `json:"wrong,omitempty"`  // Quote does not stand in the text
	Inputs int              `json:"inputs,omitempty"` // of a reduce, failed ones excepted
	Filler string           `json:"filler,omitempty"`
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	s, err := parseScript(task.Spec.Vars)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	r := &run{agent: a, script: s, task: task, calls: calls}
	r.rand = newRand(s.seed, task.Unit, task.Attempt)
	r.payload = r.makePayload()
	return r.run(ctx)
}

// newRand returns the randomness of one attempt; attempt 0 stands for the unit.
func newRand(seed int64, unit mapreduce.UnitID, attempt int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%d", unit, attempt)
	return rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
}

// A run is one attempt.
type run struct {
	agent   *Agent
	script  script
	task    *agent.Task
	calls   agent.Calls
	rand    *rand.Rand // of the attempt
	payload Payload
	state   state
}

func (r *run) run(ctx context.Context) (*agent.Result, error) {
	how := r.chooseBehaviour()
	r.state = r.resumedState()
	if err := r.checkAnswer(); err != nil {
		return nil, err
	}

	done := r.state.Calls
	for i := done; i < r.script.calls; i++ {
		if err := r.parkUnit(ctx, min(i, r.script.parks)); err != nil {
			return nil, err
		}
		// The unit misbehaves half way, so that some of its calls were made.
		if i == r.script.calls/2 {
			if err := r.runMisbehaviour(how); err != nil {
				return nil, err
			}
		}
		if err := r.makeCall(ctx, i); err != nil {
			return nil, err
		}
	}

	// An attempt that begins behind the middle misbehaves at its end.
	if r.script.calls == 0 || done > r.script.calls/2 {
		if err := r.runMisbehaviour(how); err != nil {
			return nil, err
		}
	}

	if err := r.parkUnit(ctx, r.script.parks); err != nil {
		return nil, err
	}

	if how != huge && !r.task.MakesRecords() && r.task.Kind != mapreduce.KindParse {
		return r.valueResult(ctx, how)
	}
	return r.makeResult(how), nil
}

// resumedState returns how far earlier attempts have come, by the journal.
func (r *run) resumedState() state {
	return state{Calls: r.countKnown(r.callKey), Parks: r.countKnown(r.parkKey)}
}

// countKnown returns how many of the first keys the journal has.
func (r *run) countKnown(key func(int) string) (n int) {
	for {
		if _, known := r.calls.Recall(key(n)); !known {
			return n
		}
		n++
	}
}

// A state is what attempts have done so far.
type state struct {
	Calls int
	Parks int
}

// callKey and parkKey are under what the journal has that a call was made, and that the
// unit was parked: both counted from 0.
func (r *run) callKey(i int) string { return fmt.Sprintf("call %d for %s", i, r.payload.Hash) }
func (r *run) parkKey(i int) string { return fmt.Sprintf("park %d of %s", i, r.payload.Hash) }

// checkAnswer parks the unit again if the script has it wait for an answer that has not
// come yet.
func (r *run) checkAnswer() error {
	if r.script.answer == "" || r.state.Parks == 0 {
		return nil
	}

	w := r.task.WakeCall
	if w == nil || w.Handle != r.parkHandle() {
		return r.parkError()
	}

	if string(w.Answer) != r.script.answer {
		return agent.Permanent(fmt.Errorf("the answer to %s is %.64q: %w", w.Handle, w.Answer, ErrScripted))
	}
	return nil
}

// parkUnit parks the unit, unless attempts at it have done so n times.
func (r *run) parkUnit(ctx context.Context, n int) error {
	if r.state.Parks >= n {
		return nil
	}
	_, err := r.calls.Do(ctx, r.parkKey(r.state.Parks), func(context.Context) ([]byte, error) { return nil, nil })
	if err != nil {
		return err
	}
	r.state.Parks++
	return r.parkError()
}

func (r *run) parkError() error {
	return agent.Park(r.parkHandle(), r.script.parkFor, fmt.Sprintf("parked %d of %d times", r.state.Parks, r.script.parks))
}

// parkHandle is what the unit is parked under the latest time.
func (r *run) parkHandle() string { return fmt.Sprintf("%s-%d", r.payload.Hash[:8], r.state.Parks) }

// captureCall records call i for the trace.
func (r *run) captureCall(i int, start time.Time, spent mapreduce.Tokens, err error) {
	if r.calls.Captures() == mapreduce.CaptureOff {
		return
	}

	c := mapreduce.Call{
		Name: "scripted", Latency: time.Since(start), Tokens: spent, CostMicros: r.script.cost,
		Prompt: r.callKey(i), Answer: r.payload.Filler,
	}

	if err != nil {
		c.Error = err.Error()
	}
	r.calls.Record(c)
}

// makeCall makes call i, once in all attempts, and says how far the unit is.
func (r *run) makeCall(ctx context.Context, i int) error {
	_, err := r.calls.Do(ctx, r.callKey(i), func(ctx context.Context) ([]byte, error) { return nil, r.callModel(ctx, i) })
	if err != nil {
		return err
	}
	r.calls.Progress(fmt.Sprintf("call %d of %d", i+1, r.script.calls))
	return nil
}

// callModel does as a call of a model does: it reserves, waits and spends.
func (r *run) callModel(ctx context.Context, i int) error {
	s := r.script
	if err := r.calls.Reserve(ctx, s.tokensIn+s.tokensOut, s.cost); err != nil {
		return err
	}

	var in, out int64
	start := time.Now()
	err := r.calls.Call(ctx, "", func(ctx context.Context) error {
		entry := Entry{Job: r.task.Job, Unit: r.task.Unit, Attempt: r.task.Attempt, Call: i, Hash: r.payload.Hash}
		if err := r.agent.recordEntry(entry); err != nil {
			return err
		}
		if err := clock.Sleep(ctx, s.latency.drawDuration(r.rand)); err != nil {
			return err
		}
		if n := r.agent.calls.Add(1); n <= int64(s.breaker) {
			return ErrProvider
		}
		in, out = s.tokensIn, s.tokensOut
		entry.End = true
		return r.agent.recordEntry(entry)
	})

	// Each Reserve is followed by one Spent, whatever came of the call.
	r.calls.Spent(mapreduce.Charge{Model: "scripted", Tier: "standard", Calls: 1, Tokens: mapreduce.Tokens{In: in, Out: out}, CostMicros: s.cost})
	r.captureCall(i, start, mapreduce.Tokens{In: in, Out: out}, err)
	return err
}

// chooseBehaviour decides how the attempt ends. A unit's own poison goes before the
// rates.
func (r *run) chooseBehaviour() string {
	if p, ok := r.script.poison[string(r.task.Unit)]; ok {
		return p
	}

	// A permanent failure is one of the unit, and the same for each attempt.
	s := r.script
	if of := newRand(s.seed, r.task.Unit, 0); of.Float64() < s.rates[permanent] {
		return permanent
	}

	x := r.rand.Float64()
	for _, how := range []string{fail, panics, hang, exit, goexit} {
		if x -= s.rates[how]; x < 0 {
			return how
		}
	}
	return ""
}

// makePayload makes the payload, which no attempt changes.
func (r *run) makePayload() Payload {
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00%d\x00", r.script.seed, r.task.Unit, r.task.Level)
	p := Payload{Unit: r.task.Unit, Level: r.task.Level}

	if t := r.task.Text; t != nil {
		h.Write(t.Content)
		p.Quote = firstLine(t)
	}
	if len(r.task.Item) > 0 {
		fmt.Fprintf(h, "item\x00%d\x00", len(r.task.Item))
		h.Write(r.task.Item)
	}

	for _, in := range r.task.Inputs {
		fmt.Fprintf(h, "%s\x00%t\x00%d\x00", in.Unit, in.Failed, len(in.Data))
		h.Write(in.Data)
		if !in.Failed {
			p.Inputs++
		}
	}

	p.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	of := newRand(r.script.seed, r.task.Unit, 0)
	of.Float64() // that of script.permanent_rate
	if of.Float64() < r.script.rates[wrongQuote] {
		p.Quote, p.Wrong = "what no document says "+p.Hash, true
	}

	p.Filler = r.outputFiller()
	return p
}

// firstLine returns the first line of a text's core that is not blank.
func firstLine(t *protocol.Text) string {
	core := t.Content
	if t.CoreEnd > t.CoreStart && t.CoreStart >= 0 && t.CoreEnd <= len(core) {
		core = core[t.CoreStart:t.CoreEnd]
	}
	for line := range strings.Lines(string(core)) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// outputFiller makes the output as long as the script wants it at this level.
func (r *run) outputFiller() string {
	n := float64(r.script.outputBytes) * math.Pow(r.script.growth, float64(r.task.Level))
	return strings.Repeat("x", int(min(n, maxOutputBytes)))
}

func (r *run) makeResult(how string) *agent.Result {
	encode := r.agent.Encode
	if encode == nil {
		encode = encodeJSON
	}

	p := r.payload
	if how == huge {
		p.Filler = strings.Repeat("x", hugeBytes)
	}

	out := encode(r.task, p)
	size := len(out)
	if r.agent.Encode == nil {
		size = len(payloadText(p)) // of the text, not of what it is wrapped in
	}
	res := &agent.Result{Output: out, Size: int64(size+3) / 4, Confidence: 0.5 + float64(len(p.Unit)%50)/100}

	if how == garbage {
		res.Errors = []string{notText}
	}
	return res
}

// valueResult is the result of a unit that comes to a value.
func (r *run) valueResult(ctx context.Context, how string) (*agent.Result, error) {
	res, err := r.makeValue(ctx)
	if err == nil && how == garbage {
		res.Errors = []string{notText}
	}
	return res, err
}

// payloadText is a payload as JSON.
func payloadText(p Payload) string {
	out, err := json.Marshal(p)
	if err != nil { // of strings and numbers
		panic(err)
	}
	return string(out)
}

// encodeJSON makes the output that Encode defaults to. A parsed document is text
// alone, without places.
func encodeJSON(task *agent.Task, p Payload) []byte {
	if task.Kind == mapreduce.KindParse {
		out, err := (&payload.Parsed{Format: "scripted", Text: []byte(payloadText(p))}).Encode()
		if err != nil { // of a string
			panic(err)
		}
		return out
	}

	out, err := (&output.Output{Reason: payloadText(p)}).Encode()
	if err != nil { // of a string
		panic(err)
	}
	return out
}

// PayloadOf returns the payload of an output that Encode's default made.
func PayloadOf(data []byte) (p Payload, err error) {
	out, err := output.Decode(data)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(out.Reason), &p)
}

func (a *Agent) recordEntry(e Entry) error {
	if a.Ledger == nil {
		return nil
	}
	return a.Ledger.Record(e)
}

// notText is what breaks careless stores: NUL and bytes that are not UTF-8.
const notText = "not \x00 text \xff\xfe"

// runMisbehaviour does what is not an honest result.
func (r *run) runMisbehaviour(how string) error {
	switch how {
	case fail:
		return ErrScripted
	case permanent:
		return agent.Permanent(ErrPermanent)
	case panics:
		panic("scripted panic: " + notText)
	case hang:
		<-r.agent.Release // whatever the context says
		return ErrScripted
	case exit:
		r.agent.exitProcess(func() { os.Exit(1) })
	case kill:
		r.agent.exitProcess(killSelf)
	case memory:
		r.agent.exitProcess(exhaustMemory)
	case goexit:
		runtime.Goexit()
	case garbled:
		return fmt.Errorf("%s%w", strings.Repeat(notText, 1000), io.ErrUnexpectedEOF)
	}

	return nil
}

func (a *Agent) exitProcess(how func()) {
	if a.Exit != nil {
		a.Exit(1)
		return
	}
	how()
}

// killSelf ends this process as the system does, or a user: by a signal that cannot be caught.
func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // of one's own process it cannot fail
	select {}
}

// exhaustMemory ends this process for want of memory. It gets no more than it has, so that
// the machine does not suffer.
func exhaustMemory() {
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1, Max: 1}); err != nil {
		panic(err)
	}
	for held := [][]byte{}; ; {
		held = append(held, make([]byte, 64<<20))
	}
}
