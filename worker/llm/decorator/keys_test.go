package decorator_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
)

// A refused key is told of once, and stands until the vendor answers: what else goes wrong
// says nothing of the key.
func TestKeysThatAreRefused(t *testing.T) {
	var told []string
	keys := decorator.NewKeys(
		func(provider string, err error) error { return fmt.Errorf("%s: %w", provider, err) },
		func(err error) { told = append(told, err.Error()) },
	)
	outcomes := []struct {
		err     error
		refused string // what Refused says then
		told    int
	}{
		{failure(llm.Overloaded, 0), "", 0},
		{failure(llm.Auth, 0), "script: authentication (status 429): scripted", 1},
		{failure(llm.Auth, 0), "script: authentication (status 429): scripted", 1},
		{failure(llm.RateLimited, 0), "script: authentication (status 429): scripted", 1},
		{nil, "", 1},
		{failure(llm.Permission, 0), "", 1},
		{failure(llm.Auth, 0), "script: authentication (status 429): scripted", 2},
	}
	p := keys.Around(&script{do: func(_ context.Context, n int) (*llm.Response, error) { return done(1, 1), outcomes[n-1].err }})
	for n, want := range outcomes {
		_, _ = p.Complete(t.Context(), ask(nil)) // Refused says it
		got := ""
		if err := keys.Refused(); err != nil {
			got = err.Error()
		}
		if got != want.refused || len(told) != want.told {
			t.Errorf("after call %d, %v, it says %q and has told %d times; want %q and %d", n+1, want.err, got, len(told), want.refused, want.told)
		}
	}
}
