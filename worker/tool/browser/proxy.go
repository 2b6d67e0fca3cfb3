package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// A proxy is what the pages of one unit reach the network through. It connects to what the
// policy allows, and remembers what it refused.
type proxy struct {
	network   *policy.Policy
	transport *http.Transport
	listener  net.Listener
	server    *http.Server
	serving   sync.WaitGroup
	left      atomic.Int64 // bytes that pages may still get

	mu      sync.Mutex // guards the variables below
	refused []*tool.Refused
	tunnels map[net.Conn]bool
	closed  bool
}

const (
	maxRefused = 20 // that are remembered
	maxTunnels = 64 // at a time
)

// startProxy starts a proxy on loopback.
func startProxy(network *policy.Policy, most int64) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	p := &proxy{network: network, transport: network.Transport(), listener: l, tunnels: make(map[net.Conn]bool)}
	p.transport.DisableCompression = true // Chromium unpacks
	p.left.Store(most)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 256 << 10}
	p.serving.Go(func() { _ = p.server.Serve(l) }) // until it is closed
	return p, nil
}

func (p *proxy) address() string { return "http://" + p.listener.Addr().String() }

// close ends the proxy with all of its connections.
func (p *proxy) close() {
	_ = p.server.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
	p.transport.CloseIdleConnections()
}

// ServeHTTP connects a request of a page with its host. Where that is refused, it closes
// the connection: an answer in the host's place would look like a page of the host.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.serving.Done()

	var err error
	if r.Method == http.MethodConnect {
		err = p.openTunnel(w, r)
	} else {
		err = p.forwardPlain(w, r)
	}

	if err != nil {
		p.remember(err)
		panic(http.ErrAbortHandler)
	}
}

// enter counts a request that is served, unless the proxy is closed: close waits for all that
// were counted, and none may begin while it does.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.serving.Add(1)
	return true
}

// remember keeps what was refused, for the next result of the unit.
func (p *proxy) remember(err error) {
	refused, ok := errors.AsType[*tool.Refused](err)
	if !ok {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.refused {
		if *r == *refused {
			return
		}
	}

	if len(p.refused) < maxRefused {
		p.refused = append(p.refused, refused)
	}
}

// takeRefused returns what was refused since it was called last.
func (p *proxy) takeRefused() []*tool.Refused {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.refused
	p.refused = nil
	return all
}

// forwardPlain forwards a request of plain HTTP.
func (p *proxy) forwardPlain(w http.ResponseWriter, r *http.Request) error {
	if !r.URL.IsAbs() || r.URL.Scheme != "http" {
		return &tool.Refused{What: "a request that is not for a proxy", Why: "the proxy of a browser serves its pages alone"}
	}
	u, err := p.network.CheckURL(r.URL.String())
	if err != nil {
		return err
	}

	out := r.Clone(r.Context())
	out.URL, out.Host, out.RequestURI = u, "", ""
	for _, name := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		out.Header.Del(name)
	}

	response, err := p.transport.RoundTrip(out)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	maps.Copy(w.Header(), response.Header)
	w.Header().Del("Connection")
	w.WriteHeader(response.StatusCode)
	if f, ok := w.(http.Flusher); ok {
		f.Flush() // a page that never ends has shown its beginning
	}

	_, err = io.Copy(flushing{w}, &counted{response.Body, p})
	return err
}

// flushing writes at once what comes.
type flushing struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	if fl, ok := f.ResponseWriter.(http.Flusher); ok {
		fl.Flush()
	}
	return n, err
}

// openTunnel connects a page with a host of HTTPS, or of a web socket.
func (p *proxy) openTunnel(w http.ResponseWriter, r *http.Request) error {
	there, err := p.network.DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		return err
	}
	defer there.Close()

	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return errors.New("the connection cannot be taken over")
	}
	here, buffered, err := hijacker.Hijack()
	if err != nil {
		return err
	}
	defer here.Close()

	if !p.addTunnel(here) {
		return nil
	}
	defer p.removeTunnel(here)

	if _, err := here.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return nil // the page is gone
	}

	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(there, buffered)
		_ = there.Close()
	})
	_, err = io.Copy(here, &counted{there, p})
	_ = here.Close()
	both.Wait()

	p.remember(err)
	return nil
}

func (p *proxy) addTunnel(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.tunnels) >= maxTunnels {
		return false
	}
	p.tunnels[c] = true
	return true
}

func (p *proxy) removeTunnel(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tunnels, c)
}

// A counted reader counts what pages get.
type counted struct {
	io.Reader
	proxy *proxy
}

// Read reads as long as pages may get more.
func (c *counted) Read(data []byte) (int, error) {
	n, err := c.Reader.Read(data)
	if c.proxy.left.Add(-int64(n)) < 0 {
		return 0, &tool.Refused{What: "more of what pages load", Why: "the pages of a unit may get no more bytes"}
	}
	return n, err
}
