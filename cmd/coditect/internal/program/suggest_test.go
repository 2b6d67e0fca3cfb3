package program_test

import (
	"testing"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

func TestNearest(t *testing.T) {
	words := []string{"run", "plan", "resume", "result", "parallelism", "provider", "status", "list"}
	for _, tt := range []struct{ typed, want string }{
		{"rnu", "run"},                  // two neighbours swapped
		{"paralelism", "parallelism"},   // a letter left out
		{"PARALLELISMS", "parallelism"}, // a letter added, and case does not count
		{"statsu", "status"},
		{"resul", "result"},
		{"para", "parallelism"}, // its beginning
		{"ls", ""},
		{"colour", ""},
		{"", ""},
	} {
		if got := program.Nearest(tt.typed, words); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.typed, got, tt.want)
		}
	}
	if got := program.DidYouMean("rnu", "coditect ", words); got != "; did you mean coditect run?" {
		t.Errorf("got %q", got)
	}
}
