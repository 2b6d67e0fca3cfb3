package oidc_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/errs"
)

// Nothing that a peer makes of parts of a token holds but the token that the issuer has
// signed, and what it is refused with says neither the audience nor the issuer.
func FuzzSignedTokens(f *testing.F) {
	issuer, err := oidctest.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(issuer.Close)
	verifier, err := oidc.New(oidc.Config{Issuer: issuer.URL(), Audience: audience})
	if err != nil {
		f.Fatal(err)
	}
	signed, err := issuer.Token("alice", audience, nil)
	if err != nil {
		f.Fatal(err)
	}
	parts := strings.Split(signed, ".")
	plain := func(part string) string {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			f.Fatal(err)
		}
		return string(text)
	}
	header, claims, signature := plain(parts[0]), plain(parts[1]), plain(parts[2])
	f.Add(header, claims, signature)
	f.Add(strings.Replace(header, "RS256", "none", 1), claims, "")
	f.Add(strings.Replace(header, "RS256", "HS256", 1), claims, signature)
	f.Add(strings.Replace(header, "RS256", "PS256", 1), claims, signature)
	f.Add(header, strings.Replace(claims, "alice", "mallory", 1), signature)
	f.Add(header, `{"aud": [[]], "exp": 1e400, "sub": {}}`, signature)
	f.Add(`{"alg": "ES256", "jwk": {"kty": "EC"}, "crit": ["b64"], "b64": false}`, claims, "")
	f.Add("{}", "", "")
	f.Fuzz(func(t *testing.T, h, c, s string) {
		raw := strings.Join([]string{encode(h), encode(c), encode(s)}, ".")
		for _, token := range []string{raw, h + "." + c + "." + s, h} {
			subject, expires, err := verifier.Verify(t.Context(), token)
			switch {
			case err == nil:
				if token != signed || subject != "alice" || expires.IsZero() {
					t.Errorf("%q holds, for %q", token, subject)
				}
			case errs.KindOf(err) != errs.Unauthenticated && errs.KindOf(err) != errs.Unavailable:
				t.Errorf("error %v of kind %v", err, errs.KindOf(err))
			case strings.Contains(err.Error(), audience):
				t.Errorf("the error says what would be right: %v", err)
			}
		}
	})
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
