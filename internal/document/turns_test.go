package document_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/document"
)

// burn uses a processor for a time, or until ctx ends. It is counted in turns of a loop, so that
// it is as much work however busy the machine is.
func burn(ctx context.Context, turns int) {
	x := uint64(1)
	for i := range turns {
		x = x*6364136223846793005 + 1
		if i%1000 == 0 && ctx.Err() != nil {
			break
		}
	}
	burnt.Store(x)
}

var burnt atomic.Uint64

// TestTurnsAtOnce counts how much work is under way at once, when much more wants to be.
func TestTurnsAtOnce(t *testing.T) {
	turns := document.NewTurns(3)
	var now, most atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			err := turns.Do(t.Context(), time.Minute, nil, func(context.Context) {
				n := now.Add(1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				burn(t.Context(), 100_000)
				now.Add(-1)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n < 1 || n > 3 {
		t.Errorf("%d were under way at once, want 3 at most", n)
	}
}

// TestTurnsTime has work wait for others, and use up its own time.
func TestTurnsTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time of a thread is known on Linux alone")
	}
	turns := document.NewTurns(2)
	released := make(chan struct{})
	burning := func() {
		burn(t.Context(), 200_000_000) // some 200 ms
		close(released)
	}
	go burning()
	if err := turns.Do(t.Context(), 20*time.Millisecond, nil, func(ctx context.Context) {
		<-released
		if ctx.Err() != nil {
			t.Errorf("work that waited for others: %v", context.Cause(ctx))
		}
	}); err != nil {
		t.Fatal(err)
	}

	tries := 0
	if err := turns.Do(t.Context(), 20*time.Millisecond, nil, func(ctx context.Context) {
		tries++
		burn(ctx, 1<<40)
		if cause := context.Cause(ctx); !errors.Is(cause, document.ErrTime) {
			t.Errorf("work that used up its time ended by %v", cause)
		}
	}); err != nil || tries != 1 {
		t.Errorf("work that was alone was tried %d times, with error %v", tries, err)
	}
}

// TestTurnsAlone has work use up its time beside other work: it is tried again when no other is
// under way.
func TestTurnsAlone(t *testing.T) {
	turns := document.NewTurns(2)
	begun, beside := make(chan struct{}), atomic.Bool{}
	var all sync.WaitGroup
	all.Go(func() {
		_ = turns.Do(t.Context(), time.Hour, nil, func(context.Context) {
			beside.Store(true)
			close(begun)
			burn(t.Context(), 300_000_000)
			beside.Store(false)
		})
	})
	<-begun
	var saw []bool
	waits := 0
	wait := func(wait func() error) error { waits++; return wait() }
	if err := turns.Do(t.Context(), time.Millisecond, wait, func(ctx context.Context) {
		saw = append(saw, beside.Load())
		burn(ctx, 1<<40)
	}); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(saw) != 2 || !saw[0] || saw[1] || waits != 1 {
		t.Errorf("other work was under way: %v in the tries, with %d waits; want true, then false, and 1", saw, waits)
	}
}

// TestTurnsCanceled waits for a turn until the caller is gone.
func TestTurnsCanceled(t *testing.T) {
	turns := document.NewTurns(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	_ = turns.Do(t.Context(), time.Hour, nil, func(context.Context) {
		cancel(gone)
		err := turns.Do(ctx, time.Hour, nil, func(context.Context) { t.Error("it has run") })
		if !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
	})
}

// TestParseOverTime reads a document whose parser uses up its time: it gets the whole document
// in each try, and the refusal names the flag.
func TestParseOverTime(t *testing.T) {
	formats, err := document.NewRegistry(boxes(func(ctx context.Context, in document.Input) (*document.Document, error) {
		data, err := io.ReadAll(in.Content)
		if err != nil || string(data) != "BOX of text" {
			t.Errorf("the parser got %q, with error %v", data, err)
		}
		burn(ctx, 1<<40)
		return nil, context.Cause(ctx)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]io.Reader{"that can go back": strings.NewReader("BOX of text"), "that cannot": io.MultiReader(strings.NewReader("BOX of text"))} {
		_, err = formats.Parse(t.Context(), document.Input{Name: "a.box", Content: content, Limits: document.Limits{Time: time.Millisecond}})
		if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, "(--document-time)") {
			t.Errorf("of content %s: %v", name, err)
		}
	}
}

// TestGrantedTime lets work go on that has been granted more time than its limit, and ends other work.
func TestGrantedTime(t *testing.T) {
	turns := document.NewTurns(2)
	for _, granted := range []bool{true, false} {
		ended := false
		err := turns.Once(t.Context(), 20*time.Millisecond, func(ctx context.Context) {
			if granted {
				document.GrantTime(ctx, time.Hour)
			}
			burn(ctx, 400_000_000) // some 400 ms
			ended = ctx.Err() != nil
		})
		if ended == granted || err != nil {
			t.Errorf("granted more: %v; ended: %v, %v", granted, ended, err)
		}
	}
	document.GrantTime(t.Context(), time.Hour) // which is no work of a turn
}
