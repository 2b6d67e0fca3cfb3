// Package oidc checks bearer tokens that an issuer of OpenID Connect has signed. It asks
// the issuer for its keys, and asks again when they may have changed.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/coditect/mapreduce/api/errs"
)

// A Config says whose tokens hold. Issuer and Audience are needed.
type Config struct {
	// Issuer is the address of the issuer, by https, or by http on this machine.
	Issuer string
	// Audience has to be among those that a token is for.
	Audience string
	// CA is a PEM file of the authorities of the issuer's certificate. Defaults to those
	// that the machine trusts.
	CA string
	// Skew is how far the clock of the issuer may be from this one. Defaults to 30 s.
	Skew time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// Transport is how the issuer is reached. Defaults to one that trusts CA.
	Transport http.RoundTripper
}

const (
	// keysAge is for how long keys of the issuer are believed to be its keys.
	keysAge = time.Minute
	// askEvery is the least time between requests to the issuer, but for a few at once:
	// tokens of keys that nobody has do not make this process ask all the time.
	askEvery = 200 * time.Millisecond
	// askAtOnce is how many requests may come at once.
	askAtOnce = 10
	// askWait bounds a request to the issuer.
	askWait = 10 * time.Second
	// maxAnswer bounds an answer of the issuer, in bytes.
	maxAnswer = 1 << 20
)

// algorithms are those by which tokens may be signed: each has a public key, which alone
// the issuer gives away.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// A Verifier checks tokens. Its methods may be called at the same time.
type Verifier struct {
	config Config
	client *http.Client

	mu       sync.Mutex // guards the variables below
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	found    time.Time // when they were made
}

// New returns a verifier. It asks the issuer nothing yet, which may start after this
// process.
func New(c Config) (*Verifier, error) {
	if c.Skew == 0 {
		c.Skew = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errs.Field("oidc_issuer", "%q is not the address of an issuer, such as https://issuer.example.org", c.Issuer)
	case u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())):
		return nil, errs.Field("oidc_issuer", "%q: must begin with https://, as the keys that are fetched from there decide which tokens are valid", c.Issuer)
	case c.Audience == "":
		return nil, errs.Field("oidc_audience", "is missing: without it, tokens that the issuer made for other services would be accepted")
	case c.Skew < 0:
		return nil, errs.Field("Skew", "is negative")
	}

	inner := c.Transport
	if inner == nil {
		if inner, err = transportOf(c.CA); err != nil {
			return nil, err
		}
	}

	return &Verifier{config: c, client: &http.Client{
		Timeout: askWait, Transport: &bounded{next: inner, tokens: askAtOnce},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != via[0].URL.Scheme {
				return errors.New("the issuer redirects too often, or to another scheme than that of its address")
			}
			return nil
		},
	}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func transportOf(ca string) (http.RoundTripper, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca == "" {
		return t, nil
	}

	data, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}

	t.TLSClientConfig.RootCAs = x509.NewCertPool()
	if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(data) {
		return nil, errs.New(errs.Invalid, "%s: holds no certificate in PEM", ca)
	}
	return t, nil
}

// Verify returns the subject of a token and when it expires. The clock of the issuer may
// be off by the skew.
func (v *Verifier) Verify(ctx context.Context, raw string) (subject string, expires time.Time, err error) {
	if err := checkForm(raw); err != nil {
		return "", expires, err
	}

	_, verifier, err := v.current(ctx)
	if err != nil {
		return "", expires, err
	}

	token, err := verifier.Verify(oidc.ClientContext(ctx, v.client), raw)
	if err != nil {
		return "", expires, explain(err)
	}
	return v.checkClaims(token)
}

// checkForm refuses what is no signed token, or is signed in a way that anyone could.
func checkForm(raw string) error {
	parts := strings.Split(raw, ".")
	var header struct {
		Algorithm string `json:"alg"`
	}
	if len(parts) != 3 {
		return errs.New(errs.Unauthenticated, "the token is not known")
	}

	data, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || json.Unmarshal(data, &header) != nil {
		return errs.New(errs.Unauthenticated, "the token cannot be read")
	}

	if !slices.Contains(algorithms, header.Algorithm) {
		return errs.New(errs.Unauthenticated, "the token is signed with the algorithm %.20q, which does not show who has signed it", header.Algorithm)
	}
	return nil
}

// current returns what the issuer says of itself now, and what checks signatures by the keys that it
// has now.
func (v *Verifier) current(ctx context.Context) (*oidc.Provider, *oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()

	now := v.config.Now()
	if v.verifier != nil && now.Sub(v.found) < keysAge {
		return v.provider, v.verifier, nil
	}

	// The keys are asked for when a token needs them, maybe after this call.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), v.client), v.config.Issuer)
	if err != nil {
		return nil, nil, &errs.Error{
			Kind: errs.Unavailable, RetryAfter: time.Second, Err: err,
			Message: "tokens cannot be checked now, as the issuer does not say what its keys are",
		}
	}

	v.provider = provider
	v.verifier, v.found = provider.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), v.client), &oidc.Config{
		SupportedSigningAlgs: algorithms, Now: v.config.Now,
		SkipClientIDCheck: true, SkipExpiryCheck: true, // see checkClaims
	}), now
	return v.provider, v.verifier, nil
}

// explain says what is wrong with a token without what would be right, which the library
// says.
func explain(err error) error {
	text := err.Error()

	switch {
	case strings.Contains(text, "fetching keys") || strings.Contains(text, "failed to get keys"):
		return &errs.Error{
			Kind: errs.Unavailable, RetryAfter: time.Second, Err: err,
			Message: "tokens cannot be checked now, as the issuer does not say what its keys are",
		}
	case strings.Contains(text, "issued by a different provider"):
		return errs.New(errs.Unauthenticated, "the token is of another issuer")
	case strings.Contains(text, "signature"):
		return errs.New(errs.Unauthenticated, "the signature of the token is not that of the issuer")
	}
	return errs.New(errs.Unauthenticated, "the token cannot be read")
}

// checkClaims checks for whom a token is, and when.
func (v *Verifier) checkClaims(t *oidc.IDToken) (subject string, expires time.Time, err error) {
	refused := func(format string, args ...any) (string, time.Time, error) {
		return "", time.Time{}, errs.New(errs.Unauthenticated, format, args...)
	}

	var claims struct {
		NotBefore *float64 `json:"nbf"`
		IssuedAt  *float64 `json:"iat"`
	}

	now, skew := v.config.Now(), v.config.Skew
	switch {
	case t.Claims(&claims) != nil:
		return refused("the token cannot be read")
	case t.Subject == "" || strings.ContainsFunc(t.Subject, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return refused("the token has no subject")
	case !slices.Contains(t.Audience, v.config.Audience):
		return refused("the token is for another audience")
	case t.Expiry.Unix() <= 0:
		return refused("the token does not say when it expires")
	case now.After(t.Expiry.Add(skew)):
		return refused("the token has expired")
	case claims.NotBefore != nil && now.Before(secondsOf(*claims.NotBefore).Add(-skew)):
		return refused("the token is not valid yet")
	case claims.IssuedAt != nil && now.Before(secondsOf(*claims.IssuedAt).Add(-skew)):
		return refused("the token was issued in the future: the clocks of issuer and server differ")
	}
	return t.Subject, t.Expiry.Add(skew), nil
}

// secondsOf returns a time that a claim has in seconds.
func secondsOf(seconds float64) time.Time {
	return time.Unix(int64(max(0, min(seconds, 1<<40))), 0)
}

// A bounded asks no more often than is good, and reads no more than an answer should have.
type bounded struct {
	next http.RoundTripper

	mu     sync.Mutex // guards the variables below
	tokens float64
	last   time.Time
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if !b.mayAsk(time.Now()) {
		return nil, fmt.Errorf("the issuer was asked too often")
	}
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

func (b *bounded) mayAsk(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if !b.last.IsZero() {
		b.tokens = min(askAtOnce, b.tokens+float64(now.Sub(b.last))/float64(askEvery))
	}
	b.last = now

	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
