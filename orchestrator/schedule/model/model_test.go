package model_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

var (
	start = time.Unix(1_000_000, 0)
	waits = &mapreduce.JobSpec{}
	skips = &mapreduce.JobSpec{OnBreaker: mapreduce.BreakerSkip}
)

// looked returns a model of which the node "here" has seen what the fleet knows.
func looked(scope limit.Scope) *model.State {
	s := model.New("vendor/large", "here", model.Limits{})
	scope.Shares = map[mapreduce.NodeID]limit.Share{
		"here": {Want: 10, Slots: 4, Parts: limit.Whole}, "there": {},
	}
	s.Look(&scope, start)
	return s
}

func TestUnitsThatMayRun(t *testing.T) {
	refused := looked(limit.Scope{})
	refused.Hear(&protocol.LimitNote{Refused: true, Pause: time.Minute}, start)
	for name, tt := range map[string]struct {
		m         *model.State
		spec      *mapreduce.JobSpec
		run, hold int64
	}{
		"no share":                  {model.New("vendor/large", "here", model.Limits{}), waits, 0, math.MaxInt64},
		"no limit":                  {looked(limit.Scope{}), waits, math.MaxInt64, math.MaxInt64},
		"few calls at once":         {looked(limit.Scope{Room: 9}), waits, 4, 4},
		"the vendor refused":        {refused, waits, 0, math.MaxInt64},
		"an open breaker":           {looked(limit.Scope{Breaker: limit.Breaker{Open: true}}), waits, 0, 0},
		"it probes":                 {looked(limit.Scope{Breaker: limit.Breaker{Open: true, Prober: "here"}}), waits, 1, 1},
		"another probes":            {looked(limit.Scope{Breaker: limit.Breaker{Open: true, Prober: "there"}}), waits, 0, 0},
		"units that skip a breaker": {looked(limit.Scope{Breaker: limit.Breaker{Open: true}}), skips, math.MaxInt64, math.MaxInt64},
	} {
		if got := tt.m.MayRun(tt.spec, start); got != tt.run {
			t.Errorf("%s: %d may run, want %d", name, got, tt.run)
		}
		if got := tt.m.MayHold(tt.spec); got != tt.hold {
			t.Errorf("%s: %d slots are of use, want %d", name, got, tt.hold)
		}
	}
}

// What could not be told is told the next time, with what has come since.
func TestNotesAreKept(t *testing.T) {
	s := looked(limit.Scope{})
	s.Hear(&protocol.LimitNote{Successes: 3}, start)
	if s.IsUrgent() {
		t.Error("successes are urgent")
	}
	if !s.Hear(&protocol.LimitNote{Refused: true, Pause: time.Minute}, start) || !s.IsUrgent() {
		t.Error("a refusal is not urgent")
	}
	n := s.TakeNote(100, 7, 2, true, start)
	if s.IsUrgent() {
		t.Error("it is urgent still when it was told")
	}
	s.PutBack(n)
	s.Hear(&protocol.LimitNote{Successes: 1}, start)
	want := limit.Note{Most: 100, Want: 7, Held: 2, Successes: 4, Refused: true, Guess: true, Pause: time.Minute}
	if d := cmp.Diff(want, s.TakeNote(100, 7, 2, true, start)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if rest := s.TakeNote(0, 0, 0, true, start); !rest.IsZero() {
		t.Errorf("%+v is told twice", rest)
	}
}

// A breaker that opens here keeps units away until its time is over. Then this node asks to
// probe, and the probe closes the breaker, or opens it anew.
func TestBreaker(t *testing.T) {
	s := looked(limit.Scope{})
	until, opened := s.HearBreaker(time.Minute, start)
	if !opened || !until.Equal(start.Add(time.Minute)) {
		t.Errorf("opened: %v, until %v", opened, until)
	}
	if _, opened := s.HearBreaker(time.Hour, start); opened {
		t.Error("it has opened again while it was open")
	}
	if n := s.TakeNote(0, 1, 0, true, start); n.Opened != time.Minute || n.Probe {
		t.Errorf("told: %+v, want that it has opened", n)
	}
	if n := s.TakeNote(0, 1, 0, true, until.Add(-1)); n.Probe {
		t.Error("it asks to probe too early")
	}
	if n := s.TakeNote(0, 1, 0, true, until); !n.Probe {
		t.Error("it does not ask to probe")
	}
	s.Look(&limit.Scope{Breaker: limit.Breaker{Turns: 2, Open: true, For: time.Minute, Prober: "here"}}, until)
	failed := &protocol.Report{Outcome: protocol.Errored, Class: protocol.Retryable, Calls: 1}
	if again, news := s.EndProbe(failed, until); !news || !again.Equal(until.Add(time.Minute)) {
		t.Errorf("a failed probe: news %v, until %v", news, again)
	}
	s.TakeNote(0, 1, 0, true, until)
	s.Look(&limit.Scope{Breaker: limit.Breaker{Turns: 4, Open: true, For: time.Minute, Prober: "here"}}, until)
	if again, news := s.EndProbe(&protocol.Report{Outcome: protocol.Done, Calls: 1}, until); !news || !again.IsZero() {
		t.Errorf("a probe that succeeded: news %v, until %v", news, again)
	}
	if n := s.TakeNote(0, 1, 0, true, until); !n.Closed {
		t.Errorf("told: %+v, want that it has closed", n)
	}
	if _, closed := s.Look(&limit.Scope{}, until); !closed {
		t.Error("workers are not told that it has closed")
	}
}

// A node that looks for the first time waits for what is left of a breaker's time and a pause;
// one that has looked before, for all of what has begun since.
func TestWhatIsLeftOfABreakerAndAPause(t *testing.T) {
	scope := limit.Scope{
		Pauses: 1, Pause: time.Hour, PauseLeft: 20 * time.Second,
		Breaker: limit.Breaker{Turns: 1, Open: true, For: time.Minute}, OpenLeft: 10 * time.Second,
		Shares: map[mapreduce.NodeID]limit.Share{"here": {Want: 1, Parts: limit.Whole}, "there": {}},
	}
	was, idle := looked(limit.Scope{}), looked(limit.Scope{})
	idle.Look(&limit.Scope{}, start)
	for name, tt := range map[string]struct {
		m           *model.State
		pause, open time.Duration
	}{
		"a first look":                     {model.New("vendor/large", "here", model.Limits{}), 20 * time.Second, 10 * time.Second},
		"a second look":                    {was, time.Hour, time.Minute},
		"a look after one without a share": {idle, 20 * time.Second, 10 * time.Second},
	} {
		until, _ := tt.m.Look(&scope, start)
		share := tt.m.Deal([]int64{1}, time.Minute, start)[0]
		if share.Pause != tt.pause || !until.Equal(start.Add(tt.open)) {
			t.Errorf("%s: workers are told of a pause of %v, and have no units for %v; want %v and %v", name, share.Pause, until.Sub(start), tt.pause, tt.open)
		}
	}
	over := model.New("vendor/large", "here", model.Limits{})
	scope.OpenLeft = 0
	if over.Look(&scope, start); !over.IsUrgent() || !over.TakeNote(1, 1, 0, true, start).Probe {
		t.Error("a node that comes when the breaker's time is over does not ask to probe at once")
	}
}

// While a breaker is open workers make no call, also behind its time while another node
// probes. Then all are told that it has closed, and so is who comes later, to whom another node
// may have said something else.
func TestWorkersAreToldOfABreaker(t *testing.T) {
	told := func(m *model.State, now time.Time) (share protocol.LimitShare) {
		return m.Deal([]int64{1}, 20*time.Second, now)[0]
	}
	open := limit.Breaker{Turns: 1, Open: true, For: time.Minute}
	m := looked(limit.Scope{})
	if _, ok := model.New("vendor/large", "here", model.Limits{}).Lifted(start); ok {
		t.Error("a worker is told that nothing limits a model of which the node knows nothing")
	}
	m.Deal([]int64{1}, time.Minute, start)
	if share, ok := m.Lifted(start); !ok || share.Part != 1 || share.OpenFor != 0 || share.For != 0 {
		t.Errorf("a worker that comes is told %+v (%v), want that nothing limits it", share, ok)
	}
	shares := map[mapreduce.NodeID]limit.Share{"here": {Want: 10, Slots: 4, Parts: limit.Whole}}
	m.Look(&limit.Scope{Breaker: open, Shares: shares}, start)
	if s := told(m, start); s.OpenFor != 80*time.Second {
		t.Errorf("open for %v, want its time and a lease", s.OpenFor)
	}
	if _, ok := m.Lifted(start); ok {
		t.Error("a worker that comes is told that nothing limits a model whose breaker is open")
	}
	idle := looked(limit.Scope{})
	idle.Look(&limit.Scope{}, start)
	idle.Deal(nil, time.Minute, start)
	if _, ok := idle.Lifted(start); ok {
		t.Error("a worker that comes is told that nothing limits a model, by a node that hears no news of it")
	}
	later := start.Add(2 * time.Minute)
	open.Turns, open.Prober = 2, "there"
	m.Look(&limit.Scope{Breaker: open, Shares: shares}, later)
	if s := told(m, later); s.OpenFor != 20*time.Second || s.Probe {
		t.Errorf("while another node probes, open for %v, want a lease", s.OpenFor)
	}
	open.Turns, open.Prober = 3, "here"
	m.Look(&limit.Scope{Breaker: open, Shares: shares}, later)
	if s := told(m, later); s.OpenFor != 0 || !s.Probe {
		t.Errorf("while this node probes, open for %v (half open: %v), want that workers try", s.OpenFor, s.Probe)
	}
	m.Look(&limit.Scope{Breaker: limit.Breaker{Turns: 4}, Shares: shares}, later)
	if s := told(m, later); s.OpenFor != 0 || s.Probe || s.For != 0 {
		t.Errorf("when it has closed, workers are told %+v", s)
	}
}

// Workers are told what limits them, and once that nothing does any more.
func TestDeal(t *testing.T) {
	s := looked(limit.Scope{Room: 9})
	if !s.IsDealt(start) {
		t.Fatal("calls at once are limited, and nobody is told")
	}
	shares := s.Deal([]int64{3, 1}, time.Minute, start)
	if shares[0].Calls != 3 || shares[1].Calls != 1 || shares[0].Part != 0.75 || shares[1].For != time.Minute {
		t.Errorf("shares: %+v", shares)
	}
	s.Look(&limit.Scope{}, start)
	if !s.IsDealt(start) {
		t.Fatal("nobody is told that there is no limit any more")
	}
	if d := cmp.Diff([]protocol.LimitShare{{Name: "vendor/large", Part: 1}}, s.Deal([]int64{1}, time.Minute, start)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if s.IsDealt(start) {
		t.Error("they are told twice that there is no limit")
	}
}

// What a worker says that a server refuses is told to the fleet once, and what the fleet knows to the
// workers here once. Of too many servers nothing is kept.
func TestManners(t *testing.T) {
	said := func(server, refuses string) *protocol.ModelManners {
		return &protocol.ModelManners{Name: "vendor/large", Server: server, Refuses: refuses}
	}
	s := looked(limit.Scope{})
	if !s.HearManners(said("a", "strict")) || !s.IsUrgent() || s.HearManners(said("a", "strict")) {
		t.Error("it is news once")
	}
	n := s.TakeNote(0, 0, 0, true, start)
	if diff := cmp.Diff(map[string]string{"a": "strict"}, n.Manners); diff != "" || n.IsZero() {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	s.PutBack(n)
	s.HearManners(said("a", "strict, seed"))
	s.PutBack(n)
	if again := s.TakeNote(0, 0, 0, true, start); again.Manners["a"] != "strict, seed" {
		t.Errorf("what came later is lost: %+v", again.Manners)
	}

	fleet := &limit.Scope{Manners: map[string]string{"a": "strict, seed", "b": "streams"}}
	if diff := cmp.Diff([]protocol.ModelManners{*said("b", "streams")}, s.LookAtManners(fleet)); diff != "" {
		t.Errorf("news for workers (-want +got):\n%s", diff)
	}
	if news := s.LookAtManners(fleet); len(news) > 0 {
		t.Errorf("workers are told twice: %+v", news)
	}
	s.HearManners(said("b", "streams, strict"))
	if news := s.LookAtManners(fleet); len(news) > 0 {
		t.Errorf("workers are told what is older than what one of them said: %+v", news)
	}
	for i := range 3 * limit.MaxServers {
		s.HearManners(said(string(rune('c'+i)), "strict"))
	}
	if all := s.Manners(); len(all) != limit.MaxServers || all[0] != *said("a", "strict, seed") {
		t.Errorf("%d servers are kept, want %d: %+v", len(all), limit.MaxServers, all)
	}
}
