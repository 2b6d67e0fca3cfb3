package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A meter is an agent.Calls that grants everything and remembers it.
type meter struct {
	scripted.Calls
	reserved, spent int64
	calls           int
}

var _ agent.Calls = (*meter)(nil)

func (m *meter) Reserve(_ context.Context, tokens, _ int64) error {
	m.reserved += tokens
	return nil
}
func (m *meter) Spent(c mapreduce.Charge) { m.spent += c.Tokens.Total() }
func (m *meter) Call(ctx context.Context, _ string, call func(context.Context) error) error {
	m.calls++
	return call(ctx)
}

// kept are the calls of an attempt whose journal is kept.
type kept struct {
	*meter
	*journal.Journal
}

// An unstored is the owner of a journal whose entries nobody stores.
type unstored struct{}

func (unstored) Offer(bool)                         {}
func (unstored) Strayed(string, journal.Entry, int) {}
func (unstored) Forgot(string, error)               {}

// open returns the journal of a unit of which some is stored.
func open(t *testing.T, stored []byte, attempt int) *journal.Journal {
	t.Helper()
	entries, err := journal.Split(stored)
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(stored, len(entries), attempt, unstored{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func taskOf(unit mapreduce.UnitID, attempt int, vars map[string]string) *agent.Task {
	text := "\n  first line \nsecond line"
	return &agent.Task{
		Assignment: protocol.Assignment{
			Job: "mr_20260101_abcdef", Unit: unit, Attempt: attempt,
			Text: &protocol.Text{Content: []byte(text), CoreEnd: len(text)},
		},
		Spec: &mapreduce.JobSpec{Vars: vars},
	}
}

func TestBadScripts(t *testing.T) {
	for name, tc := range map[string]struct{ key, value string }{
		"unknown":       {"script.colour", "red"},
		"not a number":  {"script.calls", "many"},
		"negative":      {"script.tokens_in", "-1"},
		"rate":          {"script.fail_rate", "1.5"},
		"rate NaN":      {"script.fail_rate", "NaN"},
		"no such rate":  {"script.huge_rate", "0.5"},
		"latency":       {"script.latency", "soon"},
		"no sigma":      {"script.latency", "lognormal:1s"},
		"no such doing": {"script.poison.u", "vanish"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := new(scripted.Agent).Run(t.Context(), taskOf("u", 1, map[string]string{tc.key: tc.value}), &meter{})
			if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentJob || !strings.Contains(err.Error(), tc.key) {
				t.Errorf("Run = %v of class %d; want an error for the job that names %s", err, class, tc.key)
			}
		})
	}
}

func TestDoings(t *testing.T) {
	exited := errors.New("exited")
	for doing, want := range map[string]error{
		"fail": scripted.ErrScripted, "permanent": scripted.ErrPermanent, "hang": scripted.ErrScripted, "exit": exited,
		"huge": nil, "nul": nil,
	} {
		t.Run(doing, func(t *testing.T) {
			release := make(chan struct{})
			close(release)
			a := &scripted.Agent{Release: release, Exit: func(int) { panic(exited) }}
			res, err := runRecovered(t.Context(), a, taskOf("u", 3, map[string]string{"script.poison.u": doing}))
			if !errors.Is(err, want) {
				t.Errorf("Run = %v; want %v", err, want)
			}
			if doing == "huge" && len(res.Output) < 65<<20 {
				t.Errorf("output of %d bytes", len(res.Output))
			}
			if doing == "nul" && !strings.Contains(res.Errors[0], "\x00") {
				t.Errorf("soft errors = %q", res.Errors)
			}
		})
	}
}

func runRecovered(ctx context.Context, a *scripted.Agent, task *agent.Task) (res *agent.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	return a.Run(ctx, task, &meter{})
}

// Failures are drawn anew for each attempt, permanent ones for the unit, and
// the output is the same whatever attempt makes it.
func TestDeterminism(t *testing.T) {
	vars := map[string]string{
		"script.seed": "42", "script.fail_rate": "0.3", "script.permanent_rate": "0.2", "script.wrong_quote_rate": "0.5",
		"script.output_bytes": "10",
	}
	for i := range 50 {
		unit := mapreduce.UnitID(fmt.Sprint(i))
		outputs := map[string]bool{}
		permanent := 0
		for attempt := 1; attempt <= 10; attempt++ {
			res, err := new(scripted.Agent).Run(t.Context(), taskOf(unit, attempt, vars), &meter{})
			again, errAgain := new(scripted.Agent).Run(t.Context(), taskOf(unit, attempt, vars), &meter{})
			if diff := cmp.Diff(res, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
				t.Errorf("unit %d attempt %d: second run differs: %v, %v\n%s", i, attempt, err, errAgain, diff)
			}
			if errors.Is(err, scripted.ErrPermanent) {
				permanent++
			}
			if err == nil {
				outputs[string(res.Output)] = true
			}
		}
		if permanent != 0 && permanent != 10 || permanent == 0 && len(outputs) != 1 {
			t.Errorf("unit %d: %d of 10 attempts failed for good, %d different outputs", i, permanent, len(outputs))
		}
	}
}

func TestLatency(t *testing.T) {
	for name, tc := range map[string]struct {
		latency string
		exact   bool
	}{
		"fixed":      {"200ms", true},
		"log-normal": {"lognormal:200ms,0.8", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 2000
				begin := time.Now()
				for i := range n {
					task := taskOf(mapreduce.UnitID(fmt.Sprint(i)), 1, map[string]string{"script.latency": tc.latency})
					if _, err := new(scripted.Agent).Run(t.Context(), task, &meter{}); err != nil {
						t.Fatal(err)
					}
				}
				mean := time.Since(begin).Seconds() / n
				if tc.exact && mean != 0.2 || math.Abs(mean-0.2) > 0.02 {
					t.Errorf("mean latency = %vs; want 0.2", mean)
				}
			})
		})
	}
}

// An attempt that is given a state makes only the calls that are left.
func TestResume(t *testing.T) {
	vars := map[string]string{"script.calls": "5", "script.tokens_in": "10", "script.tokens_out": "1"}
	first := kept{&meter{}, open(t, nil, 1)}
	want, err := new(scripted.Agent).Run(t.Context(), taskOf("u", 1, vars), first)
	if err != nil {
		t.Fatal(err)
	}
	_, stored, n := first.Next(3)
	task := taskOf("u", 2, vars)
	task.Journal, task.JournalEntries = stored, n
	second := kept{&meter{}, open(t, stored, 2)}
	got, err := new(scripted.Agent).Run(t.Context(), task, second)
	if err != nil {
		t.Fatal(err)
	}
	if first.calls != 5 || second.calls != 2 || second.spent != 22 || second.reserved != 22 {
		t.Errorf("calls = %d, then %d for %d tokens; want 5, then 2 for 22", first.calls, second.calls, second.spent)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result after a resume (-want +got):\n%s", diff)
	}
}

func TestBreakerScript(t *testing.T) {
	a := &scripted.Agent{}
	for i := range 5 {
		_, err := a.Run(t.Context(), taskOf("u", i+1, map[string]string{"script.breaker": "3"}), &meter{})
		if failed := errors.Is(err, scripted.ErrProvider); failed != (i < 3) {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
}

func TestFileLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	var want []scripted.Entry
	for i := range 2 { // as two processes would
		l, err := scripted.OpenFileLedger(path)
		if err != nil {
			t.Fatal(err)
		}
		a := &scripted.Agent{Ledger: l}
		if _, err := a.Run(t.Context(), taskOf("u", i+1, nil), &meter{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		e := scripted.Entry{Job: "mr_20260101_abcdef", Unit: "u", Attempt: i + 1}
		want = append(want, e)
		e.End = true
		want = append(want, e)
	}
	cut, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut.WriteString(`{"job":"mr_`); err != nil {
		t.Fatal(err)
	}
	if err := cut.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := scripted.ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if len(got[i].Hash) != 32 {
			t.Errorf("hash = %q", got[i].Hash)
		}
		got[i].Hash = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}
