// Package browser has tools that use a web page as a person does: they open it in a
// headless Chromium, scripts and all, read it, click and type.
//
// A page is not trusted. Chromium runs in its sandbox, with none of this process's
// environment, and reaches the network through a proxy of this process alone, which asks
// the policy of the worker for each connection. So neither a redirect, nor a script, nor a
// name whose address changes leads where the operator did not allow. Downloads are
// refused, dialogs dismissed and windows closed; time, memory, and bytes are bounded.
// Each unit has a browser context of its own, with its own cookies.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// Name is the name of the kit.
const Name = "browser"

// Config says what the kit is made of.
type Config struct {
	Network *policy.Policy     // Which hosts pages reach. Needed.
	Formats *document.Registry // Who makes texts of pages. Needed.

	// Path is that of Chromium. Defaults to what is found in PATH.
	Path string
	// NoSandbox runs Chromium without its sandbox, as where the machine itself is one.
	NoSandbox bool

	// LoadTime is how long a page may load; what it shows by then is read. It is how long
	// reading it may take, too, if that is more than AnswerTime. Defaults to 20 s.
	LoadTime time.Duration
	// AnswerTime is how long a page may take to answer, beside what it loads. Defaults to
	// 5 s.
	AnswerTime time.Duration
	// MaxMemory bounds what Chromium may take, in bytes; above it, it is ended and started
	// again. Defaults to 2 GiB.
	MaxMemory int64
	// MaxBytes bounds what the pages of one unit may get. Defaults to 256 MiB.
	MaxBytes int64
	Now      func() time.Time // Defaults to time.Now.
}

func (c Config) withDefaults() Config {
	c.LoadTime = cmp.Or(c.LoadTime, 20*time.Second)
	c.AnswerTime = cmp.Or(c.AnswerTime, 5*time.Second)
	c.MaxMemory = cmp.Or(c.MaxMemory, 2<<30)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Names of the tools.
const (
	openTool       = "browser_open"
	readTool       = "browser_read"
	clickTool      = "browser_click"
	typeTool       = "browser_type"
	screenshotTool = "browser_screenshot"
)

const callTime = time.Minute

// Specs returns the tools of the kit.
func Specs() []tool.Spec {
	object := func(properties string, required ...string) json.RawMessage {
		names, err := json.Marshal(append([]string{}, required...))
		if err != nil { // of texts
			panic(err)
		}
		return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":` + string(names) + `,"additionalProperties":false}`)
	}

	const ref = `"ref":{"type":"string","pattern":"^e[0-9]{1,6}$","description":"of the element, from the last outline of the page, such as e12"}`
	specs := []tool.Spec{
		{
			Name: openTool, Address: "url", Idempotent: true,
			Description: "Opens a web page in a browser, with its scripts, and returns its readable text and an outline of its elements. Use it for pages that fetch cannot read. Links, buttons and fields in the outline have refs, to click and type.",
			Input:       object(`"url":{"type":"string","maxLength":2048,"description":"address of the page, http or https"}`, "url"),
		},
		{
			Name: readTool, Idempotent: true,
			Description: "Reads the open page again: its readable text and the outline of its elements, as they are now.",
			Input:       object(``),
		},
		{
			Name: clickTool, Description: "Clicks an element of the open page, waits for what follows, and reads the page again.",
			Input: object(ref, "ref"),
		},
		{
			Name: typeTool, Description: "Types a text into a field of the open page in place of what is there, and reads the page again.",
			Input: object(ref+`,"text":{"type":"string","maxLength":10000},"submit":{"type":"boolean","description":"press Enter afterwards"}`, "ref", "text"),
		},
		{
			Name: screenshotTool, Idempotent: true,
			Description: "Takes a picture of the open page for people, who see it in the result beside what is cited of the page. It shows you nothing.",
			Input:       object(``),
		},
	}

	for i := range specs {
		specs[i].Timeout = callTime
	}
	return specs
}

// A Kit is a browser. It is safe for concurrent use.
type Kit struct {
	config Config
	path   string

	mu     sync.Mutex // guards the variables below
	live   *chromium  // nil before the first start, and after the end
	begun  time.Time  // of live
	closed bool
}

var _ tool.Kit = (*Kit)(nil)

// New starts Chromium. The error says what to do where none is installed, or where it can
// have no sandbox.
func New(ctx context.Context, c Config) (*Kit, error) {
	if c.Network == nil || c.Formats == nil {
		return nil, errors.New("browser: needs a policy and formats of documents")
	}

	k := &Kit{config: c.withDefaults()}
	var err error
	if k.path, err = findChromium(c.Path); err != nil {
		return nil, err
	}

	_, err = k.runningBrowser(ctx)
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Name implements tool.Kit.
func (k *Kit) Name() string { return Name }

// Tools implements tool.Kit.
func (*Kit) Tools() []tool.Spec { return Specs() }

// leastLife is how long a Chromium has to live before another may be started.
const leastLife = 3 * time.Second

// runningBrowser returns the browser that runs, started again if it has ended.
func (k *Kit) runningBrowser(ctx context.Context) (*chromium, error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	switch {
	case k.closed:
		return nil, errors.New("the browser is closed")
	case k.live != nil && k.live.ended() == nil:
		return k.live, nil
	case k.live != nil:
		why := k.live.ended()
		k.live.stop()
		k.live = nil
		// A Chromium that ends at once would be started again and again.
		if age := k.config.Now().Sub(k.begun); age < leastLife {
			return nil, fmt.Errorf("the browser ended after %v: %w; try again in a few seconds", age.Round(time.Millisecond), why)
		}
	}

	c, err := startChromium(ctx, k.path, &k.config)
	if err != nil {
		return nil, err
	}

	k.live, k.begun = c, k.config.Now()
	return c, nil
}

// Open implements tool.Kit. A tab is opened with the first page.
func (k *Kit) Open(context.Context) (tool.Session, error) {
	return &session{kit: k, lock: make(chan struct{}, 1)}, nil
}

// Close ends the browser, with all of its processes.
func (k *Kit) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.live != nil {
		k.live.stop()
		k.live = nil
	}
	return nil
}
