package auth

import (
	"context"
	"crypto/x509"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// The reasons of errors of calls that were cut off.
const (
	// ReasonRevoked says that the caller is no longer what it was when the call began.
	ReasonRevoked = "PRINCIPAL_REVOKED"
	// ReasonExpired says that what the caller has shown has expired. It may show it anew
	// and go on.
	ReasonExpired = "CREDENTIALS_EXPIRED"
)

// recheckEvery is how often calls are looked at whose callers may have been revoked.
const recheckEvery = time.Second

// A Guard lets calls begin, and cuts off those whose callers may no longer make them. It is
// used by all edges of a service. Its methods may be called at the same time.
type Guard struct {
	auth *Authenticator

	mu    sync.Mutex // guards the variable below, and generation of each call
	calls map[*call]struct{}
}

// A call is under way.
type call struct {
	rule Rule
	by   mapreduce.Principal
	id   Identity
	end  context.CancelCauseFunc

	generation [3]int // of the files by which it was last looked at
}

// RuleOf returns what the policy says now of a tenant.
func (g *Guard) RuleOf(t mapreduce.TenantID) mapreduce.TenantRule { return g.auth.RuleOf(t) }

// NewGuard returns a guard that asks a. Run must be called for it to cut calls off.
func NewGuard(a *Authenticator) *Guard {
	return &Guard{auth: a, calls: make(map[*call]struct{})}
}

// Admit lets a call begin, or refuses it: as errs.Unauthenticated if the caller has not
// shown who it is, and as errs.Denied if it may not do this. The context it returns names
// the caller. end cuts the call off; done must be called when the call has ended.
func (g *Guard) Admit(ctx context.Context, method string, end context.CancelCauseFunc) (admitted context.Context, done func(), err error) {
	info, authorization := shownBy(ctx)
	return g.AdmitAs(ctx, method, info, authorization, end)
}

// AdmitAs is Admit for a call that does not come by gRPC: peer is what is known of its
// connection, and authorization are the values of that header.
func (g *Guard) AdmitAs(ctx context.Context, method string, peer credentials.AuthInfo, authorization []string, end context.CancelCauseFunc) (admitted context.Context, done func(), err error) {
	rule, found := RuleOf(method)
	if !found {
		return ctx, nil, errs.New(errs.Denied, "no rule says who may call %s", method)
	}
	if rule.Open != "" && slices.Contains(g.auth.config.Open, rule.Open) {
		return ctx, func() {}, nil
	}

	generation := g.auth.generation() // before the caller is looked at: what changes meanwhile is seen later
	by, id, err := g.auth.Authenticate(ctx, peer, authorization)
	if err != nil {
		return ctx, nil, err
	}

	if !rule.allows(by) {
		return ctx, nil, errs.New(errs.Denied, "%s may not call %s", by.Name, method)
	}

	c := &call{rule: rule, by: by, id: id, end: end, generation: generation}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[c] = struct{}{}
	return mapreduce.WithCaller(ctx, by), func() { g.forget(c) }, nil
}

func (g *Guard) forget(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, c)
}

// shownBy returns what the caller of a call by gRPC has shown.
func shownBy(ctx context.Context) (info credentials.AuthInfo, authorization []string) {
	if p, ok := peer.FromContext(ctx); ok {
		info = p.AuthInfo
	}
	return info, metadata.ValueFromIncomingContext(ctx, "authorization")
}

// Run looks again and again at the calls that are under way, until ctx ends: a caller that
// is revoked is cut off within two seconds.
func (g *Guard) Run(ctx context.Context) {
	t := time.NewTicker(recheckEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			g.Recheck()
		}
	}
}

// Recheck looks at the files and cuts off calls whose callers are no longer what they were
// when the calls began.
func (g *Guard) Recheck() {
	g.auth.Look()
	now, verified := g.auth.config.Now(), make(map[*x509.Certificate]error)

	g.mu.Lock()
	defer g.mu.Unlock()

	generation := g.auth.generation()
	for c := range g.calls {
		if err := g.verdictOn(c, c.generation != generation, now, verified); err != nil {
			c.end(err)
		}
		c.generation = generation
	}
}

// verdictOn returns why a call has to end, or nil.
func (g *Guard) verdictOn(c *call, changed bool, now time.Time, verified map[*x509.Certificate]error) error {
	if c.rule.Lasts && !c.id.Expires.IsZero() && now.After(c.id.Expires) {
		return &errs.Error{Kind: errs.Unavailable, Reason: ReasonExpired, Message: "the certificate or token of the caller has expired; connect again with a valid one"}
	}

	// As long as no file changes, the caller stays what it was.
	if !changed {
		return nil
	}

	if err := g.auth.stillHolds(c.id, verified); err != nil {
		return &errs.Error{Kind: errs.Unauthenticated, Reason: ReasonRevoked, Message: "the caller is cut off: " + err.Error()}
	}

	by, err := g.auth.PrincipalOf(c.id)
	switch {
	case err != nil:
		return &errs.Error{Kind: errs.Denied, Reason: ReasonRevoked, Message: "the caller is cut off: " + err.Error()}
	case by.Tenant != c.by.Tenant || !c.rule.allows(by):
		return &errs.Error{Kind: errs.Denied, Reason: ReasonRevoked, Message: "the caller is cut off: " + by.Name + " may no longer do this"}
	}
	return nil
}

// WasCutOff reports whether an error is why a guard has ended a call.
func WasCutOff(err error) bool {
	r := errs.ReasonOf(err)
	return r == ReasonRevoked || r == ReasonExpired
}
