package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/readable"
)

// A session is what one unit has of the browser: one tab, opened with the first page.
type session struct {
	kit  *Kit
	lock chan struct{} // held during a call: a tab does one thing at a time
	tab  *tab          // nil if none is open
}

// errNoPage says that nothing is open.
var errNoPage = errors.New("no page is open: open one with " + openTool + " first (work that goes on elsewhere has a new browser)")

// errEnded says that the browser ended before a page was open.
var errEnded = errors.New("the browser ended; open the page again")

// lost reports whether a call failed as the browser ended.
func (s *session) lost(err error) bool {
	return errors.Is(err, errEnded) || s.tab != nil && s.tab.chromium.ended() != nil
}

// Call implements tool.Session.
func (s *session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	var in struct {
		URL    string `json:"url"`
		Ref    string `json:"ref"`
		Text   string `json:"text"`
		Submit bool   `json:"submit"`
	}

	if len(input) > 0 {
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("%s: the input is not what the tool takes: %w", name, err)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	if s.tab != nil && s.tab.chromium.ended() != nil {
		s.drop()
	}

	result, err := s.run(ctx, name, in.URL, in.Ref, in.Text, in.Submit)
	if err != nil && name == openTool && s.lost(err) && ctx.Err() == nil { // a page of another unit took the browser down
		s.drop()
		result, err = s.run(ctx, name, in.URL, in.Ref, in.Text, in.Submit)
	}

	if err == nil || s.tab == nil {
		return result, err
	}

	if why := s.tab.chromium.ended(); why != nil {
		err = why
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("the page does not answer, and was closed: %w", err)
		s.drop()
	}
	if errors.Is(err, errCrashed) {
		s.drop()
	}

	return nil, fmt.Errorf("%s: %w", name, err)
}

func (s *session) run(ctx context.Context, name, address, ref, text string, submit bool) (*tool.Result, error) {
	if name == openTool {
		return s.open(ctx, address)
	}

	if s.tab == nil {
		return nil, errNoPage
	}

	switch name {
	case readTool: // the page is read below
	case clickTool:
		if err := s.tab.clickElement(ctx, ref); err != nil {
			return nil, err
		}
	case typeTool:
		if err := s.tab.enter(ctx, ref, text, submit); err != nil {
			return nil, err
		}
	case screenshotTool:
		return s.takePicture(ctx)
	default:
		return nil, fmt.Errorf("%w: %q", tool.ErrNoTool, name)
	}

	return s.read(ctx)
}

// open opens a page.
func (s *session) open(ctx context.Context, address string) (*tool.Result, error) {
	u, err := s.kit.config.Network.CheckURL(address)
	if err != nil {
		return nil, err
	}

	if s.tab != nil && !s.tab.isAnswering(ctx) {
		s.drop()
	}

	if s.tab == nil {
		c, err := s.kit.runningBrowser(ctx)
		if err != nil {
			return nil, err
		}
		if s.tab, err = openTab(ctx, c, &s.kit.config); err != nil {
			if why := c.ended(); why != nil {
				err = fmt.Errorf("%w: %w", errEnded, why)
			}
			return nil, err
		}
	}

	// Requests that were refused before were not made by this page.
	s.tab.proxy.takeRefused()
	if err := s.tab.openAddress(ctx, u.String()); err != nil {
		if refused := s.tab.proxy.takeRefused(); len(refused) > 0 && ctx.Err() == nil {
			return nil, refused[0]
		}
		return nil, err
	}

	return s.read(ctx)
}

// maxOutline bounds the outline of a page, in bytes. The text of the page has the rest.
const maxOutline = 16 << 10

// read returns the open page as evidence, and its outline.
func (s *session) read(ctx context.Context) (*tool.Result, error) {
	page, err := s.tab.look(ctx)
	if err != nil {
		return nil, err
	}

	var b strings.Builder
	fmt.Fprintf(&b, "Page: %s\nTitle: %s\n", page.URL, oneLine(page.Title))
	if page.Status >= 400 {
		fmt.Fprintf(&b, "The server answered with status %d.\n", page.Status)
	}

	for _, note := range s.tab.takeNotes() {
		b.WriteString(note + "\n")
	}
	for _, r := range s.tab.proxy.takeRefused() {
		b.WriteString(oneLine(r.Error()) + "\n")
	}

	outline, cut := page.Outline, 0
	if len(outline) > maxOutline {
		// It is cut behind a whole line.
		cut = strings.LastIndexByte(outline[:maxOutline], '\n') + 1
		outline, cut = outline[:cut], len(outline)-cut
	}
	b.WriteString("Outline:\n" + outline)
	if cut > 0 {
		fmt.Fprintf(&b, "(%d more bytes of outline are left out)\n", cut)
	}

	result := &tool.Result{Text: b.String()}
	for _, l := range page.Links {
		result.Links = append(result.Links, tool.Link{Text: oneLine(l.Text), Address: l.Address})
	}

	text, left, err := s.textOf(ctx, page)
	if err != nil {
		return nil, err
	}
	result.Cut = left

	if text != "" {
		result.Evidence = []tool.Evidence{{
			URI: page.URL, Title: oneLine(page.Title), Media: "text/html", Retrieved: s.kit.config.Now(), Text: text,
		}}
	}
	return result, nil
}

// textOf returns the readable text of a page: of its article if it has one, else all that
// it shows.
func (s *session) textOf(ctx context.Context, page *pageView) (string, int64, error) {
	t, err := readable.Read(ctx, s.kit.config.Formats, document.Input{Name: "page.html", Content: strings.NewReader(page.HTML), MediaType: "text/html; charset=utf-8"})
	if err == nil && strings.TrimSpace(t.Text) != "" {
		return t.Text, t.Cut, nil
	}

	text, err := s.tab.shown(ctx)
	if err != nil {
		return "", 0, err
	}

	cut := int64(0)
	if len(text) > tool.MaxEvidence {
		n := tool.MaxEvidence
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text, cut = text[:n], int64(len(text)-n)
	}

	return strings.TrimSpace(text), cut, nil
}

// takePicture takes a picture of the page.
func (s *session) takePicture(ctx context.Context) (*tool.Result, error) {
	p, err := s.tab.picture(ctx)
	if err != nil {
		return nil, err
	}
	p.Retrieved = s.kit.config.Now()
	return &tool.Result{
		Text:     fmt.Sprintf("A picture of %s was taken (%d bytes). People see it beside what is cited of the page.", p.URI, len(p.Data)),
		Pictures: []tool.Picture{*p},
	}, nil
}

// drop closes the tab.
func (s *session) drop() {
	if s.tab != nil {
		s.tab.close()
		s.tab = nil
	}
}

// Close implements tool.Session.
func (s *session) Close() error {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.drop()
	return nil
}

// oneLine returns a short text on one line.
func oneLine(text string) string { return cmp.Or(shorten.Line(text, maxLine), "(none)") }

// maxLine bounds a line of an outline, in characters.
const maxLine = 300
