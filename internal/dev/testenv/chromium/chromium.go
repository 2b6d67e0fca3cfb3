// Package chromium starts a browser for tests of pages.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

// New returns the context of a tab in a Chromium of its own, which the first use of the tab starts
// and the end of the test stops. The test is skipped where there is no Chromium.
func New(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no Chromium is installed")
	}

	// Chromedp makes the profile and removes it: processes of Chromium outlive the first one for a
	// moment and still write there, for which t.TempDir fails a test.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1200, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}

	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	return ctx
}
