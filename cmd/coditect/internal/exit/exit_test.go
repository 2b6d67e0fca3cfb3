package exit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/store"
)

// TestAdviceAfterAFullDisk is to give the command again, which has ended: it does not go on.
func TestAdviceAfterAFullDisk(t *testing.T) {
	const again = "; then give this command again"
	for _, err := range []error{
		fmt.Errorf("store dir: %w to open it; free some space", store.ErrNoSpace),
		fmt.Errorf("submitting: %w", &errs.Error{Kind: errs.Exhausted, Reason: errs.StoreFull, Message: "the disk is full; free some space"}),
	} {
		if got := exit.Message(err); !strings.HasSuffix(got, "free some space"+again) || strings.Contains(got, "by itself") {
			t.Errorf("%q", got)
		}
	}
	if got := exit.Message(errs.New(errs.Exhausted, "the quota is used up")); strings.Contains(got, again) {
		t.Errorf("%q", got)
	}
}
