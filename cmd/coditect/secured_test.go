package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/transport/authority"
	main "github.com/coditect/mapreduce/cmd/coditect"
)

// remote are the scripts that say what any service does, wherever it is. The others look
// at the process that has the store, at workers of their own, or at flags of a run that a
// server does not have.
var remote = []string{"encoding", "eval", "everyday", "exit", "input", "pdf", "pipeline", "plan", "records", "run", "schema", "stages", "trace"}

// brief are those that every run of the tests has time for.
var brief = []string{"encoding", "everyday", "records"}

// The scripts that say what a service does give the same over mutual TLS, by principals
// that an issuer of OpenID Connect knows, as they give within one process. They share a
// server: each is a tenant of its own there. CODITECT_SECURED=all runs all of them.
func TestScriptsSecured(t *testing.T) {
	chosen := brief
	if os.Getenv("CODITECT_SECURED") == "all" {
		chosen = remote
	}
	h := newSecuredServer(t, chosen)
	p := scriptParams(t)
	p.Dir, p.UpdateScripts = "", false
	for _, name := range chosen {
		p.Files = append(p.Files, filepath.Join("testdata", name+".txtar"))
	}
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := setup(e); err != nil {
			return err
		}
		script := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
		for name, value := range map[string]string{
			"SERVER": h.address, "TLS_CA": h.file("ca.pem"), "TLS_CERT": h.file("client.pem"), "TLS_KEY": h.file("client.key"), "TOKEN_FILE": h.file(script + ".token"),
		} {
			e.Setenv("CODITECT_"+name, value)
		}
		return nil
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
	address string
}

func (h *securedServer) file(name string) string { return filepath.Join(h.dir, name) }

// admin is who may look at the whole store: its token is in admin.token.
const admin = "admin"

// newSecuredServer serves until the test ends. Each of the tenants has a submitter and
// operator, whose token is in the file TENANT.token.
func newSecuredServer(t *testing.T, tenants []string) *securedServer {
	t.Helper()
	h := &securedServer{dir: t.TempDir()}
	issuer, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	ca, _, err := authority.Open(h.dir, "suite", time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]authority.Request{
		"server": {Names: []string{"127.0.0.1"}, Server: true, Valid: time.Hour}, "client": {Names: []string{"nobody"}, Valid: time.Hour},
	} {
		cert, key, err := ca.Issue(r)
		if err == nil {
			err = authority.WritePair(h.file(name+".pem"), h.file(name+".key"), cert, key)
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
			policy += fmt.Sprintf("- {match: 'oidc:%s', tenant: %s, roles: [submitter, operator]}\n", tenant, tenant)
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
		served <- main.Run(ctx, []string{
			"serve", "--listen", "127.0.0.1:0", "--data-dir", h.file("data"), "--tls-cert", h.file("server.pem"), "--tls-key", h.file("server.key"),
			"--client-ca", h.file("ca.pem"), "--policy", h.file("policy.yaml"), "--oidc-issuer", issuer.URL(), "--oidc-audience", "coditect",
		}, said)
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
	h.address = said.await(t, `msg=serving address=(\S+)`)
	return h
}
