// Package auth finds out who calls, and decides by a policy what that caller is: for which
// tenant it acts, and in which roles. It cuts off the calls of principals that the policy
// no longer has. It knows the methods of the wire by their names, and nothing of what they
// do.
//
// Answers to callers say what is wrong with what they have shown, and never what would
// have been right. No secret is in any error or line of the log.
package auth

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/transport"
)

// An Identity is who a caller has shown to be, before the policy says what that means.
type Identity struct {
	// Names are what a policy may know the caller by. A certificate may have several.
	Names []string
	// Expires is when the caller has to show anew who it is; zero if never.
	Expires time.Time

	chain  []*x509.Certificate // that it has shown, its own first
	secret string              // the token of a token file
	local  bool                // it is in this process, or is the user that runs it
}

// A TokenVerifier checks bearer tokens that others have issued.
type TokenVerifier interface {
	// Verify returns who has a token, for whom the token is the subject, and until when
	// it holds. It fails with errs.Unauthenticated if the token does not hold, and with
	// errs.Unavailable if that cannot be known now.
	Verify(ctx context.Context, token string) (subject string, expires time.Time, err error)
}

// A Config says by what callers are known.
type Config struct {
	// Policy is the policy file. Needed.
	Policy string
	// Tokens is the token file. Defaults to none.
	Tokens string
	// Issued checks tokens that others have issued. Defaults to none.
	Issued TokenVerifier
	// Peers checks certificates of peers again when their authorities change. Needed if
	// peers may have certificates.
	Peers *transport.Server
	// Owners are users that may do anything over a Unix socket, unless the policy has an
	// entry of its own for them: who could read and write the store's files anyway.
	Owners []int
	// Open names the services that anyone may call: OpenHealth, OpenReflection.
	Open []string
	// Logger logs changes. Defaults to slog.Default().
	Logger *slog.Logger
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// An Authenticator knows the principals. Its methods may be called at the same time.
type Authenticator struct {
	config Config
	policy *transport.Files[*Policy]
	tokens *transport.Files[*Tokens] // nil without a token file
}

// New reads the files and says what is wrong with them.
func New(c Config) (*Authenticator, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	for _, name := range c.Open {
		if name != OpenHealth && name != OpenReflection {
			return nil, errs.Field("open", "no service %q can be open; health and reflection can", name)
		}
	}

	a := &Authenticator{config: c}
	var err error
	a.policy, err = transport.NewFiles(func(contents [][]byte) (*Policy, error) {
		return ParsePolicy(c.Policy, contents[0])
	}, c.noteChange("policy", c.Policy), c.Policy)

	if err != nil || c.Tokens == "" {
		return a, err
	}

	a.tokens, err = transport.NewFiles(func(contents [][]byte) (*Tokens, error) {
		return ParseTokens(c.Tokens, contents[0])
	}, c.noteChange("tokens", c.Tokens), c.Tokens)
	return a, err
}

func (c Config) noteChange(what, file string) func(error) {
	return func(err error) {
		if err != nil {
			c.Logger.Error("a file has changed and cannot be used; what was read before stays in force", "what", what, "file", file, "error", err.Error())
			return
		}
		c.Logger.Info("a file has changed and is in force", "what", what, "file", file)
	}
}

// maxToken is the most bytes of a bearer token.
const maxToken = 16 << 10

// Identify returns who a caller is, by what is known of its connection and by the values of
// its authorization headers. A token goes before a certificate: a call that has a wrong one
// is refused, whoever makes it.
func (a *Authenticator) Identify(ctx context.Context, peer credentials.AuthInfo, authorization []string) (Identity, error) {
	if len(authorization) > 1 {
		return Identity{}, errs.New(errs.Unauthenticated, "the call has several authorization headers")
	}
	if len(authorization) == 1 {
		return a.byToken(ctx, authorization[0])
	}

	switch p := peer.(type) {
	case transport.Memory:
		return Identity{Names: []string{"process"}, local: true}, nil
	case transport.Unix:
		if p.Known {
			return Identity{Names: []string{fmt.Sprintf("%s:%d", kindUID, p.UID)}, local: slices.Contains(a.config.Owners, p.UID)}, nil
		}
	case credentials.TLSInfo:
		if chain := p.State.PeerCertificates; len(chain) > 0 && len(p.State.VerifiedChains) > 0 {
			return byCertificate(chain)
		}
	}

	return Identity{}, errs.New(errs.Unauthenticated, "the caller has not shown who it is: it has neither a certificate nor a token")
}

func (a *Authenticator) byToken(ctx context.Context, header string) (Identity, error) {
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	switch {
	case !strings.EqualFold(scheme, "bearer") || secret == "" || len(secret) > maxToken:
		return Identity{}, errs.New(errs.Unauthenticated, "the authorization header holds no bearer token")
	case strings.HasPrefix(secret, tokenPrefix) && a.tokens != nil:
		known, _ := a.tokens.Get()
		return known.identifyHolder(secret, a.config.Now())
	case strings.HasPrefix(secret, tokenPrefix) || a.config.Issued == nil:
		return Identity{}, errs.New(errs.Unauthenticated, "the token is not known")
	}

	subject, expires, err := a.config.Issued.Verify(ctx, secret)
	if err != nil {
		return Identity{}, err
	}
	return Identity{Names: []string{kindOIDC + ":" + subject}, Expires: expires}, nil
}

// byCertificate returns who has a certificate: by its SPIFFE id, else by its DNS names, else
// by its common name.
func byCertificate(chain []*x509.Certificate) (Identity, error) {
	own := chain[0]
	id := Identity{Expires: own.NotAfter, chain: chain}

	for _, u := range own.URIs {
		if u.Scheme == kindSPIFFE {
			id.Names = append(id.Names, u.String())
		}
	}

	switch {
	case len(id.Names) > 1:
		return Identity{}, errs.New(errs.Unauthenticated, "the certificate of the caller has several SPIFFE ids, and may have one")
	case len(id.Names) == 1:
		return id, nil
	}

	for _, name := range own.DNSNames {
		id.Names = append(id.Names, kindDNS+":"+strings.ToLower(name))
	}
	if len(id.Names) == 0 && own.Subject.CommonName != "" {
		id.Names = []string{kindCN + ":" + own.Subject.CommonName}
	}

	if len(id.Names) == 0 {
		return Identity{}, errs.New(errs.Unauthenticated, "the certificate of the caller has no name")
	}

	return id, nil
}

// PrincipalOf returns what the policy says now of who a caller has shown to be.
func (a *Authenticator) PrincipalOf(id Identity) (mapreduce.Principal, error) {
	policy, _ := a.policy.Get()
	by, found, err := policy.find(id.Names)

	switch {
	case found || err != nil:
		return by, err
	case id.local:
		by = mapreduce.Local("")
		if id.Names[0] != "process" {
			by.Name = id.Names[0]
		}
		return by, nil
	}
	return by, errs.New(errs.Denied, "%s is not a principal of this server's policy", strings.Join(id.Names, " or "))
}

// RuleOf returns what the policy says now of a tenant.
func (a *Authenticator) RuleOf(t mapreduce.TenantID) mapreduce.TenantRule {
	policy, _ := a.policy.Get()
	return policy.Rule(t)
}

// Authenticate returns the principal of a call.
func (a *Authenticator) Authenticate(ctx context.Context, peer credentials.AuthInfo, authorization []string) (mapreduce.Principal, Identity, error) {
	id, err := a.Identify(ctx, peer, authorization)
	if err != nil {
		return mapreduce.Principal{}, id, err
	}
	by, err := a.PrincipalOf(id)
	return by, id, err
}

// generation returns a number that changes whenever who a caller is may have changed.
func (a *Authenticator) generation() (n [3]int) {
	_, n[0] = a.policy.Get()
	if a.tokens != nil {
		_, n[1] = a.tokens.Get()
	}
	if a.config.Peers != nil {
		n[2] = a.config.Peers.Generation()
	}
	return n
}

// Look looks at all files now, rather than within a second.
func (a *Authenticator) Look() {
	a.policy.Look()
	if a.tokens != nil {
		a.tokens.Look()
	}
	if a.config.Peers != nil {
		a.config.Peers.Look()
	}
}

// stillHolds refuses an identity whose token or certificate is no longer good. verified
// has what was found of certificates that several calls have shown.
func (a *Authenticator) stillHolds(id Identity, verified map[*x509.Certificate]error) error {
	if id.secret != "" {
		known, _ := a.tokens.Get()
		_, err := known.identifyHolder(id.secret, time.Time{}) // what expires is not revoked
		return err
	}

	if len(id.chain) == 0 || a.config.Peers == nil {
		return nil
	}

	err, seen := verified[id.chain[0]]
	if !seen {
		err = a.config.Peers.VerifyPeer(id.chain)
		verified[id.chain[0]] = err
	}
	return err
}
