package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Local serves pages on a port of this machine to whoever knows its address: every user of a
// machine can reach such a port, so the address has a key.
type Local struct {
	key      string
	listener net.Listener
	server   *http.Server
}

// Listen serves the pages of a client's jobs until Close. The client is used by several goroutines.
func Listen(jobs mapreduce.Client, c *dashboard.Config) (*Local, error) {
	c.Jobs = jobs
	pages, err := dashboard.New(*c)
	if err != nil {
		return nil, err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it takes no time
	if err != nil {
		return nil, err
	}

	l := &Local{key: rand.Text(), listener: listener}
	l.server = &http.Server{Handler: l.guard(pages), ReadHeaderTimeout: 20 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = l.server.Serve(listener) }() // it fails when it is closed
	return l, nil
}

// Address is where a job is shown, with the key.
func (l *Local) Address(id mapreduce.JobID) string {
	return "http://" + l.listener.Addr().String() + "/jobs/" + string(id) + "?key=" + l.key
}

// Close ends the pages that are open.
func (l *Local) Close() error {
	err := l.server.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// guard lets those in who have the key: first by the address, then by a cookie, so that the key does
// not stay in the address.
func (l *Local) guard(pages http.Handler) http.Handler {
	// Browsers send cookies of one port to all others of a machine.
	name := "coditect_key_" + strconv.Itoa(l.listener.Addr().(*net.TCPAddr).Port)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); l.opens(query.Get("key")) {
			http.SetCookie(w, &http.Cookie{Name: name, Value: l.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}) //nolint:gosec // there is no TLS
			query.Del("key")
			to := url.URL{Path: path.Clean("/" + r.URL.Path), RawQuery: query.Encode()} // two slashes would lead to another host
			http.Redirect(w, r, to.RequestURI(), http.StatusSeeOther)
			return
		}

		cookie, err := r.Cookie(name)
		if err != nil || !l.opens(cookie.Value) {
			http.Error(w, "Open the address that coditect has printed: it has the key.", http.StatusForbidden)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// opens compares without telling by its time how much of a key is right.
func (l *Local) opens(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(l.key)) == 1
}
