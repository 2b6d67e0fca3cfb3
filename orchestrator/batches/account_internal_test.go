package batches

import (
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// However an address is written, what is there is one account; another server, another path, and another tenant's workers are others.
func TestAccounts(t *testing.T) {
	const own = "https://api.openai.com/v1/"
	for _, tt := range []struct {
		want      string
		tenant    mapreduce.TenantID
		addresses []string
	}{
		{"openai", "", []string{"", own, "https://api.openai.com/v1", "HTTPS://API.OpenAI.com/v1/", "https://api.openai.com:443/v1", "https://api.openai.com./v1//", " https://api.openai.com/v1/responses", "https://api.openai.com/x/../v1"}},
		{"openai of acme", "acme", []string{"", own, "https://API.openai.com/v1"}},
		{"openai at api.openai.com/V1", "", []string{"https://api.openai.com/V1"}},
		{"openai at api.openai.com:8443/v1", "", []string{"https://api.openai.com:8443/v1/"}},
		{"openai at gate.example/openai/v1", "", []string{"http://gate.example/openai/v1", "http://GATE.example:80/openai/v1/", "https://gate.example:443/openai/v1/responses/"}},
		{"openai at gate.example:443/openai/v1", "", []string{"http://gate.example:443/openai/v1"}},
		{"openai at gate.example", "", []string{"https://gate.example", "https://gate.example/"}},
		{"openai at [::1]:8000/v1", "", []string{"http://[::1]:8000/v1/"}},
		{"openai at gate.example/v1?api-version=1", "", []string{"https://gate.example/v1/?api-version=1"}},
		{"openai at no address", "", []string{"no address"}},
	} {
		for _, address := range tt.addresses {
			if got := accountName("openai", address, own, tt.tenant); got != tt.want {
				t.Errorf("%q for %q is the account %q, want %q", address, tt.tenant, got, tt.want)
			}
		}
	}

	// A vendor without an address of its own has one account at each.
	if got := accountName("azure", "https://Me.OpenAI.Azure.com/", "", ""); got != "azure at me.openai.azure.com" {
		t.Errorf("the account is %q", got)
	}
}
