// Package transport secures connections: TLS 1.3, with certificates on one side or on
// both, by files that are read again when they change. Connections that exist go on with
// what they have agreed on. It decides who may connect and not who may do what: package
// auth does. It must not import anything of the project but the error kinds.
//
// Files keep values that are made of files, such as certificates and policies, and make them again
// when the files change. An Authority makes certificates for trying out and for tests: its key lies
// in a file, which is good for a laboratory and bad for a company, which has an authority of its own.
//
// No error and no log line has anything of a key in it.
package transport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// The protocols that TLS may agree on: gRPC needs HTTP/2, and not each client of HTTP knows
// it.
var (
	protocols    = []string{"h2"}
	webProtocols = []string{"h2", "http/1.1"}
)

// refused returns an error about a file.
func refused(file, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s: %w", file, fmt.Errorf(format, args...))
}

// readPair returns the certificate of this process with its key, or says what is wrong
// with them.
func readPair(certFile string, certPEM []byte, keyFile string, keyPEM []byte, now time.Time) (*tls.Certificate, error) {
	if block, _ := pem.Decode(certPEM); block == nil {
		return nil, refused(certFile, "holds no certificate in PEM")
	} else if block.Type != "CERTIFICATE" {
		return nil, refused(certFile, "holds a %q where a certificate should be", block.Type)
	}

	if block, _ := pem.Decode(keyPEM); block == nil {
		return nil, refused(keyFile, "holds no private key in PEM")
	} else if x509.IsEncryptedPEMBlock(block) || block.Type == "ENCRYPTED PRIVATE KEY" { //nolint:staticcheck // what is deprecated must still be told from a damaged key
		return nil, refused(keyFile, "the private key is encrypted, and this program cannot ask for its password; give a key without one")
	}

	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		// The error of the library does not say which file to mend.
		switch {
		case firstCertificate(certPEM) == nil:
			return nil, refused(certFile, "the certificate cannot be read")
		case !hasKey(keyPEM):
			return nil, refused(keyFile, "the private key cannot be read")
		}
		return nil, refused(keyFile, "the private key is not that of the certificate in %s", certFile)
	}

	if err := checkTime(pair.Leaf, now); err != nil {
		return nil, refused(certFile, "%w", err)
	}

	return &pair, nil
}

// firstCertificate returns the first certificate of a PEM file, or nil.
func firstCertificate(data []byte) *x509.Certificate {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// hasKey reports whether a PEM file holds a private key of a kind that TLS 1.3 knows.
func hasKey(data []byte) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			switch key.(type) {
			case *rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey:
				return true
			}
		}

		if _, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			return true
		}
		if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return true
		}
	}

	return false
}

// checkTime refuses a certificate that is not valid at a time.
func checkTime(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(c.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// readAuthorities returns the certificate authorities of a PEM file.
func readAuthorities(file string, data []byte, now time.Time) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	valid := false
	var last error

	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		n++
		if block.Type != "CERTIFICATE" {
			return nil, refused(file, "block %d is a %q where the certificate of an authority should be", n, block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, refused(file, "certificate %d cannot be read: %s", n, withoutPrefix(err))
		}

		if !c.IsCA {
			return nil, refused(file, "certificate %d is not that of an authority", n)
		}

		// An authority that has expired may stand beside one that is valid.
		if err := checkTime(c, now); err != nil {
			last = err
		} else {
			valid = true
		}

		pool.AddCert(c)
	}

	switch {
	case n == 0:
		return nil, refused(file, "holds no certificate in PEM")
	case !valid:
		return nil, refused(file, "no authority in it is valid: %w", last)
	}
	return pool, nil
}

// withoutPrefix returns the text of an error without the name of the package that made it.
func withoutPrefix(err error) string {
	text := []byte(err.Error())
	for _, p := range []string{"tls: ", "x509: ", "asn1: "} {
		text = bytes.TrimPrefix(text, []byte(p))
	}
	return string(text)
}

// Describe says what is wrong with the certificate of a peer, by the error that checking
// it gave: never what would have been right.
func Describe(err error) string {
	var (
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		network   *net.OpError
		record    tls.RecordHeaderError
	)

	switch {
	case errors.As(err, &record):
		return "the other side does not speak TLS; leave out --tls-ca, if this is the right address"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore):
		return "its certificate is not valid yet"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired"
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "its certificate is for another use"
	case errors.As(err, &authority) && authority.Cert != nil && isSelfSigned(authority.Cert):
		return "its certificate is signed by itself and by no authority that is trusted"
	case errors.As(err, &authority):
		return "its certificate is of no authority that is trusted"
	case errors.As(err, &host):
		return fmt.Sprintf("its certificate is not for the host %s", host.Host)
	case errors.As(err, &network) && network.Op == "remote error":
		return describeAlert(withoutPrefix(network.Err))
	}

	return withoutPrefix(err)
}

func isSelfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject)
}

// describeAlert says what an alert of TLS means, which package tls has only as a text.
func describeAlert(text string) string {
	const refuses = "the other side refuses this program's certificate"
	switch text {
	case "bad certificate", "unknown certificate":
		return refuses
	case "unsupported certificate":
		return refuses + ": it is for another use"
	case "expired certificate":
		return refuses + ": it is not valid now"
	case "unknown certificate authority":
		return refuses + ": it is of no authority that is trusted there"
	case "certificate required":
		return "the other side asks for a certificate, and this program has none; give --tls-cert and --tls-key"
	case "protocol version not supported":
		return "the other side does not speak TLS 1.3"
	}
	return text
}
