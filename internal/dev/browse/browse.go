// Package browse starts a Chromium for programs of development that look at pages.
package browse

import (
	"context"
	"os"

	"github.com/chromedp/chromedp"
)

// Start starts a Chromium with options beside chromedp's own, and returns the context of its first tab. The browser
// ends when stop is called, or with ctx. It fails where no Chromium can be started; stop is to be called even then.
func Start(ctx context.Context, options ...chromedp.ExecAllocatorOption) (tab context.Context, stop context.CancelFunc, err error) {
	options = append(chromedp.DefaultExecAllocatorOptions[:], options...)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}

	allocator, end := chromedp.NewExecAllocator(ctx, options...)
	tab, leave := chromedp.NewContext(allocator)
	stop = func() {
		leave()
		end()
	}

	// The browser lives as long as the context that it is started with.
	return tab, stop, chromedp.Do(tab, chromedp.Navigate("about:blank"))
}
