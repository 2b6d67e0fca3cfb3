package drawn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/dashboard/drawn"
)

func key(page int) drawn.Key { return drawn.Key{Job: "j", Document: "d", Page: page} }

// What is kept is what was asked for last, and never more bytes than have room; and whatever is
// returned is of the page that was asked for.
func TestRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size, room = 10, 35 // three pages
		var order, drew []int
		pages := drawn.New(func(_ context.Context, document []byte, page int) (*drawn.Page, error) {
			drew = append(drew, page)
			return &drawn.Page{Width: float64(page), Data: append(document, make([]byte, size-len(document))...)}, nil
		}, room)

		for _, n := range rapid.SliceOf(rapid.IntRange(1, 6)).Draw(t, "pages") {
			drew = nil
			p, err := pages.Get(t.Context(), key(n), func() ([]byte, error) { return []byte{byte(n)}, nil })
			if err != nil || p.Width != float64(n) || p.Data[0] != byte(n) {
				t.Fatalf("page %d is %v, %v", n, p, err)
			}

			was := slices.Index(order, n)
			if kept := was >= 0 && was < room/size; kept == (len(drew) == 1) {
				t.Fatalf("page %d was drawn %v, of %v", n, drew, order)
			}
			order = slices.Insert(slices.DeleteFunc(order, func(o int) bool { return o == n }), 0, n)
		}
	})
}

// A page that is larger than the room is drawn each time, and takes no other's place.
func TestLargePage(t *testing.T) {
	drew := 0
	pages := drawn.New(func(_ context.Context, _ []byte, page int) (*drawn.Page, error) {
		drew++
		return &drawn.Page{Data: make([]byte, page)}, nil
	}, 10)
	none := func() ([]byte, error) { return nil, nil }
	for _, n := range []int{5, 11, 11, 5} {
		if _, err := pages.Get(t.Context(), key(n), none); err != nil {
			t.Fatal(err)
		}
	}
	if drew != 3 {
		t.Errorf("%d pages were drawn, want 3", drew)
	}
}

// A page that cannot be drawn, or whose document cannot be read, is not kept: it is tried again.
func TestErrors(t *testing.T) {
	unread, undrawn := errors.New("not read"), errors.New("not drawn")
	pages := drawn.New(func(context.Context, []byte, int) (*drawn.Page, error) { return nil, undrawn }, 10)
	for range 2 {
		if _, err := pages.Get(t.Context(), key(1), func() ([]byte, error) { return nil, unread }); !errors.Is(err, unread) {
			t.Error(err)
		}
		if _, err := pages.Get(t.Context(), key(1), func() ([]byte, error) { return nil, nil }); !errors.Is(err, undrawn) {
			t.Error(err)
		}
	}
}

// Two pages are drawn at once, and no more documents are read than that; who waits for a page that
// somebody else draws meanwhile gets that; and a wait ends with its context.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drew, held, most := 0, 0, 0
		gate := make(chan struct{})
		pages := drawn.New(func(context.Context, []byte, int) (*drawn.Page, error) {
			<-gate
			drew++
			held--
			return &drawn.Page{Data: []byte("x")}, nil
		}, 10)
		read := func() ([]byte, error) {
			held++
			most = max(most, held)
			return nil, nil
		}

		leaves, leave := context.WithCancelCause(t.Context())
		answers := make(chan error, 10)
		ask := func(ctx context.Context, n int) {
			_, err := pages.Get(ctx, key(n), read)
			answers <- err
		}
		for _, n := range []int{1, 2} {
			go ask(t.Context(), n)
			synctest.Wait()
		}
		go ask(leaves, 3)
		go ask(t.Context(), 1)
		synctest.Wait()

		gone := errors.New("gone")
		leave(gone)
		if err := <-answers; !errors.Is(err, gone) {
			t.Error(err)
		}
		for range 2 {
			gate <- struct{}{}
			synctest.Wait()
		}
		close(gate)
		for range 3 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(drew, " ", most); got != "2 2" {
			t.Errorf("drawn and held: %s, want 2 2", got)
		}
	})
}

// Of several who ask for a page at once one draws it. Who waits goes away when nobody needs its page, and draws it
// when the other one could not.
func TestDrawnOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drew := 0
		draws := make(chan error)
		pages := drawn.New(func(context.Context, []byte, int) (*drawn.Page, error) {
			drew++
			return &drawn.Page{}, <-draws
		}, 10)
		none := func() ([]byte, error) { return nil, nil }

		gets := make(chan error)
		gone, leave := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{t.Context(), t.Context(), gone} {
			go func() {
				_, err := pages.Get(ctx, key(1), none)
				gets <- err
			}()
			synctest.Wait() // the first one draws, and the others wait
		}
		if drew != 1 {
			t.Fatalf("%d draw the page", drew)
		}

		leave()
		if err := <-gets; !errors.Is(err, context.Canceled) {
			t.Errorf("whoever went away got %v", err)
		}
		undrawn := errors.New("no page")
		draws <- undrawn
		if err := <-gets; !errors.Is(err, undrawn) {
			t.Errorf("whoever could not draw got %v", err)
		}
		draws <- nil
		if err := <-gets; err != nil || drew != 2 {
			t.Errorf("the next one got %v after %d drew", err, drew)
		}
		if _, err := pages.Get(t.Context(), key(1), none); err != nil || drew != 2 {
			t.Errorf("what is kept is drawn again: %d, %v", drew, err)
		}
	})
}
