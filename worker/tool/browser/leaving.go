package browser

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/chromedp"
)

// act does something to the page, and waits for what follows.
func (t *tab) act(ctx context.Context, f func(context.Context) error) error {
	t.mu.Lock()
	t.leaving = newLeaving()
	t.mu.Unlock()
	if err := t.do(ctx, f); err != nil {
		return err
	}
	return t.settle(ctx)
}

// quiet is a promise that is kept when the page has not changed for 300 ms, or after 1.5 s.
const quiet = `new Promise((done) => {
	let timer = setTimeout(done, 300);
	new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 300); }).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
	setTimeout(done, 1500);
})`

// settle waits until scripts have drawn what they draw. If the page is being left for
// another, it waits until that one has loaded and is quiet, or the time to load is over.
func (t *tab) settle(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, t.config.LoadTime)
	defer cancel()
	for {
		if leaves, came := t.isLeft(); leaves && within.Err() != nil {
			return t.stopLoading(ctx, came)
		}

		err := t.waitUntilQuiet(ctx)
		leaves, _ := t.isLeft()
		switch {
		case !leaves:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !errors.Is(err, context.DeadlineExceeded): // of a page that is being left, it says nothing
			return err
		}
		t.waitUntilLeft(within)
	}
}

// waitUntilQuiet waits until the page has not changed for a while. Events of the page from
// before have been handled when it returns: one connection carries both, in order.
func (t *tab) waitUntilQuiet(ctx context.Context) error {
	err := t.within(ctx, t.config.LoadTime, func(ctx context.Context) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](quiet, chromedp.EvalAwaitPromise))
		return err
	})
	if _, ok := errors.AsType[*chromedp.ExceptionError](err); ok {
		return nil // the page has its own idea of a MutationObserver, and is read as it is
	}
	return err
}

// isLeft reports whether the page is being left for another, and whether anything of that
// one is there.
func (t *tab) isLeft() (leaves, came bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leaving.isOn(), t.leaving.came
}

// waitUntilLeft waits until the page is not being left any more, or ctx ends.
func (t *tab) waitUntilLeft(ctx context.Context) {
	for {
		t.mu.Lock()
		l, changed := t.leaving, t.leaving.changed
		on, begun := l.isOn(), l.begun
		t.mu.Unlock()
		if !on {
			return
		}

		var ignored <-chan time.Time // what the page asked for
		if !begun {
			ignored = timer(t.config.AnswerTime)
		}

		select {
		case <-changed:
		case <-ignored:
			t.mu.Lock()
			l.forget()
			t.mu.Unlock()
		case <-t.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// A leaving is what is known of whether the page is being left for another, since something
// was done to it. The mutex of the tab guards it.
type leaving struct {
	asked   bool          // by the page; the browser has not begun
	begun   bool          // another page is asked for or loads
	came    bool          // something of it is there
	changed chan struct{} // closed and replaced whenever that changes
}

func newLeaving() *leaving { return &leaving{changed: make(chan struct{})} }

func (l *leaving) isOn() bool { return l.asked || l.begun }

func (l *leaving) set(asked, begun, came bool) {
	l.asked, l.begun, l.came = asked, begun, came
	close(l.changed)
	l.changed = make(chan struct{})
}

// ask notes that the page wants to be left. Chromium says so before it says anything else
// of the page that is asked for.
func (l *leaving) ask() { l.set(true, l.begun, false) }

func (l *leaving) begin() { l.set(false, true, false) }

// noteArrival notes a document that takes the place of the page. Chromium does not say that it
// begins to load when the one before it still did.
func (l *leaving) noteArrival() { l.set(false, l.isOn(), true) }

// stop notes that nothing loads any more. If the page was just asked to be left, that was
// about what loaded before.
func (l *leaving) stop() { l.set(l.asked, false, l.came) }

// forget forgets a wish that the browser does not follow.
func (l *leaving) forget() { l.set(false, l.begun, l.came) }
