package transport_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/transport"
)

// Files of certificates, of keys and of authorities hold anything: they are refused with the
// name of the file and with nothing of the key, or give what TLS can use.
func FuzzCertificates(f *testing.F) {
	ca, err := transport.NewAuthority("fuzz", time.Hour, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	cert, key, err := ca.Issue(transport.CertificateRequest{Names: []string{"a.example.org", "127.0.0.1"}, Server: true, Valid: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	_, other, err := ca.Issue(transport.CertificateRequest{Names: []string{"b"}, Valid: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cert, key)
	f.Add(cert, other)
	f.Add(append(bytes.Clone(cert), ca.CertPEM()...), key)
	f.Add(ca.CertPEM(), cert)
	f.Add(key, cert)
	f.Add(bytes.ReplaceAll(cert, []byte("CERTIFICATE"), []byte("CERTIFICATE REQUEST")), bytes.ReplaceAll(key, []byte("PRIVATE"), []byte("ENCRYPTED PRIVATE")))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		pair, err := transport.ReadPair("cert.pem", cert, "key.pem", key, time.Now())
		checkRefused(t, err, key)
		if err == nil && (pair.Leaf == nil || pair.PrivateKey == nil || len(pair.Certificate) == 0) {
			t.Fatalf("a pair without its parts: %+v", pair)
		}
		for _, data := range [][]byte{cert, key} {
			pool, err := transport.ReadAuthorities("ca.pem", data, time.Now())
			checkRefused(t, err, key)
			if err == nil && pool == nil {
				t.Fatal("neither authorities nor an error")
			}
		}
	})
}

// checkRefused checks that an error names a file, and has nothing of a key.
func checkRefused(t *testing.T, err error, key []byte) {
	t.Helper()
	if err == nil {
		return
	}
	if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), ".pem: ") {
		t.Fatalf("the error names no file: %v", err)
	}
	if block, _ := pem.Decode(key); block != nil && strings.Contains(block.Type, "PRIVATE KEY") && len(block.Bytes) > 16 {
		for _, secret := range []string{string(block.Bytes[8:16]), base64.StdEncoding.EncodeToString(block.Bytes[6:15])} {
			if strings.Contains(err.Error(), secret) {
				t.Fatalf("the error has a part of the key: %v", err)
			}
		}
	}
}
