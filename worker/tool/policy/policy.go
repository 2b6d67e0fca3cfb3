// Package policy decides what tools may reach: which hosts, at which addresses, and which
// files below a folder. Nothing is reached that the operator of the worker did not name.
//
// An address is checked three times: as a URL, before anything is looked up (CheckURL);
// behind its name, when all addresses of the name are known (DialContext); and by the
// connection itself, just before it is made. The name is looked up once for a connection,
// and the connection goes to an address that was checked, so that a name which stands for
// another address a moment later leads nowhere. Redirects go the same way again.
//
// The package imports worker/tool alone.
package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
)

// A Policy says which hosts tools may reach. It is safe for concurrent use. The zero value
// reaches nothing.
type Policy struct {
	// Hosts are those that the operator allows. Defaults to none.
	Hosts Hosts

	// Resolver looks names up. Defaults to that of the machine.
	Resolver Resolver

	// Connect connects to an address after control has allowed it. Defaults to a
	// net.Dialer. Tests have a network of their own behind it.
	Connect func(ctx context.Context, network, address string, control Control) (net.Conn, error)
}

// A Resolver looks up the addresses of a host. A *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A Control is called with the very address that a connection is about to be made to, and
// returns an error if it must not be. See net.Dialer.
type Control func(network, address string, c syscall.RawConn) error

// Bounds of connections, and of what leads to them.
const (
	MaxRedirects   = 10
	maxAddresses   = 8 // of a host that are tried
	connectTimeout = 10 * time.Second
	keepAlive      = 30 * time.Second
	answerTimeout  = 30 * time.Second // from the request to the first line of the answer
	maxHeaderBytes = 64 << 10         // of an answer
)

// grantOf returns what the policy says of a target, or a *tool.Refused if it forbids it,
// of what was tried.
func (p *Policy) grantOf(t target, what string) (grant, error) {
	g := p.Hosts.grantFor(t.name, t.addr, t.port)
	switch {
	case !g.allowed && p.Hosts.Empty():
		return g, &tool.Refused{What: what, Why: "no host is allowed here"}
	case !g.allowed:
		return g, &tool.Refused{What: what, Why: fmt.Sprintf("%s is not among the hosts that the operator allows, with ports 80 and 443 unless others are named", t)}
	}

	if t.addr.IsValid() {
		if why := g.refusal(t, t.addr); why != "" {
			return g, &tool.Refused{What: what, Why: why}
		}
	}
	return g, nil
}

// DialContext connects to HOST:PORT if the policy allows the host, and all addresses that
// its name stands for. Errors that forbid it are *tool.Refused, and name the address.
func (p *Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if host == "" {
		return nil, errors.New("policy: an address without a host")
	}

	name, addr, err := parseHost(host)
	if err != nil {
		return nil, &tool.Refused{What: "a connection to " + shown(address), Why: "its host " + err.Error()}
	}

	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	t := target{name: name, addr: addr, port: uint16(n)}
	g, err := p.grantOf(t, "a connection to "+t.String())
	if err != nil {
		return nil, err
	}

	// An address was checked with its target; a name is checked by all its addresses.
	addrs := []netip.Addr{addr}
	if !addr.IsValid() {
		if addrs, err = p.lookUp(ctx, t, g); err != nil {
			return nil, err
		}
	}
	return p.connect(ctx, network, t, addrs, g)
}

// lookUp returns the addresses of a name. If one of them must not be reached, none is: such
// a name is one that somebody made to lead elsewhere.
func (p *Policy) lookUp(ctx context.Context, t target, g grant) ([]netip.Addr, error) {
	var r Resolver = net.DefaultResolver
	if p.Resolver != nil {
		r = p.Resolver
	}

	addrs, err := r.LookupNetIP(ctx, "ip", t.name)
	if err != nil {
		return nil, fmt.Errorf("the host %s is not found: %w", t.name, err)
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("the host %s has no address", t.name)
	}

	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if why := g.refusal(t, a); why != "" {
			return nil, &tool.Refused{What: fmt.Sprintf("a connection to %s, which is at %s,", t, a), Why: why}
		}
	}

	return addrs[:min(len(addrs), maxAddresses)], nil
}

// connect connects to the first of the addresses that answers.
func (p *Policy) connect(ctx context.Context, network string, t target, addrs []netip.Addr, g grant) (net.Conn, error) {
	dial := p.Connect
	if dial == nil {
		dial = dialNet
	}

	var failed error
	for _, a := range addrs {
		c, err := dial(ctx, network, netip.AddrPortFrom(a, t.port).String(), g.control(t))
		if err == nil {
			return c, nil
		}
		failed = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// control refuses connections to addresses that the grant does not hold.
func (g grant) control(t target) Control {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return &tool.Refused{What: fmt.Sprintf("a connection to %s, for %s,", shown(address), t), Why: "it is not an address"}
		}

		why := g.refusal(t, to.Addr())
		if why == "" && to.Port() != t.port {
			why = fmt.Sprintf("only port %d was asked for", t.port)
		}
		if why != "" {
			return &tool.Refused{What: fmt.Sprintf("a connection to %s, for %s,", to, t), Why: why}
		}
		return nil
	}
}

func dialNet(ctx context.Context, network, address string, control Control) (net.Conn, error) {
	d := net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlive, Control: control}
	return d.DialContext(ctx, network, address)
}

// Transport returns a transport whose connections the policy allows. It uses no proxy: a
// proxy would look names up itself. It decodes no compression.
func (p *Policy) Transport() *http.Transport {
	return &http.Transport{
		DialContext: p.DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout, ExpectContinueTimeout: time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Client returns a client whose requests and redirects the policy allows. It keeps no
// cookies. The caller checks the URL of each request by CheckURL before.
func (p *Policy) Client() *http.Client {
	return &http.Client{Transport: p.Transport(), CheckRedirect: p.CheckRedirect}
}

// CheckRedirect refuses redirects to where the policy forbids, and more than MaxRedirects.
// It is that of http.Client.
func (p *Policy) CheckRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= MaxRedirects {
		return fmt.Errorf("%d redirects, one after the other", len(via))
	}

	u, err := p.CheckURL(req.URL.String())
	if err != nil {
		if refused, ok := errors.AsType[*tool.Refused](err); ok {
			return &tool.Refused{What: refused.What + ", to which " + shown(via[len(via)-1].URL.String()) + " redirects,", Why: refused.Why}
		}
		return err
	}

	req.URL, req.Host = u, ""
	return nil
}
