package program

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// A Location says where jobs are kept: in a data directory or in a cluster.
type Location struct {
	Dir     string // "" if there is a cluster
	cluster embedded.Cluster
}

// String returns the data directory, or the cluster as --store names it.
func (p Location) String() string {
	if p.cluster.File == "" {
		return p.Dir
	}
	if p.cluster.Prefix == "" {
		return clusterKind + p.cluster.File
	}
	return clusterKind + p.cluster.File + " under the prefix " + p.cluster.Prefix
}

// The prefixes of the value of --store, which say what kind of store it names.
const (
	folderKind  = "pebble:"
	clusterKind = "fdb:"
)

// StoreFlags are the flags that say where jobs are kept.
type StoreFlags struct {
	store   string
	dataDir string
	cluster embedded.Cluster
	strict  bool
}

// AddFlags adds the flags to f.
func (p *StoreFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&p.dataDir, "data-dir", "", "`folder` in which jobs are kept (default $XDG_DATA_HOME/coditect)")
	f.BoolVar(&p.strict, "strict", false, "refuse a data directory that others can read, instead of a warning")
	f.StringVar(&p.store, "store", "", "where jobs are kept, pebble:DIR or fdb:`CLUSTER_FILE` (default pebble in --data-dir)")
	f.StringVar(&p.cluster.Prefix, "store-prefix", "", "first part of all keys in a FoundationDB cluster, a `name` that separates installations")
	f.StringVar(&p.cluster.Installation, "installation", "", "`name` that the installation in a FoundationDB cluster must have")
	f.DurationVar(&p.cluster.Timeout, "store-timeout", 5*time.Second, "how long to wait for the first answer of a FoundationDB cluster")
}

// storeLocation returns the location that the flags name, or the directory
// otherwise if they name none.
func (p *StoreFlags) storeLocation(otherwise string) (Location, error) {
	dir, isFolder := strings.CutPrefix(p.store, folderKind)
	file, isCluster := strings.CutPrefix(p.store, clusterKind)
	switch {
	case p.store == "" && p.dataDir != "":
		dir = p.dataDir
	case p.store == "" && otherwise == "":
		return Location{}, exit.UsageError("no --data-dir is given, and there is no home folder")
	case p.store == "":
		dir = otherwise
	case isFolder && dir != "":
	case isCluster && file != "":
		return p.inCluster(file)
	default:
		return Location{}, exit.UsageError("--store: %q is neither pebble:DIR nor fdb:CLUSTER_FILE", p.store)
	}
	return Location{Dir: dir}, nil
}

func (p *StoreFlags) inCluster(file string) (Location, error) {
	c := p.cluster
	c.File = file
	switch {
	case c.Timeout <= 0:
		return Location{}, exit.UsageError("--store-timeout: must be positive")
	case c.Prefix == "mapreduce":
		return Location{}, exit.UsageError("--store-prefix: %q is reserved for an installation without a prefix", c.Prefix)
	case len(c.Prefix) > maxPrefix:
		return Location{}, exit.UsageError("--store-prefix: must have at most %d bytes, as it is part of every key", maxPrefix)
	}
	return Location{cluster: c}, nil
}

// CheckPrivacy warns of a data directory that others can read or write, or refuses it with
// --strict. One that does not exist yet will be private.
func (a *Program) CheckPrivacy(warn func(message string)) error {
	dir := a.Global.Location.Dir
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o066 == 0 {
		return nil // opening the store reports the error
	}
	message := fmt.Sprintf("others can read or write the data directory %s, which has the mode %04o; make it private with chmod 700 %s",
		dir, info.Mode().Perm(), console.ShellQuote(dir))
	if a.Global.StoreFlags.strict {
		return exit.UsageError("--strict: %s", message)
	}
	warn(message)
	return nil
}

// maxPrefix is the longest prefix, in bytes. The prefix is part of every key.
const maxPrefix = 64

// Timing holds settings of an orchestrator for tests. Help does not show them.
type Timing struct {
	lease, heartbeat, grace time.Duration
}

// AddFlags adds the flags to f.
func (t *Timing) AddFlags(f *pflag.FlagSet) {
	f.DurationVar(&t.lease, "lease", 0, "how long a silent worker is believed to live")
	f.DurationVar(&t.heartbeat, "heartbeat", 0, "how often signs of life are given")
	f.DurationVar(&t.grace, "grace", 0, "how long a worker whose connection broke has to come back")
	for _, name := range []string{"lease", "heartbeat", "grace"} {
		_ = f.MarkHidden(name) // the flag exists
	}
}

// placeWords returns the flags that name the same store on another command line.
func (a *Program) placeWords() []string {
	p := a.Global.Location
	switch {
	case p.Dir != "" && p.Dir != a.defaultDataDir():
		return []string{"--data-dir", console.ShellQuote(p.Dir)}
	case p.Dir != "":
		return nil
	}
	words := []string{"--store", console.ShellQuote(clusterKind + p.cluster.File)}
	if p.cluster.Prefix != "" {
		words = append(words, "--store-prefix", console.ShellQuote(p.cluster.Prefix))
	}
	if p.cluster.Installation != "" {
		words = append(words, "--installation", console.ShellQuote(p.cluster.Installation))
	}
	return words
}
