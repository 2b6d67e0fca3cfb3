package auth

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
)

// tokenPrefix begins every token of a token file. It distinguishes them from other tokens,
// and helps to find those that were left where they should not be.
const tokenPrefix = "coditect_"

// Tokens are those of a token file, which has their hashes alone. A line is
//
//	NAME SHA256 [EXPIRES]
//
// with the SHA-256 of the token in hexadecimal digits and a time by RFC 3339. Tokens are
// random and long, so that a hash needs no salt, and cannot be turned back. A name may have
// several, so that one can be replaced while another is still in use. Empty lines and those
// that begin with # mean nothing.
type Tokens struct {
	byHash map[[sha256.Size]byte]token
}

type token struct {
	name    string
	line    int
	expires time.Time // zero if never
}

// NewToken returns a new token and its line of a token file. expires may be zero.
func NewToken(name string, expires time.Time) (secret, line string, err error) {
	if !isTokenName(name) {
		return "", "", errs.New(errs.Invalid, "%q is no name of a token: it has 1 to 128 letters, digits and .-_@/", name)
	}

	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = tokenPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))

	hash := sha256.Sum256([]byte(secret))
	line = name + " " + hex.EncodeToString(hash[:])
	if !expires.IsZero() {
		line += " " + expires.UTC().Format(time.RFC3339)
	}
	return secret, line, nil
}

// isTokenName reports whether a token may have a name.
func isTokenName(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_@/", r)
	})
}

// ParseTokens reads a token file. name is that of the file, for errors: they have the line
// and what is wrong with it, and nothing of what stands where a hash should.
func ParseTokens(name string, data []byte) (*Tokens, error) {
	t := &Tokens{byHash: make(map[[sha256.Size]byte]token)}
	lines := bufio.NewScanner(bytes.NewReader(data))

	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}

		refused := func(format string, args ...any) error {
			return errs.New(errs.Invalid, "%s:%d: %s", name, n, fmt.Sprintf(format, args...))
		}

		parts := strings.Fields(text)
		switch {
		case strings.Contains(text, tokenPrefix):
			return nil, refused("has a token itself, and must have its hash alone; make another token, as this one may have been seen")
		case len(parts) < 2 || len(parts) > 3:
			return nil, refused("must be a name, a hash, and perhaps the time at which the token expires")
		case !isTokenName(parts[0]):
			return nil, refused("the name may have only letters, digits and .-_@/")
		}

		hash, err := hex.DecodeString(parts[1])
		if err != nil || len(hash) != sha256.Size {
			return nil, refused("the hash of %s is not 64 hexadecimal digits", parts[0])
		}

		of := token{name: parts[0], line: n}
		if len(parts) == 3 {
			if of.expires, err = time.Parse(time.RFC3339, parts[2]); err != nil {
				return nil, refused("the time when %s expires must be written as 2030-01-31T12:00:00Z", parts[0])
			}
		}

		key := [sha256.Size]byte(hash)
		if before, ok := t.byHash[key]; ok {
			return nil, refused("the hash of %s is that of %s in line %d", of.name, before.name, before.line)
		}
		t.byHash[key] = of
	}

	if lines.Err() != nil {
		return nil, errs.New(errs.Invalid, "%s: has a line that is too long", name)
	}
	return t, nil
}

// identifyHolder returns who has a token.
func (t *Tokens) identifyHolder(secret string, now time.Time) (Identity, error) {
	found, ok := t.byHash[sha256.Sum256([]byte(secret))]
	switch {
	case !ok:
		return Identity{}, errs.New(errs.Unauthenticated, "the token is not known")
	case !found.expires.IsZero() && !now.Before(found.expires):
		return Identity{}, errs.New(errs.Unauthenticated, "the token has expired")
	}
	return Identity{Names: []string{kindToken + ":" + found.name}, Expires: found.expires, secret: secret}, nil
}

// Len returns how many tokens there are.
func (t *Tokens) Len() int { return len(t.byHash) }
