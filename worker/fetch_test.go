package worker_test

import (
	"bytes"
	"context"
	"crypto/sha256"
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
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
)

// needs is an assignment of a unit to which blobs are named.
func needs(level int, blobs ...protocol.Blob) protocol.Assignment {
	a := unitOf("u")
	a.Level, a.Blobs = level, blobs
	return a
}

// textBlob names a range of a text.
func textBlob(text string, start, end int64) protocol.Blob {
	sum := sha256.Sum256([]byte(text))
	return protocol.Blob{Kind: protocol.BlobText, SHA256: sum[:], Length: int64(len(text)), Start: start, End: end}
}

// tells is an agent whose output says what it was given.
func tells(_ context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	var b strings.Builder
	if task.Text != nil {
		fmt.Fprintf(&b, "text %s;", task.Text.Content)
	}
	for _, in := range task.Inputs {
		fmt.Fprintf(&b, "%s %d-%d failed %v referred %v: %q;", in.Unit, in.First, in.End, in.Failed, in.Referred, in.Data)
	}
	was, known := calls.Recall("before")
	fmt.Fprintf(&b, "remembered %v %s", known, was)
	return &agent.Result{Output: []byte(b.String())}, nil
}

// entryOf returns a journal of one entry, as it is sent.
func entryOf(t *testing.T, key, result string) []byte {
	t.Helper()
	raw, err := (&journal.Entry{Key: key, Attempt: 1, Result: []byte(result)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return journal.AppendEntry(nil, raw)
}

// naming returns the output of a reduce that names a record.
func naming(t *testing.T) []byte {
	t.Helper()
	data, err := (&output.Output{Open: []output.Open{{Entity: "e"}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is too large for an assignment comes before the agent runs, whatever breaks
// meanwhile, and each byte once.
func TestBlobsAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "0123456789"
		named := naming(t)
		r := start(t, tells, worker.Config{})
		r.part = 3
		r.keep(protocol.BlobText, "u", []byte(text))
		remembered := entryOf(t, "before", "what came of it")
		r.keep(protocol.BlobJournal, "u", remembered)
		r.keep(protocol.BlobInputs, "u", encoded(
			protocol.Input{Unit: "a", First: 0, End: 3, Data: named}, protocol.Input{Unit: "b", First: 3, End: 4, Failed: true},
		))
		r.keep(protocol.BlobReferred, "u", encoded(protocol.Input{Unit: "c", First: 1, End: 2, Referred: true, Data: []byte("more")}))
		setbacks := 0
		r.before = func(_ context.Context, q *protocol.BlobRequest, at int64) error {
			if at > q.Blob.Start && setbacks < 5 {
				setbacks++
				return errs.New(errs.Unavailable, "broken off")
			}
			return nil
		}
		a := needs(2, textBlob(text, 2, 9), protocol.Blob{Kind: protocol.BlobInputs, Length: 100},
			protocol.Blob{Kind: protocol.BlobJournal, Length: int64(len(remembered)), SHA256: sumOf(string(remembered))})
		a.Text = &protocol.Text{Document: "d", Length: 10, Chunks: 1}
		r.assign(spec, a)
		after(time.Minute)
		rep := r.report()
		want := fmt.Sprintf("text 2345678;a 0-3 failed false referred false: %q;b 3-4 failed true referred false: \"\";"+
			"c 1-2 failed false referred true: \"more\";remembered true what came of it", named)
		if diff := cmp.Diff(want, string(rep.Output)); diff != "" {
			t.Errorf("the agent was given (-want +got):\n%s\nerrors %v", diff, rep.Errors)
		}
		if diff := cmp.Diff([]int64{2, 5, 8, 9}, r.starts(protocol.BlobText)); diff != "" {
			t.Errorf("ranges of the text began at (-want +got):\n%s", diff)
		}
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

func sumOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// What does not come as it should costs its unit an attempt only if the unit may be
// at fault, and never the stream.
func TestBlobsAreNotFetched(t *testing.T) {
	const text = "0123456789"
	inputs := protocol.Blob{Kind: protocol.BlobInputs, Length: 100}
	failed := func(class protocol.FailureClass, why string) protocol.Report {
		return protocol.Report{Outcome: protocol.Errored, Class: class, Errors: []string{why}}
	}
	returned := func(why string) protocol.Report {
		return protocol.Report{Outcome: protocol.Returned, Errors: []string{why}}
	}
	for name, tt := range map[string]struct {
		blob protocol.Blob
		has  []byte
		err  error // of the transfer
		want protocol.Report
	}{
		"damaged in the store": {
			textBlob(text, 0, 10), []byte(text), errs.New(errs.DataLoss, "text 00 is damaged"),
			failed(protocol.PermanentUnit, "input of the unit: text 00 is damaged"),
		},
		"another text": {
			textBlob(text, 0, 10), []byte("012345678X"), nil,
			failed(protocol.Retryable, "input of the unit: the 10 bytes that came have another SHA-256 than the blob"),
		},
		"cut short": {
			textBlob(text, 0, 10), []byte("01234"), nil,
			failed(protocol.Retryable, "input of the unit: 5 of 10 bytes of the blob came"),
		},
		"more than there is": {
			protocol.Blob{Kind: protocol.BlobJournal, Length: 3, SHA256: sumOf("abc")},
			nil, nil,
			failed(protocol.Retryable, "input of the unit: more than the 3 bytes of the blob came"),
		},
		"no journal": {
			protocol.Blob{Kind: protocol.BlobJournal, Length: 3, SHA256: sumOf("abc")},
			[]byte("abc"), nil,
			failed(protocol.Retryable, "journal of the unit: journal: this is no entry: 3 bytes are left behind the entry 0"),
		},
		"too large": {
			textBlob(strings.Repeat("x", 100), 0, 100), nil, nil,
			failed(protocol.PermanentUnit, "payload: the inputs of the unit are too large together: a blob of 100 bytes; at most 50 are taken"),
		},
		"inputs too large": {
			inputs, encoded(protocol.Input{Unit: "a", Data: make([]byte, 30)}, protocol.Input{Unit: "b", Data: make([]byte, 30)}), nil,
			failed(protocol.PermanentUnit, "payload: the inputs of the unit are too large together: more than 50 bytes"),
		},
		"inputs cut short": {
			inputs, encoded(protocol.Input{Unit: "a", Data: []byte("abc")})[:10], nil,
			failed(protocol.Retryable, "input of the unit: payload: these are no inputs of a unit: input 0 is cut short"),
		},
		"inputs that were changed": {
			inputs, bytes.Replace(encoded(protocol.Input{Unit: "a", Data: []byte("abc")}), []byte("abc"), []byte("abd"), 1), nil,
			failed(protocol.Retryable, "input of the unit: payload: these are no inputs of a unit: what came of unit a is not what it made: its hash differs"),
		},
		"held no more": {
			inputs, []byte("x"), errs.New(errs.Precondition, "it does not hold the unit"), returned("it does not hold the unit"),
		},
		"of a newer kind": {
			protocol.Blob{Kind: 99, Length: 1}, nil, nil, returned("this version of the worker knows no blob of kind 99"),
		},
		"the store is away": {
			inputs, []byte("x"), errs.New(errs.Unavailable, "ask again"), returned("ask again"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, tells, worker.Config{MaxInput: 50})
				r.keep(tt.blob.Kind, "u", tt.has)
				if tt.has == nil {
					r.keep(tt.blob.Kind, "u", []byte(text))
				}
				r.before = func(context.Context, *protocol.BlobRequest, int64) error { return tt.err }
				a := needs(1, tt.blob)
				a.Text = &protocol.Text{Document: "d"}
				r.assign(spec, a)
				after(time.Minute)
				rep := r.report()
				rep.Elapsed = 0
				tt.want.Job, tt.want.Unit, tt.want.Attempt = jobID, "u", 1
				if diff := cmp.Diff(tt.want, rep); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				r.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}

// A transfer that hangs holds up neither other slots' units nor their reports, ends
// with its attempt, and its time is not the agent's.
func TestSlowBlobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
			if task.Unit == "u" {
				after(50 * time.Second) // of a minute
			}
			return tells(ctx, task, calls)
		}
		r := start(t, run, worker.Config{Slots: 2})
		come := make(chan struct{})
		r.before = func(ctx context.Context, _ *protocol.BlobRequest, _ int64) error {
			select {
			case <-come:
				return nil
			case <-ctx.Done():
				return errs.New(errs.Cancelled, "cancelled")
			}
		}
		remembered := entryOf(t, "before", "x")
		r.keep(protocol.BlobJournal, "u", remembered)
		slow := needs(0, protocol.Blob{Kind: protocol.BlobJournal, Length: int64(len(remembered)), SHA256: sumOf(string(remembered))})
		slow.Timeout = time.Minute
		r.assign(spec, slow, unitOf("v"))
		rep := r.report()
		if rep.Unit != "v" || rep.Outcome != protocol.Done {
			t.Fatalf("report %+v; want that of the unit beside the slow one", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		after(40 * time.Second)
		close(come)
		after(51 * time.Second)
		if rep = r.report(); rep.Outcome != protocol.Done {
			t.Errorf("report %+v; want it done: it ran for less than its time", rep)
		}
		r.verdicts(protocol.Accepted, rep)

		come = make(chan struct{})
		slow.Attempt, slow.Unit = 1, "w"
		r.assign(spec, slow)
		after(2 * time.Minute)
		if rep = r.report(); rep.Outcome != protocol.Returned || !strings.Contains(rep.Errors[0], "did not come within 1m0s") {
			t.Errorf("report %+v; want it handed back, and free", rep)
		}
		r.verdicts(protocol.Accepted, rep)
		r.finish()
	})
}

// chunkOf is an assignment of a unit that has a chunk of a document.
func (r *running) chunkOf(id mapreduce.UnitID, document string) protocol.Assignment {
	a := unitOf(id)
	a.Text = &protocol.Text{Document: "doc", SHA256: sumOf(document), Chunks: 2, Length: int64(len(document))}
	r.keep(protocol.BlobText, id, []byte(document))
	return a
}

// reads is an agent whose output is the text of the whole document.
func reads(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if task.Whole == nil {
		return nil, errors.New("there is no more")
	}
	res := &agent.Result{}
	err := task.Whole(ctx, func(t *ground.Text) { res.Output = []byte(t.String()) })
	return res, err
}

// An agent gets the document over a stream that breaks, once for all units of it.
func TestWholeIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, reads, worker.Config{Slots: 2})
		r.part = 4
		first := true
		r.before = func(_ context.Context, _ *protocol.BlobRequest, at int64) error {
			if at == 4 && first {
				first = false
				r.pipe.cut()
				return errs.New(errs.Unavailable, "broken off")
			}
			return nil
		}
		r.assign(spec, r.chunkOf("u", "abcdefg"), r.chunkOf("v", "abcdefg"))
		r.accept(protocol.Welcome{Epoch: 2})
		after(time.Second)
		got := r.take()
		if diff := cmp.Diff([]int64{0, 4}, r.starts(protocol.BlobText)); diff != "" {
			t.Errorf("ranges began at (-want +got):\n%s", diff)
		}
		if len(got.Reports) != 2 {
			t.Fatalf("%d reports; want two", len(got.Reports))
		}
		for _, rep := range got.Reports {
			if string(rep.Output) != "abcdefg" {
				t.Errorf("%s: output %q, errors %v", rep.Unit, rep.Output, rep.Errors)
			}
		}
		r.verdicts(protocol.Accepted, got.Reports...)
		r.finish()
	})
}

func TestWholeFails(t *testing.T) {
	for name, tc := range map[string]struct {
		length int64
		data   string
		err    error
		want   string
	}{
		"refused":    {err: errs.New(errs.DataLoss, "the store is damaged"), want: "text of doc: the store is damaged"},
		"other text": {data: "abcdefG", want: "text of doc: the 7 bytes that came have another SHA-256 than the blob"},
		"too much":   {data: "abcdefgh", want: "text of doc: more than the 7 bytes of the blob came"},
		"too little": {data: "ab", want: "text of doc: 2 of 7 bytes of the blob came"},
		"too long":   {length: protocol.MaxWholeText + 1, want: agent.ErrTooLong.Error() + ": its text has 4194305 bytes; at most 4194304 are looked through"},
		"not told":   {length: -1, want: "there is no more"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, reads, worker.Config{})
				r.before = func(context.Context, *protocol.BlobRequest, int64) error { return tc.err }
				a := r.chunkOf("u", "abcdefg")
				r.keep(protocol.BlobText, "u", []byte(tc.data))
				if tc.length != 0 {
					a.Text.Length = max(tc.length, 0)
				}
				r.assign(spec, a)
				rep := r.report()
				if diff := cmp.Diff([]string{tc.want}, rep.Errors); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				r.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}

// Texts that do not fit together are not held together, one that nobody uses makes
// room for the next, and an attempt that is over does not wait for ever.
func TestWholeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn, using := make(chan struct{}), 0
		run := func(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
			return &agent.Result{}, task.Whole(ctx, func(*ground.Text) {
				using++
				<-turn
				using--
			})
		}
		r := start(t, run, worker.Config{Slots: 3})
		for i := range 3 {
			r.assign(spec, r.chunkOf(mapreduce.UnitID(fmt.Sprint("u", i)), strings.Repeat(fmt.Sprint(i), protocol.MaxWholeText/2+1)))
		}
		var reports []protocol.Report
		for left := 3; left > 1; left-- {
			reports = append(reports, r.take().Reports...)
			if got := len(r.starts(protocol.BlobText)); got != 4-left || using != 1 {
				t.Fatalf("%d texts were asked for, %d are used, with %d to go; want one at a time", got, using, left)
			}
			if left > 2 {
				turn <- struct{}{}
			}
		}
		asked := make(map[mapreduce.UnitID]bool)
		for _, q := range r.asks {
			asked[q.Unit] = true
		}
		for i := range 3 { // the one that waits is stopped
			if id := mapreduce.UnitID(fmt.Sprint("u", i)); !asked[id] {
				r.send(&protocol.ToWorker{Cancel: []protocol.Held{{Job: jobID, Unit: id, Attempt: 1}}})
			}
		}
		synctest.Wait()
		turn <- struct{}{}
		reports = append(reports, r.take().Reports...)
		if len(reports) != 2 || len(r.starts(protocol.BlobText)) != 2 {
			t.Errorf("%d reports after %d texts; want two of each", len(reports), len(r.starts(protocol.BlobText)))
		}
		r.verdicts(protocol.Accepted, reports...)
		r.finish()
	})
}

// recalls returns an agent that shares what it makes, unless it is known: its
// output.
func recalls(made string) runFunc {
	return func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
		if !calls.Shares() {
			return &agent.Result{Output: []byte("alone")}, nil
		}
		key := sumOf("key of " + string(task.Unit))
		known, err := calls.Answer(ctx, key)
		if err != nil {
			return nil, err
		}
		if known == nil {
			known = []byte(made)
			calls.Share(key, known)
		}
		return &agent.Result{Output: known[:min(len(known), 10)]}, nil
	}
}

func sharing() mapreduce.JobSpec {
	s := spec
	s.Cache = true
	return s
}

// An answer is looked for, and what is to be kept comes before the report of its
// unit, but does not hold that up for long; a look-up that fails is as one that
// finds nothing.
func TestAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		spec   mapreduce.JobSpec
		known  string
		broken error
		hangs  bool
		made   string
		want   string // output
		gets   int
		kept   string
	}{
		"known":        {spec: sharing(), known: "known", made: "made", want: "known", gets: 1},
		"not known":    {spec: sharing(), made: "made", want: "made", gets: 1, kept: "made"},
		"damaged":      {spec: sharing(), known: "x", broken: errs.New(errs.DataLoss, "damaged"), made: "made", want: "made", gets: 1},
		"keeping ends": {spec: sharing(), hangs: true, made: "made", want: "made", gets: 1, kept: "made"},
		"not shared":   {spec: spec, made: "made", want: "alone"},
		"too long":     {spec: sharing(), made: strings.Repeat("x", protocol.MaxAnswer+1), want: "xxxxxxxxxx", gets: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, recalls(tt.made), worker.Config{})
				if tt.known != "" {
					r.keep(protocol.BlobAnswer, "u", []byte(tt.known))
				}
				r.before = func(ctx context.Context, q *protocol.BlobRequest, _ int64) error {
					if tt.hangs && q.Blob.Length > 0 {
						<-ctx.Done()
						return ctx.Err()
					}
					return tt.broken
				}
				r.assign(tt.spec, unitOf("u"))
				if tt.hangs {
					if got := r.take(); len(got.Reports) > 0 {
						t.Errorf("%+v came before the answer", got.Reports)
					}
					after(10 * time.Second)
				}
				rep := r.report()
				gets := 0
				for _, q := range r.asks {
					if q.Blob.Length == 0 {
						gets++
					}
				}
				if string(rep.Output) != tt.want || gets != tt.gets {
					t.Errorf("output %q after %d look-ups, errors %v; want %q after %d", rep.Output, gets, rep.Errors, tt.want, tt.gets)
				}
				if kept := string(r.stored(protocol.BlobAnswer, "u", 1)); kept != tt.kept && tt.broken == nil {
					t.Errorf("%q is kept, want %q", kept, tt.kept)
				}
				r.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}
