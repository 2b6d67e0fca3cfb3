package policy_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/policy"
)

// hosts returns the hosts that rules allow.
func hosts(t testing.TB, rules ...string) policy.Hosts {
	t.Helper()
	h, err := policy.ParseHosts(rules)
	if err != nil {
		t.Fatalf("ParseHosts: %v", err)
	}
	return h
}

// refusal returns the message of a *tool.Refused, and fails for any other outcome.
func refusal(t testing.TB, err error) string {
	t.Helper()
	var refused *tool.Refused
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refused.Error()
}

// TestAddressesAreRefused has the ways to write addresses that must not be reached. Every
// refusal names what was tried.
func TestAddressesAreRefused(t *testing.T) {
	p := &policy.Policy{Hosts: hosts(t, "*", "*:8080")}
	for _, test := range []struct{ name, url, named string }{
		{"loopback", "http://127.0.0.1/", "127.0.0.1"},
		{"loopback, not the first", "http://127.8.9.10/", "loopback"},
		{"decimal", "http://2130706433/", "another way to write 127.0.0.1"},
		{"octal", "http://0177.0.0.1/", "another way to write 127.0.0.1"},
		{"octal, one number", "http://017700000001/", "another way to write 127.0.0.1"},
		{"hexadecimal", "http://0x7f.0.0.1/", "another way to write 127.0.0.1"},
		{"hexadecimal, one number", "http://0x7f000001/", "another way to write 127.0.0.1"},
		{"hexadecimal, upper case", "http://0X7F000001/", "another way to write 127.0.0.1"},
		{"two numbers", "http://127.1/", "another way to write 127.0.0.1"},
		{"three numbers", "http://127.0.1/", "another way to write 127.0.0.1"},
		{"leading zeros", "http://127.000.000.001/", "another way to write 127.0.0.1"},
		{"a dot at the end", "http://127.0.0.1./", "loopback"},
		{"a number and a dot at the end", "http://2130706433./", "another way to write"},
		{"too large a number", "http://4294967296/", "ends in a number"},
		{"five numbers", "http://1.2.3.4.5/", "ends in a number"},
		{"wide digits", "http://１２７.０.０.１/", "loopback"},
		{"an ideographic full stop", "http://127。0。0。1/", "loopback"},
		{"circled digits", "http://①②⑦.⓪.⓪.①/", "loopback"},
		{"zero", "http://0.0.0.0/", "this machine"},
		{"zero, short", "http://0/", "another way to write 0.0.0.0"},
		{"private", "http://10.0.0.5/", "private"},
		{"private, carrier", "http://100.64.0.1/", "private"},
		{"private, 172", "http://172.31.255.255/", "private"},
		{"private, 192", "http://192.168.1.1:8080/", "private"},
		{"metadata", "http://169.254.169.254/latest/meta-data/", "link-local"},
		{"metadata, decimal", "http://2852039166/", "another way to write 169.254.169.254"},
		{"metadata of Alibaba", "http://100.100.100.200/", "metadata"},
		{"metadata of Azure", "http://168.63.129.16/", "metadata"},
		{"multicast", "http://224.0.0.1/", "multicast"},
		{"broadcast", "http://255.255.255.255/", "reserved"},
		{"IPv6 loopback", "http://[::1]/", "loopback"},
		{"IPv6 loopback, long", "http://[0:0:0:0:0:0:0:1]/", "loopback"},
		{"IPv6 nothing", "http://[::]/", "this machine"},
		{"IPv6 mapped", "http://[::ffff:127.0.0.1]/", "loopback"},
		{"IPv6 mapped, hexadecimal", "http://[::ffff:7f00:1]/", "loopback"},
		{"IPv6 mapped metadata", "http://[::ffff:a9fe:a9fe]/", "link-local"},
		{"IPv6 compatible", "http://[::127.0.0.1]/", "reserved"},
		{"IPv6 translated", "http://[64:ff9b::7f00:1]/", "loopback"},
		{"IPv6 6to4", "http://[2002:7f00:1::]/", "reserved"},
		{"IPv6 Teredo", "http://[2001:0:7f00:1::]/", "reserved"},
		{"IPv6 link-local", "http://[fe80::1]/", "link-local"},
		{"IPv6 with a zone", "http://[fe80::1%25eth0]/", "interface"},
		{"IPv6 unique local", "http://[fd00::1]/", "private"},
		{"IPv6 metadata", "http://[fd00:ec2::254]/", "metadata"},
		{"IPv6 multicast", "http://[ff02::1]/", "multicast"},
		{"file", "file:///etc/passwd", "file"},
		{"gopher", "gopher://example.com/", "gopher"},
		{"ftp", "ftp://example.com/", "ftp"},
		{"data", "data:text/html,hello", "data"},
		{"javascript", "javascript:alert(1)", "javascript"},
		{"credentials", "http://us3r:p4ss@example.com/", "user name or a password"},
		{"a user name", "http://us3r@example.com/", "user name or a password"},
		{"another port", "http://example.com:22/", "example.com:22"},
		{"a line break", "http://example.com/\r\nHost: x", "control characters"},
		{"too long", "http://example.com/" + strings.Repeat("a", policy.MaxURL), "bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u, err := p.CheckURL(test.url)
			if err == nil {
				t.Fatalf("is allowed, as %s", u)
			}
			got := refusal(t, err)
			if !strings.Contains(got, test.named) {
				t.Errorf("got %q, want it to name %q", got, test.named)
			}
			if strings.Contains(got, "p4ss") || strings.Contains(got, "us3r") {
				t.Errorf("the message %q has the credentials", got)
			}
		})
	}
}

// TestNotAddresses has texts that are no addresses: their errors are not refusals.
func TestNotAddresses(t *testing.T) {
	p := &policy.Policy{Hosts: hosts(t, "*")}
	for _, text := range []string{"", "example.com", "//example.com/", "http://", "http:///x", "http:example.com", "http://exa mple.com/", "http://[::1", "http://a:b/", "http://a:0/", "http://a:70000/"} {
		_, err := p.CheckURL(text)
		if err == nil {
			t.Errorf("%q is allowed", text)
		}
	}
}

func TestOneFormOfAnAddress(t *testing.T) {
	p := &policy.Policy{Hosts: hosts(t, "*", "*:8443")}
	for text, want := range map[string]string{
		"HTTP://EXAMPLE.com":              "http://example.com",
		"https://example.com:443/a?b#c":   "https://example.com/a?b",
		"https://example.com.:8443/a":     "https://example.com:8443/a",
		" https://bücher.example/ä ":      "https://xn--bcher-kva.example/%C3%A4",
		"http://a_b.example/":             "http://a_b.example/",
		"http://[2606:4700::1]:80/":       "http://[2606:4700::1]/",
		"http://93.184.216.34/":           "http://93.184.216.34/",
		"https://example.com/%2e%2e/a//b": "https://example.com/%2e%2e/a//b",
	} {
		u, err := p.CheckURL(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if u.String() != want {
			t.Errorf("%q: got %s, want %s", text, u, want)
		}
	}
}

// TestAllowedHosts has what each rule allows, and what it does not.
func TestAllowedHosts(t *testing.T) {
	for _, test := range []struct {
		rule    string
		allowed []string
		refused []string
	}{
		{"example.com", []string{"http://example.com/", "https://EXAMPLE.com./"}, []string{"http://example.com:8080/", "http://www.example.com/", "http://example.com.evil.net/", "http://evilexample.com/"}},
		{"*.example.com", []string{"http://a.example.com/", "http://a.b.example.com/"}, []string{"http://example.com/", "http://evilexample.com/", "http://a.example.com:81/"}},
		{"*.example.com:8443", []string{"https://a.example.com:8443/"}, []string{"https://a.example.com/"}},
		{"*", []string{"http://example.com/", "http://93.184.216.34/"}, []string{"http://10.0.0.1/", "http://example.com:8080/"}},
		{"127.0.0.1:8080", []string{"http://127.0.0.1:8080/", "http://[::ffff:127.0.0.1]:8080/"}, []string{"http://127.0.0.1/", "http://127.0.0.2:8080/", "http://localhost:8080/", "http://2130706433:8080/"}},
		{"[::1]:8080", []string{"http://[::1]:8080/", "http://[0::1]:8080/"}, []string{"http://[::1]/", "http://127.0.0.1:8080/"}},
		{"169.254.169.254:80", []string{"http://169.254.169.254/"}, []string{"http://169.254.169.253/"}},
		{"intranet:8080=10.0.0.5", []string{"http://intranet:8080/"}, []string{"http://intranet/", "http://10.0.0.5:8080/"}},
		{"*:8080=10.0.0.0/8", []string{"http://10.0.0.5:8080/", "http://intranet:8080/"}, []string{"http://10.0.0.5/", "http://11.0.0.5:8080/", "http://127.0.0.1:8080/"}},
		{"bücher.example", []string{"http://xn--bcher-kva.example/", "http://BÜCHER.example/"}, nil},
	} {
		p := &policy.Policy{Hosts: hosts(t, test.rule)}
		for _, u := range test.allowed {
			if _, err := p.CheckURL(u); err != nil {
				t.Errorf("%s: %s: %v", test.rule, u, err)
			}
		}
		for _, u := range test.refused {
			if _, err := p.CheckURL(u); err == nil {
				t.Errorf("%s: %s is allowed", test.rule, u)
			}
		}
	}
	for _, rule := range []string{
		"", "http://example.com", "example.com/", "user@example.com", "example.com:0", "example.com:x", "*x.com", "a.*.com", "127.0.0.1", "10.0.0.1", "[::1]", "::1",
		"0.0.0.0:80", "224.0.0.1:80", "2130706433:80", "127.1:80", "*.127.0.0.1:80", "exa mple.com",
		"intranet=10.0.0.5", "intranet:80=", "intranet:80=10.0.0", "intranet:80=other", "intranet:80=10.0.0.5/8", "intranet:80=10.0.0.0/33", "intranet:80=0.0.0.0",
		"intranet:80=224.0.0.1", "intranet:80=2130706433", "10.0.0.5:80=10.0.0.6", "=10.0.0.5", "intranet:80=fe80::1%eth0", "intranet:80=::ffff:10.0.0.0/120",
	} {
		if _, err := policy.ParseHosts([]string{rule}); err == nil {
			t.Errorf("the rule %q is accepted", rule)
		}
	}
}

// A names is a resolver whose answers change from one lookup to the next; the last stays.
type names struct {
	mu      sync.Mutex
	answers map[string][][]netip.Addr
	asked   int
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	all := n.answers[host]
	if len(all) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(all) > 1 {
		n.answers[host] = all[1:]
	}
	return append([]netip.Addr(nil), all[0]...), nil
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, t := range texts {
		all = append(all, netip.MustParseAddr(t))
	}
	return all
}

// get asks for a page by the client of a policy, after its URL was checked.
func get(t *testing.T, p *policy.Policy, text string) error {
	t.Helper()
	u, err := p.CheckURL(text)
	if err != nil {
		return err
	}
	client := p.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	resp, err := client.Get(u.String())
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A web is a server on loopback that counts its visits, and the network of a test, which
// leads all public addresses to it.
type web struct {
	*httptest.Server
	mu      sync.Mutex
	visited []string // hosts
}

func newWeb(t *testing.T, handle func(http.ResponseWriter, *http.Request)) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.visited = append(w.visited, r.Host)
		w.mu.Unlock()
		handle(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *web) connect(ctx context.Context, network, address string, control policy.Control) (net.Conn, error) {
	if err := control(network, address, nil); err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, w.Listener.Addr().String())
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// TestRebinding has a name that stands for a public address first, and for one inside a
// moment later.
func TestRebinding(t *testing.T) {
	for _, inside := range []string{"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"} {
		site := newWeb(t, ok)
		n := &names{answers: map[string][][]netip.Addr{"rebind.example": {addrs("93.184.216.34"), addrs(inside)}}}
		p := &policy.Policy{Hosts: hosts(t, "rebind.example"), Resolver: n, Connect: site.connect}
		if err := get(t, p, "http://rebind.example/"); err != nil {
			t.Fatalf("the first time: %v", err)
		}
		got := refusal(t, get(t, p, "http://rebind.example/"))
		if want := netip.MustParseAddr(inside).Unmap().String(); !strings.Contains(got, "rebind.example") || !strings.Contains(got, want) {
			t.Errorf("got %q, want it to name the host and %s", got, want)
		}
		if len(site.visited) != 1 || n.asked != 2 {
			t.Errorf("%d visits after %d lookups, want 1 after 2: a connection looks its host up once", len(site.visited), n.asked)
		}
	}
}

// TestMixedAddresses has a name that stands for a public address and for one inside.
func TestMixedAddresses(t *testing.T) {
	site := newWeb(t, ok)
	n := &names{answers: map[string][][]netip.Addr{"mixed.example": {addrs("93.184.216.34", "127.0.0.1")}}}
	p := &policy.Policy{Hosts: hosts(t, "*"), Resolver: n, Connect: site.connect}
	if got := refusal(t, get(t, p, "http://mixed.example/")); !strings.Contains(got, "127.0.0.1") || len(site.visited) != 0 {
		t.Errorf("got %q and %d visits", got, len(site.visited))
	}
}

// TestConnectionsAreChecked has a connection that would be made to another address than
// the one that was looked up: that of the system is checked, whoever chose it.
func TestConnectionsAreChecked(t *testing.T) {
	site := newWeb(t, ok)
	n := &names{answers: map[string][][]netip.Addr{"a.example": {addrs("93.184.216.34")}}}
	p := &policy.Policy{
		Hosts: hosts(t, "*"), Resolver: n,
		Connect: func(ctx context.Context, network, _ string, control policy.Control) (net.Conn, error) {
			d := net.Dialer{Control: control}
			return d.DialContext(ctx, network, site.Listener.Addr().String())
		},
	}
	got := refusal(t, get(t, p, "http://a.example/"))
	if !strings.Contains(got, "127.0.0.1") || !strings.Contains(got, "a.example") || len(site.visited) != 0 {
		t.Errorf("got %q and %d visits", got, len(site.visited))
	}
}

// A connection to another port than the one that was asked for is refused with that reason.
func TestPortsOfConnectionsAreChecked(t *testing.T) {
	site := newWeb(t, ok)
	n := &names{answers: map[string][][]netip.Addr{"a.example": {addrs("127.0.0.1")}}}
	p := &policy.Policy{
		Hosts: hosts(t, "a.example:80=127.0.0.1"), Resolver: n,
		Connect: func(ctx context.Context, network, _ string, control policy.Control) (net.Conn, error) {
			d := net.Dialer{Control: control}
			return d.DialContext(ctx, network, site.Listener.Addr().String())
		},
	}

	got := refusal(t, get(t, p, "http://a.example/"))
	if !strings.Contains(got, "only port 80 was asked for") || len(site.visited) != 0 {
		t.Errorf("got %q and %d visits", got, len(site.visited))
	}
}

// TestNamesInside: a name leads to private addresses only where the operator says at which
// it is. Whoever can change what the name stands for chooses no other, neither inside nor
// outside; and link-local and metadata addresses are reached only by themselves.
func TestNamesInside(t *testing.T) {
	for _, test := range []struct {
		rule, at string // what the name stands for
		refused  string // what the message names; empty if the address is reached
	}{
		{"intranet:8080", "10.1.2.3", "intranet:8080=10.1.2.3"},
		{"intranet:8080", "127.0.0.1", "intranet:8080=127.0.0.1"},
		{"intranet:8080", "fd00::5", "intranet:8080=fd00::5"},
		{"intranet:8080", "93.184.216.34", ""},
		{"intranet:8080=10.1.2.3", "10.1.2.3", ""},
		{"intranet:8080=10.1.2.3", "::ffff:10.1.2.3", ""},
		{"intranet:8080=10.1.2.3", "10.1.2.4", "intranet:8080=10.1.2.4"},
		{"intranet:8080=10.1.2.3", "127.0.0.1", "intranet:8080=127.0.0.1"},
		{"intranet:8080=10.1.2.3", "93.184.216.34", "at other addresses alone"},
		{"intranet:8080=10.1.2.0/24", "10.1.2.200", ""},
		{"intranet:8080=10.1.2.0/24", "10.1.3.1", "intranet:8080=10.1.3.1"},
		{"intranet:8080=fd00::5", "fd00::5", ""},
		{"intranet:8080=[fd00::5]", "fd00::5", ""},
		{"intranet:8080=fd00::/8", "fd00:ec2::254", "metadata service is reached only if it is allowed by itself: intranet:8080=fd00:ec2::254"},
		{"intranet:8080=100.64.0.0/10", "100.100.100.200", "by itself"},
		{"intranet:8080=0.0.0.0/0", "169.254.169.254", "by itself"},
		{"intranet:8080=0.0.0.0/0", "224.0.0.1", "multicast"},
		{"intranet:8080=169.254.169.254", "169.254.169.254", ""},
		{"*.intranet:8080=10.0.0.0/8", "10.9.9.9", ""},
		{"localhost:8080", "127.0.0.1", ""},
		{"localhost:8080", "::1", ""},
		{"localhost:8080", "10.1.2.3", "localhost:8080=10.1.2.3"},
		{"localhost:8080", "93.184.216.34", "at other addresses alone"},
	} {
		t.Run(test.rule+" at "+test.at, func(t *testing.T) {
			site := newWeb(t, ok)
			host, _, _ := strings.Cut(test.rule, ":")
			host = strings.Replace(host, "*", "wiki", 1)
			n := &names{answers: map[string][][]netip.Addr{host: {addrs(test.at)}}}
			p := &policy.Policy{Hosts: hosts(t, test.rule), Resolver: n, Connect: site.connect}
			err := get(t, p, "http://"+host+":8080/")
			switch {
			case test.refused == "" && (err != nil || len(site.visited) != 1):
				t.Errorf("%v, %d visits", err, len(site.visited))
			case test.refused != "":
				if got := refusal(t, err); !strings.Contains(got, test.refused) || len(site.visited) != 0 {
					t.Errorf("got %q and %d visits, want it to name %q", got, len(site.visited), test.refused)
				}
			}
			refusal(t, get(t, p, "http://"+host+"/"))
		})
	}
	both := hosts(t, "intranet:8080=10.1.2.3", "intranet:8080=10.1.2.4", "*:8080")
	for _, at := range []string{"10.1.2.3", "10.1.2.4", "93.184.216.34"} {
		p := &policy.Policy{Hosts: both, Resolver: &names{answers: map[string][][]netip.Addr{"intranet": {addrs(at)}}}, Connect: newWeb(t, ok).connect}
		if err := get(t, p, "http://intranet:8080/"); err != nil {
			t.Errorf("by several rules: %v", err)
		}
	}
}

// TestRedirects has a public page that redirects inside, in all the ways to write that.
func TestRedirects(t *testing.T) {
	for _, to := range []string{
		"http://127.0.0.1/", "http://2130706433/", "http://[::1]/", "http://[::ffff:169.254.169.254]/", "http://0177.1/", "//127.0.0.1/x", "file:///etc/passwd",
		"http://user:secret@public.example/", "http://inside.example/", "http://public.example:22/", "gopher://public.example/",
	} {
		site := newWeb(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
			}
		})
		n := &names{answers: map[string][][]netip.Addr{"public.example": {addrs("93.184.216.34")}, "inside.example": {addrs("192.168.0.1")}}}
		p := &policy.Policy{Hosts: hosts(t, "*"), Resolver: n, Connect: site.connect}
		got := refusal(t, get(t, p, "http://public.example/"))
		if len(site.visited) != 1 || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, %d visits", to, got, len(site.visited))
		}
	}
}

func TestRedirectsEnd(t *testing.T) {
	site := newWeb(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) })
	n := &names{answers: map[string][][]netip.Addr{"public.example": {addrs("93.184.216.34")}}}
	p := &policy.Policy{Hosts: hosts(t, "*"), Resolver: n, Connect: site.connect}
	if err := get(t, p, "http://public.example/"); err == nil || !strings.Contains(err.Error(), "redirects") || len(site.visited) != policy.MaxRedirects {
		t.Errorf("got %v after %d visits", err, len(site.visited))
	}
}

// TestNothingIsAllowed: a policy that nobody filled reaches nothing.
func TestNothingIsAllowed(t *testing.T) {
	var p policy.Policy
	if _, err := p.CheckURL("https://example.com/"); !strings.Contains(refusal(t, err), "no host is allowed") {
		t.Error(err)
	}
	_, err := p.DialContext(context.Background(), "tcp", "example.com:443")
	refusal(t, err)
}

// FuzzCheckURL: what is allowed names a host that the rules allow, in one form, and never
// an address inside.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"http://example.com/", "http://127.1", "http://[::ffff:7f00:1]:80/", "http://a@b/", "http://0x7f.1/", "http://１２７.1/", "http://%31/", `http://a\@b/`, "http://a:80:80/", "http://[::1%25a]/",
	} {
		f.Add(seed)
	}
	p := &policy.Policy{Hosts: hosts(f, "*", "*:8080")}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := p.CheckURL(text)
		if err != nil {
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\r\x1b") {
				t.Fatalf("message %q", err)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q is allowed as %s", text, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (!a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback()) {
			t.Fatalf("%q is allowed as %s", text, u)
		}
		again, err := p.CheckURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q is %s, and that is %v, %v", text, u, again, err)
		}
		if parsed, err := url.Parse(u.String()); err != nil || parsed.Host != u.Host {
			t.Fatalf("%q: %s is read as %v, %v", text, u, parsed, err)
		}
	})
}

// FuzzCheckPath: a path that is allowed is local and in one form, and names no hidden file.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "a/../../b", "/etc/passwd", "a//b/./c", ".", "", "a/.git/config", "..", "a/..", `a\..\b`, "a\x00b", "./a/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := policy.CheckPath(text)
		if err != nil {
			refusal(t, err)
			return
		}
		again, err := policy.CheckPath(name)
		if err != nil || again != name {
			t.Fatalf("%q is %q, and that is %q, %v", text, name, again, err)
		}
		for part := range strings.SplitSeq(name, "/") {
			if name != "." && (part == "" || strings.HasPrefix(part, ".")) {
				t.Fatalf("%q is allowed as %q", text, name)
			}
		}
	})
}
