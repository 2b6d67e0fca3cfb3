package transport

import (
	"context"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/errs"
)

// A bearer sends the token that a file holds with each call.
type bearer struct{ file *Files[string] }

// NewToken returns the credentials of calls with the token that a file holds, which is read
// again when it changes. The connection has to be one over which a token may go: who calls
// NewToken has seen to that.
func NewToken(file string) (credentials.PerRPCCredentials, error) {
	f, err := NewFiles(func(contents [][]byte) (string, error) {
		token := strings.TrimSpace(string(contents[0]))
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return "", errs.New(errs.Invalid, "%s: must hold one token, and nothing else", file)
		}
		return token, nil
	}, nil, file)
	if err != nil {
		return nil, err
	}

	return bearer{f}, nil
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, _ := b.file.Get()
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return false }
