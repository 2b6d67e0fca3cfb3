// Package sigv4 signs requests to AWS by its Signature Version 4. It does no I/O.
package sigv4

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

// Keys are what signs requests.
type Keys struct {
	ID            string
	Secret, Token redact.Key // there is no token with keys that last
}

// A Scope is what a signature is for.
type Scope struct{ Region, Service string }

const (
	algorithm = "AWS4-HMAC-SHA256"
	timeForm  = "20060102T150405Z"
)

// Sign signs a request and its body, in headers. AWS takes the signature for five minutes from at.
func Sign(req *http.Request, body []byte, keys Keys, of Scope, at time.Time) {
	at = at.UTC()
	req.Header.Set("X-Amz-Date", at.Format(timeForm))
	if !keys.Token.IsZero() {
		req.Header.Set("X-Amz-Security-Token", redact.Secret(keys.Token))
	}

	canonical, signed := canonicalRequest(req, body)
	scope := []string{at.Format("20060102"), of.Region, of.Service, "aws4_request"}
	sum := sha256.Sum256([]byte(canonical))
	text := strings.Join([]string{algorithm, at.Format(timeForm), strings.Join(scope, "/"), hex.EncodeToString(sum[:])}, "\n")

	// The key is derived from the secret by each part of the scope, and then signs.
	key := []byte("AWS4" + redact.Secret(keys.Secret))
	for _, part := range append(slices.Clone(scope), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	req.Header.Set("Authorization", algorithm+" Credential="+keys.ID+"/"+strings.Join(scope, "/")+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(key))
}

// canonicalRequest returns what is signed of a request, and the names of the headers among that.
// Headers that proxies change are not.
func canonicalRequest(req *http.Request, body []byte) (text, signed string) {
	values := map[string]string{"host": cmp.Or(req.Host, req.URL.Host)}
	for name, list := range req.Header {
		low := strings.ToLower(name)
		if low != "content-type" && !strings.HasPrefix(low, "x-amz-") {
			continue
		}
		for i, v := range list {
			list[i] = strings.Join(strings.Fields(v), " ")
		}
		values[low] = strings.Join(list, ",")
	}

	// The signature is over the headers in the order of their names.
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + values[name] + "\n")
	}
	signed = strings.Join(names, ";")
	sum := sha256.Sum256(body)
	return strings.Join([]string{
		req.Method, canonicalPath(req.URL), canonicalQuery(req.URL), headers.String(), signed, hex.EncodeToString(sum[:]),
	}, "\n"), signed
}

// canonicalPath returns a path as it is signed: escaped once more than it is sent.
func canonicalPath(u *url.URL) string {
	parts := strings.Split(cmp.Or(u.EscapedPath(), "/"), "/")
	for i, p := range parts {
		parts[i] = Escape(p)
	}
	return strings.Join(parts, "/")
}

// canonicalQuery returns a query as it is signed: by name, then by value.
func canonicalQuery(u *url.URL) string {
	var all [][2]string
	for name, values := range u.Query() {
		for _, v := range values {
			all = append(all, [2]string{Escape(name), Escape(v)})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })

	pairs := make([]string, len(all))
	for i, p := range all {
		pairs[i] = p[0] + "=" + p[1]
	}
	return strings.Join(pairs, "&")
}

// Escape returns a text as a part of a path or a query: all but letters, digits and -._~ is escaped.
func Escape(text string) string {
	const hexDigits = "0123456789ABCDEF"

	var out strings.Builder
	for _, c := range []byte(text) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			out.WriteByte(c)
		default:
			out.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}

	return out.String()
}
