package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Hosts are the hosts and ports that an operator allows. The zero value allows none.
type Hosts struct{ rules []rule }

// A rule is one --allow-host.
type rule struct {
	text  string     // as the operator wrote it
	any   bool       // every host
	below bool       // every host whose name ends in "." + name
	name  string     // in the form of parseHost
	addr  netip.Addr // in place of a name
	port  uint16     // 0 for the ports of the web, 80 and 443

	// at are the addresses that the name may stand for. Empty for all public ones.
	at []netip.Prefix
}

// ParseHosts reads what an operator allows:
//
//	example.com        the host, at ports 80 and 443, where its addresses are public
//	*.example.com      all hosts below it, likewise
//	*                  all hosts, likewise
//	*.example.com:8443 all hosts below it at one port, where their addresses are public
//	10.0.0.5:8080      the address at that port, whatever address it is
//	intranet:8080=10.0.0.5     the host at that port, where it is at that address
//	intranet:8080=10.0.0.0/24  the host at that port, where its addresses are in that network
//	localhost:8080     the same as localhost:8080=127.0.0.0/8 and localhost:8080=::1
//
// A name alone never leads to a private address: a person who can change its addresses
// would choose which.
//
// An error quotes what cannot be understood, and says why.
func ParseHosts(texts []string) (Hosts, error) {
	var h Hosts
	for _, text := range texts {
		r, err := parseRule(text)
		if err != nil {
			return Hosts{}, fmt.Errorf("%q: %w", text, err)
		}
		h.rules = append(h.rules, r)
	}
	return h, nil
}

// Empty reports whether nothing is allowed.
func (h Hosts) Empty() bool { return len(h.rules) == 0 }

// String returns the rules as the operator wrote them.
func (h Hosts) String() string {
	texts := make([]string, len(h.rules))
	for i, r := range h.rules {
		texts[i] = r.text
	}
	return strings.Join(texts, ", ")
}

func parseRule(text string) (rule, error) {
	r := rule{text: text}
	text, at, pinned := strings.Cut(text, "=")

	host, port, err := splitPort(text)
	if err != nil {
		return r, err
	}
	r.port = port
	if err := r.setHost(host); err != nil {
		return r, err
	}

	switch {
	case pinned:
		return r, r.setPlace(at)
	case r.name == localhost && !r.below && port != 0:
		r.at = slices.Clone(loopbacks)
	}
	return r, nil
}

// localhost is the name that stands for loopback addresses alone, whatever a resolver says
// (RFC 6761).
const localhost = "localhost"

var loopbacks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// setHost sets which hosts the rule is about. The port is set.
func (r *rule) setHost(host string) error {
	if host == "*" {
		r.any = true
		return nil
	}
	if strings.HasPrefix(host, "*.") {
		r.below, host = true, host[2:]
	}
	if strings.Contains(host, "*") {
		return fmt.Errorf("* stands for a whole host, or is followed by a dot: *.example.com")
	}

	name, addr, err := parseHost(host)
	if err != nil {
		return err
	}
	r.name, r.addr = name, addr
	// The addresses of a name are checked when it is looked up.
	if !addr.IsValid() {
		return nil
	}

	switch c := classOf(addr); {
	case r.below:
		return fmt.Errorf("an address has no hosts below it")
	case c == thisHost, c == multicast:
		return fmt.Errorf("is %s; it must be the address of a host", c)
	case c != public && r.port == 0:
		return fmt.Errorf("is %s, which is allowed at one port at a time: %s", c, netip.AddrPortFrom(addr, 80))
	}
	return nil
}

// setPlace sets at which addresses the hosts of the rule are reached: ADDRESS or
// ADDRESS/BITS.
func (r *rule) setPlace(text string) error {
	switch {
	case r.addr.IsValid():
		return fmt.Errorf("only a name can stand before =, as only a name can be reached at another address")
	case r.port == 0:
		return fmt.Errorf("a host at a named address is allowed at one port at a time: %s:80=%s", r.text[:strings.IndexByte(r.text, '=')], text)
	}

	var place netip.Prefix
	if _, addr, err := parseHost(strings.Trim(text, "[]")); err == nil && addr.IsValid() {
		place = netip.PrefixFrom(addr, addr.BitLen())
	} else if place, err = netip.ParsePrefix(text); err != nil || place != place.Masked() || place.Addr().Is4In6() {
		return fmt.Errorf("an address, such as 10.0.0.5, or a network, such as 10.0.0.0/24, must follow the =")
	}

	if c := classOf(place.Addr()); place.IsSingleIP() && (c == thisHost || c == multicast) {
		return fmt.Errorf("what follows the = is %s; it must be the address of a host", c)
	}

	r.at = []netip.Prefix{place}
	return nil
}

// splitPort divides HOST[:PORT]. An IPv6 address is in brackets, at least if a port
// follows.
func splitPort(text string) (host string, port uint16, err error) {
	switch {
	case text == "":
		return "", 0, fmt.Errorf("is empty; name a host, such as example.com")
	case strings.ContainsAny(text, "/@?#"):
		return "", 0, fmt.Errorf("is not HOST[:PORT], such as example.com or 127.0.0.1:8080")
	}

	host = text

	// The last colon is that of a port if what stands before it is in brackets, or has no
	// other.
	if at := strings.LastIndex(text, ":"); at >= 0 && (strings.HasSuffix(text[:at], "]") || !strings.Contains(text[:at], ":")) {
		n, err := strconv.ParseUint(text[at+1:], 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("the port is not from 1 to 65535")
		}
		host, port = text[:at], uint16(n)
	}

	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	return host, port, nil
}

// matches reports whether a rule is about a host at a port.
func (r rule) matches(name string, addr netip.Addr, port uint16) bool {
	if r.port != port && (r.port != 0 || !slices.Contains(webPorts, port)) {
		return false
	}

	switch {
	case r.any:
		return true
	case r.addr.IsValid():
		return r.addr == addr
	case addr.IsValid():
		return false
	case r.below:
		return strings.HasSuffix(name, "."+r.name)
	}
	return r.name == name
}

// webPorts are the ports of rules without a port.
var webPorts = []uint16{80, 443}

// A grant is what the rules say of a host at a port.
type grant struct {
	allowed bool
	public  bool           // its public addresses may be reached
	at      []netip.Prefix // that may be reached as well
}

// grantFor returns what the rules say of a host, which has a name or an address.
func (h Hosts) grantFor(name string, addr netip.Addr, port uint16) grant {
	var g grant
	for _, r := range h.rules {
		if !r.matches(name, addr, port) {
			continue
		}

		g.allowed = true
		switch {
		case len(r.at) > 0:
			g.at = append(g.at, r.at...)
		case r.addr.IsValid() && r.port != 0:
			g.at = append(g.at, netip.PrefixFrom(r.addr, r.addr.BitLen()))
		default:
			g.public = true
		}
	}

	return g
}

// refusal returns why an address of a target is not reached under a grant, or "".
func (g grant) refusal(t target, a netip.Addr) string {
	a = a.WithZone("").Unmap()
	c := classOf(a)
	if c == public && g.public {
		return ""
	}

	named := t.String() // the rule that would allow it
	if !t.addr.IsValid() {
		named += "=" + a.String()
	}

	for _, place := range g.at {
		if !place.Contains(a) {
			continue
		}
		if place.IsSingleIP() || c == public || c == private || c == loopback {
			return ""
		}
		return fmt.Sprintf("%s is reached only if it is allowed by itself: %s", c, named)
	}

	if c == public {
		return fmt.Sprintf("the operator allows the host at other addresses alone; %s would allow this one", named)
	}
	return fmt.Sprintf("%s is reached only if the operator allows it: %s", c, named)
}
