package oidc_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/errs"
)

const callback = "https://jobs.example.org/sign-in/callback"

// openLogin returns an issuer, and a login at it for an audience.
func openLogin(t *testing.T, audience, secret string) (*oidctest.Issuer, *oidc.Login) {
	t.Helper()
	issuer, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	issuer.SignIns = &oidctest.SignIns{Client: "pages", Secret: secret, Callback: callback}
	issuer.SignIns.Say(oidctest.Answer{Subject: "ada"})

	login, err := oidc.NewLogin(oidc.LoginConfig{
		Config: oidc.Config{Issuer: issuer.URL(), Audience: audience}, ClientID: "pages", Secret: secret, Callback: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	return issuer, login
}

// visit follows an address as a browser does, to what the issuer sends it back with.
func visit(t *testing.T, address string) url.Values {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()

	to, err := answer.Location()
	if err != nil || !strings.HasPrefix(to.String(), callback+"?") {
		t.Fatalf("status %d, sent to %v: %v", answer.StatusCode, to, err)
	}
	return to.Query()
}

func begin(t *testing.T, l *oidc.Login) (*oidc.Pending, url.Values) {
	t.Helper()
	address, p, err := l.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, visit(t, address)
}

// TestLogin: the bearer is the token that the service accepts, whichever of the two it is.
func TestLogin(t *testing.T) {
	for name, c := range map[string]struct {
		audience, secret string
		access           map[string]any
	}{
		"the access token":            {"coditect", "", map[string]any{}},
		"a client with a secret":      {"coditect", "s3cret", map[string]any{}},
		"the identity token":          {"pages", "", nil},
		"an access token for another": {"pages", "", map[string]any{"aud": "https://graph.example.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			issuer, l := openLogin(t, c.audience, c.secret)
			issuer.SignIns.Say(oidctest.Answer{Subject: "ada", Access: c.access})
			p, back := begin(t, l)
			got, err := l.Finish(t.Context(), p, back)
			if err != nil {
				t.Fatal(err)
			}

			v, err := oidc.New(oidc.Config{Issuer: issuer.URL(), Audience: c.audience})
			if err != nil {
				t.Fatal(err)
			}
			subject, ends, err := v.Verify(t.Context(), got.Bearer)
			if err != nil || subject != "ada" || got.Subject != "ada" || !ends.Equal(got.Ends) || !got.Renewable() {
				t.Errorf("the bearer is of %q until %v: %v; tokens say %q, %v, renewable %t", subject, ends, err, got.Subject, got.Ends, got.Renewable())
			}
		})
	}
}

// TestLoginRefusals: a code counts once, in the browser that began, for this client alone.
func TestLoginRefusals(t *testing.T) {
	type attempt struct {
		issuer  *oidctest.Issuer
		login   *oidc.Login
		pending *oidc.Pending
		answer  url.Values
	}
	for name, c := range map[string]struct {
		say    *oidctest.Answer
		change func(t *testing.T, a *attempt)
		want   string
		kind   errs.Kind
	}{
		"no sign-in was begun":   {change: func(_ *testing.T, a *attempt) { a.pending = nil }, want: "not begun in this browser"},
		"state of another":       {change: func(t *testing.T, a *attempt) { a.pending, _ = begin(t, a.login) }, want: "not begun in this browser"},
		"no state":               {change: func(_ *testing.T, a *attempt) { a.answer.Del("state") }, want: "not begun in this browser"},
		"no code":                {change: func(_ *testing.T, a *attempt) { a.answer.Del("code") }, want: "no code"},
		"a code that is made up": {change: func(_ *testing.T, a *attempt) { a.answer.Set("code", "made-up") }, want: "invalid_grant"},
		"a code that was used": {change: func(t *testing.T, a *attempt) {
			if _, err := a.login.Finish(t.Context(), a.pending, a.answer); err != nil {
				t.Fatal(err)
			}
		}, want: "invalid_grant"},
		"a code of another browser": {change: func(t *testing.T, a *attempt) {
			p, _ := begin(t, a.login)
			a.answer.Set("state", p.State)
			a.pending = p
		}, want: "invalid_grant"},
		"an answer of another issuer": {change: func(_ *testing.T, a *attempt) { a.answer.Set("iss", "https://evil.example") }, want: "another issuer"},
		"who signs in says no":        {say: &oidctest.Answer{Refuse: "access_denied"}, want: "access_denied"},
		"nonce of another sign-in":    {say: &oidctest.Answer{Subject: "ada", Identity: map[string]any{"nonce": "other"}}, want: "another sign-in"},
		"no nonce":                    {say: &oidctest.Answer{Subject: "ada", Identity: map[string]any{"nonce": nil}}, want: "another sign-in"},
		"identity for another client": {say: &oidctest.Answer{Subject: "ada", Identity: map[string]any{"aud": "other"}}, want: "does not hold"},
		"identity of another issuer":  {say: &oidctest.Answer{Subject: "ada", Identity: map[string]any{"iss": "https://evil.example"}}, want: "does not hold"},
		"identity has expired":        {say: &oidctest.Answer{Subject: "ada", Lasts: -time.Hour}, want: "does not hold"},
		"no subject":                  {say: &oidctest.Answer{Subject: ""}, want: "no subject"},
		"the issuer is away":          {change: func(_ *testing.T, a *attempt) { a.issuer.Away.Store(true) }, want: "does not answer", kind: errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			issuer, l := openLogin(t, "pages", "")
			if c.say != nil {
				issuer.SignIns.Say(*c.say)
			}
			a := attempt{issuer: issuer, login: l}
			a.pending, a.answer = begin(t, l)
			if c.change != nil {
				c.change(t, &a)
			}

			kind := c.kind
			if kind == errs.Internal {
				kind = errs.Unauthenticated
			}
			got, err := l.Finish(t.Context(), a.pending, a.answer)
			if errs.KindOf(err) != kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, error of the kind %v: %v; want %q of the kind %v", got, errs.KindOf(err), err, c.want, kind)
			}
		})
	}
}

// TestLoginWithoutAudience: tokens that the service would refuse anyway open nothing.
func TestLoginWithoutAudience(t *testing.T) {
	_, l := openLogin(t, "something-else", "")
	p, back := begin(t, l)
	if _, err := l.Finish(t.Context(), p, back); errs.KindOf(err) != errs.Unauthenticated || !strings.Contains(err.Error(), "something-else") {
		t.Errorf("tokens of no audience: %v", err)
	}
}

func TestRenew(t *testing.T) {
	issuer, l := openLogin(t, "pages", "")
	p, back := begin(t, l)
	tokens, err := l.Finish(t.Context(), p, back)
	if err != nil {
		t.Fatal(err)
	}

	fresh, err := l.Renew(t.Context(), tokens)
	if err != nil || fresh.Subject != "ada" || issuer.SignIns.Renewals() != 1 {
		t.Fatalf("renewed %d times: %v, %v", issuer.SignIns.Renewals(), fresh, err)
	}
	if _, err := l.Renew(t.Context(), tokens); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("a refresh token counted twice: %v", err)
	}

	issuer.SignIns.Say(oidctest.Answer{Subject: "eve"})
	if _, err := l.Renew(t.Context(), fresh); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("tokens of another subject: %v", err)
	}
	issuer.Away.Store(true)
	if _, err := l.Renew(context.Background(), fresh); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("the issuer is away: %v", err)
	}
}

func TestLoginConfig(t *testing.T) {
	good := oidc.LoginConfig{Config: oidc.Config{Issuer: "https://issuer.example.org", Audience: "a"}, ClientID: "pages", Callback: callback}
	if _, err := oidc.NewLogin(good); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(c *oidc.LoginConfig){
		"oidc_client":   func(c *oidc.LoginConfig) { c.ClientID = "" },
		"oidc_audience": func(c *oidc.LoginConfig) { c.Audience = "" },
		"public_url":    func(c *oidc.LoginConfig) { c.Callback = "http://jobs.example.org/x" },
	} {
		c := good
		change(&c)
		if _, err := oidc.NewLogin(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
