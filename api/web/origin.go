package web

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rs/cors"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/errs"
)

// origins are the pages whose scripts may call.
type origins struct {
	allowed []string
	cors    *cors.Cors // nil if there are none
}

// CheckOrigins refuses a list of which one is no origin of pages.
func CheckOrigins(allowed []string) error {
	for _, origin := range allowed {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || origin != u.Scheme+"://"+u.Host || strings.Contains(origin, "*") {
			return errs.Field("cors-origin", "%q is not SCHEME://HOST or SCHEME://HOST:PORT, such as https://app.example.org", origin)
		}
	}
	return nil
}

func newOrigins(allowed []string) (*origins, error) {
	if err := CheckOrigins(allowed); err != nil {
		return nil, err
	}

	o := &origins{allowed: allowed}
	if len(allowed) > 0 {
		o.cors = cors.New(cors.Options{
			AllowedOrigins: allowed,
			AllowedMethods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
			AllowedHeaders: []string{
				"Authorization", "Content-Type", "Connect-Protocol-Version", "Connect-Timeout-Ms", "Grpc-Timeout", "X-Grpc-Web", "X-User-Agent",
				"Traceparent", "Tracestate",
			},
			ExposedHeaders: []string{"Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin", "Retry-After"},
			MaxAge:         7200,
		})
	}
	return o, nil
}

// admit reports whether a request may go on, and answers it if it may not, or if it is a
// browser's question what another page may ask. What browsers send says where a page is
// from; other programs say nothing of it and are no danger to their users.
func (o *origins) admit(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")

	switch {
	case origin != "" && slices.Contains(o.allowed, origin):
		o.cors.HandlerFunc(w, r)
		return r.Method != http.MethodOptions
	case origin != "" && !isOwn(origin, r):
		writeError(w, status.Errorf(codes.PermissionDenied, "web pages of the origin %s may not call this server; --cors-origin names the origins that may", origin))
		return false
	case isVisit(r): // somebody follows a link, which does nothing
	case origin == "" && strings.HasSuffix(r.Header.Get("Sec-Fetch-Site"), "-site"): // same-site is another host
		writeError(w, status.Error(codes.PermissionDenied, "a web page of another origin may not call this server"))
		return false
	}
	return true
}

// isVisit reports whether a browser opens a page for its user, wherever the link stood. Pages that
// stand within others are no visits.
func isVisit(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// isOwn reports whether an origin is the one that a request has come to.
func isOwn(origin string, r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.EqualFold(origin, scheme+"://"+r.Host)
}

// isLocal reports whether a Host header names this machine.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback()
}
