package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// oauthTime bounds the requests for one token.
const oauthTime = 30 * time.Second

// newOAuth returns what asks the issuer for tokens.
func newOAuth(o *OAuth, client *http.Client) (auth.OAuthHandler, error) {
	if o.RefreshToken != "" || o.RefreshTokenFile != "" {
		return &refresher{config: o, client: client}, nil
	}

	inner, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{
			ClientID: o.ClientID, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}, Issuer: o.Issuer,
		},
		HTTPClient: client,
	})
	if err != nil {
		return nil, err
	}
	return &lockedOAuth{inner: inner}, nil
}

// A lockedOAuth lets one call at a time have tokens. Its tokens outlive the call that
// asked for them first: the inner handler would renew them in the context of that call.
type lockedOAuth struct {
	mu    sync.Mutex // guards inner, which is not safe for concurrent use
	inner auth.OAuthHandler
}

// TokenSource returns the tokens.
func (l *lockedOAuth) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner.TokenSource(ctx)
}

// Authorize asks for a token.
func (l *lockedOAuth) Authorize(ctx context.Context, r *http.Request, response *http.Response) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		_ = response.Body.Close()
		return context.Cause(ctx)
	}
	return l.inner.Authorize(context.WithoutCancel(ctx), r, response)
}

// A refresher has tokens by a refresh token.
type refresher struct {
	config *OAuth
	client *http.Client

	mu       sync.Mutex // guards the variables below
	token    *oauth2.Token
	refresh  string // that the issuer sent in place of the last; empty if it sent none
	endpoint string // of the issuer; empty before it was looked up
}

// TokenSource returns the refresher itself.
func (r *refresher) TokenSource(context.Context) (oauth2.TokenSource, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.token == nil {
		return nil, nil // the server may ask for none
	}
	return r, nil
}

// Authorize asks for a token, as the server has refused the last one or has had none.
func (r *refresher) Authorize(_ context.Context, request *http.Request, response *http.Response) error {
	_ = response.Body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.token != nil && request.Header.Get("Authorization") != "Bearer "+r.token.AccessToken {
		return nil // another call has a new one already
	}
	return r.renew()
}

// Token returns a token that is valid.
func (r *refresher) Token() (*oauth2.Token, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.token.Valid() {
		if err := r.renew(); err != nil {
			return nil, err
		}
	}
	return r.token, nil
}

// renew asks the issuer for a token. The caller holds mu. It does not end with the call
// that asked: a refresh token that was used and whose answer was not read is lost.
func (r *refresher) renew() error {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), oauth2.HTTPClient, r.client), oauthTime)
	defer cancel()

	if r.endpoint == "" {
		found, err := auth.GetAuthServerMetadata(ctx, r.config.Issuer, r.client)
		if err != nil {
			return fmt.Errorf("the issuer of tokens does not say where they are had: %w", err)
		}
		r.endpoint = strings.TrimSuffix(r.config.Issuer, "/") + "/token"
		if found != nil {
			r.endpoint = found.TokenEndpoint
		}
	}

	last, err := r.lastRefreshToken()
	if err != nil {
		return err
	}

	config := oauth2.Config{
		ClientID: r.config.ClientID, ClientSecret: r.config.ClientSecret, Scopes: r.config.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: r.endpoint},
	}
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: last}).Token()
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			return fmt.Errorf("the issuer of tokens refuses the refresh token: %s %s", refused.Response.Status, refused.ErrorCode)
		}
		return fmt.Errorf("the issuer of tokens did not answer: %w", err)
	}

	r.token = token
	if token.RefreshToken == "" || token.RefreshToken == last {
		return nil
	}

	// The issuer may have made the old token invalid, so the new one is kept.
	r.refresh = token.RefreshToken
	if r.config.RefreshTokenFile == "" {
		return nil
	}
	if err := replaceFile(r.config.RefreshTokenFile, r.refresh); err != nil {
		return fmt.Errorf("oauth.refresh_token_file: the issuer has sent a new refresh token, and it cannot be kept: %w", err)
	}
	return nil
}

func (r *refresher) lastRefreshToken() (string, error) {
	if r.config.RefreshTokenFile == "" {
		if r.refresh != "" {
			return r.refresh, nil
		}
		return r.config.RefreshToken, nil
	}

	data, err := os.ReadFile(r.config.RefreshTokenFile) // another process may have renewed it
	if err != nil {
		return "", fmt.Errorf("oauth.refresh_token_file: %w", err)
	}

	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", fmt.Errorf("oauth.refresh_token_file: %s is empty", r.config.RefreshTokenFile)
	}
	return token, nil
}

// replaceFile replaces a file that only its owner can read, whole or not at all.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".refresh-*")
	if err != nil {
		return err
	}

	_, err = f.WriteString(content + "\n")
	if err == nil {
		err = f.Sync()
	}

	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
