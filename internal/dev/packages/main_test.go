package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The document in docs is what the packages say of themselves today.
func TestDocumentIsFresh(t *testing.T) {
	const root = "../../.."
	want, err := document(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(root + "/docs/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/packages.md is stale, run make generate (-want +got):\n%s", diff)
	}
}
