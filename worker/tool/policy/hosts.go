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
	name  string     // in the form of hostName
	addr  netip.Addr // in place of a name
	port  uint16     // 0 for the ports of the web, 80 and 443
}

// ParseHosts reads what an operator allows:
//
//	example.com        the host, at ports 80 and 443, where its addresses are public
//	*.example.com      all hosts below it, likewise
//	*                  all hosts, likewise
//	*.example.com:8443 all hosts below it at one port, where their addresses are public
//	intranet:8080      the host at that port, also where its addresses are private or loopback
//	10.0.0.5:8080      the address at that port, whatever address it is
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
	host, port, err := splitPort(text)
	if err != nil {
		return r, err
	}
	r.port = port
	if host == "*" {
		r.any = true
		return r, nil
	}
	if strings.HasPrefix(host, "*.") {
		r.below, host = true, host[2:]
	}
	if strings.Contains(host, "*") {
		return r, fmt.Errorf("* stands for a whole host, or is followed by a dot: *.example.com")
	}
	name, addr, err := parseHost(host)
	if err != nil {
		return r, err
	}
	r.name, r.addr = name, addr
	if !addr.IsValid() {
		return r, nil
	}
	switch c := classOf(addr); {
	case r.below:
		return r, fmt.Errorf("an address has no hosts below it")
	case c == thisHost, c == multicast:
		return r, fmt.Errorf("is %s, and not one of a host", c)
	case c != public && port == 0:
		return r, fmt.Errorf("is %s, which is allowed at one port at a time: %s", c, netip.AddrPortFrom(addr, 80))
	}
	return r, nil
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
	inside  bool       // its addresses may be private or loopback, as the operator vouches for the name
	addr    netip.Addr // may be reached whatever it is, if it is valid
}

// grantFor returns what the rules say of a host, which has a name or an address.
func (h Hosts) grantFor(name string, addr netip.Addr, port uint16) grant {
	var g grant
	for _, r := range h.rules {
		if !r.matches(name, addr, port) {
			continue
		}
		g.allowed = true
		if r.port != 0 && r.addr.IsValid() {
			g.addr = r.addr
		}
		if r.port != 0 && r.name != "" && !r.below {
			g.inside = true
		}
	}
	return g
}

// refusal returns why an address is not reached under a grant, or "".
func (g grant) refusal(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	c := classOf(a)
	switch {
	case c == public, g.addr.IsValid() && g.addr == a:
		return ""
	case g.inside && (c == private || c == loopback):
		return ""
	case g.inside:
		return string(c) + " is reached only if it is allowed itself, as " + a.String() + ":PORT"
	}
	return string(c) + " is reached only if the operator allows the host with its port"
}
