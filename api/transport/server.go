package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// A ServerConfig names the files that a server secures its connections by. Cert and Key
// are needed.
type ServerConfig struct {
	Cert, Key string // PEM files of the server's certificate, with those between it and its authority, and of its key

	// ClientCA is a PEM file of the authorities of clients and workers. Without it no
	// peer is asked for a certificate.
	ClientCA string

	// CertOptional lets peers connect that have no certificate, as they show who they
	// are by other means. One that has a certificate needs a valid one.
	CertOptional bool

	// Logger logs when files have changed. Defaults to slog.Default().
	Logger *slog.Logger
}

// A Server has what secures the connections of a server. Its methods may be called at the
// same time.
type Server struct {
	config      ServerConfig
	pair        *Files[*tls.Certificate]
	authorities *Files[*x509.CertPool] // nil without ClientCA
}

// NewServer reads the files, and says what is wrong with them.
func NewServer(c ServerConfig) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}

	s := &Server{config: c}
	var err error
	s.pair, err = NewFiles(func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := readPair(c.Cert, contents[0], c.Key, contents[1], time.Now())
		if err == nil && len(pair.Leaf.DNSNames)+len(pair.Leaf.IPAddresses) == 0 {
			err = refused(c.Cert, "the certificate is for no host: it has neither a DNS name nor an IP address as a subject alternative name")
		}
		return pair, err
	}, c.noteChange("certificate", c.Cert), c.Cert, c.Key)
	if err != nil {
		return nil, err
	}

	if c.ClientCA == "" {
		return s, nil
	}

	s.authorities, err = NewFiles(func(contents [][]byte) (*x509.CertPool, error) {
		return readAuthorities(c.ClientCA, contents[0], time.Now())
	}, c.noteChange("authorities of clients", c.ClientCA), c.ClientCA)
	if err != nil {
		return nil, err
	}

	return s, nil
}

func (c ServerConfig) noteChange(what, file string) func(error) {
	return func(err error) {
		if err != nil {
			c.Logger.Error("a file has changed and cannot be used; what was read before stays in force", "what", what, "file", file, "error", err.Error())
			return
		}
		c.Logger.Info("a file has changed and is in force", "what", what, "file", file)
	}
}

// TLS returns the configuration of TLS for listeners. It has what the files hold at the
// time of each handshake.
func (s *Server) TLS() *tls.Config { return s.following(protocols) }

// WebTLS is TLS for listeners of HTTP.
func (s *Server) WebTLS() *tls.Config { return s.following(webProtocols) }

func (s *Server) following(protocols []string) *tls.Config {
	c := s.current(protocols)
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current(protocols), nil }
	return c
}

// current returns the configuration for a handshake now. Sessions are not resumed, so that
// each connection shows a certificate that holds now.
func (s *Server) current(protocols []string) *tls.Config {
	pair, _ := s.pair.Get()
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, SessionTicketsDisabled: true,
		DynamicRecordSizingDisabled: true, // messages are written in whole buffers
		Certificates:                []tls.Certificate{*pair},
	}

	if s.authorities == nil {
		return c
	}

	c.ClientCAs, _ = s.authorities.Get()
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if s.config.CertOptional {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c
}

// Generation returns a number that grows when other authorities come into force.
func (s *Server) Generation() int {
	if s.authorities == nil {
		return 0
	}
	_, n := s.authorities.Get()
	return n
}

// VerifyPeer refuses the certificates that a peer has shown, its own first, if they do not
// hold now.
func (s *Server) VerifyPeer(shown []*x509.Certificate) error {
	if s.authorities == nil || len(shown) == 0 {
		return errs.New(errs.Unauthenticated, "the peer has shown no certificate")
	}

	roots, _ := s.authorities.Get()
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}

	_, err := shown[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return &errs.Error{Kind: errs.Unauthenticated, Message: fmt.Sprintf("the peer is refused: %s", Describe(err)), Err: err}
	}
	return nil
}

// VerifiesPeers reports whether peers may show certificates.
func (s *Server) VerifiesPeers() bool { return s.authorities != nil }

// Look looks at the files now, rather than within a second.
func (s *Server) Look() {
	s.pair.Look()
	if s.authorities != nil {
		s.authorities.Look()
	}
}
