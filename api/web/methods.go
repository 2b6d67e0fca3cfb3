package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// allowedMethods has, for each path of the OpenAPI document, the methods that it takes.
type allowedMethods map[string][]string

// readMethods reads them of the OpenAPI document.
func readMethods(document []byte) (allowedMethods, error) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}

	all := make(allowedMethods)
	for path, methods := range doc.Paths {
		names := []string{}
		for name := range methods {
			names = append(names, strings.ToUpper(name))
		}

		// HEAD is answered as GET is.
		if slices.Contains(names, http.MethodGet) {
			names = append(names, http.MethodHead)
		}
		slices.Sort(names)
		all[path] = names
	}
	return all, nil
}

// of returns the methods that a path takes.
func (a allowedMethods) of(path string) []string {
	for _, template := range slices.Sorted(maps.Keys(a)) {
		if fitsTemplate(path, template) {
			return a[template]
		}
	}
	return nil
}

// before returns a handler that refuses requests whose path takes other methods. The handler
// behind it would take the verb of such a path for a part of the id before it.
func (a allowedMethods) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed := a.of(r.URL.Path); allowed != nil && !slices.Contains(allowed, r.Method) {
			refuseMethod(w, r, allowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fitsTemplate reports whether a path is one of a template, in which {x} stands for a segment,
// or for the part of one before a verb, such as :pause.
func fitsTemplate(path, template string) bool {
	segments, wanted := strings.Split(path, "/"), strings.Split(template, "/")
	if len(segments) != len(wanted) {
		return false
	}

	for i, want := range wanted {
		_, verb, variable := strings.Cut(want, "}")
		name, ended := strings.CutSuffix(segments[i], verb)
		if variable && (!ended || name == "" || verb == "" && strings.Contains(name, ":")) || !variable && segments[i] != want {
			return false
		}
	}

	return true
}

// refuseMethod answers a request whose path takes other methods.
func refuseMethod(w http.ResponseWriter, r *http.Request, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeErrorWith(w, http.StatusMethodNotAllowed, status.Errorf(codes.Unimplemented, "%s takes %s, and not %.20s",
		r.URL.Path, strings.Join(allowed, " and "), r.Method))
}

type headKey struct{}

// isHead reports whether of an answer only the head is wanted.
func isHead(ctx context.Context) bool { return ctx.Value(headKey{}) != nil }

// answerHeads returns a handler that answers HEAD as GET is answered, without the body, which
// net/http drops. An answer in pieces ends with its first.
func answerHeads(get http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			get.ServeHTTP(w, r)
			return
		}

		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), headKey{}, true))
		defer cancel()
		r = r.WithContext(ctx)
		r.Method = http.MethodGet
		get.ServeHTTP(&headWriter{w, cancel}, r)
	})
}

// A headWriter ends what writes to it when something was sent.
type headWriter struct {
	http.ResponseWriter
	end context.CancelFunc
}

// Unwrap lets a http.ResponseController see what is wrapped.
func (w *headWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *headWriter) Flush() {
	_ = http.NewResponseController(w.ResponseWriter).Flush() // the next Write says it again
	w.end()
}
