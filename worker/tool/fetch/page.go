package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/readable"
)

// A pageKey is a page as one unit has read it. Units share no pages: what one of them was
// shown is its own.
type pageKey struct {
	unit int64
	url  string // as it was asked for
}

// A page is what an address held at a time. It does not change.
type page struct {
	url       string // where it was found, behind all redirects
	title     string
	media     string
	text      string
	cut       int64 // bytes of the text that were left out
	notes     []string
	links     []link
	metadata  map[string]string
	retrieved time.Time

	fresh    time.Time // until then it is not asked for again
	etag     string
	modified string
}

// readPage returns the page at an address: the one that the unit has read before, if its
// server says that it is still the same.
func (s *session) readPage(ctx context.Context, u *url.URL) (*page, error) {
	key := pageKey{s.unit, u.String()}
	old, _ := s.kit.pages.Find(key)
	if old != nil && s.kit.config.Now().Before(old.fresh) {
		return old, nil
	}

	a := &asking{session: s, kit: s.kit, asked: u}
	p, keep, err := a.ask(ctx, old)
	if err != nil {
		return nil, err
	}

	if keep {
		s.kit.pages.Keep(key, p, int64(len(p.text)+1024))
	}
	return p, nil
}

// An asking is one request with its redirects.
type asking struct {
	session *session
	kit     *Kit
	asked   *url.URL
}

// ask asks for a page, or whether an old one is still the same, and reports whether the
// answer may be kept.
func (a *asking) ask(ctx context.Context, old *page) (p *page, keep bool, err error) {
	leave, err := a.enter(ctx, a.asked)
	if err != nil {
		return nil, false, err
	}
	defer leave()

	asking, end := context.WithCancelCause(ctx)
	defer end(nil)
	req, err := a.request(asking, old)
	if err != nil {
		return nil, false, err
	}

	// The client is copied, as its redirects are checked for this request.
	client := *a.kit.client
	client.CheckRedirect = a.checkRedirect
	resp, err := client.Do(req)
	if err != nil {
		return nil, false, a.failed(ctx, err)
	}
	defer resp.Body.Close()

	if resp.StatusCode == http.StatusNotModified && old != nil {
		again := *old
		again.fresh = freshUntil(resp.Header, a.kit.config.Now())
		return &again, true, nil
	}

	if err := a.checkStatus(resp); err != nil {
		return nil, false, err
	}

	p, err = a.read(ctx, asking, end, resp)
	if err != nil {
		return nil, false, fmt.Errorf("%s %w", resp.Request.URL, err)
	}
	return p, !strings.Contains(strings.ToLower(resp.Header.Get("Cache-Control")), "no-store"), nil
}

// enter waits until a request to a host may begin, if robots.txt and the bounds of the unit
// allow it. leave ends it.
func (a *asking) enter(ctx context.Context, u *url.URL) (leave func(), err error) {
	if err := a.session.countRequest(u); err != nil {
		return nil, err
	}
	if err := a.kit.robots.check(ctx, u); err != nil {
		return nil, err
	}
	return a.kit.hosts.enter(ctx, u)
}

func (a *asking) request(ctx context.Context, old *page) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.asked.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}

	a.kit.setHeaders(req)
	if old != nil && old.etag != "" {
		req.Header.Set("If-None-Match", old.etag)
	}
	if old != nil && old.modified != "" {
		req.Header.Set("If-Modified-Since", old.modified)
	}
	return req, nil
}

// setHeaders sets the headers that all requests have.
func (k *Kit) setHeaders(req *http.Request) {
	req.Header.Set("User-Agent", k.config.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/pdf,text/plain,*/*;q=0.5")
	req.Header.Set("Accept-Encoding", "gzip")
}

// checkRedirect follows a redirect if the policy, robots.txt and the bounds of the unit
// allow it. It is that of http.Client.
func (a *asking) checkRedirect(req *http.Request, via []*http.Request) error {
	if err := a.kit.config.Network.CheckRedirect(req, via); err != nil {
		return err
	}
	if err := a.session.countRequest(req.URL); err != nil {
		return err
	}
	req.Header.Del("Referer") // which page was read before is nobody's business
	return a.kit.robots.check(req.Context(), req.URL)
}

// failed returns why there is no answer: a refusal as it is, and the cause why ctx ended.
func (a *asking) failed(ctx context.Context, err error) error {
	var refused *tool.Refused
	var from *url.Error

	switch {
	case errors.As(err, &refused):
		return refused
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not answer: %w", a.asked, context.Cause(ctx))
	case errors.As(err, &from):
		return fmt.Errorf("%s cannot be read: %w", a.asked, from.Err)
	}
	return fmt.Errorf("%s cannot be read: %w", a.asked, err)
}

// checkStatus returns an error for an answer that is no page. A host that asks for a pause
// gets it.
func (a *asking) checkStatus(resp *http.Response) error {
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNonAuthoritativeInfo {
		return nil
	}

	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		if wait := retryAfter(resp.Header.Get("Retry-After"), a.kit.config.Now()); wait > 0 {
			a.kit.hosts.holdBack(resp.Request.URL, wait)
			return fmt.Errorf("%s answered %s, and asks to come back in %v", resp.Request.URL, status, wait.Round(time.Second))
		}
	}
	return fmt.Errorf("%s answered %s", resp.Request.URL, status)
}

// retryAfter returns how long a host asks to wait, 0 if it says nothing that makes sense.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, 86_400)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// freshUntil returns until when an answer may be used again without asking, by RFC 9111 for
// a cache of one user. An answer that does not say so is asked for again.
func freshUntil(h http.Header, now time.Time) time.Time {
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "no-cache", "no-store":
			return time.Time{}
		case "max-age":
			seconds, err := strconv.Atoi(strings.Trim(value, `"`))
			if err != nil || seconds <= 0 {
				return time.Time{}
			}
			age, _ := strconv.Atoi(h.Get("Age"))
			return now.Add(time.Duration(min(seconds, 86_400)-max(age, 0)) * time.Second)
		}
	}

	// Expires counts only where Cache-Control says nothing.
	if at, err := http.ParseTime(h.Get("Expires")); err == nil && at.Before(now.Add(24*time.Hour)) {
		return at
	}
	return time.Time{}
}

// read reads a page within its bounds. Errors go behind the address of the page. asking is
// the context of the request, which end ends: a page may be read whose end did not come.
func (a *asking) read(ctx, asking context.Context, end context.CancelCauseFunc, resp *http.Response) (*page, error) {
	b := &body{kit: a.kit, session: a.session}
	defer b.release()
	data, err := b.read(asking, end, resp)
	if err != nil {
		return nil, err
	}

	media := resp.Header.Get("Content-Type")
	if _, _, err := mime.ParseMediaType(media); err != nil {
		media = "" // a wrong header counts as none
	}

	select {
	case a.kit.parsing <- struct{}{}:
		defer func() { <-a.kit.parsing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("was not read in time: %w", context.Cause(ctx))
	}

	in := document.Input{Name: nameOf(resp), MediaType: media, Content: bytes.NewReader(data)}
	t, err := readable.Read(ctx, a.kit.config.Formats, in)
	switch {
	case err != nil && b.cut != "":
		return nil, fmt.Errorf("cannot be read: %s", b.cut)
	case err != nil:
		return nil, err
	case b.cut != "" && !isText(t.Media):
		return nil, fmt.Errorf("cannot be read, as its end is missing: %s", b.cut)
	}

	now := a.kit.config.Now()
	p := &page{
		url: resp.Request.URL.String(), media: t.Media, text: t.Text, cut: t.Cut, notes: t.Notes, retrieved: now.UTC(), metadata: map[string]string{},
		fresh: freshUntil(resp.Header, now), etag: resp.Header.Get("Etag"), modified: resp.Header.Get("Last-Modified"),
	}

	if b.cut != "" {
		p.notes = append(p.notes, "the end of the page is missing: "+b.cut)
	}
	if at, err := http.ParseTime(p.modified); err == nil {
		p.metadata["modified"] = at.UTC().Format(time.RFC3339)
	}
	if a.asked.String() != p.url {
		p.metadata["requested"] = a.asked.String()
	}
	if t.Media == "text/html" {
		p.describe(data, media, resp.Request.URL)
	}
	if p.title == "" {
		p.title = t.Title // of a format that says so by other means
	}
	return p, nil
}

// isText reports whether the beginning of a document can be read without its end.
func isText(media string) bool { return strings.HasPrefix(media, "text/") && media != "text/rtf" }

// nameOf returns the name of the file that an answer is, or "".
func nameOf(resp *http.Response) string {
	if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		return path.Base(params["filename"])
	}
	name := path.Base(resp.Request.URL.Path)
	if strings.ToLower(path.Ext(name)) == ".php" || name == "/" || name == "." {
		return ""
	}
	return name
}
