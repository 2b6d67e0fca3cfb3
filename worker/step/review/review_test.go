package review_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step/review"
)

// A finder finds one value, which no quote supports, and counts how often it is asked.
type finder struct {
	value string
	asked int
	woken *protocol.WakeCall // that it was given last
}

// Run implements step.Runner.
func (f *finder) Run(_ context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	f.asked, f.woken = f.asked+1, task.WakeCall
	o := &output.Output{Entries: []output.Entry{{Members: []output.Member{{}}, Accumulator: merge.Accumulator{
		Entity: "d:d", Sources: []merge.Source{{Document: "d"}},
		Fields: []merge.Field{{Path: "a", Candidates: []merge.Candidate{{Key: f.value, Value: f.value, Mentions: []merge.Mention{{}}}}}},
	}}}}
	data, err := o.Encode()
	return &agent.Result{Output: data, Confidence: 0.5, Errors: []string{"note"}}, err
}

// notes is a journal with room for entries of so many bytes.
type notes struct {
	scripted.Calls
	kept map[string][]byte
	room int
}

// Do implements agent.Journal.
func (n *notes) Do(ctx context.Context, key string, fn func(context.Context) ([]byte, error)) ([]byte, error) {
	if had, ok := n.kept[key]; ok {
		return had, nil
	}
	got, err := fn(ctx)
	if err == nil && len(got) <= n.room {
		n.kept[key] = got
	}
	return got, err
}

// Recall implements agent.Journal.
func (n *notes) Recall(key string) ([]byte, bool) {
	got, ok := n.kept[key]
	return got, ok
}

func task(handle, answer string, when ...string) *agent.Task {
	t := &agent.Task{
		Assignment: protocol.Assignment{Job: "j", Unit: "u", Kind: mapreduce.KindMap},
		Spec:       &mapreduce.JobSpec{Schema: []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
		StageSpec:  &agent.StageSpec{Name: "map", Documents: true, Output: agent.Records, Review: waiting.Rule{When: when}},
	}
	if handle != "" {
		t.WakeCall = &protocol.WakeCall{Handle: handle, Answer: []byte(answer)}
	}
	return t
}

// parked returns the handle under which an attempt has parked its unit.
func parked(t *testing.T, err error) string {
	t.Helper()
	p, ok := errors.AsType[*agent.ParkedError](err)
	if !ok || !gate.IsHandle(p.Handle) || p.WakeAfter != 0 || p.Note != "1 value to be decided by a person (reviewer): a" {
		t.Fatalf("the unit is not parked: %v", err)
	}
	return p.Handle
}

// A unit waits with what was found, and ends with what was decided about that. Nothing is found again.
func TestUnitsWait(t *testing.T) {
	f, n := &finder{value: "x"}, &notes{kept: make(map[string][]byte), room: 1 << 20}
	run := review.New(f)
	ctx := t.Context()

	_, err := run.Run(ctx, task("", "", "unverified"), n)
	handle := parked(t, err)
	if _, err = run.Run(ctx, task("", "", "unverified"), n); parked(t, err) != handle {
		t.Error("another attempt waits for something else")
	}

	// An answer that decides nothing leaves the unit waiting.
	f.asked = 0
	for _, answer := range []string{"", "yes", `{"decided":[]}`, `{"decided":[{"record":"0.1","field":"a","verdict":1}]}`} {
		if _, err = run.Run(ctx, task(handle, answer, "unverified"), n); parked(t, err) != handle {
			t.Errorf("%s: the unit waits for something else", answer)
		}
	}
	res, err := run.Run(ctx, task(handle, `{"decided":[{"record":"0.0","field":"a","verdict":2,"value":"y"}]}`, "unverified"), n)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output.Decode(res.Output)
	if err != nil || f.asked != 0 || res.Confidence != 0.5 || len(res.Errors) != 1 || !strings.Contains(res.Text, "y") {
		t.Errorf("%+v, asked %d times: %v", res, f.asked, err)
	}
	if c := out.Entries[0].Fields[0].Candidates; len(c) != 1 || c[0].Value != "y" || !c[0].IsReviewed() {
		t.Errorf("decided %+v", c)
	}
}

// A value that nobody has to look at, and a unit of a stage without a review, end at once.
func TestUnitsEnd(t *testing.T) {
	f, n := &finder{value: "x"}, &notes{kept: make(map[string][]byte)}
	for _, one := range []*agent.Task{task("", "", "conflict"), task("", "")} {
		if res, err := review.New(f).Run(t.Context(), one, n); err != nil || len(res.Output) == 0 {
			t.Errorf("%v: %v", one.StageSpec.Review, err)
		}
	}
	if len(n.kept) > 0 {
		t.Errorf("kept %v", n.kept)
	}
}

// Without what it waited with a unit is run anew, and waits for a decision about what it finds then.
func TestUnitsWaitAnew(t *testing.T) {
	f, n := &finder{value: "x"}, &notes{kept: make(map[string][]byte), room: 1 << 20}
	_, err := review.New(f).Run(t.Context(), task("", "", "all"), n)
	handle := parked(t, err)
	n.kept, f.value = make(map[string][]byte), "z"
	_, err = review.New(f).Run(t.Context(), task(handle, `{"decided":[{"record":"0.0","field":"a","verdict":1,"value":"x"}]}`, "all"), n)
	if parked(t, err) == handle || f.woken != nil {
		t.Errorf("the unit waits under %s, and its runner was given %+v", handle, f.woken)
	}

	// What does not fit into the journal fails the unit, as it would be found and paid for again.
	n.room, n.kept = 10, make(map[string][]byte)
	_, err = review.New(f).Run(t.Context(), task("", "", "all"), n)
	if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentUnit || !strings.Contains(err.Error(), "too large to be kept") {
		t.Errorf("without room: %v", err)
	}
}

// When the time to wait is over, values that nobody has decided about stay as they were found or fail their unit,
// as the stage says; what somebody has decided counts.
func TestTimeIsOver(t *testing.T) {
	for _, tt := range []struct {
		then, answer, want string
	}{
		{"accept", `{"decided":[],"over":true}`, "x"},
		{"accept", `{"decided":[{"record":"0.0","field":"a","verdict":2,"value":"y"}],"over":true}`, "y"},
		{"fail", `{"decided":[{"record":"0.0","field":"a","verdict":2,"value":"y"}],"over":true}`, "y"},
		{"fail", `{"decided":[],"over":true}`, ""},
	} {
		f, n := &finder{value: "x"}, &notes{kept: make(map[string][]byte), room: 1 << 20}
		timed := func(handle, answer string) *agent.Task {
			of := task(handle, answer, "all")
			of.StageSpec.Review.Within, of.StageSpec.Review.Then = "48h", tt.then
			return of
		}

		_, err := review.New(f).Run(t.Context(), timed("", ""), n)
		p, ok := errors.AsType[*agent.ParkedError](err)
		if !ok || p.WakeAfter != 48*time.Hour || !strings.Contains(p.Note, "within 48h, or ") {
			t.Fatalf("%s: the unit is not parked for its time: %v", tt.then, err)
		}
		res, err := review.New(f).Run(t.Context(), timed(p.Handle, tt.answer), n)
		if class, _ := agent.Classify(err); tt.want == "" {
			if err == nil || class != protocol.PermanentUnit || !strings.Contains(err.Error(), "nobody has decided about 1 value, the first of them a of record 0.0, within 48h") {
				t.Errorf("%s, %s: %v", tt.then, tt.answer, err)
			}
			continue
		}
		if err != nil || !strings.Contains(res.Text, tt.want) {
			t.Errorf("%s, %s: %+v: %v", tt.then, tt.answer, res, err)
		}
	}
}
