package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// The files of an authority in its folder.
const (
	CertFile = "ca.pem"
	KeyFile  = "ca.key"
)

// An Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
}

// NewAuthority makes an authority with a key of its own. Certificates are valid by now.
func NewAuthority(name string, valid time.Duration, now func() time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errs.New(errs.Internal, "key: %w", err)
	}

	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: now().Add(-clockSkew), NotAfter: now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, errs.New(errs.Internal, "certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errs.New(errs.Internal, "certificate: %w", err)
	}

	return &Authority{cert: cert, key: key, now: now}, nil
}

// clockSkew is how long a certificate has been valid when it is made: the clocks of other
// machines may be behind.
const clockSkew = 5 * time.Minute

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // cannot fail
	return n
}

// OpenAuthority returns the authority in a folder, and makes it, with the folder, if there is none.
func OpenAuthority(dir, name string, valid time.Duration, now func() time.Time) (a *Authority, made bool, err error) {
	a, err = read(dir, now)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return a, false, err
	}

	if a, err = NewAuthority(name, valid, now); err != nil {
		return nil, false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}

	return a, true, a.writePair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile), a.cert, a.key)
}

func read(dir string, now func() time.Time) (*Authority, error) {
	certFile, keyFile := filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile)
	certPEM, certErr := os.ReadFile(certFile)
	keyPEM, keyErr := os.ReadFile(keyFile)

	switch {
	case errors.Is(certErr, fs.ErrNotExist) != errors.Is(keyErr, fs.ErrNotExist):
		return nil, errs.New(errs.Invalid, "%s: of the authority's files %s and %s there is only one", dir, CertFile, KeyFile)
	case certErr != nil || keyErr != nil:
		return nil, errors.Join(certErr, keyErr)
	}

	block, _ := pem.Decode(certPEM)
	if block == nil {
		return nil, errs.New(errs.Invalid, "%s: holds no certificate in PEM", certFile)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s: the certificate cannot be read", certFile)
	}

	if block, _ = pem.Decode(keyPEM); block == nil {
		return nil, errs.New(errs.Invalid, "%s: holds no private key in PEM", keyFile)
	}

	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errs.New(errs.Invalid, "%s: the private key is not that of the certificate in %s", keyFile, certFile)
	}

	if now().After(cert.NotAfter) {
		return nil, errs.New(errs.Invalid, "%s: the authority has expired at %s; use another folder", certFile, cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return &Authority{cert: cert, key: key, now: now}, nil
}

// A CertificateRequest says what a certificate is for.
type CertificateRequest struct {
	// Names are whom or what the certificate is for: the hosts of a server, or the name
	// of a client. An IP address, a URI such as spiffe://example.org/worker, and else a
	// DNS name.
	Names []string
	// CommonName is the name in the subject. It may be the only one of a client.
	CommonName string
	Server     bool // for a server; else for a client or a worker
	Valid      time.Duration
	From       time.Time // when it begins to be valid. Defaults to a moment ago
}

// Issue makes a certificate and its key. cert and key are PEM.
func (a *Authority) Issue(r CertificateRequest) (cert, key []byte, err error) {
	template, err := a.template(r)
	if err != nil {
		return nil, nil, err
	}

	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, errs.New(errs.Internal, "key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		return nil, nil, errs.New(errs.Internal, "certificate: %w", err)
	}

	return encode(der, own)
}

func (a *Authority) template(r CertificateRequest) (*x509.Certificate, error) {
	from := r.From
	if from.IsZero() {
		from = a.now().Add(-clockSkew)
	}

	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: r.CommonName}, NotBefore: from, NotAfter: a.now().Add(r.Valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}

	if r.Server {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}

	for _, name := range r.Names {
		switch ip := net.ParseIP(name); {
		case ip != nil:
			t.IPAddresses = append(t.IPAddresses, ip)
		case strings.Contains(name, "://"):
			u, err := url.Parse(name)
			if err != nil || u.Host == "" {
				return nil, errs.New(errs.Invalid, "%q is no URI", name)
			}
			t.URIs = append(t.URIs, u)
		case name == "" || strings.ContainsAny(name, " \t\n/:"):
			return nil, errs.New(errs.Invalid, "%q is neither a DNS name nor an IP address nor a URI", name)
		default:
			t.DNSNames = append(t.DNSNames, name)
		}
	}

	return t, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (certPEM, keyPEM []byte, err error) {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, errs.New(errs.Internal, "key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}

// CertPEM returns the certificate of the authority.
func (a *Authority) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *Authority) writePair(certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	certPEM, keyPEM, err := encode(cert.Raw, key)
	if err != nil {
		return err
	}
	return WritePair(certFile, keyFile, certPEM, keyPEM)
}

// WritePair writes a certificate and its key, each whole: first the key, which only its
// owner can read. Between the two writes the pair does not fit, and programs that read the
// files again do not take it.
func WritePair(certFile, keyFile string, cert, key []byte) error {
	return errors.Join(ReplaceFile(keyFile, key, 0o600), ReplaceFile(certFile, cert, 0o644))
}

// ReplaceFile writes a file whole, in place of one that may be there.
func ReplaceFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}

	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}

	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
