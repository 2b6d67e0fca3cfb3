package session_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/auth/oidc/oidctest"
	"github.com/coditect/mapreduce/api/dashboard/session"
	"github.com/coditect/mapreduce/api/errs"
)

const callback = "https://jobs.example.org/sign-in/callback"

// A site is sessions with an issuer, at a time that a test moves.
type site struct {
	*session.Sessions
	issuer *oidctest.Issuer
	ahead  atomic.Int64 // of the clock, in nanoseconds
}

func open(t *testing.T) *site {
	t.Helper()
	issuer, err := oidctest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuer.Close)
	issuer.SignIns = &oidctest.SignIns{Client: "pages", Callback: callback}
	issuer.SignIns.Say(oidctest.Answer{Subject: "ada"})

	s := &site{issuer: issuer}
	login, err := oidc.NewLogin(oidc.LoginConfig{
		Config: oidc.Config{Issuer: issuer.URL(), Audience: "pages"}, ClientID: "pages", Callback: callback,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Sessions = session.New(session.Config{Login: login, Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }})
	return s
}

// request returns one of a browser that has cookies.
func request(t *testing.T, path string, cookies ...*http.Cookie) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://jobs.example.org"+path, http.NoBody)
	for _, c := range cookies {
		if c.MaxAge >= 0 {
			r.AddCookie(c)
		}
	}
	return r
}

// visit returns the path with which the issuer sends a browser back.
func visit(t *testing.T, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	to, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return to.RequestURI()
}

// signIn returns the cookie of somebody who has signed in at the issuer.
func (s *site) signIn(t *testing.T) *http.Cookie {
	t.Helper()
	address, begun, err := s.Begin(request(t, "/"), "/jobs/x")
	if err != nil {
		t.Fatal(err)
	}
	cookies, to, err := s.Finish(request(t, visit(t, address), begun))
	if err != nil || to != "/jobs/x" || len(cookies) != 2 || cookies[0].MaxAge >= 0 {
		t.Fatalf("signed in for %q with %v: %v", to, cookies, err)
	}
	return cookies[1]
}

// bearer returns what a request with cookies is admitted as.
func (s *site) bearer(t *testing.T, cookies ...*http.Cookie) string {
	t.Helper()
	r := request(t, "/", cookies...)
	s.Admit(r)
	return r.Header.Get("Authorization")
}

func TestSignInAtTheIssuer(t *testing.T) {
	s := open(t)
	cookie := s.signIn(t)
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
		t.Errorf("the cookie is %+v", cookie)
	}
	if s.bearer(t, cookie) == "" || s.bearer(t) != "" || s.bearer(t, &http.Cookie{Name: cookie.Name, Value: "guessed"}) != "" {
		t.Error("a session, no session and a guessed one are not told apart")
	}

	r := request(t, "/", cookie)
	r.Header.Set("Authorization", "Bearer own")
	if s.Admit(r); r.Header.Get("Authorization") != "Bearer own" {
		t.Error("a session took the place of a token that the request names")
	}
}

// TestFinishElsewhere: what one browser has begun, no other finishes, nor the same one twice, nor
// too late.
func TestFinishElsewhere(t *testing.T) {
	s := open(t)
	begin := func() (back string, begun *http.Cookie) {
		address, begun, err := s.Begin(request(t, "/"), "/")
		if err != nil {
			t.Fatal(err)
		}
		return visit(t, address), begun
	}
	refused := func(name, back string, cookies ...*http.Cookie) {
		t.Helper()
		set, _, err := s.Finish(request(t, back, cookies...))
		if errs.KindOf(err) != errs.Unauthenticated || len(set) != 1 {
			t.Errorf("%s: %v, with cookies %v", name, err, set)
		}
	}

	back, begun := begin()
	refused("without the cookie", back)
	_, other := begin()
	refused("in another browser", back, other)
	if _, _, err := s.Finish(request(t, back, begun)); err != nil {
		t.Fatal(err)
	}
	refused("twice", back, begun)

	back, begun = begin()
	s.ahead.Add(int64(11 * time.Minute))
	refused("too late", back, begun)
}

// TestRenewal: a token that is about to expire is renewed once, however many ask; while the issuer
// is away the old one counts, and when it refuses, none.
func TestRenewal(t *testing.T) {
	s := open(t)
	cookie := s.signIn(t)
	first := s.bearer(t, cookie)
	s.issuer.SignIns.Say(oidctest.Answer{Subject: "ada", Lasts: 3 * time.Hour})
	s.ahead.Add(int64(time.Hour))

	var asking sync.WaitGroup
	bearers := make([]string, 20)
	for i := range bearers {
		asking.Go(func() { bearers[i] = s.bearer(t, cookie) })
	}
	asking.Wait()
	if n := s.issuer.SignIns.Renewals(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
	for _, b := range bearers {
		if b == "" || b == first {
			t.Fatalf("after the renewal a request is admitted as %.20q", b)
		}
	}

	s.ahead.Add(int64(2 * time.Hour))
	s.issuer.Away.Store(true)
	if got := s.bearer(t, cookie); got == "" {
		t.Error("the session lost its token while the issuer was away")
	}
	s.issuer.Away.Store(false)
	s.issuer.SignIns.Say(oidctest.Answer{Subject: "ada", NoRefresh: true})
	if got := s.bearer(t, cookie); got != "" {
		t.Error("the session keeps a token that the issuer does not renew")
	}
}

func TestClose(t *testing.T) {
	s := open(t)
	here, there := s.signIn(t), s.signIn(t)
	s.issuer.SignIns.Say(oidctest.Answer{Subject: "eve"})
	eve := s.signIn(t)
	typed, err := s.Open(request(t, "/"), "token of ada")
	if err != nil {
		t.Fatal(err)
	}

	if gone := s.Close(request(t, "/", here), false); gone.MaxAge >= 0 || s.bearer(t, here) != "" || s.bearer(t, there) == "" {
		t.Error("signing out ends this session, and no other")
	}
	here = s.signIn(t) // as eve
	s.Close(request(t, "/", eve), true)
	if s.bearer(t, eve) != "" || s.bearer(t, here) != "" || s.bearer(t, there) == "" || s.bearer(t, typed) == "" {
		t.Error("signing out everywhere ends the sessions of one person, and no other's")
	}

	s.ahead.Add(int64(12 * time.Hour))
	if s.Signed(request(t, "/", there)) || s.bearer(t, typed) != "" {
		t.Error("sessions do not end")
	}
}
