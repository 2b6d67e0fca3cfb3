package worker_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// recalls returns an agent that shares what it makes, unless it is known: its
// output.
func recalls(made string) func(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
		sharer := calls.(agent.Sharer)
		if !sharer.Shares() {
			return &agent.Result{Output: []byte("alone")}, nil
		}
		key := []byte("key of " + task.Unit)
		known, err := sharer.Answer(ctx, key)
		if err != nil {
			return nil, err
		}
		if known == nil {
			known = []byte(made)
			sharer.Share(key, []byte(made))
		}
		return &agent.Result{Output: known}, nil
	}
}

func sharing() mapreduce.JobSpec {
	s := spec
	s.Cache = true
	return s
}

func lookedFor(unit mapreduce.UnitID, keep string) mapreduce.AnswerRequest {
	q := mapreduce.AnswerRequest{Held: mapreduce.Held{Job: jobID, Unit: unit, Attempt: 1, Running: true}, Key: []byte("key of " + unit)}
	if keep != "" {
		q.Keep = []byte(keep)
	}
	return q
}

func (r *running) reply(q mapreduce.AnswerRequest, data string) {
	r.t.Helper()
	r.send(&mapreduce.ToWorker{Answers: []mapreduce.AnswerReply{{Held: q.Held, Key: q.Key, Data: []byte(data)}}})
}

// An answer is asked for again when the stream breaks, and what is to be kept
// comes before the report of its unit.
func TestAnswersAreAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, recalls("made"), worker.Config{Slots: 2})
		r.assign(sharing(), unitOf("u"))
		want := []mapreduce.AnswerRequest{lookedFor("u", "")}
		if diff := cmp.Diff(want, r.take().Answers); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
		r.pipe.cut()
		r.accept(mapreduce.Welcome{Epoch: 2})
		if diff := cmp.Diff(want, r.take().Answers); diff != "" {
			t.Fatalf("requests over another stream (-want +got):\n%s", diff)
		}
		other := lookedFor("u", "")
		other.Key = []byte("key of another")
		r.reply(other, "of another")
		r.reply(want[0], "")
		synctest.Wait()
		messages := r.msgs
		got := r.take()
		if diff := cmp.Diff([]mapreduce.AnswerRequest{lookedFor("u", "made")}, got.Answers); diff != "" {
			t.Errorf("to be kept (-want +got):\n%s", diff)
		}
		if len(got.Reports) != 1 || string(got.Reports[0].Output) != "made" {
			t.Fatalf("reports %+v", got.Reports)
		}
		before := true
		for _, m := range messages {
			if len(m.Reports) > 0 {
				before = false
			}
			for _, q := range m.Answers {
				if len(q.Keep) > 0 && !before {
					t.Error("the answer came after the report of its unit")
				}
			}
		}
		r.verdicts(mapreduce.Accepted, got.Reports...)

		r.assign(sharing(), unitOf("v"))
		r.reply(r.take().Answers[0], "known")
		got = r.take()
		if len(got.Answers) != 0 || len(got.Reports) != 1 || string(got.Reports[0].Output) != "known" {
			t.Errorf("requests %+v, reports %+v", got.Answers, got.Reports)
		}
		r.verdicts(mapreduce.Accepted, got.Reports...)
		r.finish()
	})
}

// A job that does not share asks nobody, and an answer that is too long is not
// offered.
func TestAnswersAreNotOffered(t *testing.T) {
	for name, tt := range map[string]struct {
		spec mapreduce.JobSpec
		made int
		want int // requests
	}{
		"not shared": {spec, 10, 0},
		"too long":   {sharing(), mapreduce.MaxAnswer + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, recalls(string(bytes.Repeat([]byte("x"), tt.made))), worker.Config{})
				r.assign(tt.spec, unitOf("u"))
				got := r.take()
				for _, q := range got.Answers {
					r.reply(q, "")
				}
				more := r.take()
				if n := len(got.Answers) + len(more.Answers); n != tt.want {
					t.Errorf("%d requests, want %d", n, tt.want)
				}
				r.verdicts(mapreduce.Accepted, append(got.Reports, more.Reports...)...)
				r.finish()
			})
		})
	}
}
