package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// result is a function that comes to a text.
func result(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

// Entries go together: when enough was spent since the last went, and before the report
// of an attempt without a result. The next attempt does nothing again.
func TestJournalGoesInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		did := 0
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			for i := range 7 {
				got, err := calls.Do(ctx, fmt.Sprint("call ", i), func(context.Context) ([]byte, error) {
					did++
					calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 3000, Out: 1000}})
					after(time.Second)
					return fmt.Append(nil, i), nil
				})
				if err != nil || string(got) != fmt.Sprint(i) {
					return nil, fmt.Errorf("call %d came to %q: %w", i, got, err)
				}
			}
			if task.Attempt == 1 {
				return nil, errors.New("broken")
			}
			return &agent.Result{Output: []byte("ok")}, nil
		}
		r := start(t, run, worker.Config{})
		r.assign(spec, unitOf("u"))
		after(time.Minute)
		got := r.report()
		want := []string{"u 0: call 0 call 1 call 2", "u 3: call 3 call 4 call 5", "u 6: call 6"}
		if diff := cmp.Diff(want, r.appended()); diff != "" || got.Outcome != protocol.Errored {
			t.Errorf("appends (-want +got):\n%s\nreport %+v", diff, got)
		}
		r.verdicts(protocol.Accepted, got)
		r.assign(spec, r.again(unitOf("u")))
		after(time.Minute)
		got = r.report()
		if did != 7 || got.Outcome != protocol.Done || r.appended() != nil {
			t.Errorf("%d calls were made in two attempts, and the second reports %+v", did, got)
		}
		r.verdicts(protocol.Accepted, got)
		r.finish()
	})
}

// Before a call that might make what was spent more than may be lost, all that was done
// is stored. A call that cannot is not held up, and neither is one whose journal nobody
// takes any more.
func TestJournalIsStoredBeforeACallThatIsLarge(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var r *running
			var seen []string // of what was stored, when each call began
			run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
				for i, worst := range []int64{agent.KeepEvery, 7000, 3001, agent.KeepEvery + 1} {
					_, err := calls.Do(ctx, fmt.Sprint("call ", i), func(ctx context.Context) ([]byte, error) {
						if err := calls.Reserve(ctx, worst, 0); err != nil {
							return nil, err
						}
						seen = append(seen, fmt.Sprintf("%d %v", i, r.appended()))
						calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 3500}})
						return []byte("answer"), nil
					})
					if err != nil {
						return nil, err
					}
				}
				return &agent.Result{Output: []byte("ok")}, nil
			}
			r = start(t, run, worker.Config{})
			want := []string{"0 []", "1 [u 0: call 0]", "2 []", "3 [u 1: call 1 call 2]"}
			if refused {
				r.before = func(context.Context, *protocol.BlobRequest, int64) error {
					return errs.New(errs.Invalid, "the journal has too many entries")
				}
				want = []string{"0 []", "1 []", "2 []", "3 []"}
			}
			r.assign(spec, unitOf("u"))
			after(time.Minute)
			got := r.report()
			if diff := cmp.Diff(want, seen); diff != "" || got.Outcome != protocol.Done {
				t.Errorf("refused %t: stored before each call (-want +got):\n%s\nreport %+v", refused, diff, got)
			}
			r.verdicts(protocol.Accepted, got)
			r.finish()
		})
	}
}

// An attempt that is done has nothing stored that it did, but in a job that captures
// all: there all of it is stored before its report, whatever breaks.
func TestJournalOfUnitsThatAreDone(t *testing.T) {
	for _, capture := range []mapreduce.Capture{mapreduce.CaptureOff, mapreduce.CaptureStandard, mapreduce.CaptureFull} {
		synctest.Test(t, func(t *testing.T) {
			run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
				_, err := calls.Do(ctx, "call", result("answer"))
				return &agent.Result{Output: []byte("x")}, err
			}
			r := start(t, run, worker.Config{})
			broken := 0
			r.before = func(context.Context, *protocol.BlobRequest, int64) error {
				if broken++; broken < 5 {
					return errs.New(errs.Unavailable, "broken off, before it was stored or after")
				}
				return nil
			}
			full := spec
			full.Capture = capture
			r.assign(full, unitOf("u"))
			reports := r.take().Reports
			if at := len(reports); (at == 1) == (capture == mapreduce.CaptureFull) {
				t.Errorf("capture %d: %d reports came before anything could be stored", capture, at)
			}
			after(time.Minute)
			reports = append(reports, r.take().Reports...)
			if stored := r.appended() != nil; stored != (capture == mapreduce.CaptureFull) {
				t.Errorf("capture %d: stored %t", capture, stored)
			}
			if len(reports) != 1 {
				t.Errorf("capture %d: reports %+v", capture, reports)
			}
			r.verdicts(protocol.Accepted, reports...)
			r.finish()
		})
	}
}

// A unit that ends while there is no stream, before what it did was worth storing,
// leaves that to the next attempt all the same.
func TestJournalOfUnitsThatEndWithoutAStream(t *testing.T) {
	fails := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: agent.KeepEvery - 1}})
		if _, err := calls.Do(ctx, "call", result("answer")); err != nil {
			return nil, err
		}
		after(time.Second)
		return nil, errors.New("the next call failed")
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, fails, worker.Config{})
		r.assign(spec, unitOf("u"))
		r.take()
		r.pipe.cut()
		after(10 * time.Second)
		r.take()
		r.accept(protocol.Welcome{Epoch: 2})
		after(10 * time.Second)
		got := r.report()
		if diff := cmp.Diff([]string{"u 0: call"}, r.appended()); diff != "" {
			t.Errorf("appends (-want +got):\n%s", diff)
		}
		r.verdicts(protocol.Accepted, got)
		r.finish()
	})
}

// What must not be done twice is begun only when that it begins is stored, and all
// before it; and what depends on it begins only when its result is. So whatever is lost
// between, it is done once at most.
func TestDoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r *running
		var seen []string // by what was done, of what was stored
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			if _, err := calls.Do(ctx, "ask", result("send a letter")); err != nil {
				return nil, err
			}
			for _, key := range []string{"letter", "stamp"} {
				got, err := calls.DoOnce(ctx, key, func(context.Context) ([]byte, error) {
					seen = append(seen, r.appended()...)
					if key == "stamp" && task.Attempt == 1 {
						after(time.Hour) // the attempt ends meanwhile, and nobody hears of what comes of it
					}
					return []byte("done"), nil
				})
				if errors.Is(err, journal.ErrInterrupted) {
					return &agent.Result{Output: []byte("nobody knows of the " + key)}, nil
				}
				if err != nil || string(got) != "done" {
					return nil, fmt.Errorf("%q: %w", got, err)
				}
			}
			return nil, errors.New("there was nothing left to do")
		}
		r = start(t, run, worker.Config{Grace: time.Second})
		r.assign(spec, unitOf("u"))
		after(time.Minute)
		synctest.Wait()
		want := []string{"u 0: ask letter?", "u 2: letter", "u 3: stamp?"}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("stored before each was done (-want +got):\n%s", diff)
		}
		r.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: "u", Attempt: 1}}})
		after(time.Minute)
		r.take()
		r.assign(spec, r.again(unitOf("u")))
		after(time.Minute)
		rep := r.report()
		if string(rep.Output) != "nobody knows of the stamp" || r.appended() != nil {
			t.Errorf("the second attempt reports %+v", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		after(2 * time.Hour)
		r.finish()
	})
}

// Where the journal is not taken any more, what must not be done twice is not begun, and
// all else goes on.
func TestJournalThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, _ *agent.Task, calls agent.Calls) (*agent.Result, error) {
			calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: agent.KeepEvery}})
			if _, err := calls.Do(ctx, "ask", result("x")); err != nil {
				return nil, err
			}
			after(time.Second)
			if _, err := calls.Do(ctx, "ask more", result("y")); err != nil {
				return nil, err
			}
			_, err := calls.DoOnce(ctx, "letter", func(context.Context) ([]byte, error) {
				t.Error("it was begun")
				return nil, nil
			})
			return nil, err
		}
		r := start(t, run, worker.Config{})
		r.before = func(_ context.Context, q *protocol.BlobRequest, _ int64) error {
			return errs.New(errs.Invalid, "the journal has too many entries")
		}
		r.assign(spec, unitOf("u"))
		after(time.Minute)
		rep := r.report()
		if rep.Outcome != protocol.Errored || !strings.Contains(rep.Errors[0], "letter: the journal of the unit is not stored any more: ") {
			t.Errorf("reported %+v", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}
