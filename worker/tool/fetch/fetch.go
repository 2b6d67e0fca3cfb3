// Package fetch has the tool that reads pages and documents of the web as text. It reaches
// what its policy allows, asks robots.txt first, goes easy on hosts, and reads within bounds
// of bytes, time and number, whatever a server sends.
//
// The package imports worker/tool, its policy, and the registry of internal/document.
package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/internal/recent"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// Name is the name of the kit and of its tool.
const Name = "fetch"

// Robot is the name to which the rules of a robots.txt apply.
const Robot = "coditect"

// Config says what the kit is made of.
type Config struct {
	Network *policy.Policy     // Which hosts are reached. Needed.
	Formats *document.Registry // Who reads documents. Needed.

	// UserAgent is how requests introduce themselves. Defaults to a name with Robot in it.
	UserAgent string
	// MaxBody is how many bytes of a document are read, when it is unpacked; of a page of
	// text at most 8 MiB are. Of a longer page of text the beginning is returned; other
	// documents are refused. Defaults to 16 MiB.
	MaxBody int64
	// MaxHeld is how many bytes of pages are held at a time while they are read, for all
	// units together. Defaults to 128 MiB.
	MaxHeld int64
	// MaxCache is how many bytes of texts are kept for units that read a page again, for all
	// units together. Defaults to 64 MiB.
	MaxCache int64
	// MaxRequests and MaxBytes bound what one unit asks for, and gets. They default to 500
	// requests and 256 MiB.
	MaxRequests int
	MaxBytes    int64
	// BodyTime is the longest time for one page, from its headers to its end, and IdleTime
	// the longest between two parts of it. They default to 40 s and 15 s.
	BodyTime, IdleTime time.Duration
	// PerHost is how many requests to one host are under way at a time, and Pause the time
	// from one to the next. They default to 2 and 200 ms. There is no pause for the addresses
	// of this machine. A negative Pause is none.
	PerHost int
	Pause   time.Duration
	Now     func() time.Time // Defaults to time.Now.
}

func (c Config) withDefaults() Config {
	c.UserAgent = cmp.Or(c.UserAgent, "Mozilla/5.0 (compatible; "+Robot+"-mapreduce; +https://github.com/coditect/mapreduce)")
	c.MaxBody = cmp.Or(c.MaxBody, 16<<20)
	c.MaxHeld = cmp.Or(c.MaxHeld, 128<<20)
	c.MaxCache = cmp.Or(c.MaxCache, 64<<20)
	c.MaxRequests = cmp.Or(c.MaxRequests, 500)
	c.MaxBytes = cmp.Or(c.MaxBytes, 256<<20)
	c.BodyTime = cmp.Or(c.BodyTime, 40*time.Second)
	c.IdleTime = cmp.Or(c.IdleTime, 15*time.Second)
	c.PerHost = cmp.Or(c.PerHost, 2)
	c.Pause = max(cmp.Or(c.Pause, 200*time.Millisecond), 0)

	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Specs returns the tools of the kit.
func Specs() []tool.Spec {
	return []tool.Spec{{
		Name: Name, Idempotent: true, Timeout: time.Minute, Address: "url",
		Description: "Reads a page or a document of the web as text: HTML without its navigation, PDF, office and plain text. " +
			"It runs no scripts. A long text is read in parts: start says where to go on.",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"url":{"type":"string","description":"the whole address, with https:// or http://"},` +
			`"start":{"type":"integer","minimum":0,"description":"the character to begin at; 0 if it is left out"},` +
			`"links":{"type":"boolean","description":"lists the links of the page, too"}},` +
			`"required":["url"],"additionalProperties":false}`),
	}}
}

// A Kit reads the web.
type Kit struct {
	config  Config
	client  *http.Client
	hosts   *hosts
	robots  *robots
	pages   *recent.Cache[pageKey, *page]
	held    atomic.Int64  // bytes of pages that are being read
	parsing chan struct{} // holds an element for each page that is being parsed
	units   atomic.Int64  // sessions so far
}

var _ tool.Kit = (*Kit)(nil)

// New returns a kit.
func New(c Config) (*Kit, error) {
	c = c.withDefaults()
	switch {
	case c.Network == nil || c.Network.Hosts.Empty():
		return nil, errors.New("fetch: Network: no host is allowed")
	case c.Formats == nil:
		return nil, errors.New("fetch: Formats: nothing to read pages with")
	}

	k := &Kit{
		config: c, client: c.Network.Client(), hosts: newHosts(c.PerHost, c.Pause, c.Now),
		pages: recent.New[pageKey, *page](c.MaxCache), parsing: make(chan struct{}, max(2, runtime.GOMAXPROCS(0))),
	}
	k.robots = newRobots(k.getRobots, c.Now)
	return k, nil
}

// Name implements tool.Kit.
func (*Kit) Name() string { return Name }

// Tools implements tool.Kit.
func (*Kit) Tools() []tool.Spec { return Specs() }

// Open implements tool.Kit.
func (k *Kit) Open(context.Context) (tool.Session, error) {
	return &session{kit: k, unit: k.units.Add(1)}, nil
}

// Close implements tool.Kit.
func (k *Kit) Close() error {
	k.client.CloseIdleConnections()
	return nil
}

// A session is what one unit has of the web: the pages that it has read, and what it may
// still ask for.
type session struct {
	kit      *Kit
	unit     int64
	requests atomic.Int64
	bytes    atomic.Int64
}

// Close implements tool.Session.
func (s *session) Close() error {
	s.kit.pages.Drop(func(key pageKey) bool { return key.unit == s.unit })
	return nil
}

// Call implements tool.Session.
func (s *session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	if name != Name {
		return nil, fmt.Errorf("%w: %s", tool.ErrNoTool, name)
	}

	var in struct {
		URL   string `json:"url"`
		Start int    `json:"start"`
		Links bool   `json:"links"`
	}
	if err := tool.DecodeInput(input, &in); err != nil {
		return nil, err
	}

	u, err := s.kit.config.Network.CheckURL(in.URL)
	if err != nil {
		return nil, err
	}

	p, err := s.readPage(ctx, u)
	if err != nil {
		return nil, err
	}
	w, err := tool.ShowFrom(p.text, in.Start, tool.DefaultOutput)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u, err)
	}
	return s.result(u, p, w, in.Links), nil
}

// result returns the result of a call that read a page.
func (s *session) result(asked *url.URL, p *page, w tool.Window, links bool) *tool.Result {
	var note strings.Builder
	fmt.Fprintf(&note, "%s: %s, %s", p.url, p.media, w)
	if p.url != asked.String() {
		fmt.Fprintf(&note, "\nReached from %s by redirects.", asked)
	}
	for _, n := range p.notes {
		fmt.Fprintf(&note, "\nNote: %s.", n)
	}

	if links {
		note.WriteString("\nLinks:")
		for _, l := range p.links {
			if note.Len() > maxLinkText {
				note.WriteString("\nThere are more.")
				break
			}
			fmt.Fprintf(&note, "\n- %s: %s", l.text, l.url)
		}
	}

	e := tool.Evidence{
		URI: p.url, Title: p.title, Media: p.media, Retrieved: p.retrieved, Text: p.text, Shown: []tool.Range{w.Range}, Metadata: p.metadata,
	}
	out := &tool.Result{Text: note.String(), Evidence: []tool.Evidence{e}, Cut: p.cut}

	// A step that asks no model follows links, whether they were asked for or not.
	for _, l := range p.links {
		out.Links = append(out.Links, tool.Link{Text: l.text, Address: l.url})
	}

	return out
}

// maxLinkText is the most bytes of a list of links.
const maxLinkText = 8 << 10

// countRequest counts a request of the unit, or refuses it.
func (s *session) countRequest(u *url.URL) error {
	if n := s.requests.Add(1); n > int64(s.kit.config.MaxRequests) {
		return &tool.Refused{What: "a request to " + u.String(), Why: fmt.Sprintf("a unit makes at most %d requests", s.kit.config.MaxRequests)}
	}
	if n := s.bytes.Load(); n > s.kit.config.MaxBytes {
		return &tool.Refused{What: "a request to " + u.String(), Why: fmt.Sprintf("a unit reads at most %d bytes, and has read %d", s.kit.config.MaxBytes, n)}
	}
	return nil
}
