package dashboard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// SignInCallback is where, below the prefix, an issuer sends browsers back to.
const SignInCallback = "/sign-in/callback"

// A signIn is what the page for signing in shows.
type signIn struct {
	To      string // where the caller wants to go
	Issuer  string // address at which a sign-in at the issuer begins; empty without one
	Refused string // why the caller was not taken
}

// A door is where people sign in and out.
type door struct{ *Dashboard }

func (d door) showSignIn(w http.ResponseWriter, r *http.Request) {
	d.askWho(w, r, http.StatusOK, ownPath(r.URL.Query().Get("to")), "")
}

// askWho shows the page for signing in.
func (d door) askWho(w http.ResponseWriter, r *http.Request, status int, to, refused string) {
	s := signIn{To: to, Refused: refused}
	if d.sessions.Issuer() {
		s.Issuer = visit.Address(d.config.Prefix+"/sign-in/issuer", url.Values{"to": {to}})
	}
	if err := d.send(w, status, d.frame(d.visit(r), r, "sign-in", s)); err != nil {
		d.config.Logger.Warn("A page could not be made.", "path", r.URL.Path, "error", err)
	}
}

// signIn tries a token, and keeps it if the service knows it.
func (d door) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	token, to := strings.TrimSpace(r.PostFormValue("token")), ownPath(r.PostFormValue("to"))

	r.Header.Set("Authorization", "Bearer "+token)
	v := d.visit(r)
	if _, err := v.Jobs.ListJobs(v, mapreduce.ListJobsQuery{PageSize: 1}); err != nil && errs.KindOf(err) != errs.Denied {
		d.askWho(w, r, http.StatusUnauthorized, to, err.Error())
		return
	}

	cookie, err := d.sessions.Open(r, token)
	if err != nil {
		d.fail(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, d.config.Prefix+to, http.StatusSeeOther) //nolint:gosec // see ownPath
}

// beginSignIn sends a browser to the issuer.
func (d door) beginSignIn(w http.ResponseWriter, r *http.Request) {
	if !d.sessions.Issuer() {
		d.fail(w, r, errs.New(errs.NotFound, "this service has no issuer at which people sign in"))
		return
	}

	to := ownPath(r.URL.Query().Get("to"))
	at, cookie, err := d.sessions.Begin(r, to)
	if err != nil {
		d.askWho(w, r, statusOf(err), to, err.Error())
		return
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, at, http.StatusSeeOther) //nolint:gosec // an address that the issuer says
}

// finishSignIn opens the session of somebody whom the issuer has sent back.
func (d door) finishSignIn(w http.ResponseWriter, r *http.Request) {
	cookies, to, err := d.sessions.Finish(r)
	for _, cookie := range cookies {
		http.SetCookie(w, cookie)
	}
	if err != nil {
		d.askWho(w, r, statusOf(err), ownPath(to), err.Error())
		return
	}
	http.Redirect(w, r, d.config.Prefix+ownPath(to), http.StatusSeeOther) //nolint:gosec // see ownPath
}

func (d door) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, d.sessions.Close(r, r.PostFormValue("everywhere") != ""))
	http.Redirect(w, r, d.config.Prefix+"/sign-in", http.StatusSeeOther)
}

// ownPath returns a path of the dashboard, and its first page for all that leads elsewhere.
func ownPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\x00\r\n\t") {
		return "/"
	}
	return to
}
