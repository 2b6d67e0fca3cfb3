package policy

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/coditect/mapreduce/worker/tool"
)

// MaxURL is the most bytes of an address that is asked for.
const MaxURL = 8 << 10

// CheckURL reads an address that a tool is asked to reach, and returns it in the one form
// in which it is asked for: the host in lower case and ASCII, no fragment, no port that goes
// without saying. It reaches nothing, and looks no name up: that the addresses behind a name
// may be reached, DialContext checks. The error is a *tool.Refused if the policy forbids the
// address, and another one if the text is no address.
func (p *Policy) CheckURL(text string) (*url.URL, error) {
	u, target, err := parseURL(text)
	if err != nil {
		return nil, err
	}

	what := "a request to " + shown(text)
	if plain := u.String(); plain != strings.TrimSpace(text) {
		what += ", which is " + shown(plain) + ","
	}

	if _, err := p.grantOf(target, what); err != nil {
		return nil, err
	}
	return u, nil
}

// A target is a host at a port. The host has either a name or an address.
type target struct {
	name string
	addr netip.Addr
	port uint16
}

func (t target) String() string {
	if t.addr.IsValid() {
		return netip.AddrPortFrom(t.addr, t.port).String()
	}
	return net.JoinHostPort(t.name, strconv.Itoa(int(t.port)))
}

// parseURL reads an address of the web.
func parseURL(text string) (*url.URL, target, error) {
	var t target
	what := "a request to " + shown(text)
	if len(text) > MaxURL {
		return nil, t, &tool.Refused{What: what, Why: fmt.Sprintf("the address has %d bytes, and at most %d are accepted", len(text), MaxURL)}
	}

	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
		return nil, t, &tool.Refused{What: what, Why: "the address has control characters, or is not UTF-8"}
	}

	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, t, fmt.Errorf("%s: is not an address of the web: %s", shown(text), reason(err))
	case u.Scheme == "":
		return nil, t, fmt.Errorf("%s: is not a whole address; begin it with https://", shown(text))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, t, &tool.Refused{What: what, Why: "only http and https are spoken, not " + shown(u.Scheme)}
	case u.User != nil:
		return nil, t, &tool.Refused{What: what, Why: "an address with a user name or a password is never asked for"}
	case u.Opaque != "" || u.Hostname() == "":
		return nil, t, fmt.Errorf("%s: names no host", shown(text))
	}

	if t.port, err = portOf(u); err != nil {
		return nil, t, fmt.Errorf("%s: %w", shown(text), err)
	}
	if t.name, t.addr, err = parseHost(u.Hostname()); err != nil {
		return nil, t, &tool.Refused{What: what, Why: "its host " + err.Error()}
	}

	// A fragment is never sent, and would make two addresses of one.
	u.Fragment, u.RawFragment = "", ""
	u.Host = canonicalHost(u.Scheme, t)
	return u, t, nil
}

// reason returns what a parser of URLs says is wrong, without the URL.
func reason(err error) string {
	if e, ok := err.(*url.Error); ok { //nolint:errorlint // Parse returns this very type
		return e.Err.Error()
	}
	return err.Error()
}

// canonicalHost returns a host as it stands in a URL.
func canonicalHost(scheme string, t target) string {
	plain := scheme == "http" && t.port == 80 || scheme == "https" && t.port == 443
	switch {
	case !plain:
		return t.String()
	case t.addr.Is6():
		return "[" + t.addr.String() + "]"
	case t.addr.IsValid():
		return t.addr.String()
	}
	return t.name
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		return map[string]uint16{"http": 80, "https": 443}[u.Scheme], nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("the port is not from 1 to 65535")
	}
	return uint16(n), nil
}

// parseHost returns the one form of a host: a name in lower case and ASCII, or an address.
// It refuses the other ways to write an address, which one program reads as a name and
// another as 127.0.0.1.
func parseHost(host string) (string, netip.Addr, error) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		switch {
		case err != nil:
			return "", netip.Addr{}, fmt.Errorf("%s is not an IPv6 address", shown(host))
		case addr.Zone() != "":
			return "", netip.Addr{}, fmt.Errorf("%s names an interface of this machine", shown(host))
		}
		return "", addr.Unmap(), nil
	}

	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		// Names with an underscore are no host names, and yet some hosts have them.
		if name = strings.ToLower(host); !isASCIIName(name) {
			return "", netip.Addr{}, fmt.Errorf("%s is not the name of a host", shown(host))
		}
	}

	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if endsInNumber(name) {
		addr, err := netip.ParseAddr(name)
		if err == nil {
			return "", addr, nil
		}
		if meant, ok := parseNumbers(name); ok {
			return "", netip.Addr{}, fmt.Errorf("%s is another way to write %s; write it so", shown(host), meant)
		}
		return "", netip.Addr{}, fmt.Errorf("%s ends in a number and is not an address", shown(host))
	}

	if name == "" || len(name) > 253 || !isASCIIName(name) {
		return "", netip.Addr{}, fmt.Errorf("%s is not the name of a host", shown(host))
	}

	return name, netip.Addr{}, nil
}

// isASCIIName reports whether a name is labels of letters, digits, - and _.
func isASCIIName(name string) bool {
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// endsInNumber reports whether browsers read a host as an IPv4 address: whether its last
// label is a number (URL Standard, "ends in a number").
func endsInNumber(name string) bool {
	last := name[strings.LastIndex(name, ".")+1:]
	if last == "" {
		return false
	}
	if !strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' }) {
		return true
	}
	_, ok := parseNumber(last)
	return ok
}

// parseNumbers reads an IPv4 address of one to four numbers, of which the last fills the
// bytes that are left, each decimal, octal or hexadecimal (URL Standard, "IPv4 parser").
func parseNumbers(name string) (netip.Addr, bool) {
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}

	var whole uint64
	for i, part := range parts {
		n, ok := parseNumber(part)
		if last := i == len(parts)-1; !ok || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			n <<= 8 * (3 - i)
		}
		whole += n
	}

	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)}), true
}

func parseNumber(text string) (uint64, bool) {
	base, digits := 10, text
	switch {
	case strings.HasPrefix(text, "0x"):
		base, digits = 16, text[2:]
	case len(text) > 1 && text[0] == '0':
		base, digits = 8, text[1:]
	}

	if digits == "" && base == 16 {
		return 0, true
	}

	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}

// shown returns a text of others for a message: in one line, not too long, and without the
// credentials of a URL.
func shown(text string) string {
	if at := strings.Index(text, "//"); at >= 0 {
		rest := text[at+2:]
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		// The last @ ends the credentials.
		if last := strings.LastIndex(rest[:end], "@"); last >= 0 {
			text = text[:at+2] + "…" + rest[last:]
		}
	}

	if len(text) > maxShown {
		text = text[:maxShown] + "…"
	}

	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// maxShown is the most bytes of a text that messages quote.
const maxShown = 200
