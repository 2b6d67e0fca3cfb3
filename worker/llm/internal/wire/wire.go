// Package wire is what the vendors have in common below their formats: one request and its
// response by HTTP, with its time, its size and its failures, and the parts of formats that
// several vendors share.
package wire

import (
	"cmp"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/manners"
)

// A Format says how a vendor is asked, and how its responses are read.
type Format struct {
	Stream string                                           // the media type of an answer that comes in pieces. Defaults to text/event-stream
	Events func(io.Reader) iter.Seq2[Event, error]          // reads the pieces. Defaults to Events
	Limits func(http.Header, time.Time) llm.Limits          // reads the vendor's headers. Defaults to CompatibleLimits
	Judge  func(status int, body []byte) (llm.Kind, string) // reads the vendor's errors; 0 if it cannot. Defaults to JudgeCompatible

	// Pause reads the pause that an error asks for in its body. Nil takes what its headers ask for.
	Pause func(body []byte) time.Duration

	// Whole turns an answer that came whole into the pieces that were asked for; false if it is
	// none. Nil takes any JSON that comes whole for the only piece.
	Whole func(body []byte) ([]Event, bool)

	// Sign gives each request what proves who asks. Defaults to the key as a bearer token.
	Sign Sign
}

const eventStream = "text/event-stream"

// withDefaults returns the format with what it leaves out.
func (f Format) withDefaults(key llm.Key) Format {
	f.Stream = cmp.Or(f.Stream, eventStream)

	if f.Events == nil {
		f.Events = Events
	}
	if f.Limits == nil {
		f.Limits = CompatibleLimits
	}
	if f.Judge == nil {
		f.Judge = JudgeCompatible
	}
	if f.Sign == nil {
		f.Sign = BearerKey(key)
	}

	return f
}

// A Sign gives a request what proves who asks: headers, or a signature of the request and of its
// body, which is empty but not nil without one. It is called once for each request, as the last
// before that is sent, and may wait as long as the context of the request lasts. It must be safe
// for concurrent use. An error that is no *llm.Error is reported as one of the kind Auth.
type Sign func(req *http.Request, body []byte) error

// BearerKey returns the Sign that sends a key as a bearer token, if there is one.
func BearerKey(key llm.Key) Sign {
	return func(req *http.Request, _ []byte) error {
		if !key.IsZero() {
			req.Header.Set("Authorization", "Bearer "+redact.Secret(key))
		}
		return nil
	}
}

// HeaderKey returns the Sign that sends a key in a header of its own.
func HeaderKey(header string, key llm.Key) Sign {
	return func(req *http.Request, _ []byte) error {
		req.Header.Set(header, redact.Secret(key))
		return nil
	}
}

// A Dialer makes the calls of a provider: what all vendors have in common below
// their formats.
type Dialer struct {
	Config llm.Config   // with the defaults for what was left out
	Base   *url.URL     // ends with a slash
	Client *http.Client // follows no redirect
	format Format

	reached atomic.Bool // a connection was made; written by the transport
}

// NewDialer returns the dialer of a vendor. It checks the address, which defaults to the vendor's.
// Redirects are not followed: they would carry the key to wherever they point. The error is an
// *llm.Error of the kind Invalid.
func NewDialer(cfg llm.Config, vendor string, format Format) (*Dialer, error) {
	cfg.First = cmp.Or(cfg.First, llm.DefaultFirst)
	cfg.Idle = cmp.Or(cfg.Idle, llm.DefaultIdle)
	cfg.Window = cmp.Or(cfg.Window, llm.DefaultWindow)
	if cfg.Manners == nil {
		cfg.Manners = manners.NewStore(nil)
	}

	base, err := url.Parse(cmp.Or(cfg.BaseURL, vendor))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, llm.NewError(llm.Invalid, "the base URL is no address that begins with http:// or https://, such as http://localhost:8000/v1")
	}

	if base.User != nil {
		return nil, llm.NewError(llm.Invalid, "the base URL holds a user or password; keys come from the environment")
	}

	// Without a slash at its end the last step of the base would be lost where a path is
	// added.
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}

	transport := cfg.Transport
	if transport == nil {
		transport = newTransport()
	}

	return &Dialer{Config: cfg, Base: base, format: format.withDefaults(cfg.Key), Client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// newTransport is like the default one, for many calls to one host.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}
