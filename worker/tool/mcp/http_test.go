package mcp_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/mcp"
)

// listen serves a handler on loopback.
func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// streamable returns the good server over HTTP. Each session has a server of its own.
func streamable(options *sdk.StreamableHTTPOptions) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return goodServer() }, options)
}

func TestHTTP(t *testing.T) {
	for name, options := range map[string]*sdk.StreamableHTTPOptions{"events": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			keys := make(map[string]bool)
			handler := streamable(options)
			address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				keys[r.Header.Get("X-Key")] = true
				mu.Unlock()
				handler.ServeHTTP(w, r)
			}))
			file := fmt.Sprintf(`{"mcpServers":{"web":{"url":"%s/mcp","headers":{"X-Key":"${KEY}"}}}}`, address)
			k := open(t, parsed(t, file, map[string]string{"KEY": "swordfish-17"}), config())
			s := unit(t, k)
			if got := call(t, s, "web_search", `{"query":"swordfish-17"}`)[0]; got != "about ***" {
				t.Errorf("got %q", got)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(keys) != 1 || !keys["swordfish-17"] {
				t.Errorf("requests came with the keys %v", keys)
			}
		})
	}
}

// A server that was started again has forgotten its sessions. A call that it refuses for
// that was not carried out, so it is made again, whatever the tool does.
func TestHTTPServerStartsAgain(t *testing.T) {
	var mu sync.Mutex
	start := func() http.Handler {
		server := goodServer()
		t.Cleanup(func() {
			for s := range server.Sessions() {
				_ = s.Close()
			}
		})
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	}
	handler := start()
	address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now := handler
		mu.Unlock()
		now.ServeHTTP(w, r)
	}))
	s := unit(t, open(t, mcp.Server{Name: "web", URL: address}, config()))
	call(t, s, "web_search", `{"query":"x"}`)
	mu.Lock()
	handler = start()
	mu.Unlock()
	call(t, s, "web_search", `{"query":"x"}`)
}

// A server cannot send this process elsewhere, neither by a redirect nor by what it says
// of tokens, and headers with secrets go to it alone.
func TestHTTPStaysAtItsAddress(t *testing.T) {
	var elsewhere []string
	other := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.URL.String()+" "+r.Header.Get("X-Key"))
	}))
	to := func(where string) mcp.Server {
		address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, where, http.StatusTemporaryRedirect) }))
		return mcp.Server{Name: "web", URL: address, Headers: map[string]string{"X-Key": "swordfish-17"}}
	}
	for _, where := range []string{other, "http://169.254.169.254/latest/meta-data", "file:///etc/passwd", "http://[::ffff:169.254.169.254]/"} {
		_, err := mcp.New(t.Context(), to(where), config())
		if refused, ok := errors.AsType[*tool.Refused](err); !ok && !strings.Contains(fmt.Sprint(err), "unsupported protocol") {
			t.Errorf("a redirect to %s: %v, refused %v", where, err, refused)
		}
	}
	// A challenge that names a place for its metadata.
	address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+other+`/metadata"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	issuer := listen(t, http.NotFoundHandler())
	_, err := mcp.New(t.Context(), mcp.Server{Name: "web", URL: address, OAuth: &mcp.OAuth{Issuer: issuer, ClientID: "c", ClientSecret: "swordfish-17"}}, config())
	if err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("a server that wants the secret sent elsewhere: %v", err)
	}
	if len(elsewhere) > 0 {
		t.Errorf("requests went elsewhere: %q", elsewhere)
	}
}

// Slow, endless, compressed and odd answers of HTTP are survived.
func TestHTTPAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		write func(http.ResponseWriter, *http.Request)
		want  string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "Internal Server Error"},
		"html": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>log in</p>")
		}, "content type"},
		"endless json": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for block := []byte(strings.Repeat(" ", 1<<20)); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "the answer has more than 16777216 bytes"},
		"bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for block := []byte(strings.Repeat(" ", 1<<20)); ; {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
		}, "the answer has more than 16777216 bytes"},
		"endless event": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "data: ")
			for block := []byte(strings.Repeat("x", 1<<20)); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "mcp:web: "},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.Variant(t, name != "bomb")

			address := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					tt.write(w, r)
				}
			}))
			_, err := mcp.New(t.Context(), mcp.Server{Name: "web", URL: address}, config())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An issuer issues tokens, and a server behind it accepts the newest alone.
type issuer struct {
	address, server string

	mu      sync.Mutex
	issued  int    // tokens
	refresh string // the refresh token that is good
	grants  []string
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%s/authorize","token_endpoint":"%s/issue","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_post"]}`, i.address, i.address, i.address)
	case r.URL.Path == "/issue":
		grant := r.PostFormValue("grant_type")
		i.grants = append(i.grants, grant)
		if grant == "client_credentials" && r.PostFormValue("client_secret") != "secret-of-client" || grant == "refresh_token" && r.PostFormValue("refresh_token") != i.refresh {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		i.issued++
		more := ""
		if grant == "refresh_token" {
			i.refresh = fmt.Sprintf("refresh-token-%d", i.issued)
			more = fmt.Sprintf(`,"refresh_token":%q`, i.refresh)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"access-token-%d","token_type":"Bearer","expires_in":3600%s}`, i.issued, more)
	default:
		http.NotFound(w, r)
	}
}

// guard lets requests with the newest token through.
func (i *issuer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": i.server + "/", "authorization_servers": []string{i.address}})
			return
		}
		i.mu.Lock()
		good := r.Header.Get("Authorization") == fmt.Sprintf("Bearer access-token-%d", i.issued) && i.issued > 0
		i.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{refresh: "refresh-token-0"}
	i.address = listen(t, i)
	i.server = listen(t, i.guard(streamable(nil)))
	return i
}

func TestOAuth(t *testing.T) {
	t.Run("client credentials", func(t *testing.T) {
		i := newIssuer(t)
		o := &mcp.OAuth{Issuer: i.address, ClientID: "c", ClientSecret: "secret-of-client"}
		k := open(t, mcp.Server{Name: "web", URL: i.server + "/", OAuth: o}, config())
		// The call that asked for the token first is over; another unit's goes on.
		first, done := context.WithCancel(t.Context())
		s := unit(t, k)
		if _, err := s.Call(first, "web_search", json.RawMessage(`{"query":"access-token-1"}`)); err != nil {
			t.Fatal(err)
		}
		done()
		if got := call(t, unit(t, k), "web_search", `{"query":"access-token-1"}`)[0]; got != "about ***" {
			t.Errorf("a token is shown: %q", got)
		}
		i.mu.Lock()
		i.issued++ // the token is good no more
		i.mu.Unlock()
		call(t, s, "web_search", `{"query":"x"}`)

		o.ClientSecret = "another-secret"
		_, err := mcp.New(t.Context(), mcp.Server{Name: "web", URL: i.server + "/", OAuth: o}, config())
		if err == nil || !strings.Contains(err.Error(), "invalid_grant") || strings.Contains(err.Error(), "another-secret") {
			t.Errorf("a wrong secret: %v", err)
		}
	})
	t.Run("refresh token", func(t *testing.T) {
		i := newIssuer(t)
		path := filepath.Join(t.TempDir(), "refresh")
		if err := os.WriteFile(path, []byte("refresh-token-0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := &mcp.OAuth{Issuer: i.address, ClientID: "c", RefreshTokenFile: path}
		s := unit(t, open(t, mcp.Server{Name: "web", URL: i.server + "/", OAuth: o}, config()))
		call(t, s, "web_search", `{"query":"x"}`)
		i.mu.Lock()
		i.issued++
		i.mu.Unlock()
		call(t, s, "web_search", `{"query":"x"}`)
		kept, err := os.ReadFile(path)
		info, statErr := os.Stat(path)
		if err := errors.Join(err, statErr); err != nil || string(kept) != i.refresh+"\n" || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has %q (%v), want the newest refresh token %s, error %v", kept, info.Mode(), i.refresh, err)
		}
		if err := os.WriteFile(path, []byte("stolen-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = mcp.New(t.Context(), mcp.Server{Name: "web", URL: i.server + "/", OAuth: o}, config())
		if err == nil || !strings.Contains(err.Error(), "refuses the refresh token: 400 Bad Request invalid_grant") || strings.Contains(err.Error(), "stolen-token") {
			t.Errorf("a refresh token that is none: %v", err)
		}
	})
	t.Run("many at once", func(t *testing.T) {
		i := newIssuer(t)
		k := open(t, mcp.Server{Name: "web", URL: i.server + "/", Shared: true, OAuth: &mcp.OAuth{Issuer: i.address, ClientID: "c", RefreshToken: "refresh-token-0"}}, config())
		i.mu.Lock()
		i.issued++
		i.mu.Unlock()
		var all sync.WaitGroup
		for range 8 {
			s := unit(t, k)
			all.Go(func() {
				if _, err := s.Call(t.Context(), "web_search", json.RawMessage(`{"query":"x"}`)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(i.grants) != 2 {
			t.Errorf("tokens were asked for %d times: %v", len(i.grants), i.grants)
		}
	})
}
