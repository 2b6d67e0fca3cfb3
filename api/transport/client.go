package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/errs"
)

// SystemCA is the value of ClientConfig.CA that stands for the authorities which the
// machine trusts.
const SystemCA = "system"

// A ClientConfig names the files that a client secures its connections by.
type ClientConfig struct {
	// CA is a PEM file of the authorities of servers, or SystemCA. Defaults to SystemCA.
	CA string
	// Cert and Key are PEM files of the client's certificate and of its key. Without
	// them the client shows none.
	Cert, Key string
}

// Enabled reports whether the configuration asks for TLS at all.
func (c ClientConfig) Enabled() bool { return c != ClientConfig{} }

// A clientCredentials has what the files hold at the time of each handshake.
type clientCredentials struct {
	pair        *Files[*tls.Certificate] // nil without one
	authorities *Files[*x509.CertPool]   // nil if it is those of the system
	server      string                   // that certificates must be for; "" is the host that is dialled
}

// NewClient reads the files, says what is wrong with them, and returns the credentials of
// connections. A change that cannot be read leaves in force what was read before.
func NewClient(c ClientConfig) (credentials.TransportCredentials, error) {
	if (c.Cert == "") != (c.Key == "") {
		return nil, errs.Field("tls_key", "a certificate and its private key are given together, or neither")
	}

	var made clientCredentials
	var err error
	if c.Cert != "" {
		made.pair, err = NewFiles(func(contents [][]byte) (*tls.Certificate, error) {
			return readPair(c.Cert, contents[0], c.Key, contents[1], time.Now())
		}, nil, c.Cert, c.Key)
		if err != nil {
			return nil, err
		}
	}

	if c.CA != "" && c.CA != SystemCA {
		made.authorities, err = NewFiles(func(contents [][]byte) (*x509.CertPool, error) {
			return readAuthorities(c.CA, contents[0], time.Now())
		}, nil, c.CA)
		if err != nil {
			return nil, err
		}
	}

	return &made, nil
}

// current returns the credentials for a handshake now.
func (c *clientCredentials) current() credentials.TransportCredentials {
	// Messages are written in whole buffers, for which small records at the beginning would be
	// work without a use: nothing is shown to anyone before all of a message has come.
	config := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protocols, ServerName: c.server, DynamicRecordSizingDisabled: true}

	if c.authorities != nil {
		config.RootCAs, _ = c.authorities.Get()
	}
	if c.pair != nil {
		pair, _ := c.pair.Get()
		// The server's list of authorities does not decide: it says what is wrong with
		// the certificate, which is more than that there is none.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return credentials.NewTLS(config)
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *clientCredentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.current().ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s%w", handshakePrefix, explained{err})
	}
	return explainingConn{conn}, info, nil
}

// An explainingConn says what the server means that ends the connection: in TLS 1.3 it
// looks at the client's certificate after the client has done its part.
type explainingConn struct{ net.Conn }

// Read implements net.Conn.
func (c explainingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if network := (*net.OpError)(nil); errors.As(err, &network) && network.Op == "remote error" {
		err = fmt.Errorf("%s%w", handshakePrefix, explained{err})
	}
	return n, err
}

// handshakePrefix begins the errors of handshakes.
const handshakePrefix = "TLS: "

// explained is the error of a handshake, as Describe says it.
type explained struct{ err error }

func (e explained) Error() string { return Describe(e.err) }
func (e explained) Unwrap() error { return e.err }

// ServerHandshake implements credentials.TransportCredentials. These credentials are of
// clients.
func (c *clientCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errs.New(errs.Internal, "credentials of a client in a server")
}

// Info implements credentials.TransportCredentials.
func (c *clientCredentials) Info() credentials.ProtocolInfo { return c.current().Info() }

// Clone implements credentials.TransportCredentials.
func (c *clientCredentials) Clone() credentials.TransportCredentials {
	clone := *c
	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (c *clientCredentials) OverrideServerName(name string) error {
	c.server = name
	return nil
}
