package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// SignIns are how an issuer lets people sign in by codes: whoever comes is the subject at once.
// Its fields are set before the first sign-in, unless they say otherwise.
type SignIns struct {
	Client, Secret, Callback string

	mu       sync.Mutex // guards the variables below
	answer   Answer
	codes    map[string]url.Values // what was asked, by the code that answers it
	refresh  string                // what gets new tokens, once
	renewals int
}

// An Answer is what an issuer says of whoever signs in.
type Answer struct {
	Subject string
	// Access has the claims of an access token that are unlike those of Claims for the audience
	// "coditect"; nil makes the token a word that only the issuer can read.
	Access map[string]any
	// Identity has the claims of the identity token that are unlike what they have to be.
	Identity map[string]any
	// Refuse is the error with which it sends the browser back.
	Refuse string
	// Lasts is how long its tokens hold; an hour if it is zero.
	Lasts time.Duration
	// NoRefresh lets it give no refresh tokens, and take none.
	NoRefresh bool
}

// Say changes what the issuer says from now on.
func (s *SignIns) Say(a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = a
}

// Renewals returns how often tokens were renewed.
func (s *SignIns) Renewals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewals
}

// authorize sends a browser back with a code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	s, q := i.SignIns, r.URL.Query()
	if s == nil || q.Get("client_id") != s.Client || q.Get("redirect_uri") != s.Callback || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" {
		http.Error(w, "what was asked is not what is registered", http.StatusBadRequest)
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	back := url.Values{"state": {q.Get("state")}, "iss": {i.URL()}}
	if s.answer.Refuse != "" {
		back.Set("error", s.answer.Refuse)
		back.Set("error_description", "<script>alert(1)</script>")
	} else {
		code := rand.Text()
		if s.codes == nil {
			s.codes = make(map[string]url.Values)
		}
		s.codes[code] = q
		back.Set("code", code)
	}
	http.Redirect(w, r, s.Callback+"?"+back.Encode(), http.StatusFound)
}

// exchange answers a code, or a refresh token, with tokens.
func (i *Issuer) exchange(w http.ResponseWriter, r *http.Request) {
	s := i.SignIns
	refuse := func(why string) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
	}

	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if s == nil || client != s.Client || secret != s.Secret {
		refuse("invalid_client")
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	nonce := ""
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		asked := s.codes[r.PostFormValue("code")]
		delete(s.codes, r.PostFormValue("code"))
		proof := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if asked == nil || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") || base64.RawURLEncoding.EncodeToString(proof[:]) != asked.Get("code_challenge") {
			refuse("invalid_grant")
			return
		}
		nonce = asked.Get("nonce")
	case "refresh_token":
		if s.answer.NoRefresh || r.PostFormValue("refresh_token") != s.refresh || s.refresh == "" {
			refuse("invalid_grant")
			return
		}
		s.renewals++
	default:
		refuse("unsupported_grant_type")
		return
	}

	said, err := i.tokens(s.answer, client, nonce)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !s.answer.NoRefresh {
		s.refresh = rand.Text()
		said["refresh_token"] = s.refresh
	}
	_ = json.NewEncoder(w).Encode(said)
}

// tokens makes what is said of a subject.
func (i *Issuer) tokens(a Answer, client, nonce string) (map[string]any, error) {
	lasts := time.Hour
	if a.Lasts != 0 {
		lasts = a.Lasts
	}
	ends := time.Now().Add(lasts).Unix()

	identity := map[string]any{"nonce": nonce, "exp": ends}
	maps.Copy(identity, a.Identity)
	idToken, err := i.Token(a.Subject, client, identity)
	if err != nil {
		return nil, err
	}

	access := rand.Text()
	if a.Access != nil {
		claims := map[string]any{"exp": ends}
		maps.Copy(claims, a.Access)
		if access, err = i.Token(a.Subject, "coditect", claims); err != nil {
			return nil, err
		}
	}
	return map[string]any{"access_token": access, "token_type": "Bearer", "id_token": idToken, "expires_in": int(lasts.Seconds())}, nil
}
