package worker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/ground"
)

// chunkOf is an assignment of a unit that has a chunk of a document.
func chunkOf(id mapreduce.UnitID, document string) mapreduce.Assignment {
	a := unitOf(id)
	sum := sha256.Sum256([]byte(document))
	a.Text = &mapreduce.Text{Document: "doc", SHA256: sum[:], Chunks: 2, Length: int64(len(document))}
	return a
}

// reads returns an agent whose output is the text of the whole document.
func reads(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if task.Whole == nil {
		return nil, errors.New("there is no more")
	}
	res := &agent.Result{}
	err := task.Whole(ctx, func(t *ground.Text) { res.Output = []byte(t.String()) })
	return res, err
}

func asked(unit mapreduce.UnitID, start int64) mapreduce.TextRequest {
	return mapreduce.TextRequest{Held: mapreduce.Held{Job: jobID, Unit: unit, Attempt: 1, Running: true}, Start: start}
}

func (r *running) hand(q mapreduce.TextRequest, data, problem string) {
	r.t.Helper()
	r.send(&mapreduce.ToWorker{Texts: []mapreduce.TextPiece{{Held: q.Held, Start: q.Start, Data: []byte(data), Error: problem}}})
}

// TestWholeComesInPieces: an agent gets the document piece by piece, over a stream
// that breaks, once for all units of the document.
func TestWholeComesInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, reads, worker.Config{Slots: 2})
		r.assign(spec, chunkOf("u", "abcdefg"), chunkOf("v", "abcdefg"))
		first := r.take().Texts
		if len(first) != 1 || first[0].Start != 0 {
			t.Fatalf("requests = %+v; want one, for the beginning", first)
		}
		r.hand(first[0], "abcd", "")
		second := r.take().Texts
		if diff := cmp.Diff([]mapreduce.TextRequest{asked(first[0].Unit, 4)}, second); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
		r.pipe.cut()
		r.accept(mapreduce.Welcome{Epoch: 2})
		if diff := cmp.Diff(second, r.take().Texts); diff != "" {
			t.Fatalf("requests over another stream (-want +got):\n%s", diff)
		}
		r.hand(second[0], "efg", "")
		r.hand(second[0], "xyz", "") // twice: the first stream's answer was late
		got := r.take()
		if len(got.Texts) != 0 || len(got.Reports) != 2 {
			t.Fatalf("%d requests and %d reports; want two reports", len(got.Texts), len(got.Reports))
		}
		for _, rep := range got.Reports {
			if string(rep.Output) != "abcdefg" {
				t.Errorf("%s: output %q, errors %v", rep.Unit, rep.Output, rep.Errors)
			}
		}
		r.verdicts(mapreduce.Accepted, got.Reports...)
		r.finish()
	})
}

func TestWholeFails(t *testing.T) {
	for name, tc := range map[string]struct {
		length  int64
		data    string
		problem string
		want    string
	}{
		"refused":    {problem: "the store is damaged", want: "text of doc: the store is damaged"},
		"other text": {data: "abcdefG", want: "text of doc: what came has another hash"},
		"too much":   {data: "abcdefgh", want: "text of doc: a piece of 8 bytes came for byte 0 of 7"},
		"nothing":    {want: "text of doc: a piece of 0 bytes came for byte 0 of 7"},
		"too long":   {length: mapreduce.MaxWholeText + 1, want: agent.ErrTooLong.Error() + ": its text has 4194305 bytes; at most 4194304 are looked through"},
		"not told":   {length: -1, want: "there is no more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, reads, worker.Config{})
				a := chunkOf("u", "abcdefg")
				if tc.length != 0 {
					a.Text.Length = max(tc.length, 0)
				}
				r.assign(spec, a)
				got := r.take()
				if tc.length == 0 {
					r.hand(got.Texts[0], tc.data, tc.problem)
					got = r.take()
				}
				if len(got.Texts) > 0 || len(got.Reports) != 1 {
					t.Fatalf("%d requests, %d reports; want one report", len(got.Texts), len(got.Reports))
				}
				if diff := cmp.Diff([]string{tc.want}, got.Reports[0].Errors); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				r.verdicts(mapreduce.Accepted, got.Reports...)
				r.finish()
			})
		})
	}
}

// TestWholeIsBounded: texts that do not fit together are not held together, one
// that nobody uses makes room for the next, and an attempt that is over does not
// wait for ever.
func TestWholeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := make(chan struct{})
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			return &agent.Result{}, task.Whole(ctx, func(*ground.Text) { <-turn })
		}
		r := start(t, run, worker.Config{Slots: 3})
		texts := make(map[mapreduce.UnitID]string)
		for i := range 3 {
			id := mapreduce.UnitID(fmt.Sprint("u", i))
			texts[id] = strings.Repeat(fmt.Sprint(i), mapreduce.MaxWholeText/2+1)
			r.assign(spec, chunkOf(id, texts[id]))
		}
		for left := 3; left > 0; left-- {
			q := r.take().Texts
			if len(q) != 1 {
				t.Fatalf("%d texts are asked for at once, with %d to go; want one", len(q), left)
			}
			r.hand(q[0], texts[q[0].Unit], "")
			if got := r.take(); len(got.Texts)+len(got.Reports) != 0 {
				t.Fatalf("while a text is used: %+v", got)
			}
			if left == 2 { // one of the two that are left is stopped as it waits
				for id := range texts {
					if id != q[0].Unit {
						r.send(&mapreduce.ToWorker{Cancel: []mapreduce.Held{{Job: jobID, Unit: id, Attempt: 1}}})
					}
				}
				synctest.Wait()
				turn <- struct{}{}
				r.verdicts(mapreduce.Accepted, r.report())
				break
			}
			turn <- struct{}{}
			synctest.Wait()
			delete(texts, q[0].Unit)
			r.mu.Lock()
			reports := r.got.Reports
			r.got.Reports = nil
			r.mu.Unlock()
			r.verdicts(mapreduce.Accepted, reports...)
		}
		r.finish()
	})
}
