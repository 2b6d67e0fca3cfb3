package dashboard

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// sessions are those of callers that have signed in with a token. The token stays here: the
// browser holds a name that means nothing elsewhere, and that signing out makes worthless.
type sessions struct {
	now func() time.Time

	mu  sync.Mutex
	all map[string]*session // by what the cookie holds
}

type session struct {
	token string
	ends  time.Time
}

const (
	sessionCookie = "coditect_session"
	sessionTime   = 12 * time.Hour
	maxSessions   = 10_000
)

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: make(map[string]*session)}
}

// open keeps a token, and returns the cookie that stands for it.
func (s *sessions) open(r *http.Request, path, token string) (*http.Cookie, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	now := s.now()
	for name, old := range s.all {
		if !now.Before(old.ends) {
			delete(s.all, name)
		}
	}
	if len(s.all) >= maxSessions {
		return nil, errs.New(errs.Exhausted, "%d callers have signed in, as many as there may be; try again later", len(s.all))
	}

	name := rand.Text()
	s.all[name] = &session{token, now.Add(sessionTime)}
	return sessionNamed(r, path, name, int(sessionTime.Seconds())), nil
}

func sessionNamed(r *http.Request, path, name string, seconds int) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // without TLS there is no secure cookie
		Name: sessionCookie, Value: name, Path: path + "/", MaxAge: seconds,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	}
}

// find returns the session of a request, or nil.
func (s *sessions) find(r *http.Request) *session {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[cookie.Value]
	if found == nil || !s.now().Before(found.ends) {
		return nil
	}
	return found
}

// close ends the session of a request.
func (s *sessions) close(r *http.Request) {
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, cookie.Value)
	}
}

// admit adds the token of its session to a request that names no caller itself.
func (s *sessions) admit(r *http.Request) {
	if found := s.find(r); found != nil && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+found.token)
	}
}

// A signIn is what the page for signing in shows.
type signIn struct {
	To      string // where the caller wants to go
	Refused string // why the token was not taken
}

func (d *Dashboard) showSignIn(w http.ResponseWriter, r *http.Request) {
	d.askForToken(w, r, http.StatusOK, signIn{To: ownPath(r.URL.Query().Get("to"))})
}

func (d *Dashboard) askForToken(w http.ResponseWriter, r *http.Request, status int, s signIn) {
	if err := d.send(w, status, d.frame(r, "sign-in", s)); err != nil {
		d.config.Logger.Warn("A page could not be made.", "path", r.URL.Path, "error", err)
	}
}

// signIn tries a token, and keeps it if the service knows it.
func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	token, to := strings.TrimSpace(r.PostFormValue("token")), ownPath(r.PostFormValue("to"))

	r.Header.Set("Authorization", "Bearer "+token)
	v := d.visit(r)
	if _, err := v.jobs.ListJobs(v, mapreduce.ListJobsQuery{PageSize: 1}); err != nil && errs.KindOf(err) != errs.Denied {
		d.askForToken(w, r, http.StatusUnauthorized, signIn{to, err.Error()})
		return
	}

	cookie, err := d.sessions.open(r, d.config.Prefix, token)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, d.config.Prefix+to, http.StatusSeeOther) //nolint:gosec // see ownPath
}

func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) {
	d.sessions.close(r)
	http.SetCookie(w, sessionNamed(r, d.config.Prefix, "", -1))
	http.Redirect(w, r, d.config.Prefix+"/sign-in", http.StatusSeeOther)
}

// ownPath returns a path of the dashboard, and its first page for all that leads elsewhere.
func ownPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\x00\r\n\t") {
		return "/"
	}
	return to
}
