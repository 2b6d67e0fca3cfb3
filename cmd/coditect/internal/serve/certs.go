package serve

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// certOptions are the flags of the command.
type certOptions struct {
	dir     string
	hosts   []string
	clients []string
	days    int
}

// certsCommand returns the command that makes certificates.
func certsCommand(p *program.Program) *cobra.Command {
	var o certOptions
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make certificates for tests: an authority, servers, clients and workers",
		Long: `Certs makes a certificate authority in a folder, unless the folder has one, and issues
certificates with it. The key of the authority is in that folder: anyone who can read it can
act as any client. For real use, take the certificate authority of your organisation.

A certificate of a client or a worker has one name, by which a policy names it: a URI such
as spiffe://example.org/worker, or a DNS name.`,
		Example: `  coditect certs --output certs --host localhost,127.0.0.1
  coditect certs --output certs --client alice --client spiffe://example.org/worker
  coditect certs token ci --output ci.token >> tokens.txt
  coditect serve --tls-cert certs/server.pem --tls-key certs/server.key --client-ca certs/ca.pem --policy policy.yaml
  coditect mapreduce list --server localhost:7600 --tls-ca certs/ca.pem --tls-cert certs/alice.pem --tls-key certs/alice.key`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return makeCertificates(p, o) },
	}

	cmd.AddCommand(tokenCommand(p))
	f := cmd.Flags()
	f.StringVar(&o.dir, "output", "certs", "`folder` of the authority and of the certificates")
	f.StringSliceVar(&o.hosts, "host", nil, "DNS `names` and IP addresses of the server, for its certificate server.pem")
	f.StringSliceVar(&o.clients, "client", nil, "`name` of a client or worker that gets a certificate; may be repeated")
	f.IntVar(&o.days, "days", 30, "number of `days` for which certificates are valid")
	return cmd
}

func makeCertificates(p *program.Program, o certOptions) error {
	if o.days < 1 {
		return exit.UsageError("--days: must be at least 1")
	}

	valid := time.Duration(o.days) * 24 * time.Hour
	// All names are checked before anything is written.
	files, err := fileNames(o)
	if err != nil {
		return err
	}

	ca, made, err := transport.OpenAuthority(o.dir, "Coditect test authority", max(valid, authorityDays*24*time.Hour), time.Now)
	if err != nil {
		return exit.RefusedError("--output: %w", err)
	}
	if made {
		fmt.Fprintf(p.Stdout, "%s\n", filepath.Join(o.dir, transport.CertFile))
	}

	if len(o.hosts) > 0 {
		if err := issue(p, o.dir, ca, "server", transport.CertificateRequest{Names: o.hosts, CommonName: o.hosts[0], Server: true, Valid: valid}); err != nil {
			return exit.UsageError("--host: %w", err)
		}
	}
	for i, name := range o.clients {
		if err := issue(p, o.dir, ca, files[i], transport.CertificateRequest{Names: []string{name}, Valid: valid}); err != nil {
			return exit.UsageError("--client: %w", err)
		}
	}

	return nil
}

// authorityDays is how long a new authority is valid at least.
const authorityDays = 365

// fileNames returns the names of the files of clients' certificates, without their ends. No
// two are the same, and none is that of something else.
func fileNames(o certOptions) ([]string, error) {
	names, taken := make([]string, len(o.clients)), map[string]string{"server": "the server", "ca": "the authority"}
	for i, client := range o.clients {
		_, short, found := strings.Cut(client, "://")
		if !found {
			short = client
		}
		short = strings.Trim(strings.NewReplacer("/", "-", ":", "-", "*", "_").Replace(short), "-.")

		if other, ok := taken[short]; ok || short == "" {
			return nil, exit.UsageError("--client: the files of %q would be those of %s, %s.pem; use another --output for it", client, other, short)
		}
		names[i], taken[short] = short, client
	}

	return names, nil
}

func issue(p *program.Program, dir string, ca *transport.Authority, name string, r transport.CertificateRequest) error {
	cert, key, err := ca.Issue(r)
	if err != nil {
		return err
	}
	certFile, keyFile := filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	if err := transport.WritePair(certFile, keyFile, cert, key); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s %s\n", certFile, keyFile)
	return nil
}
