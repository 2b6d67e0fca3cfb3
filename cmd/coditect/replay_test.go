package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A job is repeated to the byte from what was kept of it: with answers that had to
// be asked for again, a unit that failed, one that was read in parts, a page that
// was parsed, and documents that were skipped; while the model refuses everything.
func TestReplay(t *testing.T) {
	testenv.SlowOnFDB(t)

	var closed atomic.Bool
	var seen [2]atomic.Int64
	s := newStudio(t, fakellm.Config{
		Model: func(c fakellm.Call) fakellm.Reply {
			if strings.Contains(c.System, "Synthesis") {
				return fakellm.Reply{Text: `{"answers": []}`}
			}
			if documentOf(c) == "page.html" || documentOf(c) == "long.txt" {
				return fakellm.Reply{Text: answerOf(map[string]any{"company": finding("LONG SHOP", "LONG SHOP")})}
			}
			return obedient(c)
		},
		Fault: func(c fakellm.Call) fakellm.Fault {
			switch name := documentOf(c); {
			case closed.Load():
				return fakellm.ServerError
			case name == "1.txt" && seen[0].Add(1) == 1:
				return fakellm.WrongShape
			case name == "2.txt":
				return fakellm.Refusal
			case name == "long.txt" && seen[1].Add(1) == 1:
				return fakellm.Truncated
			}
			return ""
		},
	})
	for i := range 4 {
		s.write(fmt.Sprintf("docs/%d.txt", i), shopText(i))
	}
	s.write("docs/long.txt", strings.Repeat("LONG SHOP sells everything.\n", 60))
	s.write("docs/page.html", "<h1>LONG SHOP</h1><p>is on the net</p>")
	s.write("docs/empty.txt", "")
	o := s.ask("out", "--capture", "full", "--merge", "model", "-o", "json")
	if o.code != 3 {
		t.Fatalf("exit code %d, want 3\n%s%s", o.code, o.stdout, o.stderr)
	}
	var job spending
	s.decode(o.stdout, &job)
	want, err := os.ReadFile(s.path("out/result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if r := s.result("out"); len(r.Failed) != 1 || len(r.Records) != 5 {
		t.Fatalf("%d units failed, %d records; want 1 and 5", len(r.Failed), len(r.Records))
	}

	closed.Store(true)
	calls := len(s.fake.Entries())
	o = s.try(nil, "replay", "--job-id", job.JobID, "--output", s.path("again"), "--keep", "-o", "json")
	var p struct {
		Same   bool   `json:"same"`
		Replay string `json:"replay_job_id"`
	}
	if o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	s.decode(o.stdout, &p)
	got, err := os.ReadFile(s.path("again/result.json"))
	if err != nil || !bytes.Equal(want, got) || !p.Same {
		t.Errorf("the results differ (same: %t, %v):\n%s\n%s", p.Same, err, want, got)
	}
	if n := len(s.fake.Entries()) - calls; n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if again := s.spent(s.try(nil, "status", "--job-id", p.Replay, "-o", "json")); again.Tokens != 0 {
		t.Errorf("the repetition spent %d tokens", again.Tokens)
	}
	s.want(0, "doctor")

	s.lose(job.JobID, "1.txt")
	before := len(s.jobs())
	o = s.try(nil, "replay", "--job-id", job.JobID)
	if o.code != 1 || !strings.Contains(o.stderr, "no stored answer to what unit 1.txt asks") {
		t.Errorf("exit code %d without an answer, want 1 and the unit's name\n%s%s", o.code, o.stdout, o.stderr)
	}
	if n := len(s.jobs()); n != before {
		t.Errorf("%d jobs are left of it", n-before)
	}
	if n := len(s.fake.Entries()) - calls; n != 0 {
		t.Errorf("%d calls were made", n)
	}
}

// lose removes what a unit was answered.
func (s *studio) lose(job, unit string) {
	s.t.Helper()
	p, err := pebble.Open(s.path("data/coditect"), pebble.Config{})
	if err != nil {
		s.t.Fatal(err)
	}
	err = store.NewDB(p, store.Config{}).Update(s.t.Context(), func(tx store.Tx) error {
		j, id := mapreduce.JobID(job), mapreduce.UnitID(unit)
		tx.ClearRange(keys.New().Outputs(j).Journal(id))
		value, err := tx.Get(s.t.Context(), keys.New().Job(j).Unit(id))
		var u storagev1.Unit
		if err == nil {
			err = proto.Unmarshal(value, &u)
		}
		u.Journal = nil
		if err == nil {
			value, err = proto.Marshal(&u)
		}
		tx.Set(keys.New().Job(j).Unit(id), value)
		return err
	})
	if e := p.Close(); err != nil || e != nil {
		s.t.Fatal(err, e)
	}
}

// What cannot be repeated is refused, with the reason.
func TestReplayIsRefused(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)
	testenv.SlowOnFDB(t)

	s := newStudio(t, fakellm.Config{Model: obedient})
	s.write("docs/1.txt", shopText(1))
	job := s.spent(s.ask("out", "-o", "json"))
	for name, tt := range map[string]struct{ job, says string }{
		"not captured": {job.JobID, "without `--capture full`"},
		"unknown":      {"mr_20260101_aaaaaa", "no job has the id"},
	} {
		if o := s.try(nil, "replay", "--job-id", tt.job); o.code != 1 && o.code != 2 || !strings.Contains(o.stderr, tt.says) {
			t.Errorf("%s: exit code %d, want %q\n%s%s", name, o.code, tt.says, o.stdout, o.stderr)
		}
	}
	s.want(0, "run", "--input", s.docs, "--schema", s.path("schema.yaml"), "--output", s.path("rules"))
	for _, j := range s.jobs() {
		if j.JobID != job.JobID {
			s.want(0, "replay", "--job-id", j.JobID) // rules need no answers
		}
	}
}

// A job whose documents one call took is repeated too, with the page that was
// parsed first.
func TestReplayOfOneCallForAll(t *testing.T) {
	testenv.SlowOnFDB(t)

	var closed atomic.Bool
	s := newStudio(t, fakellm.Config{
		Model: func(c fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: recordsOf(c.Prompt(), 4)} },
		Fault: func(fakellm.Call) fakellm.Fault {
			if closed.Load() {
				return fakellm.ServerError
			}
			return ""
		},
	})
	s.write("pipeline.yaml", `name: counter
stages:
- {name: direct, each: all, when: tokens <= budget, agent: {role: Head}, task: "Read {{items.count}} receipts"}
- {name: map, from: documents, each: chunk, agent: {role: Clerk}, task: Read a receipt}
- {name: reduce, each: group, agent: {role: Head}, task: Settle what is open}
`)
	for i := range 3 {
		s.write(fmt.Sprintf("docs/%d.txt", i), shopText(i))
	}
	s.write("docs/1-page.html", "<h1>SHOP NUMBER 3 SDN BHD</h1>")
	s.write("docs/empty.txt", "")
	o := s.ask("out", "--capture", "full", "--pipeline", s.path("pipeline.yaml"), "--target-token-budget", "20000", "-o", "json")
	if n := len(s.fake.Entries()); o.code != 0 || n != 1 {
		t.Fatalf("exit code %d after %d calls, want 0 after one\n%s%s", o.code, n, o.stdout, o.stderr)
	}
	if r := s.result("out"); len(r.Records) != 4 {
		t.Fatalf("%d records, want 4", len(r.Records))
	}
	closed.Store(true)
	s.want(0, "replay", "--job-id", s.spent(o).JobID)
	if n := len(s.fake.Entries()); n != 1 {
		t.Errorf("%d calls were made again", n-1)
	}
}

// recordsOf is what a model answers of those of n shops that a prompt has, in the
// order they come in.
func recordsOf(prompt string, n int) string {
	var records []map[string]any
	for _, at := range strings.Split(prompt, "SHOP NUMBER ")[1:] {
		var i int
		if _, err := fmt.Sscanf(at, "%d SDN BHD", &i); err != nil || i >= n {
			panic(fmt.Sprintf("shop %.20q: %v", at, err))
		}
		name := fmt.Sprintf("SHOP NUMBER %d SDN BHD", i)
		records = append(records, map[string]any{
			"document": len(records) + 1, "not_found": []any{},
			"fields": map[string]any{"company": finding(name, name), "date": []any{}, "address": []any{}, "total": []any{}},
		})
	}
	raw, err := json.Marshal(map[string]any{"records": records, "no_records": ""})
	if err != nil {
		panic(err)
	}
	return string(raw)
}
