package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/accessibility"
	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coditect/mapreduce/worker/tool"
)

// A tab is the page of one unit, in a browser context of its own.
type tab struct {
	chromium *chromium
	config   *Config
	proxy    *proxy
	ctx      context.Context // of chromedp
	cancel   context.CancelFunc
	id       target.ID
	refs     map[string]node // of the last outline

	mu      sync.Mutex // guards the variables below
	notes   []string
	windows int
	dialogs int
	crashed bool
	arrival *arrival // of the page that was opened last
	leaving *leaving // of what was done last
	working sync.WaitGroup
}

// errCrashed says that the page took its process down.
var errCrashed = errors.New("the page crashed, as one does that takes too much memory; open another one")

// Bounds of what is noted of one page.
const (
	maxNotes   = 10
	maxDialogs = 20
	maxWindows = 20
)

// openTab opens an empty tab.
func openTab(ctx context.Context, c *chromium, config *Config) (*tab, error) {
	p, err := startProxy(config.Network, config.MaxBytes)
	if err != nil {
		return nil, err
	}

	t := &tab{chromium: c, config: config, proxy: p, arrival: newArrival(), leaving: newLeaving()}
	t.ctx, t.cancel = chromedp.NewContext(c.ctx, chromedp.WithNewBrowserContext(func(params *target.CreateBrowserContextParams) {
		params.ProxyServer, params.ProxyBypassList = p.address(), "<-loopback>"
	}))

	opened := make(chan error, 1)
	go func() { opened <- chromedp.Listen(t.ctx, t.notice) }() // in t.ctx itself: the tab lives as long as the context of its first call
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}

	if err == nil {
		t.mu.Lock() // for notice, which is called already
		t.id = chromedp.FromContext(t.ctx).Target.TargetID
		t.mu.Unlock()
		c.pages.Store(t.id, t)
		err = t.do(ctx, t.prepare)
	}

	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// prepare sets the tab up before a page is in it.
func (t *tab) prepare(ctx context.Context) error {
	_, err := chromedp.CallBrowser(ctx, protocol.SetDownloadBehavior, protocol.SetDownloadBehaviorParams{
		Behavior: protocol.SetDownloadBehaviorBehaviorDeny, BrowserContextID: chromedp.FromContext(t.ctx).BrowserContextID,
	})
	// chromedp has asked for events that are not used here. Chromium need not make them.
	for _, off := range []cdp.Command[cdp.Empty, cdp.Empty]{runtime.Disable, network.Disable, log.Disable} {
		if err == nil {
			_, err = chromedp.Call(ctx, off, cdp.Empty{})
		}
	}
	return err
}

// do calls f with a context of the tab that ends with ctx too.
func (t *tab) do(ctx context.Context, f func(context.Context) error) error {
	within, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()

	err := f(within)
	t.mu.Lock()
	crashed := t.crashed
	t.mu.Unlock()

	switch {
	case crashed:
		return errCrashed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// close closes the tab with its browser context. The process of a page that does not let
// itself be closed is ended; if that does not help, so is the browser with all its pages.
func (t *tab) close() {
	t.chromium.pages.Delete(t.id)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = chromedp.Cancel(t.ctx) // waits for the browser
		t.cancel()
	}()

	select {
	case <-closed:
	case <-timer(closeTime):
		crashing, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), endTime)
		go func() { // it is not answered
			defer cancel()
			_, _ = chromedp.Call(crashing, page.Crash, cdp.Empty{})
		}()
		select {
		case <-closed:
		case <-crashing.Done():
			t.chromium.end(errors.New("a page did not close"))
			<-closed
		}
		cancel()
	}

	t.working.Wait()
	t.proxy.close()
}

// notice handles an event of the page. It must not block.
func (t *tab) notice(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()

	switch e := event.(type) {
	case *page.EventLifecycleEvent:
		if t.isPage(e.FrameID) {
			t.arrival.note(e.Name, e.LoaderID)
			if e.Name == "init" {
				t.leaving.noteArrival()
			}
		}
	case *page.EventFrameRequestedNavigation:
		if t.isPage(e.FrameID) && e.Disposition == page.ClientNavigationDispositionCurrentTab {
			t.leaving.ask()
		}
	case *page.EventFrameStartedLoading:
		if t.isPage(e.FrameID) {
			t.leaving.begin()
		}
	case *page.EventFrameStoppedLoading:
		if t.isPage(e.FrameID) {
			t.leaving.stop()
		}
	case *inspector.EventTargetCrashed:
		t.crashed = true
		t.leaving.set(false, false, false) // nothing comes any more
	case *page.EventJavascriptDialogOpening:
		t.dialogs++
		t.noteOnce(t.dialogs, maxDialogs, "The page showed a dialog, which was dismissed: "+oneLine(e.Message))
		leave := e.Type == page.DialogTypeBeforeunload // the page asks whether to stay
		t.working.Go(func() {
			ctx, cancel := context.WithTimeout(t.ctx, closeTime)
			defer cancel()
			_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: leave}) // it may be gone
		})
	}
}

// isPage reports whether a frame is the page itself, and not one in it.
func (t *tab) isPage(frame cdp.FrameID) bool { return string(frame) == string(t.id) }

// noteOnce notes something that a page did, unless it does it too often. The caller holds
// mu.
func (t *tab) noteOnce(times, most int, note string) {
	if times <= most && len(t.notes) < maxNotes {
		t.notes = append(t.notes, note)
	}
}

// noteWindow notes a window that the page opened.
func (t *tab) noteWindow(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.windows++
	t.noteOnce(t.windows, maxWindows, "The page opened a window, which was closed; its address, for "+openTool+": "+oneLine(address))
}

func (t *tab) takeNotes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	notes := t.notes
	t.notes, t.windows, t.dialogs = nil, 0, 0
	return notes
}

// openAddress opens an address and waits until it has loaded, or its time is over.
func (t *tab) openAddress(ctx context.Context, address string) error {
	arrival := newArrival()
	t.mu.Lock()
	t.arrival, t.leaving, t.notes = arrival, newLeaving(), nil
	t.mu.Unlock()

	within, cancel := context.WithTimeout(ctx, t.config.LoadTime)
	defer cancel()
	var result page.NavigateResult
	err := t.do(within, func(ctx context.Context) (err error) {
		result, err = chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
		return err
	})

	switch {
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not answer within %v", address, t.config.LoadTime)
	case err != nil:
		return err
	case result.IsDownload:
		return fmt.Errorf("%s is a file to download, and no page", address)
	case result.ErrorText != "":
		return fmt.Errorf("%s cannot be opened: %s", address, result.ErrorText)
	}

	// Only the answer says which document is wanted. It may have loaded by now.
	t.mu.Lock()
	arrival.expectDocument(result.LoaderID)
	t.mu.Unlock()

	select {
	case <-arrival.loaded:
	case <-within.Done():
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return t.stopLoading(ctx, true)
	}

	return t.settle(ctx)
}

// stopLoading stops a page whose time to load is over, and notes it. came says whether
// anything of it is there.
func (t *tab) stopLoading(ctx context.Context, came bool) error {
	note := "The page was still loading after %v; this is what it showed by then."
	if !came {
		note = "Another page was asked for, and did not answer within %v; this is the page before it."
	}

	t.mu.Lock()
	t.noteOnce(1, 1, fmt.Sprintf(note, t.config.LoadTime))
	t.mu.Unlock()

	stopping, cancel := context.WithTimeout(ctx, t.config.AnswerTime)
	defer cancel()
	return t.do(stopping, func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.StopLoading, cdp.Empty{})
		return err
	})
}

// An arrival is that of a page in a tab. Until it is there, the page before still is, and
// may load again. The mutex of the tab guards it.
type arrival struct {
	wanted cdp.LoaderID         // empty until it is known
	order  map[cdp.LoaderID]int // of documents that have begun since, from 1
	last   int                  // of those that have loaded
	loaded chan struct{}        // closed when the wanted document has loaded, or one that took its place
}

// maxBegun bounds the documents that begin while a page is waited for.
const maxBegun = 1000

func newArrival() *arrival {
	return &arrival{order: make(map[cdp.LoaderID]int), loaded: make(chan struct{})}
}

// note notes what became of a document.
func (a *arrival) note(what string, id cdp.LoaderID) {
	switch {
	case what == "init" && a.order[id] == 0 && len(a.order) < maxBegun:
		a.order[id] = len(a.order) + 1
	case what == "load":
		a.last = max(a.last, a.order[id])
	}
	a.check()
}

// expectDocument says which document is wanted; an empty id is that of a place in the same document.
func (a *arrival) expectDocument(id cdp.LoaderID) {
	if id == "" {
		a.order[id], a.last = 1, 1
	}
	a.wanted = id
	a.check()
}

func (a *arrival) check() {
	at := a.order[a.wanted]
	if at == 0 || a.last < at {
		return
	}
	select {
	case <-a.loaded:
	default:
		close(a.loaded)
	}
}

// readTime is how long a page may take to be read: a large one takes as long as to load.
func (t *tab) readTime() time.Duration { return max(t.config.AnswerTime, t.config.LoadTime) }

// leftEvery is the time between two tries at a page that is just being left.
const leftEvery = 100 * time.Millisecond

// within calls f, which asks the page something, until the page is there to answer: one
// that is just being left for another is not. After the time it returns that the deadline
// is exceeded.
func (t *tab) within(ctx context.Context, most time.Duration, f func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		err := t.do(within, f)
		refused, ok := errors.AsType[*cdproto.Error](err)
		if !ok || refused.Code == tooLarge || t.chromium.ended() != nil {
			return err
		}

		select {
		case <-within.Done():
			return context.Cause(within)
		case <-timer(leftEvery):
		}
	}
}

// isAnswering reports whether the page answers at all. One whose scripts never rest does not,
// and cannot be left for another page.
func (t *tab) isAnswering(ctx context.Context) bool {
	err := t.within(ctx, t.config.AnswerTime, func(ctx context.Context) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[int]("1"))
		return err
	})
	return err == nil
}

// A pageView is a page as it is now.
type pageView struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Status  int    `json:"status"` // of HTTP; 0 if it is not known
	HTML    string `json:"html"`
	Links   []link `json:"links"` // in their order on the page
	Size    int    `json:"size"`  // how many elements it has
	Parts   []part `json:"parts"` // the first that match usable
	Outline string `json:"-"`
}

// isLarge reports whether the tree of the page's elements would be too large to look at.
func (v *pageView) isLarge() bool { return v.Size > maxElements || len(v.HTML) > maxTree }

// A part is an element of a large page.
type part struct {
	Role string `json:"role"`
	Name string `json:"name"`
}

// A link is where one can go from a page.
type link struct {
	Text    string `json:"text"`
	Address string `json:"address"`
}

// Bounds of the page that is read.
const (
	maxHTML     = 8 << 20 // UTF-16 units
	maxElements = 10_000  // of a page whose tree is looked at
	maxTree     = 4 << 20 // bytes of HTML of such a page
	maxParts    = 300     // of any other
)

// usable selects what can be clicked or typed into, and headings.
const usable = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], [role=link], [role=tab], [role=menuitem], [role=textbox], h1, h2, h3"

// place is where a page is, as a pageView.
const place = `({url: location.href.slice(0, 4096), title: document.title.slice(0, 1000)})`

var view = fmt.Sprintf(`({
	...%s,
	status: (performance.getEntriesByType("navigation")[0] || {}).responseStatus || 0,
	html: document.documentElement ? document.documentElement.outerHTML.slice(0, %d) : "",
	size: document.getElementsByTagName("*").length,
	parts: Array.from(document.querySelectorAll(%q)).slice(0, %d).map((e) => ({
		role: (e.getAttribute("role") || {A: "link", BUTTON: "button", SUMMARY: "button", INPUT: "textbox", TEXTAREA: "textbox", SELECT: "combobox"}[e.tagName] || "heading").slice(0, 20),
		name: (e.getAttribute("aria-label") || e.innerText || e.value || "").slice(0, %d),
	})),
	links: Array.from(document.links).filter((a) => /^https?:$/.test(a.protocol)).slice(0, %d).map((a) => ({text: (a.innerText || "").slice(0, %d), address: a.href.slice(0, 4096)})),
})`, place, maxHTML, usable, maxParts, maxLine, tool.MaxLinks, maxLine)

// shown returns the text of the page as it is shown.
func (t *tab) shown(ctx context.Context) (text string, err error) {
	err = t.within(ctx, t.readTime(), func(ctx context.Context) (err error) {
		text, err = chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`document.body ? document.body.innerText.slice(0, %d) : ""`, maxHTML)))
		return err
	})
	return text, err
}

// look reads the page and makes its outline.
func (t *tab) look(ctx context.Context) (*pageView, error) {
	var v pageView
	err := t.within(ctx, t.readTime(), func(ctx context.Context) (err error) {
		if v, err = chromedp.Run(ctx, chromedp.Evaluate[pageView](view)); err != nil {
			return err
		}

		if v.isLarge() {
			v.Outline, t.refs, err = outlineOfParts(ctx, &v)
			return err
		}

		tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err == nil {
			v.Outline, t.refs = outlineOf(tree.Nodes)
		}
		return err
	})
	return &v, err
}

// outlineOfParts returns the outline of a large page: what can be used of it first.
func outlineOfParts(ctx context.Context, v *pageView) (string, map[string]node, error) {
	root, err := chromedp.Call(ctx, dom.GetDocument, dom.GetDocumentParams{Depth: new(int64(0))})
	if err != nil {
		return "", nil, err
	}

	found, err := chromedp.Call(ctx, dom.QuerySelectorAll, dom.QuerySelectorAllParams{NodeID: root.Root.NodeID, Selector: usable})
	if err != nil {
		return "", nil, err
	}

	var b strings.Builder
	fmt.Fprintf(&b, "(The page has %d elements. These are the first that can be used, and headings.)\n", v.Size)

	// Parts and nodes come from one selector, so the same number is the same element.
	refs := make(map[string]node)
	for i, p := range v.Parts[:min(len(v.Parts), len(found.NodeIDs))] {
		fmt.Fprintf(&b, "- %s %q", oneLine(p.Role), oneLine(p.Name))
		if p.Role != "heading" {
			ref := fmt.Sprintf("e%d", len(refs)+1)
			refs[ref] = node{id: found.NodeIDs[i]}
			b.WriteString(" [" + ref + "]")
		}
		b.WriteString("\n")
	}
	return b.String(), refs, nil
}

// A node is an element of the page, by one of two ids.
type node struct {
	backend cdp.BackendNodeID
	id      cdp.NodeID
}

// node returns the element that a ref means.
func (t *tab) node(ref string) (node, error) {
	n, ok := t.refs[ref]
	if !ok {
		return node{}, fmt.Errorf("no element has the ref %.20q in the last outline of the page", ref)
	}
	return n, nil
}

// clickElement clicks an element as a mouse does.
func (t *tab) clickElement(ctx context.Context, ref string) error {
	n, err := t.node(ref)
	if err != nil {
		return err
	}

	return t.act(ctx, func(ctx context.Context) error {
		if _, err := chromedp.Call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: n.backend, NodeID: n.id}); err != nil {
			return goneError(ref, err)
		}

		quads, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: n.backend, NodeID: n.id})
		if err != nil || len(quads.Quads) == 0 || len(quads.Quads[0]) != 8 {
			return goneError(ref, err)
		}

		q := quads.Quads[0]
		return chromedp.Do(ctx, chromedp.MouseClickXY((q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4))
	})
}

func goneError(ref string, err error) error {
	if err != nil && !strings.Contains(err.Error(), "node") && !strings.Contains(err.Error(), "layout") {
		return err
	}
	return fmt.Errorf("the element %s cannot be seen any more; read the page again", ref)
}

// enter types a text into a field.
func (t *tab) enter(ctx context.Context, ref, text string, submit bool) error {
	n, err := t.node(ref)
	if err != nil {
		return err
	}

	return t.act(ctx, func(ctx context.Context) error {
		if _, err := chromedp.Call(ctx, dom.Focus, dom.FocusParams{BackendNodeID: n.backend, NodeID: n.id}); err != nil {
			return fmt.Errorf("the element %s takes no text", ref)
		}
		// The text of the field is selected, so that the new one replaces it.
		if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](`document.activeElement && document.activeElement.select && document.activeElement.select()`)); err != nil {
			return err
		}
		if _, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
			return err
		}

		if submit {
			return chromedp.Do(ctx, chromedp.KeyEvent(kb.Enter))
		}
		return nil
	})
}

// picture returns a picture of what can be seen of the page, in the best quality that fits.
func (t *tab) picture(ctx context.Context) (*tool.Picture, error) {
	var p tool.Picture
	err := t.within(ctx, t.readTime(), func(ctx context.Context) error {
		v, err := chromedp.Run(ctx, chromedp.Evaluate[pageView](place))
		if err != nil {
			return err
		}

		p.URI, p.Title = v.URL, oneLine(v.Title)
		// Each of these takes less room than the one before.
		for _, as := range []page.CaptureScreenshotParams{
			{Format: page.CaptureScreenshotFormatPng},
			{Format: page.CaptureScreenshotFormatJpeg, Quality: new(int64(80))},
			{Format: page.CaptureScreenshotFormatJpeg, Quality: new(int64(20))},
		} {
			r, err := chromedp.Call(ctx, page.CaptureScreenshot, as)
			if err != nil {
				return err
			}
			p.Media, p.Data = "image/"+as.Format.String(), r.Data
			if len(p.Data) <= tool.MaxPicture {
				return nil
			}
		}

		return fmt.Errorf("the picture has %d bytes, and at most %d are kept", len(p.Data), tool.MaxPicture)
	})
	return &p, err
}

// refRoles are the roles of elements that can be clicked or typed into.
var refRoles = map[string]bool{
	"link": true, "button": true, "textbox": true, "searchbox": true, "combobox": true, "checkbox": true, "radio": true, "menuitem": true,
	"menuitemcheckbox": true, "menuitemradio": true, "tab": true, "option": true, "switch": true, "slider": true, "spinbutton": true, "treeitem": true, "DisclosureTriangle": true,
}

// shownRoles are the roles of other elements that the outline has.
var shownRoles = map[string]bool{
	"heading": true, "StaticText": true, "image": true, "img": true, "dialog": true, "alertdialog": true, "alert": true, "status": true, "table": true, "row": true,
	"navigation": true, "main": true, "form": true, "article": true, "Iframe": true, "listitem": true, "banner": true, "contentinfo": true, "complementary": true, "search": true,
}

const (
	maxNodes = 20_000 // of a page that are looked at
	maxDepth = 40     // of indentation
)

// outlineOf returns the elements of a page that people see or use, each on a line, and what
// the refs in it mean.
func outlineOf(nodes []*accessibility.Node) (string, map[string]node) {
	byID := make(map[accessibility.NodeID]*accessibility.Node, len(nodes))
	for _, n := range nodes {
		byID[n.NodeID] = n
	}

	refs, seen := make(map[string]node), 0
	var b strings.Builder
	var write func(n *accessibility.Node, depth int, above string)
	write = func(n *accessibility.Node, depth int, above string) {
		if seen++; n == nil || seen > maxNodes || depth > maxDepth {
			return
		}

		role, name := textOf(n.Role), textOf(n.Name)
		if !n.Ignored && (refRoles[role] || shownRoles[role]) && (role != "StaticText" || name != above) && (name != "" || refRoles[role]) {
			fmt.Fprintf(&b, "%s- %s", strings.Repeat("  ", depth), role)
			if name != "" {
				fmt.Fprintf(&b, " %q", oneLine(name))
			}
			if refRoles[role] && n.BackendDOMNodeID != 0 {
				ref := fmt.Sprintf("e%d", len(refs)+1)
				refs[ref] = node{backend: n.BackendDOMNodeID}
				b.WriteString(" [" + ref + "]")
			}
			if value := textOf(n.Value); value != "" {
				fmt.Fprintf(&b, " value=%q", oneLine(value))
			}
			for _, p := range n.Properties {
				if state := textOf(p.Value); (p.Name == "checked" || p.Name == "disabled" || p.Name == "expanded" || p.Name == "selected") && state != "" && state != "false" {
					fmt.Fprintf(&b, " %s", p.Name)
				}
			}
			b.WriteString("\n")
			depth, above = depth+1, name
		}

		if role == "StaticText" {
			return // below it are its lines
		}

		for _, id := range n.ChildIDs {
			write(byID[id], depth, above)
		}
	}

	if len(nodes) > 0 {
		write(nodes[0], 0, "")
	}
	return b.String(), refs
}

// textOf returns a value as text.
func textOf(v *accessibility.Value) string {
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	var text string
	if json.Unmarshal(v.Value, &text) == nil {
		return text
	}
	return string(v.Value)
}
