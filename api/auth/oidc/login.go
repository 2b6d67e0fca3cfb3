package oidc

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/coditect/mapreduce/api/errs"
)

// A LoginConfig says how people sign in with a browser at an issuer.
type LoginConfig struct {
	// Config says whose tokens the service accepts.
	Config
	// ClientID is the name by which the issuer knows this service. It is needed.
	ClientID string
	// Secret is what the issuer gave a client that can keep one. Clients without are public:
	// what protects their codes is the proof key alone, which all have.
	Secret string
	// Callback is where the issuer sends the browser back to, as it is registered there.
	Callback string
}

// A Login signs people in by the authorization code flow with a proof key (RFC 7636). It keeps
// nothing: the caller keeps a [Pending] until the browser comes back, and [Tokens] as long as
// somebody is signed in. Its methods may be called at the same time.
//
// A code counts only together with the Pending of the browser that began, and an identity token
// only with its nonce. So nobody can sign another in as himself, or use a code that he has seen.
type Login struct {
	config   LoginConfig
	accepted *Verifier
	client   *http.Client
}

// NewLogin returns a login. It asks the issuer nothing yet.
func NewLogin(c LoginConfig) (*Login, error) {
	accepted, err := New(c.Config)
	if err != nil {
		return nil, err
	}

	u, err := url.Parse(c.Callback)
	switch {
	case c.ClientID == "":
		return nil, errs.Field("oidc_client", "is missing: it is the name by which the issuer knows this service")
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errs.Field("public_url", "%q is not the address of a service, such as https://jobs.example.org", c.Callback)
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return nil, errs.Field("public_url", "%q: must begin with https://, as codes and sessions go there", c.Callback)
	}

	inner := c.Transport
	if inner == nil {
		if inner, err = transportOf(c.CA); err != nil {
			return nil, err
		}
	}

	// Not bounded in how often it asks, as the verifier is: who begins many sign-ins would keep
	// out all others.
	return &Login{config: c, accepted: accepted, client: &http.Client{
		Timeout: askWait, Transport: short{inner},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// A short reads no more of an answer than it should have.
type short struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (s short) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := s.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// A Pending is a sign-in that has begun.
type Pending struct {
	State    string // what the issuer has to send back
	nonce    string
	verifier string
}

// Tokens are what somebody has who is signed in.
type Tokens struct {
	Bearer  string    // what the service accepts as Authorization
	Subject string    // of the bearer token
	Ends    time.Time // when the bearer token expires, by the clock of this process
	refresh string    // gets new ones; empty if the issuer gave none
}

// Renewable reports whether Renew may get new tokens.
func (t *Tokens) Renewable() bool { return t.refresh != "" }

// Begin returns where a browser has to go, and what has to be kept until it comes back.
func (l *Login) Begin(ctx context.Context) (string, *Pending, error) {
	flow, _, err := l.flow(ctx)
	if err != nil {
		return "", nil, err
	}
	p := &Pending{State: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier()}
	return flow.AuthCodeURL(p.State, oidc.Nonce(p.nonce), oauth2.S256ChallengeOption(p.verifier)), p, nil
}

// Finish returns the tokens for the code that a browser has brought back.
func (l *Login) Finish(ctx context.Context, p *Pending, answer url.Values) (*Tokens, error) {
	switch {
	case p == nil || answer.Get("state") != p.State:
		return nil, errs.New(errs.Unauthenticated, "this sign-in was not begun in this browser, or too long ago: sign in again")
	case answer.Get("error") != "":
		return nil, errs.New(errs.Unauthenticated, "the issuer refused: %.100s %.300s", answer.Get("error"), answer.Get("error_description"))
	case answer.Has("iss") && answer.Get("iss") != l.config.Issuer:
		return nil, errs.New(errs.Unauthenticated, "the answer is of another issuer")
	case answer.Get("code") == "":
		return nil, errs.New(errs.Unauthenticated, "the issuer sent no code: sign in again")
	}

	flow, provider, err := l.flow(ctx)
	if err != nil {
		return nil, err
	}
	got, err := flow.Exchange(l.asking(ctx), answer.Get("code"), oauth2.VerifierOption(p.verifier))
	if err != nil {
		return nil, explainExchange(err)
	}

	if err := l.checkIdentity(ctx, provider, p, got); err != nil {
		return nil, err
	}
	return l.take(ctx, got)
}

// Renew returns new tokens in place of old ones. An error of the kind errs.Unauthenticated says
// that the issuer gives no more; any other, that it did not answer.
func (l *Login) Renew(ctx context.Context, old *Tokens) (*Tokens, error) {
	flow, _, err := l.flow(ctx)
	if err != nil {
		return nil, err
	}

	got, err := flow.TokenSource(l.asking(ctx), &oauth2.Token{RefreshToken: old.refresh}).Token()
	if err != nil {
		return nil, explainExchange(err)
	}

	fresh, err := l.take(ctx, got)
	if err == nil && fresh.Subject != old.Subject {
		return nil, errs.New(errs.Unauthenticated, "the issuer sent tokens of another subject: sign in again")
	}
	return fresh, err
}

// checkIdentity checks that the identity token is for this client and this sign-in.
func (l *Login) checkIdentity(ctx context.Context, provider *oidc.Provider, p *Pending, got *oauth2.Token) error {
	raw, _ := got.Extra("id_token").(string)
	if raw == "" {
		return errs.New(errs.Unauthenticated, "the issuer sent no identity token")
	}

	// The clock of the issuer may be off, as with every other token.
	skewed := func() time.Time { return l.accepted.config.Now().Add(-l.accepted.config.Skew) }
	check := provider.VerifierContext(l.asking(ctx), &oidc.Config{ClientID: l.config.ClientID, SupportedSigningAlgs: algorithms, Now: skewed})
	token, err := check.Verify(ctx, raw)
	switch {
	case err != nil:
		return errs.New(errs.Unauthenticated, "the identity token of the issuer does not hold: it is of another issuer, for another client, or has expired")
	case token.Nonce != p.nonce:
		return errs.New(errs.Unauthenticated, "the identity token is of another sign-in: sign in again")
	}
	return nil
}

// take chooses the token that the service accepts: the access token where it is a signed one for
// the audience, else the identity token, whose audience is the client.
func (l *Login) take(ctx context.Context, got *oauth2.Token) (*Tokens, error) {
	identity, _ := got.Extra("id_token").(string)
	var last error
	for _, raw := range []string{got.AccessToken, identity} {
		subject, ends, err := l.accepted.Verify(ctx, raw)
		if err == nil {
			return &Tokens{Bearer: raw, Subject: subject, Ends: ends, refresh: got.RefreshToken}, nil
		}
		if raw != "" {
			last = err
		}
	}

	if errs.KindOf(last) == errs.Unavailable {
		return nil, last
	}
	return nil, errs.New(errs.Unauthenticated, "neither the access token nor the identity token of the issuer is one that this service accepts: %v; "+
		"the audience %q has to be that of one of them", last, l.config.Audience)
}

// flow returns the endpoints of the issuer, as it says them now.
func (l *Login) flow(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	provider, _, err := l.accepted.current(ctx)
	if err != nil {
		return nil, nil, issuerAway(err)
	}

	var said struct {
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&said); err != nil {
		return nil, nil, issuerAway(err)
	}

	scopes := []string{oidc.ScopeOpenID}
	if slices.Contains(said.Scopes, oidc.ScopeOfflineAccess) {
		scopes = append(scopes, oidc.ScopeOfflineAccess) // or people sign in once an hour
	}

	// The library would find out by trying, but a code may be tried only once.
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if l.config.Secret == "" || slices.Contains(said.Methods, "client_secret_post") && !slices.Contains(said.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}

	return &oauth2.Config{
		ClientID: l.config.ClientID, ClientSecret: l.config.Secret, RedirectURL: l.config.Callback, Endpoint: endpoint, Scopes: scopes,
	}, provider, nil
}

// asking returns a context whose requests go to the issuer.
func (l *Login) asking(ctx context.Context) context.Context { return oidc.ClientContext(ctx, l.client) }

func issuerAway(err error) error {
	return &errs.Error{
		Kind: errs.Unavailable, RetryAfter: time.Second, Err: err,
		Message: "nobody can sign in now, as the issuer does not answer",
	}
}

// explainExchange tells an issuer that refuses from one that does not answer.
func explainExchange(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.Response == nil || refused.Response.StatusCode >= http.StatusInternalServerError {
		return issuerAway(err)
	}
	return errs.New(errs.Unauthenticated, "the issuer gives no token: %.100s %.300s", refused.ErrorCode, refused.ErrorDescription)
}
