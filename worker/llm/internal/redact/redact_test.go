package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

const keyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// forms are the ways in which servers have repeated keys.
var forms = []struct {
	name string
	of   func(key string, random *rand.Rand) string
}{
	{"as it is", func(key string, _ *rand.Rand) string { return key }},
	{"in upper case", func(key string, _ *rand.Rand) string { return strings.ToUpper(key) }},
	{"with blanks", func(key string, _ *rand.Rand) string { return strings.Join(strings.Split(key, ""), " ") }},
	{"with zero-width blanks", func(key string, _ *rand.Rand) string { return strings.Join(strings.Split(key, ""), "\u200b") }},
	{"reversed", func(key string, _ *rand.Rand) string { return reversed(key) }},
	{"in Base64", func(key string, _ *rand.Rand) string { return base64.StdEncoding.EncodeToString([]byte(key)) }},
	{"in Base64 behind two letters", func(key string, _ *rand.Rand) string {
		return base64.URLEncoding.EncodeToString([]byte("u:" + key))
	}},
	{"in Base64 behind a letter", func(key string, _ *rand.Rand) string { return base64.StdEncoding.EncodeToString([]byte(":" + key)) }},
	{"in hexadecimal", func(key string, _ *rand.Rand) string { return strings.ToUpper(hex.EncodeToString([]byte(key))) }},
	{"escaped in part", func(key string, random *rand.Rand) string { return escaped(key, random, "%%%02X") }},
	{"escaped twice in part", func(key string, random *rand.Rand) string { return escaped(key, random, "%%25%02x") }},
	{"in JSON", func(key string, random *rand.Rand) string { return escaped(key, random, `\u%04x`) }},
	{"in HTML", func(key string, random *rand.Rand) string { return escaped(key, random, "&#%d;") }},
	{"in a URL", func(key string, _ *rand.Rand) string { return "https://a.example/?k=" + url.QueryEscape(key) }},
}

func reversed(text string) string {
	runes := []rune(text)
	slices.Reverse(runes)
	return string(runes)
}

// escaped writes some letters of a text by a format.
func escaped(text string, random *rand.Rand, format string) string {
	var b strings.Builder
	for i := range len(text) {
		if random.IntN(3) == 0 {
			fmt.Fprintf(&b, format, text[i])
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// TestKeysShowInNoForm has keys of 1 to 200 letters in messages. Of a key that is as long as a
// secret no 8 characters in a row are left of what the server wrote, whatever its length
// nothing but the key is hidden.
func TestKeysShowInNoForm(t *testing.T) {
	const before, after = "a model of this name, I think, does not exist (4 tried); it was asked by <", "> and is a mystery: try another, e.g. gpt-5 or mistral-7b"
	for length := 1; length <= 200; length++ {
		random := rand.New(rand.NewPCG(uint64(length), 7))
		secret := make([]byte, length)
		for i := range secret {
			secret[i] = keyLetters[random.IntN(len(keyLetters)-2)]
		}
		key := redact.NewKey(string(secret))

		for _, form := range forms {
			written := form.of(string(secret), random)
			got := key.Scrub(before + written + after)
			middle, begins := strings.CutPrefix(got, before)
			middle, ends := strings.CutSuffix(middle, after)
			if !begins || !ends {
				t.Fatalf("%d letters, %s: more than the key is hidden: %s", length, form.name, got)
			}
			if length >= 8 && shows(middle, written) {
				t.Errorf("key %s, %s: the message shows %s", secret, form.name, middle)
			}
		}
		if half := key.Scrub(before + string(secret[:length/2]) + after); length >= 16 && strings.Contains(half, string(secret[:length/2])) {
			t.Errorf("half of the key shows in %s", half)
		}
	}
}

// shows reports whether a text has 8 characters in a row of what was written, but for what
// names a form.
func shows(text, written string) bool {
	written = strings.NewReplacer("https://a.example/?k=", "").Replace(written)
	runes := []rune(written)
	for i := 0; i+8 <= len(runes); i++ {
		if strings.Contains(text, string(runes[i:i+8])) {
			return true
		}
	}
	return false
}

// TestShortKeysHideNoWords has keys that are words of the message, or letters.
func TestShortKeysHideNoWords(t *testing.T) {
	tests := []struct{ key, text, want string }{
		{"a", "a key is needed; authorization: a token", "a key is needed; authorization: a token"},
		{"x", "max_tokens exceeds the maximum", "max_tokens exceeds the maximum"},
		{"model", "the model does not exist", "the model does not exist"},
		{"key", "Invalid API key", "Invalid API key"},
		{"test", "Incorrect API key provided: test. You can find it.", "Incorrect API key provided: ***. You can find it."},
		{"test", "it was sent as Bearer test, which is no key for testers", "it was sent as ***, which is no key for testers"},
		{"ab1", `{"api_key":"ab1"} is wrong, ab1c is not`, `{"api_key":"***"} is wrong, ab1c is not`},
		{"", "nothing", "nothing"},
		{"no-key-needed", "no key needed here", "no key needed here"},
	}
	for _, test := range tests {
		if got := redact.NewKey(test.key).Scrub(test.text); got != test.want {
			t.Errorf("key %q: got %s, want %s", test.key, got, test.want)
		}
	}
}
