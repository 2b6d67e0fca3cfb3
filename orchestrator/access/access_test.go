package access_test

import (
	"context"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/access"
)

func TestWhoMayDoWhat(t *testing.T) {
	rules := access.Rules{TenantOf: func(_ context.Context, id mapreduce.JobID) (mapreduce.TenantID, error) {
		if id == "none" {
			return "", errs.New(errs.NotFound, "no job %s", id)
		}
		return "a", nil
	}}
	own := mapreduce.Principal{Tenant: "a", Name: "ann"}
	other := mapreduce.Principal{Tenant: "b", Name: "bob"}
	nobody := mapreduce.Principal{Name: "nobody"}
	operator := mapreduce.Local("b")
	useJob := func(id mapreduce.JobID) func(mapreduce.Principal) error {
		return func(p mapreduce.Principal) error { return rules.UseJob(t.Context(), p, id) }
	}
	useTenant := func(p mapreduce.Principal) error { return rules.UseTenant(p, "a") }
	list := func(of, want mapreduce.TenantID) func(mapreduce.Principal) error {
		return func(p mapreduce.Principal) error {
			got, err := rules.ListedTenant(p, of)
			if err == nil && got != want {
				t.Errorf("%s sees the jobs of %q, want %q", p.Name, got, want)
			}
			return err
		}
	}
	const allowed = errs.Kind(255)
	for _, tt := range []struct {
		what string
		do   func(mapreduce.Principal) error
		want map[string]errs.Kind // by name; else allowed
	}{
		{"a job of a", useJob("j"), map[string]errs.Kind{"bob": errs.NotFound, "nobody": errs.NotFound}},
		{"no job", useJob("none"), map[string]errs.Kind{"ann": errs.NotFound, "bob": errs.NotFound, "nobody": errs.NotFound}},
		{"tenant a", useTenant, map[string]errs.Kind{"bob": errs.Denied, "nobody": errs.Denied}},
		{"the store", rules.UseStore, map[string]errs.Kind{"ann": errs.Denied, "bob": errs.Denied, "nobody": errs.Denied}},
		{"jobs of a", list("a", "a"), map[string]errs.Kind{"bob": errs.Denied, "nobody": errs.Denied}},
	} {
		for _, p := range []mapreduce.Principal{own, other, nobody, operator} {
			want, refused := tt.want[p.Name]
			if !refused {
				want = allowed
			}
			got := allowed
			if err := tt.do(p); err != nil {
				got = errs.KindOf(err)
			}
			if got != want {
				t.Errorf("%s: %s gets %v, want %v", tt.what, p.Name, got, want)
			}
		}
	}
	if got, err := rules.ListedTenant(own, ""); got != "a" || err != nil {
		t.Errorf("ann, who asks for all jobs, sees those of %q and gets %v", got, err)
	}
	if _, err := rules.ListedTenant(nobody, ""); errs.KindOf(err) != errs.Denied || err == nil {
		t.Errorf("one without a tenant lists all jobs: %v", err)
	}
	if got, err := rules.ListedTenant(operator, ""); got != "" || err != nil {
		t.Errorf("an operator sees the jobs of %q and gets %v, want all", got, err)
	}
}
