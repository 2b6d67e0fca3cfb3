package vertex

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/internal/redact"
)

// scope is what a token is for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// kinds of credentials that a file may hold.
var kinds = []google.CredentialsType{
	google.ServiceAccount, google.AuthorizedUser, google.ImpersonatedServiceAccount, google.ExternalAccount,
}

// findAccount returns tokens of Google, and the project that they belong to, if that is known. They
// come from the first of these that is there: the key of the configuration, which is a token; the
// file that GOOGLE_APPLICATION_CREDENTIALS names; the file that `gcloud auth application-default
// login` writes; the account of the machine, where GCE_METADATA_HOST or KUBERNETES_SERVICE_HOST
// says that there is one.
func findAccount(cfg llm.Config) (oauth2.TokenSource, string, error) {
	if !cfg.Key.IsZero() {
		return oauth2.StaticTokenSource(&oauth2.Token{AccessToken: redact.Secret(cfg.Key)}), "", nil
	}

	if file := cfg.Setting("GOOGLE_APPLICATION_CREDENTIALS"); file != "" {
		return readAccount(cfg, file)
	}

	if home := cfg.Setting("HOME"); home != "" {
		file := filepath.Join(home, ".config", "gcloud", "application_default_credentials.json")
		// This file may be missing; the one above is named, and has to be there.
		if _, err := os.Stat(file); err == nil {
			return readAccount(cfg, file)
		}
	}

	if cfg.Setting("GCE_METADATA_HOST") != "" || cfg.Setting("KUBERNETES_SERVICE_HOST") != "" {
		return google.ComputeTokenSource("", scope), "", nil
	}

	return nil, "", llm.NewError(llm.Auth, "there are no credentials for Vertex AI: set GOOGLE_APPLICATION_CREDENTIALS to their file, or run gcloud auth application-default login")
}

// maxFile bounds a file of credentials, in bytes.
const maxFile = 1 << 20

// readAccount returns the tokens of a file of credentials, and its project.
func readAccount(cfg llm.Config, file string) (oauth2.TokenSource, string, error) {
	raw, err := os.ReadFile(file)
	if err != nil || len(raw) > maxFile {
		return nil, "", llm.NewError(llm.Auth, "the credentials of Google cannot be read: %v", err)
	}

	var kind struct {
		Type    google.CredentialsType
		Project string `json:"quota_project_id"`
	}
	if json.Unmarshal(raw, &kind) != nil || !slices.Contains(kinds, kind.Type) {
		return nil, "", llm.NewError(llm.Auth, "%s holds no credentials of Google of a kind that is known", file)
	}

	found, err := google.CredentialsFromJSONWithType(clientContext(cfg), raw, kind.Type, scope)
	if err != nil {
		return nil, "", llm.NewError(llm.Auth, "%s holds no credentials of Google: %v", file, err)
	}

	// Credentials of a user name no project but the one whose quota is used.
	project := found.ProjectID
	if project == "" {
		project = kind.Project
	}
	return found.TokenSource, project, nil
}
