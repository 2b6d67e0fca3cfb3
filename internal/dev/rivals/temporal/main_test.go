package main

import (
	"strings"
	"testing"
	"time"
)

// A workflow that was ended otherwise than by its activity is none that is waited for, but an error.
func TestAWorkflowThatWasEndedIsAnError(t *testing.T) {
	opened, err := system{}.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*server)
	defer s.Close()

	// Nobody works, so none completes.
	if err := s.Submit(t.Context(), []string{"kept", "ended"}); err != nil {
		t.Fatal(err)
	}
	if err := s.client.TerminateWorkflow(t.Context(), "ended", "", "to see what comes of it"); err != nil {
		t.Fatal(err)
	}

	told := make(chan error, 1)
	go func() {
		_, err := s.AwaitEnded(t.Context(), 2)
		told <- err
	}()
	select {
	case err := <-told:
		if err == nil || !strings.HasPrefix(err.Error(), "1 workflows") {
			t.Errorf("it was said that %v, want that one workflow was ended", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("a workflow that was ended is waited for")
	}
}
