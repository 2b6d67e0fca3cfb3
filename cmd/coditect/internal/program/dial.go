package program

import (
	"net"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// addConnectionFlags adds the flags that say how a server is dialled. Those of this
// program's own certificate are those of a server, too.
func (g *Globals) addConnectionFlags(f *pflag.FlagSet) {
	f.StringVar(&g.TLS.CA, "tls-ca", "", "connect by TLS, and trust the certificate authorities in this PEM `file`; \"system\" trusts those of the operating system")
	f.StringVar(&g.TLS.Cert, "tls-cert", "", "PEM `file` of this program's certificate")
	f.StringVar(&g.TLS.Key, "tls-key", "", "PEM `file` of the private key of --tls-cert")
	f.StringVar(&g.TokenFile, "token-file", "", "`file` with the token by which servers authenticate the caller; it is read again when it changes")
}

// AddFlags adds the flags of all commands.
func (g *Globals) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&g.Server, "server", "", "address of a server, `HOST:PORT` or unix:PATH; without it the service runs in this process")
	g.addConnectionFlags(f)
	g.StoreFlags.AddFlags(f)
	g.Timing.AddFlags(f)
	f.StringVar(&g.Config, "config", "", "YAML `file` of settings; a setting has the name of its flag, with _ in place of -")
}

// Dial returns a client of a server, with the certificates that the flags name.
func (p *Program) Dial(target string) (*client.Client, error) {
	config := client.Config{Options: p.Telemetry.DialOptions()}
	if p.Global.TLS.Enabled() && !strings.HasPrefix(target, "unix:") {
		secured, err := transport.NewClient(p.Global.TLS)
		if err != nil {
			return nil, exit.RefusedError("%w", err)
		}
		config.Credentials = secured
	}

	if p.Global.TokenFile != "" {
		token, err := p.token(target)
		if err != nil {
			return nil, err
		}
		config.Options = append(config.Options, grpc.WithPerRPCCredentials(token))
	}

	return client.Dial(target, config)
}

// token returns the credentials of calls with the token of --token-file. A token goes over
// the network only under TLS, as anyone who sees it can use it.
func (p *Program) token(target string) (credentials.PerRPCCredentials, error) {
	host, _, _ := net.SplitHostPort(target)
	ip := net.ParseIP(host)
	near := strings.HasPrefix(target, "unix:") || host == "localhost" || ip != nil && ip.IsLoopback()
	if !near && !p.Global.TLS.Enabled() {
		return nil, exit.UsageError("--token-file: the token would go to %s for all to read; connect with TLS: --tls-ca", target)
	}

	token, err := transport.NewToken(p.Global.TokenFile)
	if err != nil {
		return nil, exit.RefusedError("--token-file: %w", err)
	}
	return token, nil
}

// connectionWords returns the flags that connect another command line in the same way.
func (p *Program) connectionWords() (words []string) {
	for _, f := range []struct{ flag, value string }{
		{"--tls-ca", p.Global.TLS.CA},
		{"--tls-cert", p.Global.TLS.Cert},
		{"--tls-key", p.Global.TLS.Key},
		{"--token-file", p.Global.TokenFile},
	} {
		if f.value != "" {
			words = append(words, f.flag, console.ShellQuote(f.value))
		}
	}
	return words
}
