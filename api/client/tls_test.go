package client_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/transport"
)

const day = 24 * time.Hour

// laboratory is a folder of certificates.
type laboratory struct {
	t   *testing.T
	dir string
	ca  *transport.Authority
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	l := &laboratory{t: t, dir: t.TempDir()}
	l.ca = l.authority("ca")
	return l
}

func (l *laboratory) path(name string) string { return filepath.Join(l.dir, name) }

// authority makes another one, and writes its certificate to a file of the name.
func (l *laboratory) authority(name string) *transport.Authority {
	l.t.Helper()
	a, err := transport.NewAuthority(name, day, time.Now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write(name+".pem", a.CertPEM())
	return a
}

func (l *laboratory) write(name string, data []byte) {
	l.t.Helper()
	if err := transport.ReplaceFile(l.path(name), data, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// issue writes a certificate and its key to files of the name.
func (l *laboratory) issue(ca *transport.Authority, name string, r transport.CertificateRequest) {
	l.t.Helper()
	if r.Valid == 0 {
		r.Valid = day
	}
	cert, key, err := ca.Issue(r)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := transport.WritePair(l.path(name+".pem"), l.path(name+".key"), cert, key); err != nil {
		l.t.Fatal(err)
	}
}

// selfSign makes a certificate for a client that its own key has signed, and which says that
// an issuer has.
func (l *laboratory) selfSign(file, name, issuer string) {
	l.t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: issuer}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, public, key)
	if err != nil {
		l.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		l.t.Fatal(err)
	}
	l.write(file+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	l.write(file+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// authorityName returns what an authority calls itself.
func authorityName(t *testing.T, ca *transport.Authority) string {
	t.Helper()
	block, _ := pem.Decode(ca.CertPEM())
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Subject.CommonName
}

func (l *laboratory) serverFiles(name string) transport.ServerConfig {
	return transport.ServerConfig{Cert: l.path(name + ".pem"), Key: l.path(name + ".key"), ClientCA: l.path("ca.pem"), Logger: slog.New(slog.DiscardHandler)}
}

func (l *laboratory) clientFiles(name string) transport.ClientConfig {
	c := transport.ClientConfig{CA: l.path("ca.pem")}
	if name != "" {
		c.Cert, c.Key = l.path(name+".pem"), l.path(name+".key")
	}
	return c
}

// serveTLS serves over TCP until the test ends, and returns the address.
func serveTLS(t *testing.T, config *tls.Config) string {
	t.Helper()
	s, err := server.New(&servertest.Service{}, nil, server.Config{TLS: config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		s.Shutdown(t.Context())
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// call makes a call with the files of a client, over a connection of its own.
func call(t *testing.T, address string, files transport.ClientConfig) error {
	t.Helper()
	var config client.Config
	if files.Enabled() {
		secured, err := transport.NewClient(files)
		if err != nil {
			return err
		}
		config.Credentials = secured
	}
	c, err := client.Dial(address, config)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.ListJobs(t.Context(), mapreduce.ListJobsQuery{})
	return err
}

// Each wrong certificate is refused with what is wrong, on either side.
func TestMutualTLS(t *testing.T) {
	l := newLaboratory(t)
	other := l.authority("other")
	here := transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true}
	l.issue(l.ca, "server", here)
	l.issue(other, "foreign-server", here)
	l.issue(l.ca, "elsewhere", transport.CertificateRequest{Names: []string{"jobs.example.org"}, Server: true})
	l.issue(l.ca, "client-as-server", transport.CertificateRequest{Names: []string{"127.0.0.1"}})
	l.issue(l.ca, "alice", transport.CertificateRequest{Names: []string{"alice"}})
	l.issue(other, "foreign", transport.CertificateRequest{Names: []string{"alice"}})
	l.issue(l.ca, "server-as-client", here)
	l.selfSign("self-signed", "alice", "alice")
	l.selfSign("self-signed-as-authority", "alice", authorityName(t, l.ca))
	good := serveTLS(t, tlsOf(t, l.serverFiles("server")))

	for _, tt := range []struct {
		name    string
		address string
		files   transport.ClientConfig
		want    string // in the error; "" for none
	}{
		{"all is well", good, l.clientFiles("alice"), ""},
		{"no certificate", good, l.clientFiles(""), "asks for a certificate, and this program has none; give --tls-cert and --tls-key"},
		{"no TLS", good, transport.ClientConfig{}, "if it needs TLS, give --tls-ca"},
		{"a client of another authority", good, l.clientFiles("foreign"), "refuses this program's certificate: it is of no authority that is trusted there"},
		{"a client that has signed its own certificate", good, l.clientFiles("self-signed"), "refuses this program's certificate: it is of no authority that is trusted there"},
		{"a client that has signed its own certificate in the name of the authority", good, l.clientFiles("self-signed-as-authority"), "refuses this program's certificate"},
		{"a server's certificate for a client", good, l.clientFiles("server-as-client"), "refuses this program's certificate"},
		{"a server of another authority", serveTLS(t, tlsOf(t, l.serverFiles("foreign-server"))), l.clientFiles("alice"), "TLS: its certificate is of no authority that is trusted"},
		{"a server for another host", serveTLS(t, tlsOf(t, l.serverFiles("elsewhere"))), l.clientFiles("alice"), "TLS: its certificate is not for the host 127.0.0.1"},
		{"a client's certificate for a server", serveTLS(t, tlsOf(t, l.serverFiles("client-as-server"))), l.clientFiles("alice"), "TLS: its certificate is for another use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := call(t, tt.address, tt.files)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "jobs.example.org") {
				t.Errorf("the error says what would have been right: %v", err)
			}
		})
	}
}

func tlsOf(t *testing.T, files transport.ServerConfig) *tls.Config {
	t.Helper()
	s, err := transport.NewServer(files)
	if err != nil {
		t.Fatal(err)
	}
	return s.TLS()
}

// An expired certificate of a client is refused, although the client would not load it: it
// expires while it is in use.
func TestExpiredInUse(t *testing.T) {
	l := newLaboratory(t)
	l.issue(l.ca, "server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	l.issue(l.ca, "alice", transport.CertificateRequest{Names: []string{"alice"}, From: time.Now().Add(-2 * day), Valid: -day})
	pair, err := tls.LoadX509KeyPair(l.path("alice.pem"), l.path("alice.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := transport.NewServer(l.serverFiles("server"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", serveTLS(t, s.TLS()), &tls.Config{
		Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true, NextProtos: []string{"h2"},
	})
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil || !strings.Contains(transport.Describe(err), "it is not valid now") {
		t.Errorf("error %v, want that the certificate has expired", err)
	}
	if err := s.VerifyPeer(nil); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("no certificate is verified: %v", err)
	}
}

// Files that cannot be used are refused when they are read, with what is wrong and without
// anything of a key.
func TestFilesThatCannotBeUsed(t *testing.T) {
	l := newLaboratory(t)
	l.issue(l.ca, "server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	l.issue(l.ca, "second", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	l.issue(l.ca, "nameless", transport.CertificateRequest{CommonName: "localhost", Server: true})
	l.issue(l.ca, "expired", transport.CertificateRequest{Names: []string{"a"}, Server: true, From: time.Now().Add(-2 * day), Valid: -day})
	l.issue(l.ca, "early", transport.CertificateRequest{Names: []string{"a"}, Server: true, From: time.Now().Add(day), Valid: 2 * day})
	key, err := os.ReadFile(l.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	l.write("broken.key", append(key[:60:60], []byte("\n-----END PRIVATE KEY-----\n")...))
	l.write("empty.pem", nil)
	for _, tt := range []struct {
		name          string
		cert, key, ca string
		want          string
	}{
		{"swapped key", "server.pem", "second.key", "ca.pem", "the private key is not that of the certificate in"},
		{"key for certificate", "server.key", "server.key", "ca.pem", `holds a "PRIVATE KEY" where a certificate should be`},
		{"certificate for key", "server.pem", "server.pem", "ca.pem", "the private key cannot be read"},
		{"broken key", "server.pem", "broken.key", "ca.pem", "broken.key: the private key cannot be read"},
		{"no name", "nameless.pem", "nameless.key", "ca.pem", "is for no host"},
		{"expired", "expired.pem", "expired.key", "ca.pem", "has expired at"},
		{"too early", "early.pem", "early.key", "ca.pem", "is not valid before"},
		{"empty authorities", "server.pem", "server.key", "empty.pem", "holds no certificate"},
		{"a server as authority", "server.pem", "server.key", "second.pem", "is not that of an authority"},
		{"a key as authority", "server.pem", "server.key", "second.key", "where the certificate of an authority should be"},
		{"no file", "none.pem", "server.key", "ca.pem", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := transport.NewServer(transport.ServerConfig{Cert: l.path(tt.cert), Key: l.path(tt.key), ClientCA: l.path(tt.ca)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			for line := range strings.SplitSeq(string(key), "\n") {
				if len(line) > 8 && !strings.HasPrefix(line, "-----") && strings.Contains(err.Error(), line[:8]) {
					t.Errorf("the error has a part of the key: %v", err)
				}
			}
		})
	}
}

// Certificates and authorities that change are in force at the next handshake, on both
// sides, and a stream that began before goes on.
func TestReplacedCertificates(t *testing.T) {
	l := newLaboratory(t)
	l.issue(l.ca, "server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	l.issue(l.ca, "alice", transport.CertificateRequest{Names: []string{"alice"}})
	secured, err := transport.NewServer(l.serverFiles("server"))
	if err != nil {
		t.Fatal(err)
	}
	address := serveTLS(t, secured.TLS())
	before, err := transport.NewClient(l.clientFiles("alice"))
	if err != nil {
		t.Fatal(err)
	}
	lasting, err := client.Dial(address, client.Config{Credentials: before})
	if err != nil {
		t.Fatal(err)
	}
	defer lasting.Close()
	if _, err := lasting.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
		t.Fatal(err)
	}

	next := l.authority("next")
	old := l.clientFiles("alice")
	l.issue(l.ca, "alice-before", transport.CertificateRequest{Names: []string{"alice"}})
	l.issue(next, "alice", transport.CertificateRequest{Names: []string{"alice"}})
	if err := call(t, address, old); err == nil || !strings.Contains(err.Error(), "no authority that is trusted there") {
		t.Errorf("a client of an authority that is yet to come: %v", err)
	}
	l.write("ca.pem", append(l.ca.CertPEM(), next.CertPEM()...)) // both, for a while
	secured.Look()
	for _, name := range []string{"alice", "alice-before"} {
		if err := call(t, address, l.clientFiles(name)); err != nil {
			t.Errorf("%s, while both authorities hold: %v", name, err)
		}
	}
	l.issue(next, "server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
	l.write("ca.pem", next.CertPEM())
	secured.Look()
	if err := call(t, address, l.clientFiles("alice")); err != nil {
		t.Errorf("after the change: %v", err)
	}
	if err := call(t, address, l.clientFiles("alice-before")); err == nil {
		t.Error("a certificate of the authority before is taken")
	}
	if _, err := lasting.ListJobs(t.Context(), mapreduce.ListJobsQuery{}); err != nil {
		t.Errorf("a connection from before the change: %v", err)
	}

	generation := secured.Generation()
	l.write("ca.pem", []byte("half a file"))
	secured.Look()
	if err := call(t, address, transport.ClientConfig{CA: l.path("next.pem"), Cert: l.path("alice.pem"), Key: l.path("alice.key")}); err != nil || secured.Generation() != generation {
		t.Errorf("a file that cannot be read has an effect: %v", err)
	}
}
