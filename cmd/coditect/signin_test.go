package main_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
)

// TestSignInWithAnAccount: somebody who opens a page signs in at the issuer and sees that page, with
// the rights that the policy gives; signing out takes them away.
func TestSignInWithAnAccount(t *testing.T) {
	h := newSecuredServer(t, []string{"a"}, "--http", "127.0.0.1:0", "--oidc-client", "pages", "--public-url", "https://jobs.example.org/")
	browser := h.browser(t)
	visit := func(method, path string) (page, at string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "https://jobs.example.org"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body), answer.Request.URL.RequestURI()
	}

	page, at := visit(http.MethodGet, "/use?x=1")
	link := regexp.MustCompile(`href="(/sign-in/issuer\?[^"]*)"`).FindStringSubmatch(page)
	if at != "/sign-in?to=%2Fuse%3Fx%3D1" || link == nil {
		t.Fatalf("without a session the browser is at %s:\n%s", at, page)
	}

	h.signIns.Say(oidctest.Answer{Subject: "a", Access: map[string]any{}})
	if page, at = visit(http.MethodGet, strings.ReplaceAll(link[1], "&amp;", "&")); at != "/use?x=1" || !strings.Contains(page, "Sign out") {
		t.Fatalf("signed in, the browser is at %s:\n%s", at, page)
	}
	if page, at = visit(http.MethodPost, "/sign-out"); !strings.HasPrefix(at, "/sign-in") || strings.Contains(page, "Sign out") {
		t.Errorf("signed out, the browser is at %s:\n%s", at, page)
	}
	if _, at = visit(http.MethodGet, "/use"); !strings.HasPrefix(at, "/sign-in") {
		t.Errorf("signed out, a page opens at %s", at)
	}

	// Whoever the policy does not know is told so, and a refusal of the issuer is shown as text.
	h.signIns.Say(oidctest.Answer{Subject: "nobody", Access: map[string]any{}})
	if page, _ = visit(http.MethodGet, "/sign-in/issuer?to=/use"); !strings.Contains(page, "oidc:nobody") {
		t.Errorf("somebody whom the policy does not know sees:\n%s", page)
	}
	h.signIns.Say(oidctest.Answer{Refuse: "access_denied"})
	if page, _ = visit(http.MethodGet, "/sign-in/issuer?to=//evil.example"); !strings.Contains(page, "access_denied") || strings.Contains(page, "<script>alert") {
		t.Errorf("after a refusal the browser shows:\n%s", page)
	}
}

// browser returns a client with cookies whose connections to the public address go to the server.
func (h *securedServer) browser(t *testing.T) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(h.file("ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}

	server, dialer := h.said.await(t, `msg="HTTP is served" http=(\S+)`), &net.Dialer{}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == "jobs.example.org:443" {
				address = server
			}
			return dialer.DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}
