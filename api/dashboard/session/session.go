// Package session keeps who has signed in to the pages of jobs. A token stays here: the browser
// holds a name that means nothing elsewhere, and that signing out makes worthless. It knows
// nothing of pages or of jobs.
//
//   - A request gets the token of its own session, or none.
//   - A session ends when its time is over, when it is closed, and when the issuer of its token
//     gives no new one. Each call is checked by the service as well, so whoever loses a right
//     loses it here too.
//   - A sign-in that was begun in one browser cannot be finished in another.
package session

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/errs"
)

const (
	cookieName  = "coditect_session"
	pendingName = "coditect_sign_in"

	// length is how long a session lasts; a browser that stays signed in has to show now and then
	// that somebody is there.
	length = 12 * time.Hour
	// pendingTime is how long somebody may take at the issuer.
	pendingTime = 10 * time.Minute
	// ahead is how long before its end a token is replaced.
	ahead = time.Minute
	// maxKept bounds sessions, and sign-ins that have begun, each.
	maxKept = 10_000
)

// A Config says whose sessions are kept.
type Config struct {
	// Path is the one below which the pages stand, without a slash at its end.
	Path string
	// Login is how people sign in at an issuer; nil where they cannot.
	Login *oidc.Login
	// Now is the clock. It is needed.
	Now func() time.Time
}

// Sessions are those of one server. Their methods may be called at the same time.
type Sessions struct {
	config Config

	mu      sync.Mutex          // guards the variables below
	all     map[string]*session // by what the cookie holds
	pending map[string]*pending // by their state
}

// A session is that of one browser.
type session struct {
	ends time.Time // neither this nor who changes
	who  holder

	mu     sync.Mutex   // guards the variables below, and is held while tokens are renewed
	bearer string       // empty once the issuer has refused a new one
	tokens *oidc.Tokens // nil for a token that somebody has typed
}

// A holder is whose a session is: a subject of the issuer, or whoever has a token.
type holder struct{ subject, token string }

// A pending is a sign-in at the issuer that has not come back.
type pending struct {
	*oidc.Pending
	to   string
	ends time.Time
}

// New returns sessions, of which there are none yet.
func New(c Config) *Sessions {
	return &Sessions{config: c, all: make(map[string]*session), pending: make(map[string]*pending)}
}

// Issuer reports whether people can sign in at an issuer.
func (s *Sessions) Issuer() bool { return s.config.Login != nil }

// Open begins a session with a token that was found to hold, and returns its cookie.
func (s *Sessions) Open(r *http.Request, token string) (*http.Cookie, error) {
	return s.open(r, &session{who: holder{token: token}, bearer: token})
}

func (s *Sessions) open(r *http.Request, made *session) (*http.Cookie, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	now := s.config.Now()
	maps.DeleteFunc(s.all, func(_ string, old *session) bool { return !now.Before(old.ends) })
	if len(s.all) >= maxKept {
		return nil, errs.New(errs.Exhausted, "%d callers have signed in, as many as there may be; try again later", len(s.all))
	}

	made.ends = now.Add(length)
	name := rand.Text()
	s.all[name] = made
	return s.cookie(r, cookieName, name, length), nil
}

// cookie returns a cookie; a negative time deletes it.
func (s *Sessions) cookie(r *http.Request, name, value string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // without TLS there is no secure cookie
		Name: name, Value: value, Path: s.config.Path + "/", MaxAge: int(lasts.Seconds()),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	}
}

// find returns the session of a request, or nil.
func (s *Sessions) find(r *http.Request) *session {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[cookie.Value]
	if found == nil || !s.config.Now().Before(found.ends) {
		return nil
	}
	return found
}

// Signed reports whether a request has a session.
func (s *Sessions) Signed(r *http.Request) bool { return s.find(r) != nil }

// Admit adds the token of its session to a request that names no caller itself.
func (s *Sessions) Admit(r *http.Request) {
	found := s.find(r)
	if found == nil || r.Header.Get("Authorization") != "" {
		return
	}
	if bearer := s.bearerOf(r.Context(), found); bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
}

// bearerOf returns the token of a session, renewed where it is about to expire.
func (s *Sessions) bearerOf(ctx context.Context, found *session) string {
	found.mu.Lock()
	defer found.mu.Unlock()

	if t := found.tokens; t == nil || !t.Renewable() || s.config.Now().Before(t.Ends.Add(-ahead)) {
		return found.bearer
	}

	// Somebody who leaves the page meanwhile must not cost the session its token: the issuer may
	// have taken the old one back already.
	fresh, err := s.config.Login.Renew(context.WithoutCancel(ctx), found.tokens)
	switch {
	case err == nil:
		found.bearer, found.tokens = fresh.Bearer, fresh
	case errs.KindOf(err) == errs.Unauthenticated:
		found.bearer = ""
	}
	return found.bearer // while the issuer is away, the old one as long as it holds
}

// Begin returns where a browser has to go to sign in, and the cookie by which it is known when it
// comes back, to be sent on to a page then.
func (s *Sessions) Begin(r *http.Request, to string) (string, *http.Cookie, error) {
	address, begun, err := s.config.Login.Begin(r.Context())
	if err != nil {
		return "", nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.Now()
	maps.DeleteFunc(s.pending, func(_ string, old *pending) bool { return !now.Before(old.ends) })
	if len(s.pending) >= maxKept {
		return "", nil, errs.New(errs.Exhausted, "%d people are signing in, as many as there may be at once; try again later", len(s.pending))
	}

	s.pending[begun.State] = &pending{begun, to, now.Add(pendingTime)}
	return address, s.cookie(r, pendingName, begun.State, pendingTime), nil
}

// Finish opens the session of somebody who comes back from the issuer. It returns cookies to be
// set, whether it fails or not, and the page that the browser wanted.
func (s *Sessions) Finish(r *http.Request) (cookies []*http.Cookie, to string, err error) {
	cookies = []*http.Cookie{s.cookie(r, pendingName, "", -time.Second)}
	begun := s.takePending(r)

	if begun == nil {
		return cookies, "", errs.New(errs.Unauthenticated, "this sign-in was not begun in this browser, or too long ago: sign in again")
	}

	tokens, err := s.config.Login.Finish(r.Context(), begun.Pending, r.URL.Query())
	if err != nil {
		return cookies, begun.to, err
	}
	opened, err := s.open(r, &session{who: holder{subject: tokens.Subject}, bearer: tokens.Bearer, tokens: tokens})
	if err == nil {
		cookies = append(cookies, opened)
	}
	return cookies, begun.to, err
}

// takePending returns the sign-in that this browser has begun, which then counts no more.
func (s *Sessions) takePending(r *http.Request) *pending {
	cookie, err := r.Cookie(pendingName)
	if err != nil {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	begun := s.pending[cookie.Value]
	delete(s.pending, cookie.Value)
	if begun == nil || !s.config.Now().Before(begun.ends) {
		return nil
	}
	return begun
}

// Close ends the session of a request, or everywhere all sessions of whoever has it, and returns
// the cookie to be set.
func (s *Sessions) Close(r *http.Request, everywhere bool) *http.Cookie {
	gone := s.cookie(r, cookieName, "", -time.Second)
	own := s.find(r)
	if own == nil {
		return gone
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for name, other := range s.all {
		if other == own || everywhere && other.who == own.who {
			delete(s.all, name)
		}
	}
	return gone
}
