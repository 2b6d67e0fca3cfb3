package oidc_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/errs"
)

const audience = "coditect-right-audience"

// A laboratory is an issuer, and a verifier with a clock of its own.
type laboratory struct {
	*oidctest.Issuer
	verifier *oidc.Verifier
	ahead    atomic.Int64 // of the verifier's clock, in nanoseconds
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	issuer, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	l := &laboratory{Issuer: issuer}
	l.verifier, err = oidc.New(oidc.Config{
		Issuer: issuer.URL(), Audience: audience,
		Now: func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each wrong token is refused with what is wrong, and not with what would be right.
func TestTokens(t *testing.T) {
	l := newLaboratory(t)
	other, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	now := time.Now()
	made := func(claims map[string]any) func() (string, error) {
		return func() (string, error) { return l.Token("alice", audience, claims) }
	}
	forged := func(algorithm string) func() (string, error) {
		return func() (string, error) { return l.Forged(algorithm, "alice", audience) }
	}
	for _, tt := range []struct {
		name  string
		token func() (string, error)
		want  string // in the error; "" for none
	}{
		{"all is well", made(nil), ""},
		{"for several", made(map[string]any{"aud": []string{"other", audience}}), ""},
		{"just expired, by a clock that is off", made(map[string]any{"exp": now.Add(-10 * time.Second).Unix()}), ""},
		{"not before a moment", made(map[string]any{"nbf": now.Add(10 * time.Second).Unix()}), ""},
		{"another audience", made(map[string]any{"aud": "other"}), "is for another audience"},
		{"no audience", made(map[string]any{"aud": nil}), "is for another audience"},
		{"expired", made(map[string]any{"exp": now.Add(-time.Minute).Unix()}), "has expired"},
		{"without end", made(map[string]any{"exp": nil}), "does not say when it expires"},
		{"not before tomorrow", made(map[string]any{"nbf": now.Add(24 * time.Hour).Unix()}), "is not valid yet"},
		{"of the future", made(map[string]any{"iat": now.Add(24 * time.Hour).Unix()}), "issued in the future"},
		{"no subject", made(map[string]any{"sub": ""}), "has no subject"},
		{"a subject of two lines", made(map[string]any{"sub": "a\nb"}), "has no subject"},
		{"another issuer's claim", made(map[string]any{"iss": "https://example.org"}), "is of another issuer"},
		{"another issuer", func() (string, error) { return other.Token("alice", audience, map[string]any{"iss": l.URL()}) }, "is not that of the issuer"},
		{"signed by none", forged("none"), `signed with the algorithm "none"`},
		{"signed with the public key", forged("HS256"), `signed with the algorithm "HS256"`},
		{"signed with another key", forged("RS256"), "is not that of the issuer"},
		{"no token", func() (string, error) { return "abc", nil }, "is not known"},
		{"no JSON", func() (string, error) { return "YWJj.YWJj.YWJj", nil }, "cannot be read"},
		{"nothing", func() (string, error) { return "..", nil }, "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token, err := tt.token()
			if err != nil {
				t.Fatal(err)
			}
			subject, expires, err := l.verifier.Verify(t.Context(), token)
			if tt.want == "" {
				if err != nil || subject != "alice" || expires.Before(now) {
					t.Errorf("subject %q until %v, error %v", subject, expires, err)
				}
				return
			}
			if errs.KindOf(err) != errs.Unauthenticated || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			for _, secret := range []string{audience, l.URL(), token} {
				if secret != "abc" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error has %q: %v", secret, err)
				}
			}
		})
	}
}

// Keys that the issuer adds hold at once, and those that it takes back hold no more after
// a minute.
func TestKeyRotation(t *testing.T) {
	l := newLaboratory(t)
	verify := func(token string) error {
		_, _, err := l.verifier.Verify(t.Context(), token)
		return err
	}
	token := func() string {
		made, err := l.Token("alice", audience, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	old := token()
	if err := verify(old); err != nil {
		t.Fatal(err)
	}
	if err := l.Rotate(2); err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"before": old, "after": token()} {
		if err := verify(token); err != nil {
			t.Errorf("a token of the key from %s the change: %v", name, err)
		}
	}
	if err := l.Rotate(1); err != nil {
		t.Fatal(err)
	}
	l.ahead.Store(int64(time.Minute + time.Second))
	if err := verify(old); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("a token of a key that was taken back: %v", err)
	}
	if err := verify(token()); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
}

// While the issuer is away, tokens of known keys hold and others wait; and tokens of keys
// that nobody has do not make this process ask again and again.
func TestIssuerAway(t *testing.T) {
	l := newLaboratory(t)
	l.Away.Store(true)
	good, err := l.Token("alice", audience, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.verifier.Verify(t.Context(), good); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("the issuer has yet to answer: %v", err)
	}
	l.Away.Store(false)
	if _, _, err := l.verifier.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	l.Away.Store(true)
	if _, _, err := l.verifier.Verify(t.Context(), good); err != nil {
		t.Errorf("the key is known: %v", err)
	}
	l.Away.Store(false)
	before, begun := l.Asked.Load(), time.Now()
	other, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	foreign, err := other.Token("alice", audience, map[string]any{"iss": l.URL()})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, _, err := l.verifier.Verify(t.Context(), foreign); err == nil {
			t.Fatal("a foreign token holds")
		}
	}
	// Ten at once, and one more each 200 ms that the machine takes.
	if asked := l.Asked.Load() - before; asked > 20+int64(time.Since(begun)/(200*time.Millisecond)) {
		t.Errorf("100 tokens of an unknown key asked the issuer %d times", asked)
	}
}

func TestConfiguration(t *testing.T) {
	for issuer, want := range map[string]string{
		"http://example.org": "must begin with https", "example.org": "not the address", "https://u:p@example.org": "not the address", "https://example.org?x": "not the address",
	} {
		if _, err := oidc.New(oidc.Config{Issuer: issuer, Audience: "a"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("issuer %q: error %v, want %q", issuer, err, want)
		}
	}
	if _, err := oidc.New(oidc.Config{Issuer: "https://example.org"}); err == nil || !strings.Contains(err.Error(), "oidc_audience") {
		t.Errorf("no audience: error %v", err)
	}
}
