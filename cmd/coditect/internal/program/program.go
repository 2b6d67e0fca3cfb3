// Package program is what all commands share: the flags of every command with their
// settings from the environment and from a file, the words that a user probably meant, the
// place of the store, and sessions with a service in this process or elsewhere. It knows none
// of the commands.
package program

import (
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/observe"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
)

// Globals are the flags that all commands have.
type Globals struct {
	Server     string
	StoreFlags StoreFlags
	Timing     Timing
	Config     string
	TLS        transport.ClientConfig
	TokenFile  string

	Location Location // set by fillDefaults
}

// A Program is one run of the command line.
type Program struct {
	console.Console

	Getenv      func(string) string
	Environ     []string // NAME=VALUE, to find mistyped names; may be nil
	Version     string
	AttendEvery time.Duration // between looks at the store of a service; 0 is the default

	Global  Globals // set by flags
	Runners runners.Runners

	// Self starts this program again, for units that have to run alone; the zero Command if
	// it cannot be.
	Self apart.Command

	Telemetry *observe.Telemetry // nil without telemetry
}

// CommandLine returns the command line of another command for a job.
func (p *Program) CommandLine(verb string, id mapreduce.JobID) string {
	words := []string{"coditect", "mapreduce", verb, "--job-id", string(id)}
	if p.Global.Server != "" {
		words = append(words, "--server", console.ShellQuote(p.Global.Server))
		words = append(words, p.connectionWords()...)
	} else {
		words = append(words, p.placeWords()...)
	}
	return strings.Join(words, " ")
}
