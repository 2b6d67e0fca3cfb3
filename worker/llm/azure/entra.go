package azure

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/coditect/mapreduce/worker/llm"
)

// scope is what a token is for.
const scope = "https://cognitiveservices.azure.com/.default"

// findTokens returns tokens of Entra, from the first of these that is there: AZURE_OPENAI_AD_TOKEN,
// which is one; AZURE_CLIENT_SECRET of an application; AZURE_FEDERATED_TOKEN_FILE, which a cluster
// gives to its workloads. The last two need AZURE_TENANT_ID and AZURE_CLIENT_ID.
func findTokens(cfg llm.Config) (oauth2.TokenSource, error) {
	if token := cfg.Setting("AZURE_OPENAI_AD_TOKEN"); token != "" {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), nil
	}

	tenant, client := cfg.Setting("AZURE_TENANT_ID"), cfg.Setting("AZURE_CLIENT_ID")
	secret, file := cfg.Setting("AZURE_CLIENT_SECRET"), cfg.Setting("AZURE_FEDERATED_TOKEN_FILE")
	if tenant == "" || client == "" || secret == "" && file == "" {
		return nil, llm.NewError(llm.Auth, "there is no key for azure: set AZURE_OPENAI_API_KEY, or AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET")
	}

	authority := cmp.Or(cfg.Setting("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com/")
	return oauth2.ReuseTokenSource(nil, &entra{
		app: clientcredentials.Config{
			ClientID: client, ClientSecret: secret, Scopes: []string{scope}, AuthStyle: oauth2.AuthStyleInParams,
			TokenURL: strings.TrimRight(authority, "/") + "/" + url.PathEscape(tenant) + "/oauth2/v2.0/token",
		},
		file: file, client: &http.Client{Timeout: 30 * time.Second, Transport: cfg.Transport},
	}), nil
}

// entra gives tokens to an application.
type entra struct {
	app    clientcredentials.Config
	file   string // of a workload, which the cluster renews
	client *http.Client
}

// Token implements oauth2.TokenSource.
func (e *entra) Token() (*oauth2.Token, error) {
	app := e.app
	if app.ClientSecret == "" {
		// The file is read for each token, since the cluster renews it.
		raw, err := os.ReadFile(e.file)
		if err != nil {
			return nil, err
		}
		app.EndpointParams = url.Values{
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
			"client_assertion":      {strings.TrimSpace(string(raw))},
		}
	}

	return app.Token(context.WithValue(context.Background(), oauth2.HTTPClient, e.client))
}
