package sigv4_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/worker/llm/internal/redact"
	"github.com/coditect/mapreduce/worker/llm/internal/sigv4"
)

// longToken is one that AWS's documentation made up.
const longToken = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

// TestSignaturesOfAWS has vectors of AWS's own test suite, by their names there: those without
// headers of their own, and whose paths are taken as they are.
func TestSignaturesOfAWS(t *testing.T) {
	const all = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for name, c := range map[string]struct{ request, token, want string }{
		"get-vanilla":                          {"GET /", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-with-session-token":       {"GET /", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
		"get-unreserved":                       {"GET /" + all, "", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		"get-relative-unnormalized":            {"GET /example/..", "", "eca7ead57bb5aa5c8e28007acd4ff04e1ff9a0ff3b237ec1554a184887ff9282"},
		"get-relative-relative-unnormalized":   {"GET /example1/example2/../..", "", "dc33e0856fd4baca4d7aa2146c38958283844764f38c74252a333df5e613003b"},
		"get-slash-dot-slash-unnormalized":     {"GET /./", "", "68714168e6557f8f2de0ef956fc24dc2593a4bd2961f8df51898d8a134695145"},
		"get-slash-unnormalized":               {"GET //", "", "c88bcd3d312d75078c0cd961d6deae3f4c754924b01669efcfcb439fd5e5b76e"},
		"get-slashes-unnormalized":             {"GET //example//", "", "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
		"get-slash-pointless-dot-unnormalized": {"GET /./example", "", "beb03f223f7deae4146464f06e29eebbee9c8afbe15c290cf07aa8b119e14cff"},
		"get-vanilla-empty-query-key":          {"GET /?Param1=value1", "", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		"get-vanilla-query-order-encoded":      {"GET /?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", "", "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
		"get-vanilla-query-order-key-case":     {"GET /?Param2=value2&Param1=value1", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-vanilla-query-unreserved":         {"GET /?" + all + "=" + all, "", "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
		"get-vanilla-utf8-query":               {"GET /?ሴ=bar", "", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		"post-vanilla":                         {"POST /", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-vanilla-query":                   {"POST /?Param1=value1", "", "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
		"post-sts-header-before":               {"POST /", longToken, "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
	} {
		t.Run(name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.request, " ")
			req, err := http.NewRequestWithContext(t.Context(), method, "https://example.amazonaws.com"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			keys := sigv4.Keys{ID: "AKIDEXAMPLE", Secret: redact.NewKey("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), Token: redact.NewKey(c.token)}
			sigv4.Sign(req, nil, keys, sigv4.Scope{Region: "us-east-1", Service: "service"}, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))

			head, got, _ := strings.Cut(req.Header.Get("Authorization"), "Signature=")
			if got != c.want || !strings.HasPrefix(head, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date") {
				t.Errorf("%s%s, want %s", head, got, c.want)
			}
		})
	}
}
