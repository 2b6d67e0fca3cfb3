package llm

import (
	"net/http"
	"strings"
	"time"

	"github.com/coditect/mapreduce/worker/llm/manners"
)

// Config configures a provider.
type Config struct {
	Key       Key
	BaseURL   string        // defaults to the vendor's
	Window    int64         // tokens of the context window (Ollama's num_ctx). Defaults to DefaultWindow
	ToolMode  bool          // for servers that cannot constrain an answer: force a tool instead
	SendTrace bool          // send Request.Trace as headers, for a server of ours
	First     time.Duration // a response has to begin in that time; some servers queue calls. Defaults to DefaultFirst
	Idle      time.Duration // no byte for so long breaks a response off. Defaults to DefaultIdle
	MaxBytes  int64         // of a response, whatever it is. Defaults to DefaultMaxBytes, or 1 KiB for each token of the longest answer

	// Patient says that an address at which nobody listens yet is worth waiting for, as at a
	// worker that started before the server of its models. Otherwise the first call fails with
	// NotThere. An address that was reached once is always waited for.
	Patient bool

	// Manners are what servers would not take, as far as this process has learned. Defaults to
	// what the provider itself learns.
	Manners *manners.Store

	// Getenv reads what a vendor needs besides its key: the region or project of a cloud, and its
	// credentials. Nil is a process that checks jobs which run elsewhere: there, nothing of it is
	// wanted.
	Getenv func(string) string

	// Transport carries requests. Defaults to one for many calls to one host.
	Transport http.RoundTripper
}

// Setting returns the value of a variable; "" if it is not set.
func (c *Config) Setting(name string) string {
	if c.Getenv == nil {
		return ""
	}
	return strings.TrimSpace(c.Getenv(name))
}

// Defaults of Config.
const (
	DefaultFirst    = 10 * time.Minute
	DefaultIdle     = 5 * time.Minute
	DefaultMaxBytes = 64 << 20
	DefaultWindow   = 16384
)
