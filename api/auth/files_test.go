package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A policy that breaks a rule is refused with the line and the rule.
func TestPolicies(t *testing.T) {
	const good = `# who may do what
principals:
  - {match: "dns:alice", tenant: a, roles: [submitter, operator]}
  - {match: "oidc:subject of an issuer", tenant: b, roles: [viewer]}
  - {match: "spiffe://example.org/worker", roles: [worker]}
  - {match: "token:ci", tenant: a, roles: [submitter]}
  - {match: "uid:1000", roles: [admin]}
  - {match: "cn:Old Program", tenant: a, roles: [viewer, worker]}
  - {match: "dns:worker-of-a", tenant: a, roles: [worker]}
tenants:
  - tenant: a
    quotas: {jobs: 100, unended_jobs: 10, waiting_units: 100000, stored_bytes: 10 GiB, tokens_per_day: 5000000, calls: 8, requests_per_minute: 600}
    keep: 720h
  - {tenant: b}
`
	p, err := auth.ParsePolicy("policy.yaml", []byte(good))
	if err != nil || p.Len() != 7 {
		t.Fatalf("%v, %v", p, err)
	}
	want := mapreduce.TenantRule{Keep: 30 * 24 * time.Hour, Quota: mapreduce.Quota{
		Jobs: 100, UnendedJobs: 10, WaitingUnits: 100_000, StoredBytes: 10 << 30, TokensPerDay: 5_000_000, Calls: 8, RequestsPerMinute: 600,
	}}
	if p.Rule("a") != want || p.Rule("b") != (mapreduce.TenantRule{}) || p.Rule("c") != (mapreduce.TenantRule{}) {
		t.Errorf("of tenants: %+v, %+v", p.Rule("a"), p.Rule("b"))
	}
	if p, err := auth.ParsePolicy("policy.json", []byte(`{"principals": []}`)); err != nil || p.Len() != 0 {
		t.Errorf("a policy of nobody: %v, %v", p, err)
	}
	for _, tt := range []struct{ policy, want string }{
		{"", "p.yaml: is empty"},
		{"principals:", "p.yaml:1:12: principals: must be a list"},
		{"{}", "p.yaml:1:1: principals: is missing"},
		{"- a", "p.yaml:1:1: the policy: must be a mapping"},
		{"principals: []\nroles: []", `p.yaml:2:1: the policy: has no key "roles"`},
		{"principals: []\n---\nprincipals: []", "p.yaml: has more than one document"},
		{"principals: [}", "p.yaml: "},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: [viewer], role: x}", `p.yaml:2:48: principals[0]: has no key "role"`},
		{"principals:\n- {match: 'dns:a', match: 'dns:b', tenant: t, roles: [viewer]}", "p.yaml:2:20: principals[0]: the key match stands twice"},
		{"principals:\n- {tenant: t, roles: [viewer]}", "p.yaml:2:3: principals[0].match: is missing"},
		{"principals:\n- {match: 'alice', tenant: t, roles: [viewer]}", `p.yaml:2:11: principals[0].match: "alice" names no principal`},
		{"principals:\n- {match: 'ip:1', tenant: t, roles: [viewer]}", `"ip:1" names no principal`},
		{"principals:\n- {match: 'uid:root', tenant: t, roles: [viewer]}", `"uid:root" names no principal`},
		{"principals:\n- {match: 'spiffe:x', tenant: t, roles: [viewer]}", `"spiffe:x" names no principal`},
		{"principals:\n- {match: 'token:a b', tenant: t, roles: [viewer]}", `"token:a b" names no principal`},
		{"principals:\n- {match: ' dns:a', tenant: t, roles: [viewer]}", `" dns:a" names no principal`},
		{"principals:\n- {match: [a], tenant: t, roles: [viewer]}", "principals[0].match: must be a text"},
		{"principals:\n- {match: 'dns:a', tenant: t}", "p.yaml:2:3: principals[0].roles: is missing"},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: viewer}", "principals[0].roles: must be a list"},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: []}", "principals[0].roles: is empty"},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: [viewer, operatr]}", `p.yaml:2:47: principals[0].roles[1]: there is no role "operatr"`},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: [viewer, viewer]}", "the role viewer is listed twice"},
		{"principals:\n- {match: 'dns:a', roles: [viewer]}", "principals[0].tenant: is missing"},
		{"principals:\n- {match: 'dns:a', tenant: '', roles: [viewer]}", `principals[0].tenant: "" is not the name of a tenant`},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: [scaler]}", "principals[0].tenant: must be left out"},
		{"principals: []\ntenants: a", "p.yaml:2:10: tenants: must be a list"},
		{"principals: []\ntenants:\n- {keep: 1h}", "p.yaml:3:3: tenants[0].tenant: is missing"},
		{"principals: []\ntenants:\n- {tenant: a}\n- {tenant: a}", `p.yaml:4:12: tenants[1].tenant: "a" stands above already`},
		{"principals: []\ntenants:\n- {tenant: a, quota: {}}", `p.yaml:3:15: tenants[0]: has no key "quota"`},
		{"principals: []\ntenants:\n- {tenant: a, keep: soon}", `p.yaml:3:21: tenants[0].keep: "soon" is not a time of 1m0s or longer`},
		{"principals: []\ntenants:\n- {tenant: a, keep: 1s}", `tenants[0].keep: "1s" is not a time`},
		{"principals: []\ntenants:\n- {tenant: a, quotas: {units: 1}}", `p.yaml:3:24: tenants[0].quotas: has no key "units"`},
		{"principals: []\ntenants:\n- {tenant: a, quotas: {jobs: 0}}", `p.yaml:3:30: tenants[0].quotas.jobs: "0" is not a whole number above 0`},
		{"principals: []\ntenants:\n- {tenant: a, quotas: {stored_bytes: 9000000000 GiB}}", `"9000000000 GiB" is not a whole number above 0`},
		{"principals: []\ntenants:\n- {tenant: a, quotas: {calls: 1.5}}", `"1.5" is not a whole number above 0`},
		{"principals:\n- {match: 'dns:a', tenant: t, roles: [viewer]}\n- {match: 'dns:A', tenant: u, roles: [viewer]}", "p.yaml:3:11: principals[1].match: dns:a is also in line 2"},
	} {
		p, err := auth.ParsePolicy("p.yaml", []byte(tt.policy))
		if err == nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, error %v; want %q", tt.policy, p, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "operator") {
			t.Errorf("the error says what would have been right: %v", err)
		}
	}
}

// A token file that holds something else is refused with its line, and without what stands
// there.
func TestTokenFiles(t *testing.T) {
	secret, line, err := auth.NewToken("ci", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, expiring, err := auth.NewToken("nightly@example.org", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := auth.NewToken("a b", time.Time{}); err == nil {
		t.Error("a name of two words is taken")
	}
	known, err := auth.ParseTokens("tokens.txt", []byte("# tokens\n\n"+line+"\n"+expiring+"\n"))
	if err != nil || known.Len() != 2 {
		t.Fatalf("%v, %v", known, err)
	}
	hash := strings.Fields(line)[1]
	if both, err := auth.ParseTokens("tokens.txt", []byte("ci "+hash+"\nci "+strings.Repeat("0", 64))); err != nil || both.Len() != 2 {
		t.Errorf("a token that is replaced: %v, %v", both, err)
	}
	for _, tt := range []struct{ file, want string }{
		{"ci", "t:1: must be a name, a hash"},
		{"# x\nci secret-of-somebody", "t:2: the hash of ci is not 64 hexadecimal digits"},
		{"ci " + secret, "t:1: has a token itself"},
		{secret + " " + hash, "t:1: has a token itself"},
		{"ci " + hash[:62], "the hash of ci is not 64"},
		{"ci " + hash + " tomorrow", "the time when ci expires must be written as"},
		{"ci " + hash + " 2030-01-01T00:00:00Z more", "must be a name"},
		{"c:i " + hash, "t:1: the name may have"},
		{"ci " + hash + "\nci " + hash, "t:2: the hash of ci is that of ci in line 1"},
		{"ci " + hash + "\nother " + hash, "t:2: the hash of other is that of ci in line 1"},
		{strings.Repeat("x", 1<<17), "too long"},
	} {
		got, err := auth.ParseTokens("t", []byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: %v, error %v; want %q", tt.file, got, err, tt.want)
			continue
		}
		for _, part := range []string{secret, "secret-of-somebody", hash} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("the error has what stands in the file: %v", err)
			}
		}
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte("principals:\n  - {match: 'dns:alice', tenant: a, roles: [submitter, operator]}\n"))
	f.Add([]byte(`{"principals": [{"match": "spiffe://a/b", "roles": ["worker"]}]}`))
	f.Add([]byte("a: &a [*a, *a]\nprincipals: *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := auth.ParsePolicy("p", data)
		if (p == nil) == (err == nil) {
			t.Fatalf("policy %v, error %v", p, err)
		}
		if err != nil && (errs.KindOf(err) != errs.Invalid || !strings.HasPrefix(err.Error(), "p:")) {
			t.Errorf("error %v", err)
		}
	})
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte("ci " + strings.Repeat("0", 64) + " 2030-01-01T00:00:00Z\n# comment\n"))
	f.Add([]byte("coditect_secret"))
	f.Fuzz(func(t *testing.T, data []byte) {
		known, err := auth.ParseTokens("t", data)
		if (known == nil) == (err == nil) {
			t.Fatalf("tokens %v, error %v", known, err)
		}
		if err != nil && (errs.KindOf(err) != errs.Invalid || !strings.HasPrefix(err.Error(), "t:")) {
			t.Errorf("error %v", err)
		}
	})
}
