// Package mcp makes the tools of MCP servers tools of a worker. A server is a program that
// this process runs, or an address that speaks streamable HTTP. The operator of the worker
// names the servers in a file; see ParseServers.
//
// A server is not believed. Its description of its tools is bounded and checked when the kit
// is opened, and does not change afterwards. It is asked for nothing but its tools, and
// may ask for nothing: neither for files, nor for a model, nor for a person. Its answers
// are bounded, and evidence of them always names the server, whatever address the server
// gives.
//
// Secrets of the file go to their server alone. They are taken out of all that the server
// says before anybody sees it.
package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/worker/tool"
)

// A Server is one server of the file. Either Command or URL is set.
type Server struct {
	Name string // 1 to 32 of a-z, A-Z, 0-9, _ and -

	Command string
	Args    []string
	Env     map[string]string // beside the few variables that every program has
	Dir     string            // where the program runs; empty means where this process does

	URL     string            // of streamable HTTP
	Headers map[string]string // of each request to URL
	OAuth   *OAuth            // nil if the server asks for no token

	// Trusted says that the operator believes what the server says of its tools: that they
	// only read, or that a call which is made twice does no more than one. Of other servers
	// no call is made twice.
	Trusted bool

	// Shared lets all units use one session with the server. Otherwise each unit has its
	// own, so that a server which keeps something about its caller keeps it for one unit.
	Shared bool

	Tools     []string      // the tools that are offered; none means all
	Timeout   time.Duration // of a call; 0 is tool.DefaultTimeout
	MaxOutput int           // bytes that a model is shown of a call; 0 is tool.DefaultOutput

	secrets []string // values that came from the environment
}

// OAuth is how a token for a server is had. With a refresh token it is the token of a
// person, else that of the client.
type OAuth struct {
	Issuer       string // of tokens; the secret is sent to this address alone
	ClientID     string
	ClientSecret string
	RefreshToken string // one that does not change
	// RefreshTokenFile has a refresh token. A new one that the issuer sends in its place
	// is written to the file.
	RefreshTokenFile string
	Scopes           []string // of refreshed tokens
}

// entry is a server as the file has it. Keys that other programs write, and that mean
// nothing here, are listed so that they are not refused.
type entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"cwd"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	OAuth   *struct {
		Issuer           string   `json:"issuer"`
		ClientID         string   `json:"client_id"`
		ClientSecret     string   `json:"client_secret"`
		RefreshToken     string   `json:"refresh_token"`
		RefreshTokenFile string   `json:"refresh_token_file"`
		Scopes           []string `json:"scopes"`
	} `json:"oauth"`
	Trusted   bool     `json:"trusted"`
	Shared    bool     `json:"shared"`
	Tools     []string `json:"tools"`
	Timeout   string   `json:"timeout"`
	MaxOutput int      `json:"max_output"`
	Disabled  bool     `json:"disabled"`

	Description any `json:"description"`
	AutoApprove any `json:"autoApprove"`
	AlwaysAllow any `json:"alwaysAllow"`
}

// Bounds of a file.
const (
	maxServers     = 64
	maxServerName  = 32
	maxCallTimeout = 10 * time.Minute
)

var serverName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,32}$`)

// ParseServers reads the JSON that many programs have for MCP servers, an object
// "mcpServers" of servers by name, and returns the servers sorted by name.
//
//	command, args, env, cwd   a program that speaks MCP on its standard input and output
//	url, headers, oauth       an address that speaks streamable HTTP
//	trusted, shared, tools, timeout, max_output, disabled   see Server
//
// In all texts ${NAME} stands for a variable of the environment, and ${NAME:-value} for
// one that may be missing. Errors name the server and the key, and hold no values.
func ParseServers(data []byte, getenv func(string) string) ([]Server, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("is not a JSON object of servers: %s", errs.JSONFault(err))
	}
	if file.Servers == nil {
		return nil, errors.New(`has no object "mcpServers"`)
	}
	if len(file.Servers) > maxServers {
		return nil, fmt.Errorf("names %d servers; at most %d are accepted", len(file.Servers), maxServers)
	}

	var servers []Server
	// Names come in order, so that the first error is always the same.
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		if !serverName.MatchString(name) {
			return nil, fmt.Errorf("mcpServers: %.80q is not the name of a server: 1 to %d of a-z, A-Z, 0-9, _ and -", name, maxServerName)
		}
		s, err := parseServer(name, file.Servers[name], getenv)
		if err != nil {
			return nil, fmt.Errorf("mcpServers.%s: %w", name, err)
		}
		if s != nil {
			servers = append(servers, *s)
		}
	}

	return servers, nil
}

// parseServer reads one server. It returns nil for one that is disabled.
func parseServer(name string, data []byte, getenv func(string) string) (*Server, error) {
	var e entry
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		return nil, errors.New(errs.JSONFault(err))
	}

	if e.Disabled {
		return nil, nil
	}

	x := expander{getenv: getenv}
	s := &Server{
		Name: name, Command: x.text("command", e.Command), Env: x.texts("env", e.Env), Dir: x.text("cwd", e.Dir),
		URL: x.text("url", e.URL), Headers: x.texts("headers", e.Headers),
		Trusted: e.Trusted, Shared: e.Shared, Tools: e.Tools, MaxOutput: e.MaxOutput,
	}

	for i, arg := range e.Args {
		s.Args = append(s.Args, x.text(fmt.Sprintf("args[%d]", i), arg))
	}

	if o := e.OAuth; o != nil {
		s.OAuth = &OAuth{
			Issuer: x.text("oauth.issuer", o.Issuer), ClientID: x.text("oauth.client_id", o.ClientID), ClientSecret: x.text("oauth.client_secret", o.ClientSecret),
			RefreshToken: x.text("oauth.refresh_token", o.RefreshToken), RefreshTokenFile: x.text("oauth.refresh_token_file", o.RefreshTokenFile), Scopes: o.Scopes,
		}
		x.secrets = append(x.secrets, s.OAuth.ClientSecret, s.OAuth.RefreshToken)
	}

	// One error counts for all texts: the first variable that is missing.
	if x.err != nil {
		return nil, x.err
	}

	if e.Timeout != "" {
		var err error
		if s.Timeout, err = time.ParseDuration(e.Timeout); err != nil {
			return nil, fmt.Errorf("timeout: %.40q is not a time such as 30s", e.Timeout)
		}
	}

	s.secrets = x.secrets
	for _, named := range []map[string]string{s.Env, s.Headers} {
		for name, value := range named {
			if secretName.MatchString(name) {
				s.secrets = append(s.secrets, value)
			}
		}
	}

	return s, s.check(e.Type)
}

// secretName is how variables and headers with secrets are named.
var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|password|cookie`)

// check refuses what no server can be.
func (s *Server) check(kind string) error {
	switch {
	case s.Command == "" && s.URL == "":
		return errors.New("has neither command nor url")
	case s.Command != "" && s.URL != "":
		return errors.New("has both command and url; give one of them")
	case kind == "sse":
		return errors.New("type: sse is the transport before streamable HTTP, which is not spoken here; ask for the server's address of streamable HTTP")
	case kind == "stdio" && s.URL != "", strings.Contains(kind, "http") && s.Command != "":
		return fmt.Errorf("type: %s does not go with what else is given", kind)
	case s.Command == "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return errors.New("args, env and cwd need a command")
	case s.URL == "" && (len(s.Headers) > 0 || s.OAuth != nil):
		return errors.New("headers and oauth need a url")
	case s.Timeout < 0 || s.Timeout > maxCallTimeout:
		return fmt.Errorf("timeout: must be above 0 and at most %v", maxCallTimeout)
	case s.MaxOutput < 0 || s.MaxOutput > tool.MaxOutput:
		return fmt.Errorf("max_output: must be from 1 to %d bytes", tool.MaxOutput)
	}

	if s.URL != "" {
		if _, err := originOf(s.URL); err != nil {
			return fmt.Errorf("url: %w", err)
		}
	}

	if s.OAuth != nil {
		return s.OAuth.check()
	}
	return nil
}

func (o *OAuth) check() error {
	if _, err := originOf(o.Issuer); err != nil {
		return fmt.Errorf("oauth.issuer: %w; it is needed, so that a server cannot have the secret sent elsewhere", err)
	}

	switch {
	case o.ClientID == "":
		return errors.New("oauth.client_id is missing")
	case o.RefreshToken != "" && o.RefreshTokenFile != "":
		return errors.New("oauth has both refresh_token and refresh_token_file; give one of them")
	case o.RefreshToken == "" && o.RefreshTokenFile == "" && o.ClientSecret == "":
		return errors.New("oauth needs a client_secret, or a refresh_token_file")
	}

	if o.RefreshTokenFile != "" && !filepath.IsAbs(o.RefreshTokenFile) {
		return errors.New("oauth.refresh_token_file must be an absolute path")
	}
	return nil
}

// originOf returns scheme, host and port of an address of HTTP. Its errors do not hold
// the address, which may have secrets in it.
func originOf(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("is not an address of the form https://HOST/PATH")
	case u.User != nil:
		return "", errors.New("has a user in it; use headers")
	}
	return origin(u), nil
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// reference is a variable of the environment in a text. Some programs write ${env:NAME}.
var reference = regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// An expander puts variables in the place of their references.
type expander struct {
	getenv  func(string) string
	secrets []string
	err     error // the first
}

func (x *expander) text(key, text string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		parts := reference.FindStringSubmatch(match)
		if value := x.getenv(parts[1]); value != "" {
			if !slices.Contains(inherited, parts[1]) && !filepath.IsAbs(value) { // folders are no secrets, and stand in what servers say of files
				x.secrets = append(x.secrets, value)
			}
			return value
		}

		if parts[2] != "" {
			return parts[2][2:]
		}

		if x.err == nil {
			x.err = fmt.Errorf("%s: the environment variable %s is not set; write ${%s:-} if it may be missing", key, parts[1], parts[1])
		}
		return ""
	})
}

func (x *expander) texts(key string, all map[string]string) map[string]string {
	out := make(map[string]string, len(all))
	for name, text := range all {
		out[name] = x.text(key+"."+name, text)
	}
	return out
}

// inherited are the variables that a program gets of this process. The others may be
// keys of models.
var inherited = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ", "TMPDIR"}

// programEnvironment returns what the program of a server sees.
func (s *Server) programEnvironment() []string {
	all := make(map[string]string)
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			all[name] = value
		}
	}
	maps.Copy(all, s.Env)

	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return out
}

// stars stand for a secret.
const stars = "***"

// minSecret is the length of what is taken for a secret. A shorter text, such as a port,
// stands in other texts by chance.
const minSecret = 8

// scrubber takes secrets out of texts.
func scrubber(secrets []string) *strings.Replacer {
	var pairs []string
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, stars)
		}
	}
	return strings.NewReplacer(pairs...)
}
