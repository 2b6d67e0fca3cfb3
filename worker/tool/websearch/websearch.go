// Package websearch has the tool that searches the web, through the search engine that the
// operator of the worker configured: a SearXNG of theirs, or the interfaces of Brave or
// Tavily. Only the engine is reached. It returns titles, addresses and excerpts; the pages
// themselves are read by another tool.
//
// The package imports worker/tool and its policy.
package websearch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// Name is the name of the kit and of its tool.
const Name = "search_web"

// Config says what the kit is made of.
type Config struct {
	Engine string // Name of the search engine; see Engines. Needed.
	// URL is where its interface is. Defaults to that of the engine, if there is one for all.
	URL string
	Key string // Of the engine. Needed if the engine has a KeyVariable.
	// Network says how the engine is reached: its Hosts do not count, as only the engine is.
	// Defaults to that of the machine.
	Network policy.Policy
	Now     func() time.Time // Defaults to time.Now.
}

// An Engine is a search engine that the package can ask.
type Engine struct {
	Name        string
	URL         string // where its interface is; empty if everybody has their own
	KeyVariable string // the environment variable that has its key; empty if it needs none

	request func(base *url.URL, key string, q query) (*http.Request, error)
	answer  func(data []byte) ([]hit, error)
}

// Engines returns the engines.
func Engines() []Engine {
	return []Engine{
		{Name: "searxng", request: askSearXNG, answer: readSearXNG},
		{Name: "brave", URL: "https://api.search.brave.com/res/v1/web/search", KeyVariable: "BRAVE_API_KEY", request: askBrave, answer: readBrave},
		{Name: "tavily", URL: "https://api.tavily.com/search", KeyVariable: "TAVILY_API_KEY", request: askTavily, answer: readTavily},
	}
}

// EngineNames lists the engines.
func EngineNames() []string {
	var names []string
	for _, e := range Engines() {
		names = append(names, e.Name)
	}
	return names
}

// Specs returns the tools of the kit.
func Specs() []tool.Spec {
	return []tool.Spec{{
		Name: Name, Idempotent: true, Query: "query",
		Description: "Searches the web: returns the titles, addresses and excerpts of pages, best first. Excerpts are not whole; read a page before you rest on it.",
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","minLength":1,"maxLength":400,"description":"a few words, as one types them"},` +
			`"count":{"type":"integer","minimum":1,"maximum":20,"description":"most pages; 8 if it is left out"},` +
			`"recent":{"type":"string","enum":["day","week","month","year"],"description":"pages of the last day, week, month or year alone"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}}
}

// A query is what is asked of an engine.
type query struct {
	Query  string `json:"query"`
	Count  int    `json:"count"`
	Recent string `json:"recent"`
}

// A hit is a page that an engine found.
type hit struct {
	url, title, excerpt, published string
}

// A Kit searches the web by one engine.
type Kit struct {
	config Config
	engine Engine
	base   *url.URL
	client *http.Client
}

var _ tool.Kit = (*Kit)(nil)

// New returns a kit. The error says what is missing.
func New(c Config) (*Kit, error) {
	if c.Now == nil {
		c.Now = time.Now
	}

	i := slices.IndexFunc(Engines(), func(e Engine) bool { return e.Name == c.Engine })
	if i < 0 {
		return nil, fmt.Errorf("there is no search engine %q; there are %s", c.Engine, strings.Join(EngineNames(), ", "))
	}

	e := Engines()[i]
	address := cmp.Or(c.URL, e.URL)
	base, err := url.Parse(address)
	switch {
	case address == "":
		return nil, fmt.Errorf("%s needs the address of its interface: %s=http://127.0.0.1:8888", e.Name, e.Name)
	case err != nil || base.Host == "" || base.User != nil || base.Scheme != "http" && base.Scheme != "https":
		return nil, fmt.Errorf("the address of %s is not one of http or https without credentials", e.Name)
	case e.KeyVariable != "" && c.Key == "":
		return nil, fmt.Errorf("%s needs a key in the environment variable %s", e.Name, e.KeyVariable)
	}

	port := cmp.Or(base.Port(), map[string]string{"http": "80", "https": "443"}[base.Scheme])
	hostname := base.Hostname()
	if strings.Contains(hostname, ":") {
		hostname = "[" + hostname + "]"
	}
	if c.Network.Hosts, err = policy.ParseHosts([]string{hostname + ":" + port}); err != nil {
		return nil, fmt.Errorf("the address of %s: %w", e.Name, err)
	}

	client := c.Network.Client()
	// A redirect would send the key to wherever it leads.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Kit{config: c, engine: e, base: base, client: client}, nil
}

// Name implements tool.Kit.
func (*Kit) Name() string { return Name }

// Tools implements tool.Kit.
func (*Kit) Tools() []tool.Spec { return Specs() }

// Open implements tool.Kit. The sessions of units have nothing of their own.
func (k *Kit) Open(context.Context) (tool.Session, error) { return session{k}, nil }

// Close implements tool.Kit.
func (k *Kit) Close() error {
	k.client.CloseIdleConnections()
	return nil
}

type session struct{ kit *Kit }

// Close implements tool.Session.
func (session) Close() error { return nil }

// Call implements tool.Session.
func (s session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	if name != Name {
		return nil, fmt.Errorf("%w: %s", tool.ErrNoTool, name)
	}

	q := query{Count: 8}
	if err := tool.DecodeInput(input, &q); err != nil {
		return nil, err
	}

	q.Query, q.Count = strings.TrimSpace(q.Query), min(max(q.Count, 1), 20)
	if q.Query == "" {
		return nil, errors.New("query: is empty")
	}

	hits, err := s.kit.search(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.kit.engine.Name, err)
	}
	return s.kit.result(q, hits), nil
}

// maxAnswer is the most bytes of an answer of an engine.
const maxAnswer = 4 << 20

// search asks the engine. Errors have no key in them, whatever it answers.
func (k *Kit) search(ctx context.Context, q query) ([]hit, error) {
	base := *k.base
	req, err := k.engine.request(&base, k.config.Key, q)
	if err != nil {
		return nil, err
	}

	req.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(req.WithContext(ctx))
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("did not answer: %w", context.Cause(ctx))
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // its address may hold a key
		}
		return nil, fmt.Errorf("cannot be reached: %w", err)
	}

	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("did not answer: %w", context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("the answer broke off: %w", err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("answered more than %d bytes", maxAnswer)
	case resp.StatusCode != http.StatusOK:
		return nil, k.refused(resp, data)
	}

	hits, err := k.engine.answer(data)
	if err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return hits, nil
}

// refused returns the error for an answer that is none, with what it says.
func (k *Kit) refused(resp *http.Response, data []byte) error {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	said := stripTags(string(data))
	if k.config.Key != "" {
		said = strings.ReplaceAll(said, k.config.Key, "…") // before it is cut, which may leave half of the key
	}
	said = shorten.MarkedBytes(said, 300)

	hint := ""
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "; the operator of the worker has to look at its key or its configuration"
	case http.StatusTooManyRequests:
		hint = "; it was asked too often, try again later"
	}
	return fmt.Errorf("answered %s%s: %s", status, hint, said)
}

// result returns what was found as evidence. Addresses that no browser would open are left
// out, as is what was found twice.
func (k *Kit) result(q query, hits []hit) *tool.Result {
	var list strings.Builder
	var found []tool.Evidence
	var links []tool.Link
	seen := make(map[string]bool)
	for _, h := range hits {
		u, err := url.Parse(strings.TrimSpace(h.url))
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || len(h.url) > 2000 || seen[u.String()] {
			continue
		}
		if len(found) == q.Count {
			break
		}
		seen[u.String()] = true
		title, excerpt := plain(h.title, 300), plain(h.excerpt, 4000)
		e := tool.Evidence{
			URI: u.String(), Title: title, Media: "text/plain", Retrieved: k.config.Now().UTC(), Text: strings.TrimSpace(title + "\n" + excerpt),
			Metadata: map[string]string{"excerpt_by": k.engine.Name, "query": q.Query},
		}

		// A page without words can be cited by its address.
		if e.Text == "" {
			e.Text = u.String()
		}
		if h.published != "" {
			e.Metadata["published"] = plain(h.published, 100)
		}

		found = append(found, e)
		links = append(links, tool.Link{Text: title, Address: u.String()})
		fmt.Fprintf(&list, "\n%d. %s", len(found), u)
	}

	if len(found) == 0 {
		return &tool.Result{Text: fmt.Sprintf("%s found nothing for %q.", k.engine.Name, q.Query)}
	}
	return &tool.Result{Text: fmt.Sprintf("%s found %d pages for %q, best first:%s", k.engine.Name, len(found), q.Query, list.String()), Evidence: found, Links: links}
}

// plain returns a text of an engine without its marks, on one line, of at most so many bytes.
func plain(text string, most int) string { return shorten.MarkedBytes(stripTags(text), most) }

// stripTags returns a text of an engine without its marks, on one line.
func stripTags(text string) string {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(strings.ToValidUTF8(text, "\uFFFD")))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(html.UnescapeString(out.String())), " ")
		case html.TextToken:
			out.Write(z.Raw())
		}
	}
}
