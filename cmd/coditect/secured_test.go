package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/transport"
	main "github.com/coditect/mapreduce/cmd/coditect"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// brief are the scripts that every run of the tests has time for.
var brief = []string{"encoding", "everyday", "records"}

// own are the scripts that say nothing of a service, wherever it is, and why: all others
// run on one.
var own = map[string]string{
	"cluster":   "it is about cluster files, and about installations side by side",
	"interrupt": "it ends the process that runs the units; serve has what ends a client",
	"local":     "it is about the socket of a data directory",
	"owner":     "it is about processes that share a data directory",
	"paused":    "it holds units back in the process that runs them",
	"tools":     "it is about the tools of the process that runs the units",
	"tls":       "it is about certificates that fit and do not, at a server of its own",
}

// serving are the scripts that start a server of their own, which has the same
// certificates, issuer and policy.
var serving = map[string]bool{"agents": true, "large": true, "reading": true, "serve": true}

// remote returns the scripts that say what any service does, wherever it is. What they say
// of the process that has the store, of workers of their own, or of settings that a server
// has itself, stands behind [!secured].
func remote(t *testing.T) (names []string) {
	t.Helper()
	found := make(map[string]bool)
	for _, name := range scripts(t) {
		found[name] = true
		if own[name] == "" {
			names = append(names, name)
		}
	}
	for name := range own {
		if !found[name] {
			t.Errorf("%s is said not to run on a server, and there is no such script", name)
		}
	}
	return names
}

// The scripts that say what a service does give the same over mutual TLS, by principals
// that an issuer of OpenID Connect knows, as they give within one process. They share a
// server, where each is a tenant of its own, or start one. CODITECT_SECURED=all runs all of them.
func TestScriptsSecured(t *testing.T) {
	chosen := remote(t)
	if os.Getenv("CODITECT_SECURED") != "all" {
		chosen = slices.DeleteFunc(slices.Clone(brief), func(name string) bool {
			return !testenv.VariantRuns(name == "everyday")
		})
	}
	h := newSecuredServer(t, chosen)
	p := scriptParams(t)
	p.Dir, p.UpdateScripts = "", false
	for _, name := range chosen {
		p.Files = append(p.Files, scriptFile(name))
	}
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := setup(e); err != nil {
			return err
		}
		script := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
		if serving[script] {
			return nil
		}
		e.Setenv("CODITECT_SERVER", h.address)
		for name, value := range h.client(script) {
			e.Setenv(name, value)
		}
		return nil
	}
	p.Cmds["as"] = func(ts *testscript.TestScript, _ bool, args []string) {
		settings := h.client(strings.TrimPrefix(filepath.Base(ts.Getenv("WORK")), "script-"))
		if slices.Equal(args, []string{"server"}) {
			settings = h.server()
		}
		for name, value := range settings {
			ts.Setenv(name, value)
		}
	}
	usual := p.Condition
	p.Condition = func(name string) (bool, error) {
		if name == "secured" { // on a server, which has its own settings and disk
			return true, nil
		}
		return usual(name)
	}
	doctor := p.Cmds["doctor"]
	p.Cmds["doctor"] = func(ts *testscript.TestScript, neg bool, args []string) {
		own := ts.Getenv("CODITECT_TOKEN_FILE")
		ts.Setenv("CODITECT_TOKEN_FILE", h.file(admin+".token"))
		doctor(ts, neg, args)
		ts.Setenv("CODITECT_TOKEN_FILE", own)
	}
	testscript.Run(t, p)
}

// A securedServer is one that asks clients for certificates and for tokens of an issuer.
type securedServer struct {
	dir     string
	issuer  string // its URL
	signIns *oidctest.SignIns
	address string
	said    *output
}

func (h *securedServer) file(name string) string { return filepath.Join(h.dir, name) }

// client returns the environment of a client, and of a worker, of a tenant.
func (h *securedServer) client(tenant string) map[string]string {
	return map[string]string{
		"CODITECT_TLS_CA": h.file("ca.pem"), "CODITECT_TLS_CERT": h.file("client.pem"), "CODITECT_TLS_KEY": h.file("client.key"),
		"CODITECT_TOKEN_FILE": h.file(tenant + ".token"),
	}
}

// server returns the environment of a server.
func (h *securedServer) server() map[string]string {
	return map[string]string{
		"CODITECT_TLS_CERT": h.file("server.pem"), "CODITECT_TLS_KEY": h.file("server.key"), "CODITECT_CLIENT_CA": h.file("ca.pem"),
		"CODITECT_POLICY": h.file("policy.yaml"), "CODITECT_OIDC_ISSUER": h.issuer, "CODITECT_OIDC_AUDIENCE": "coditect",
	}
}

// admin is who may look at the whole store: its token is in admin.token.
const admin = "admin"

// newSecuredServer serves until the test ends. Each of the tenants has a submitter and
// operator, whose token is in the file TENANT.token. Workers use it too. Other arguments of serve
// come after those that it has anyway.
func newSecuredServer(t *testing.T, tenants []string, args ...string) *securedServer {
	t.Helper()
	h := &securedServer{dir: t.TempDir()}
	issuer, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	issuer.SignIns = &oidctest.SignIns{Client: "pages", Callback: "https://jobs.example.org/sign-in/callback"}
	h.issuer, h.signIns = issuer.URL(), issuer.SignIns
	ca, _, err := transport.OpenAuthority(h.dir, "suite", time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]transport.CertificateRequest{
		"server": {Names: []string{"127.0.0.1"}, Server: true, Valid: time.Hour}, "client": {Names: []string{"nobody"}, Valid: time.Hour},
	} {
		cert, key, err := ca.Issue(r)
		if err == nil {
			err = transport.WritePair(h.file(name+".pem"), h.file(name+".key"), cert, key)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	policy := "principals:\n- {match: 'oidc:admin', tenant: admin, roles: [admin]}\n"
	for _, tenant := range append([]string{admin}, tenants...) {
		token, err := issuer.Token(tenant, "coditect", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tenant != admin {
			policy += fmt.Sprintf("- {match: 'oidc:%s', tenant: %s, roles: [submitter, operator, worker]}\n", tenant, tenant)
		}
		if err := os.WriteFile(h.file(tenant+".token"), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(h.file("policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	said, served := &output{more: make(chan struct{})}, make(chan int, 1)
	go func() {
		served <- main.Run(ctx, append([]string{
			"serve", "--listen", "127.0.0.1:0", "--data-dir", h.file("data"), "--tls-cert", h.file("server.pem"), "--tls-key", h.file("server.key"),
			"--client-ca", h.file("ca.pem"), "--policy", h.file("policy.yaml"), "--oidc-issuer", issuer.URL(), "--oidc-audience", "coditect",
		}, args...), said)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-served; code != 0 {
			t.Errorf("the server ended with %d:\n%s", code, said)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", said)
		}
	})
	h.address, h.said = said.await(t, `msg=serving address=(\S+)`), said
	return h
}
