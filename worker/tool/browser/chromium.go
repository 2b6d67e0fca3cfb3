package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/coditect/mapreduce/worker/child"
)

// ErrNone says that no Chromium is installed.
var ErrNone = errors.New("no Chromium is installed: install the package chromium, or give its path")

// ErrNoSandbox says that Chromium can have no sandbox.
var ErrNoSandbox = errors.New("Chromium can have no sandbox here, which keeps hostile pages from this machine: let users make namespaces (kernel.unprivileged_userns_clone, or the profile of AppArmor or of the container), or run it in a machine of its own and say so") //nolint:staticcheck // a name

// findChromium returns the path of Chromium.
func findChromium(path string) (string, error) {
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("browser: %s cannot be run: %w", path, errors.Unwrap(err))
		}
		return found, nil
	}

	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("browser: %w", ErrNone)
}

// A chromium is a browser that runs.
type chromium struct {
	ctx    context.Context // of chromedp; ends with the browser
	cancel context.CancelFunc
	dir    string // its profile
	tail   *child.Tail
	guard  *child.Guard
	relay  *relayed // nil if none was started

	stopping chan struct{}
	watching sync.WaitGroup
	why      atomic.Pointer[error] // why it was ended, if this process ended it
	pages    sync.Map              // *tab by target.ID, of tabs that units have
}

// maxTempDir is how long the path of the folder for temporary files may be, in bytes.
// Chromium has a socket in its profile, whose path has to be short.
const maxTempDir = 32

const (
	startTime = 30 * time.Second
	deadProxy = "http://127.0.0.1:1" // for what no unit asked for: nothing listens there
)

// flags are those beside the usual ones: nothing leaves the browser but through a proxy.
var flags = []chromedp.ExecAllocatorOption{
	chromedp.Flag("proxy-server", deadProxy),
	chromedp.Flag("proxy-bypass-list", "<-loopback>"),                           // which otherwise goes past the proxy
	chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), // names are looked up by the policy
	chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),       // calls of pages do not use proxies
	chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"), // its name before
	chromedp.Flag("disable-quic", true),
	chromedp.Flag("disable-component-update", true),
	chromedp.Flag("disable-domain-reliability", true),
	chromedp.Flag("no-pings", true),
	chromedp.Flag("disable-popup-blocking", false), // it blocks windows that nobody clicked for
	chromedp.Flag("disable-ipc-flooding-protection", false),
	chromedp.Flag("disable-gpu", true),
	chromedp.Flag("js-flags", "--max-old-space-size=512"),
	chromedp.Flag("disable-features", "Translate,MediaRouter,OptimizationHints,WebTransport,DialMediaRouteProvider,InterestFeedContentSuggestions"),
	chromedp.Flag("disable-blink-features", "WebTransport"),
	chromedp.WindowSize(1280, 1024),
}

// startChromium starts a browser with a profile of its own.
func startChromium(ctx context.Context, path string, config *Config) (_ *chromium, err error) {
	base := os.TempDir()
	if len(base) > maxTempDir {
		base = "/tmp"
	}

	dir, err := os.MkdirTemp(base, "coditect-browser-")
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}

	c := &chromium{dir: dir, tail: new(child.Tail), stopping: make(chan struct{})}
	attributes := child.Attributes()
	hasSandbox := config.NoSandbox || enterNamespace(attributes)

	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)], flags...)
	options = append(options,
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.CombinedOutput(c.tail),
		chromedp.NoInheritEnv, chromedp.Env("PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir, "LANG=C.UTF-8"),
		chromedp.Flag("no-sandbox", config.NoSandbox),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			cmd.SysProcAttr = attributes
			c.relay, cmd.Err = between(cmd, c.isPage) // with an error, it does not start
		}),
	)

	running, abort := context.WithCancel(context.WithoutCancel(ctx))
	allocator, stop := chromedp.NewExecAllocator(running, options...)
	tab, cancel := chromedp.NewContext(allocator)
	c.ctx, c.cancel = tab, func() { cancel(); stop(); abort() }

	var failure error // once started is closed
	started := make(chan struct{})
	go func() { // in tab itself: the browser lives as long as the context of its first call
		defer close(started)
		failure = chromedp.Do(tab)
	}()

	select {
	case <-started:
		err = failure
	case <-ctx.Done():
		err = context.Cause(ctx)
		abort()
		<-started // why is known
	case <-timer(startTime):
		err = fmt.Errorf("it does not start within %v", startTime)
		abort()
		<-started // why is known
	}

	if err == nil {
		c.guard, err = child.StartGuard(c.process())
	}
	if err == nil {
		err = chromedp.ListenBrowser(tab, c.notice)
	}

	if err != nil {
		c.stop()
		return nil, c.startError(err, hasSandbox, config.NoSandbox)
	}

	c.watching.Go(func() { c.watchMemory(config.MaxMemory) })
	return c, nil
}

func timer(d time.Duration) <-chan time.Time { return time.NewTimer(d).C }

// startError says why there is no browser, and what to do.
func (c *chromium) startError(err error, hasSandbox, noSandbox bool) error {
	said := c.tail.String()
	if !hasSandbox || !noSandbox && (strings.Contains(said, "No usable sandbox") || strings.Contains(said, "without --no-sandbox") || strings.Contains(said, "Operation not permitted")) {
		return fmt.Errorf("browser: %w", ErrNoSandbox)
	}

	why, _, _ := strings.Cut(err.Error(), "\n")
	for line := range strings.Lines(said) {
		if strings.Contains(line, "FATAL") {
			why += " " + strings.TrimSpace(line)
		}
	}
	return fmt.Errorf("browser: Chromium does not start: %s", why)
}

func (c *chromium) process() int {
	if p := chromedp.FromContext(c.ctx).Browser.Process(); p != nil {
		return p.Pid
	}
	return 0
}

// ended says why the browser has ended; nil while it runs.
func (c *chromium) ended() error {
	if why := c.why.Load(); why != nil {
		return *why
	}
	select {
	case <-chromedp.FromContext(c.ctx).Browser.LostConnection:
		return errors.New("Chromium ended by itself") //nolint:staticcheck // a name
	case <-c.ctx.Done():
		return errors.New("the browser was closed")
	default:
		return nil
	}
}

// end ends the browser at once, and says why to those who use it.
func (c *chromium) end(why error) {
	if c.why.CompareAndSwap(nil, &why) {
		if b := chromedp.FromContext(c.ctx).Browser; b != nil && b.Process() != nil {
			_ = b.Process().Kill()
		}
	}
}

// stop ends the browser and removes its profile.
func (c *chromium) stop() {
	c.end(errors.New("the browser was closed"))
	close(c.stopping)
	c.watching.Wait()
	c.cancel()
	chromedp.FromContext(c.ctx).Allocator.Wait()
	c.relay.close()
	c.guard.Stop()
	_ = os.RemoveAll(c.dir) // what a dying process still writes there is in a folder for temporary files
}

// isPage reports whether a frame is the page of a tab that a unit has, and not one in it.
func (c *chromium) isPage(frame string) bool {
	_, ok := c.pages.Load(target.ID(frame))
	return ok
}

// notice closes windows that pages open. It must not block.
func (c *chromium) notice(event any) {
	e, ok := event.(*target.EventTargetCreated)
	if !ok || e.TargetInfo.Type != "page" || e.TargetInfo.OpenerID == "" {
		return
	}

	opener, ok := c.pages.Load(e.TargetInfo.OpenerID)
	if !ok {
		return
	}
	t, ok := opener.(*tab)
	if !ok {
		return
	}

	t.noteWindow(e.TargetInfo.URL)
	c.watching.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, closeTime)
		defer cancel()
		_, _ = chromedp.CallBrowser(ctx, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID}) // it may be gone
	})
}

// How long a tab or window may take to close, and to end with its process. A machine may be
// busy, and all units lose their pages with the browser.
const (
	closeTime = 5 * time.Second
	endTime   = 25 * time.Second
)

// memoryEvery is the time between two looks at the memory of a browser.
const memoryEvery = time.Second

// watchMemory ends a browser that takes too much memory.
func (c *chromium) watchMemory(most int64) {
	ticker := time.NewTicker(memoryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.stopping:
			return
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}

		if took := child.Memory(c.process()); took > most {
			c.end(fmt.Errorf("the browser took %d MiB of memory, and may take %d", took>>20, most>>20))
			return
		}
	}
}
