// Package oidctest is an issuer of OpenID Connect for tests: it answers by HTTP, signs
// tokens, and changes its keys when a test asks for it.
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer signs tokens. Its methods may be called at the same time.
type Issuer struct {
	server *httptest.Server
	Asked  atomic.Int64 // how often its keys were asked for
	Away   atomic.Bool  // it answers nothing but errors

	// SignIns is how it lets people sign in; nil for not at all. It is set before the first.
	SignIns *SignIns

	mu   sync.Mutex // guards the variable below
	keys []key      // the last one signs
}

type key struct {
	id  string
	rsa *rsa.PrivateKey
}

// New returns an issuer, which must be closed.
func New() (*Issuer, error) {
	i := &Issuer{}
	if err := i.Rotate(1); err != nil {
		return nil, err
	}
	i.server = httptest.NewServer(http.HandlerFunc(i.answer))
	return i, nil
}

// Close ends the issuer.
func (i *Issuer) Close() { i.server.Close() }

// URL returns the address of the issuer.
func (i *Issuer) URL() string { return i.server.URL }

// Rotate makes a new key, which signs from now on, and keeps the last keys, the new one
// among them.
func (i *Issuer) Rotate(keep int) error {
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = append(i.keys, key{rand.Text(), made})
	i.keys = i.keys[max(0, len(i.keys)-keep):]
	return nil
}

func (i *Issuer) answer(w http.ResponseWriter, r *http.Request) {
	if i.Away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": i.URL(), "jwks_uri": i.URL() + "/keys", "authorization_endpoint": i.URL() + "/authorize", "token_endpoint": i.URL() + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}, "scopes_supported": []string{"openid", "offline_access"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post", "none"},
		})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.exchange(w, r)
	case "/keys":
		i.Asked.Add(1)
		var set jose.JSONWebKeySet
		i.mu.Lock()
		for _, k := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.rsa.Public(), KeyID: k.id, Algorithm: "RS256", Use: "sig"})
		}
		i.mu.Unlock()
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

// Claims are those of a token of a subject for an audience, that holds for an hour.
func (i *Issuer) Claims(subject, audience string) map[string]any {
	now := time.Now()
	return map[string]any{"iss": i.URL(), "sub": subject, "aud": audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
}

// Token returns a token with the claims of Claims, and others in place of some of these. A
// claim that is nil is left out.
func (i *Issuer) Token(subject, audience string, others map[string]any) (string, error) {
	claims := i.Claims(subject, audience)
	maps.Copy(claims, others)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	k := i.keys[len(i.keys)-1]
	i.mu.Unlock()
	return sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: k.rsa, KeyID: k.id}}, claims)
}

// Forged returns a token of a subject that is signed by "none", or by "HS256" with the
// public key of the issuer as the secret, or by "RS256" with a key of another's.
func (i *Issuer) Forged(algorithm, subject, audience string) (string, error) {
	claims := i.Claims(subject, audience)

	i.mu.Lock()
	k := i.keys[len(i.keys)-1]
	i.mu.Unlock()

	switch algorithm {
	case "none":
		payload, err := json.Marshal(claims)
		if err != nil {
			return "", err
		}
		encode := base64.RawURLEncoding.EncodeToString
		return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + ".", nil
	case "HS256":
		return sign(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: k.rsa.N.Bytes(), KeyID: k.id}}, claims)
	case "RS256":
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return "", err
		}
		return sign(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: other, KeyID: k.id}}, claims)
	}
	return "", fmt.Errorf("no such forgery: %q", algorithm)
}

func sign(with jose.SigningKey, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}

	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}

	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
