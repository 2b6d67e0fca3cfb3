package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/auth/oidc"
	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/api/web"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// securityOptions are the flags of serve that say who may connect. The certificate of the
// server is that of the program.
type securityOptions struct {
	clientCA string
	policy   string
	tokens   string
	issuer   oidc.Config
	client   string // by which the issuer knows the pages
	secret   string // file
	public   string // address of --http for browsers
	open     []string
	insecure times
}

func (o *securityOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.clientCA, "client-ca", "", "PEM `file` of the authorities for certificates of clients and workers, which authenticate callers")
	f.StringVar(&o.policy, "policy", "", "YAML `file` of the principals, with the tenant and the roles of each; it is read again when it changes")
	f.StringVar(&o.tokens, "tokens", "", "`file` with hashes of tokens, as \"coditect certs token\" prints them; it is read again when it changes")

	f.StringVar(&o.issuer.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect issuer whose tokens authenticate callers")
	f.StringVar(&o.issuer.Audience, "oidc-audience", "", "`audience` that tokens of --oidc-issuer must have")
	f.StringVar(&o.issuer.CA, "oidc-ca", "", "PEM `file` of the authorities for the issuer's certificate (default those of the operating system)")
	f.StringVar(&o.client, "oidc-client", "", "`id` by which --oidc-issuer knows the pages of --http, where people then sign in with their account")
	f.StringVar(&o.secret, "oidc-secret", "", "`file` with the secret of --oidc-client, if the issuer gave one")
	f.StringVar(&o.public, "public-url", "", "`URL` under which browsers reach --http; the issuer must know URL"+dashboard.SignInCallback+" as where it sends people back to")

	f.StringSliceVar(&o.open, "open", nil, "`services` that callers may use without authentication: health, reflection")
	f.Var(&o.insecure, "insecure", "given twice: allow an address that other machines can reach without TLS and authentication; anyone who can reach it has full control of all jobs")
	f.Lookup("insecure").NoOptDefVal = "true"
}

// times is how often a flag was given. From the environment or a file it may come as a
// number.
type times int

// Set implements pflag.Value.
func (t *times) Set(text string) error {
	if given, err := strconv.ParseBool(text); err == nil && text != "1" && text != "0" {
		if !given {
			*t = 0
			return nil
		}
		*t++
		return nil
	}

	count, err := strconv.Atoi(text)
	if err != nil || count < 0 {
		return fmt.Errorf("%q is not true, false or a number: how often the flag is given", text)
	}

	*t = times(count)
	return nil
}

// Type implements pflag.Value.
func (t *times) Type() string { return "bool" }

// String implements pflag.Value.
func (t *times) String() string { return strconv.Itoa(int(*t)) }

// IsBoolFlag makes the flag one that needs no value.
func (t *times) IsBoolFlag() bool { return true }

// isPublic reports whether other machines can reach an address, HOST:PORT.
func isPublic(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback()), nil
}

// checkAddresses refuses flags of listeners that do not fit each other, or what others can
// reach.
func (cmds *commands) checkAddresses(o serveOptions) error {
	if err := o.security.check(&cmds.Global.TLS); err != nil {
		return err
	}

	if o.listen != socketAlone {
		public, err := isPublic(o.listen)
		if err != nil {
			return exit.UsageError("--listen: %q is not HOST:PORT, nor unix", o.listen)
		}
		if public {
			err = cmds.checkPublic("--listen", o.listen, o.security)
		}
		if err != nil {
			return err
		}
	}

	// Without --http the address is empty, and the error about it counts for nothing.
	switch public, err := isPublic(o.http); {
	case o.http == "" && len(o.origins) > 0:
		return exit.UsageError("--cors-origin: there is no HTTP without --http")
	case o.http == "" && o.security.client != "":
		return exit.UsageError("--oidc-client: there are no pages to sign in to without --http")
	case o.http == "":
		return nil
	case web.CheckOrigins(o.origins) != nil:
		return exit.UsageError("--%w", web.CheckOrigins(o.origins))
	case err != nil:
		return exit.UsageError("--http: %q is not HOST:PORT", o.http)
	case public:
		return cmds.checkPublic("--http", o.http, o.security)
	}

	return nil
}

// checkPublic refuses an address that other machines can reach, unless callers authenticate
// over TLS, or --insecure is given twice.
func (cmds *commands) checkPublic(flag, address string, o securityOptions) error {
	if o.insecure >= 2 {
		return nil
	}

	var lacking []string
	if cmds.Global.TLS.Cert == "" {
		lacking = append(lacking, "--tls-cert and --tls-key")
	}
	if o.policy == "" {
		lacking = append(lacking, "--policy with --client-ca, --tokens or --oidc-issuer")
	}

	if len(lacking) == 0 {
		return nil
	}

	said := ""
	if o.insecure == 1 {
		said = "; --insecure is for 127.0.0.1, and must be given twice for other addresses"
	}

	return exit.UsageError("%s: other machines can reach %s, and anyone who can reach it would have full control of all jobs; "+
		"give %s, or listen on 127.0.0.1%s", flag, address, strings.Join(lacking, ", and "), said)
}

// check refuses flags that do not fit each other.
func (o *securityOptions) check(own *transport.ClientConfig) error {
	shown := o.clientCA != "" || o.tokens != "" || o.issuer.Issuer != ""
	switch {
	case (own.Cert == "") != (own.Key == ""):
		return exit.UsageError("--tls-cert and --tls-key: a certificate and its private key are given together, or neither")
	case o.clientCA != "" && own.Cert == "":
		return exit.UsageError("--client-ca: certificates of clients are asked for over TLS, which needs --tls-cert and --tls-key")
	case o.issuer.Issuer == "" && (o.issuer.Audience != "" || o.issuer.CA != ""):
		return exit.UsageError("--oidc-issuer is missing")
	case o.issuer.Issuer != "" && o.issuer.Audience == "":
		return exit.UsageError("--oidc-audience is missing: without it, tokens that the issuer made for other services would be accepted")
	case o.client == "" && (o.secret != "" || o.public != ""):
		return exit.UsageError("--oidc-client is missing: --oidc-secret and --public-url are for people who sign in at an issuer")
	case o.client != "" && o.issuer.Issuer == "":
		return exit.UsageError("--oidc-client: there is no issuer without --oidc-issuer")
	case o.client != "" && o.public == "":
		return exit.UsageError("--public-url is missing: the issuer has to send people back to where their browser has come from")
	case o.policy == "" && (o.tokens != "" || o.issuer.Issuer != ""):
		return exit.UsageError("--policy is missing: it says what a caller with a token may do")
	case o.policy == "" && len(o.open) > 0:
		return exit.UsageError("--open: has no effect without --policy, as all services are open then; leave it out")
	case o.policy != "" && !shown && own.Cert != "":
		return exit.UsageError("--policy: callers have no way to authenticate; give --client-ca, --tokens or --oidc-issuer")
	}
	return nil
}

// A security is how connections over TCP are secured, and how their callers are authenticated.
type security struct {
	server *transport.Server // nil without TLS
	guard  *auth.Guard       // nil if calls are not authenticated
	peers  bool              // whether all peers need certificates
	login  *oidc.Login       // nil if people do not sign in at an issuer
}

func (cmds *commands) secure(ctx context.Context, o securityOptions, log *slog.Logger) (*security, error) {
	login, err := o.login(ctx)
	if err != nil {
		return nil, err
	}

	s := &security{login: login}
	if own := cmds.Global.TLS; own.Cert != "" {
		byToken := o.tokens != "" || o.issuer.Issuer != ""
		s.peers = o.clientCA != "" && !byToken
		// Callers with a token, and those of services that are open to all, have no
		// certificate.
		optional := byToken || len(o.open) > 0
		s.server, err = transport.NewServer(transport.ServerConfig{Cert: own.Cert, Key: own.Key, ClientCA: o.clientCA, CertOptional: optional, Logger: log})
		if err != nil {
			return nil, exit.RefusedError("%w", err)
		}
	}

	if o.policy == "" {
		return s, nil
	}

	config := auth.Config{Policy: o.policy, Tokens: o.tokens, Peers: s.server, Owners: []int{os.Geteuid(), 0}, Open: o.open, Logger: log}
	if o.issuer.Issuer != "" {
		if config.Issued, err = oidc.New(o.issuer); err != nil {
			return nil, exit.RefusedError("%w", err)
		}
	}

	known, err := auth.New(config)
	if err != nil {
		return nil, exit.RefusedError("%w", err)
	}
	s.guard = auth.NewGuard(known)
	return s, nil
}

// login returns how people sign in at the issuer, or nil.
func (o *securityOptions) login(ctx context.Context) (*oidc.Login, error) {
	if o.client == "" {
		return nil, nil //nolint:nilnil // nobody signs in at an issuer, which is no error
	}

	c := oidc.LoginConfig{Config: o.issuer, ClientID: o.client, Callback: strings.TrimSuffix(o.public, "/") + dashboard.SignInCallback}
	if o.secret != "" {
		secret, err := console.ReadBounded(ctx, o.secret, console.MaxConfigFile)
		if err != nil {
			return nil, console.UnreadableFlag(ctx, "--oidc-secret", err)
		}
		if c.Secret = strings.TrimSpace(string(secret)); c.Secret == "" {
			return nil, exit.RefusedError("--oidc-secret: %s is empty", o.secret)
		}
	}

	l, err := oidc.NewLogin(c)
	if err != nil {
		return nil, exit.RefusedError("--%w", err)
	}
	return l, nil
}

// tls returns the configuration of TLS, or nil.
func (s *security) tls() *tls.Config {
	if s.server == nil {
		return nil
	}
	return s.server.TLS()
}

// webTLS is tls for a listener of HTTP.
func (s *security) webTLS() *tls.Config {
	if s.server == nil {
		return nil
	}
	return s.server.WebTLS()
}

// asked reports whether callers have to show who they are.
func (s *security) asked() bool { return s.peers || s.guard != nil }

// warn logs a warning about an address whose callers need not authenticate.
func (s *security) warn(log *slog.Logger, address string) {
	if !s.asked() {
		log.Warn("anyone who can reach this address has full control of all jobs, as nobody is asked who they are", "address", address)
	}
}
