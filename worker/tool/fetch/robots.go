package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/internal/recent"
)

// robots knows what the hosts allow robots, by RFC 9309.
type robots struct {
	get   func(ctx context.Context, address string) (status int, data []byte, err error)
	now   func() time.Time
	rules *recent.Cache[string, *robotRules] // by scheme and host

	mu      sync.Mutex // guards the map
	reading map[string]chan struct{}
}

// A robotRules is what a robots.txt says to this robot. It does not change.
type robotRules struct {
	until time.Time
	all   error // why no page of the host is read; nil if the rules say which
	rules []robotRule
}

// A robotRule allows or forbids the paths that its pattern begins.
type robotRule struct {
	pattern string // in the form of normalPath; * is any characters
	toEnd   bool   // the pattern is the whole of the path
	allow   bool
}

// How long rules are kept; those of a host that did not answer for less.
const (
	robotsKept    = time.Hour
	robotsMissing = time.Minute
	maxRules      = 10_000
	robotsRoom    = 16 << 20 // bytes of rules of all hosts
)

func newRobots(get func(context.Context, string) (int, []byte, error), now func() time.Time) *robots {
	return &robots{get: get, now: now, rules: recent.New[string, *robotRules](robotsRoom), reading: make(map[string]chan struct{})}
}

// check returns a *tool.Refused if the host of an address does not want robots to read it,
// and an error if it does not say.
func (r *robots) check(ctx context.Context, u *url.URL) error {
	rules, err := r.of(ctx, u)
	if err != nil {
		return err
	}
	if rules.all != nil {
		return rules.all
	}

	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}

	if path == "/robots.txt" || allows(rules.rules, normalPath(path)) {
		return nil
	}
	return &tool.Refused{What: "a request to " + u.String(), Why: "the robots.txt of its host asks robots to stay away from it"}
}

// of returns the rules of a host. One call at a time reads them.
func (r *robots) of(ctx context.Context, u *url.URL) (*robotRules, error) {
	base := u.Scheme + "://" + u.Host
	for {
		if rules, ok := r.rules.Find(base); ok && r.now().Before(rules.until) {
			return rules, nil
		}

		r.mu.Lock()
		busy := r.reading[base]
		if busy == nil {
			r.reading[base] = make(chan struct{})
		}
		r.mu.Unlock()

		// No other call reads the rules of this host, so this one does.
		if busy == nil {
			return r.read(ctx, base)
		}

		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s waited for the robots.txt of its host: %w", u, context.Cause(ctx))
		}
	}
}

// read reads the rules of a host, and keeps them.
func (r *robots) read(ctx context.Context, base string) (*robotRules, error) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(r.reading[base])
		delete(r.reading, base)
	}()

	address := base + "/robots.txt"
	status, data, err := r.get(ctx, address)
	var refused *tool.Refused
	switch {
	case errors.As(err, &refused):
		return nil, refused // of the host itself, or of where its robots.txt leads
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer: %w", address, context.Cause(ctx))
	}

	rules := &robotRules{until: r.now().Add(robotsKept)}
	switch {
	case err != nil:
		rules.until, rules.all = r.now().Add(robotsMissing), fmt.Errorf("no page of %s is read, as its robots.txt cannot be read: %w", base, unwrapURL(err))
	case status >= 500:
		rules.until, rules.all = r.now().Add(robotsMissing), fmt.Errorf("no page of %s is read: it answered %d for its robots.txt, and so does not say what robots may read", base, status)
	case status == 200:
		rules.rules = parseRobots(data, Robot)
	}

	size := 1024
	for _, rule := range rules.rules {
		size += len(rule.pattern) + 64
	}

	r.rules.Keep(base, rules, int64(size))
	return rules, nil
}

// unwrapURL returns what is wrong, without the address.
func unwrapURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// parseRobots returns the rules for a robot: those of all groups that name it, or else of
// those for all robots. It passes over lines that it does not understand.
func parseRobots(data []byte, robot string) []robotRule {
	var own, others []robotRule
	named := false                   // some group names the robot
	var forOwn, forAll, inRules bool // of the group that is being read
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		text, _, _ := strings.Cut(strings.ToValidUTF8(string(line), ""), "#")
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)

		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if inRules {
				forOwn, forAll, inRules = false, false, false
			}
			name, _, _ := strings.Cut(strings.ToLower(value), "/")
			if strings.TrimSpace(name) == robot {
				forOwn, named = true, true
			}
			forAll = forAll || value == "*"
		case "allow", "disallow":
			inRules = true
			if value == "" || len(own)+len(others) >= maxRules {
				continue
			}

			rule := robotRule{allow: key == "allow"}
			rule.pattern, rule.toEnd = strings.CutSuffix(value, "$")
			rule.pattern = normalPath(rule.pattern)

			if forOwn {
				own = append(own, rule)
			}
			if forAll {
				others = append(others, rule)
			}
		}
	}

	if named {
		return own
	}
	return others
}

// allows reports whether the longest rule that matches a path allows it. Of two that are
// equally long, the one that allows counts.
func allows(rules []robotRule, path string) bool {
	longest, allowed := -1, true
	for _, r := range rules {
		size := len(r.pattern)
		if size < longest || size == longest && (allowed || !r.allow) || !r.matches(path) {
			continue
		}
		longest, allowed = size, r.allow
	}
	return allowed
}

// matches reports whether the pattern of a rule begins a path. The parts between its stars
// are looked for one after the other, so the time is about the length of both.
func (r robotRule) matches(path string) bool {
	first, rest, starred := strings.Cut(r.pattern, "*")
	path, ok := strings.CutPrefix(path, first)
	if !ok {
		return false
	}

	if !starred {
		return !r.toEnd || path == ""
	}

	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]

	// The last part must end the path, so it is not looked for from the left.
	if r.toEnd {
		parts = parts[:len(parts)-1]
	}

	for _, part := range parts {
		at := strings.Index(path, part)
		if at < 0 {
			return false
		}
		path = path[at+len(part):]
	}

	return !r.toEnd || strings.HasSuffix(path, last)
}

// normalPath returns a path or a pattern in the one form of RFC 3986: what needs no escape
// has none, and everything else has one in upper case.
func normalPath(path string) string {
	const digits = "0123456789ABCDEF"
	var out strings.Builder

	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' && i+2 < len(path) {
			high, low := unhex(path[i+1]), unhex(path[i+2])
			if high >= 0 && low >= 0 {
				// A character that needs no escape stands as itself.
				if d := byte(high<<4 | low); isUnreserved(d) {
					out.WriteByte(d)
				} else {
					out.Write([]byte{'%', digits[d>>4], digits[d&15]})
				}
				i += 2
				continue
			}
		}

		if c <= ' ' || c >= 0x7f {
			out.Write([]byte{'%', digits[c>>4], digits[c&15]})
			continue
		}
		out.WriteByte(c)
	}

	return out.String()
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func isUnreserved(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
