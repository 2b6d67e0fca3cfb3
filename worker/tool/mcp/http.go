package mcp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
)

// Bounds of what a server sends.
const (
	maxMessage = 16 << 20 // bytes of one message
	maxStream  = 64 << 20 // bytes of all messages while a call waits for its answer
	maxHeaders = 64 << 10 // bytes of the headers of a response
)

// A guardedTransport sends requests to the addresses of one server alone: that of the
// server, and that of the issuer of its tokens. A server may redirect, or name the place
// where tokens are had, so otherwise it could send this process and its secrets anywhere.
type guardedTransport struct {
	inner   *http.Transport
	server  string            // origin
	issuer  string            // origin; empty if there is none
	headers map[string]string // for the server alone

	mu     sync.Mutex // guards the variables below
	tokens []string   // the last that were sent, newest last
}

// maxTokens is how many tokens are remembered, to be taken out of what the server says.
const maxTokens = 4

func (t *guardedTransport) remember(header string) {
	_, token, ok := strings.Cut(header, " ")
	t.mu.Lock()
	defer t.mu.Unlock()
	if ok && !slices.Contains(t.tokens, token) {
		t.tokens = append(t.tokens[max(0, len(t.tokens)-maxTokens+1):], token)
	}
}

// sentTokens returns the last tokens that were sent.
func (t *guardedTransport) sentTokens() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.tokens)
}

// RoundTrip sends a request, and bounds what comes back.
func (t *guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	to := origin(r.URL)
	if !slices.Contains([]string{t.server, t.issuer}, to) {
		return nil, &tool.Refused{What: "a request to " + to, Why: "the file of MCP servers does not name that address for this server"}
	}

	if to == t.server && len(t.headers) > 0 {
		r = r.Clone(r.Context())
		for name, value := range t.headers {
			r.Header.Set(name, value)
		}
	}

	t.remember(r.Header.Get("Authorization"))
	response, err := t.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}

	most := int64(maxMessage)
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // "" fits no case
	switch {
	case media == "text/event-stream":
		most = maxStream
	case to == t.server && r.Method == http.MethodPost && response.StatusCode == http.StatusOK && media != "application/json":
		// The library would end the session, whose end may then be reported in place of this.
		_ = response.Body.Close() // nothing of it is read
		return nil, fmt.Errorf("the answer has the content type %q, which is neither JSON nor events", media)
	}

	response.Body = &boundedBody{ReadCloser: response.Body, left: most, most: most}
	return response, nil
}

// A boundedBody is a body that ends with an error once it is too long.
type boundedBody struct {
	io.ReadCloser
	left, most int64
}

// Read reads no more than is left.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", b.most)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// maxRedirects of one request, all at the same address.
const maxRedirects = 3

// newTransport returns the transport for a server.
func newTransport(s *Server) (*guardedTransport, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the transport of HTTP was replaced by an unknown one")
	}

	// The default transport has the proxies of the environment, and bounds of time.
	inner := transport.Clone()
	inner.MaxResponseHeaderBytes = maxHeaders
	inner.IdleConnTimeout = time.Minute

	guarded := &guardedTransport{inner: inner, headers: s.Headers}
	var err error
	if guarded.server, err = originOf(s.URL); err != nil {
		return nil, err
	}
	if s.OAuth != nil {
		if guarded.issuer, err = originOf(s.OAuth.Issuer); err != nil {
			return nil, err
		}
	}

	return guarded, nil
}

// guardedClient returns a client that follows redirects as far as the transport does.
func (t *guardedTransport) guardedClient() *http.Client {
	return &http.Client{
		Transport: t,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("it redirects more than %d times", maxRedirects)
			}
			return nil // the transport refuses other addresses
		},
	}
}
