package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/coditect/mapreduce/worker/tool"
)

// A Config has what kits share.
type Config struct {
	Version string       // of this program, for servers; defaults to "0"
	Logger  *slog.Logger // for what was left out of a server's tools; defaults to silence

	// StartTimeout bounds the start of a session with a server. Defaults to 30 s.
	StartTimeout time.Duration
	// GreetTimeout bounds how long the answer to the latest greeting is waited for, which
	// older servers may ignore. Defaults to 2 s.
	GreetTimeout time.Duration
	// MaxSessions bounds the sessions with one server at a time, and so the programs that
	// run. Others wait. Defaults to 64.
	MaxSessions int
	// Now is the time at which evidence is read. Defaults to time.Now.
	Now func() time.Time
}

func (c Config) withDefaults() Config {
	if c.Version == "" {
		c.Version = "0"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}

	if c.StartTimeout <= 0 {
		c.StartTimeout = 30 * time.Second
	}
	if c.GreetTimeout <= 0 {
		c.GreetTimeout = 2 * time.Second
	}
	if c.MaxSessions <= 0 {
		c.MaxSessions = 64
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	return c
}

// A Kit is the tools of one server. It is safe for concurrent use.
type Kit struct {
	server    Server
	config    Config
	transport *guardedTransport // nil of a program
	oauth     auth.OAuthHandler // nil if there is none
	members   []*member
	byName    map[string]*member
	room      chan struct{} // has an element for each session

	mu    sync.Mutex // guards the variables below
	first *link      // made by New, for the first session; nil once that has it
}

var _ tool.Kit = (*Kit)(nil)

// New starts a session with a server and learns its tools. It returns an error that says
// what to do if the server does not start, or has none of the tools that its file names.
func New(ctx context.Context, s Server, c Config) (*Kit, error) {
	k := &Kit{server: s, config: c.withDefaults(), byName: make(map[string]*member)}
	k.room = make(chan struct{}, k.config.MaxSessions)

	if s.URL != "" {
		var err error
		if k.transport, err = newTransport(&s); err != nil {
			return nil, fmt.Errorf("%s: url: %w", k.Name(), err)
		}
		if s.OAuth != nil {
			if k.oauth, err = newOAuth(s.OAuth, k.transport.guardedClient()); err != nil {
				return nil, fmt.Errorf("%s: oauth: %w", k.Name(), err)
			}
		}
	}

	k.first = newLink(k)
	if err := k.learn(ctx); err != nil {
		// The process or connection that was started to learn the tools has to end.
		return nil, errors.Join(fmt.Errorf("%s: %w", k.Name(), err), k.Close())
	}
	return k, nil
}

// Name returns mcp: and the name of the server.
func (k *Kit) Name() string { return "mcp:" + k.server.Name }

// Tools returns the tools as they were when the kit was opened.
func (k *Kit) Tools() []tool.Spec {
	specs := make([]tool.Spec, 0, len(k.members))
	for _, m := range k.members {
		specs = append(specs, m.spec)
	}
	return specs
}

// Open returns what one unit uses. The session with the server starts with the first call.
func (k *Kit) Open(context.Context) (tool.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()

	s := &session{kit: k, link: k.first}
	if !k.server.Shared {
		k.first = nil
	}
	if s.link == nil {
		s.link = newLink(k)
	}
	return s, nil
}

// Close ends the session that no unit has, and what is left of connections.
func (k *Kit) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first != nil {
		k.first.close()
		k.first = nil
	}
	if k.transport != nil {
		k.transport.inner.CloseIdleConnections()
	}
	return nil
}

// withoutSecrets takes secrets out of a text of the server.
func (k *Kit) withoutSecrets(text string) string {
	secrets := k.server.secrets
	if k.transport != nil {
		secrets = append(slices.Clip(secrets), k.transport.sentTokens()...)
	}
	return scrubber(secrets).Replace(strings.ToValidUTF8(text, "\uFFFD"))
}

// A session is what one unit has of a kit.
type session struct {
	kit  *Kit
	link *link
}

// Call calls a tool of the server.
func (s *session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	m := s.kit.byName[name]
	if m == nil {
		return nil, fmt.Errorf("%s: %w: %q", s.kit.Name(), tool.ErrNoTool, name)
	}
	arguments, err := m.checkArguments(input)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, m.spec.Timeout)
	defer cancel()
	answer, err := s.link.call(ctx, m, arguments)
	if err != nil {
		return nil, err
	}
	return s.kit.resultOf(m, arguments, answer)
}

// Close ends the session with the server, unless other units use it.
func (s *session) Close() error {
	if !s.kit.server.Shared {
		s.link.close()
	}
	return nil
}
