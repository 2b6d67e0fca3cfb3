package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// securityOptions are the flags of serve that say who may connect. The certificate of the
// server is that of the program.
type securityOptions struct {
	clientCA string
	insecure times
}

func (o *securityOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.clientCA, "client-ca", "", "PEM `file` of the authorities that sign certificates of clients and workers, which then need one")
	f.Var(&o.insecure, "insecure", "said twice, listen without TLS and authentication on an address that other machines can reach, although anyone who can reach it has full control of all jobs")
	f.Lookup("insecure").NoOptDefVal = "true"
}

// times is how often a flag was given. From the environment or a file it may come as a
// number.
type times int

// Set implements pflag.Value.
func (n *times) Set(text string) error {
	if given, err := strconv.ParseBool(text); err == nil && text != "1" && text != "0" {
		if !given {
			*n = 0
			return nil
		}
		*n++
		return nil
	}
	count, err := strconv.Atoi(text)
	if err != nil || count < 0 {
		return fmt.Errorf("%q is neither true nor false nor how often it is said", text)
	}
	*n = times(count)
	return nil
}

// Type implements pflag.Value.
func (n *times) Type() string { return "bool" }

// String implements pflag.Value.
func (n *times) String() string { return strconv.Itoa(int(*n)) }

// IsBoolFlag makes the flag one that needs no value.
func (n *times) IsBoolFlag() bool { return true }

// isPublic reports whether other machines can reach an address, HOST:PORT.
func isPublic(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, exit.UsageError("--listen: %q is not HOST:PORT, nor unix", address)
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback()), nil
}

// checkListen refuses an address that other machines can reach, unless peers show who they
// are over TLS, or nobody is to be asked, which has to be said twice.
func (a *commands) checkListen(o serveOptions) error {
	own := &a.Global.TLS
	switch {
	case (own.Cert == "") != (own.Key == ""):
		return exit.UsageError("--tls-cert and --tls-key: a certificate and its private key are given together, or neither")
	case o.security.clientCA != "" && own.Cert == "":
		return exit.UsageError("--client-ca: certificates of clients are asked for over TLS, which needs --tls-cert and --tls-key")
	case o.listen == "" || o.listen == socketAlone:
		return nil
	}
	public, err := isPublic(o.listen)
	if err != nil || !public || o.security.insecure >= 2 {
		return err
	}
	if own.Cert != "" && o.security.clientCA != "" {
		return nil
	}
	said := ""
	if o.security.insecure == 1 {
		said = "; --insecure is for 127.0.0.1, and has to be said twice for other addresses"
	}
	return exit.UsageError("--listen: other machines can reach %s, and anyone who can reach it would have full control of all jobs; "+
		"give --tls-cert, --tls-key and --client-ca, or listen on 127.0.0.1%s", o.listen, said)
}

// A security is how connections over TCP are secured, and who is known by them.
type security struct {
	server *transport.Server // nil without TLS
	peers  bool              // whether they need certificates
}

func (a *commands) secure(o securityOptions, log *slog.Logger) (*security, error) {
	own := a.Global.TLS
	if own.Cert == "" {
		return &security{}, nil
	}
	s, err := transport.NewServer(transport.ServerConfig{Cert: own.Cert, Key: own.Key, ClientCA: o.clientCA, Logger: log})
	if err != nil {
		return nil, exit.RefusedError("%w", err)
	}
	return &security{server: s, peers: o.clientCA != ""}, nil
}

// tls returns the configuration of TLS, or nil.
func (s *security) tls() *tls.Config {
	if s.server == nil {
		return nil
	}
	return s.server.TLS()
}

// warn tells the operator of an address whose peers need not say who they are.
func (s *security) warn(log *slog.Logger, address string) {
	if !s.peers {
		log.Warn("anyone who can reach this address has full control of all jobs, as nobody is asked who they are", "address", address)
	}
}
