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
func (l Location) String() string {
	if l.cluster.File == "" {
		return l.Dir
	}
	if l.cluster.Prefix == "" {
		return clusterKind + l.cluster.File
	}
	return clusterKind + l.cluster.File + " under the prefix " + l.cluster.Prefix
}

// The prefixes of the value of --store, which say what kind of store it names.
const (
	folderKind  = "pebble:"
	clusterKind = "fdb:"
)

// StoreFlags are the flags that say where jobs are kept.
type StoreFlags struct {
	stores  []string
	dataDir string
	cluster embedded.Cluster
	strict  bool
}

// AddFlags adds the flags to f.
func (p *StoreFlags) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&p.dataDir, "data-dir", "", "`folder` in which jobs are kept (default $XDG_DATA_HOME/coditect)")
	f.BoolVar(&p.strict, "strict", false, "refuse a data directory that other users can read (default: warn)")
	f.StringArrayVar(&p.stores, "store", nil, "`PLACE` where jobs are kept: pebble:DIR or fdb:CLUSTER_FILE (default pebble in --data-dir)")
	f.StringVar(&p.cluster.Prefix, "store-prefix", "", "`name` with which all keys in a FoundationDB cluster begin; it separates installations")
	f.StringVar(&p.cluster.Installation, "installation", "", "`name` that the installation in a FoundationDB cluster must have")
	f.DurationVar(&p.cluster.Timeout, "store-timeout", 5*time.Second, "how long to wait for the first answer of a FoundationDB cluster")
}

// storeLocation returns the location that the flags name, or the directory
// otherwise if they name none.
func (p *StoreFlags) storeLocation(otherwise string) (Location, error) {
	place := ""
	for _, value := range p.stores {
		if place != "" && place != value {
			return Location{}, exit.UsageError("--store: %q and %q are two places, and jobs are kept in one; leave one out", place, value)
		}
		place = value
	}

	dir, isFolder := strings.CutPrefix(place, folderKind)
	file, isCluster := strings.CutPrefix(place, clusterKind)
	switch {
	case place == "" && p.dataDir != "":
		dir = p.dataDir
	case place == "" && otherwise == "":
		return Location{}, exit.UsageError("no --data-dir is given, and there is no home folder")
	case place == "":
		dir = otherwise
	case isFolder && dir != "":
	case isCluster && file != "":
		return p.inCluster(file)
	default:
		return Location{}, exit.UsageError("--store: %q is neither pebble:DIR nor fdb:CLUSTER_FILE, where jobs are kept%s", place, meantPlace(place))
	}

	return Location{Dir: dir}, nil
}

// meantPlace says what a value of --store was probably meant for, or nothing: a folder of documents
// to search had this flag once, and fdb=FILE is most likely fdb:FILE.
func meantPlace(value string) string {
	name, rest, isPair := strings.Cut(value, "=")
	switch {
	case !isPair || rest == "":
		return ""
	case name+":" == folderKind || name+":" == clusterKind:
		return "; write " + name + ":" + rest
	}
	return "; a folder of documents to search has the flag --search-store " + console.ShellQuote(value)
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
func (p *Program) CheckPrivacy(warn func(message string)) error {
	dir := p.Global.Location.Dir
	if dir == "" {
		return nil
	}

	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o066 == 0 {
		return nil // opening the store reports the error
	}

	message := fmt.Sprintf("others can read or write the data directory %s, which has the mode %04o; make it private with chmod 700 %s",
		dir, info.Mode().Perm(), console.ShellQuote(dir))
	if p.Global.StoreFlags.strict {
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
	f.DurationVar(&t.lease, "lease", 0, "time after which a silent worker is taken for dead")
	f.DurationVar(&t.heartbeat, "heartbeat", 0, "time between two signs of life")
	f.DurationVar(&t.grace, "grace", 0, "time in which a worker may connect again after its connection broke")
	for _, name := range []string{"lease", "heartbeat", "grace"} {
		_ = f.MarkHidden(name) // the flag exists
	}
}

// placeWords returns the flags that name the same store on another command line.
func (p *Program) placeWords() []string {
	l := p.Global.Location
	switch {
	case l.Dir != "" && l.Dir != p.defaultDataDir():
		return []string{"--data-dir", console.ShellQuote(l.Dir)}
	case l.Dir != "":
		return nil
	}

	words := []string{"--store", console.ShellQuote(clusterKind + l.cluster.File)}
	if l.cluster.Prefix != "" {
		words = append(words, "--store-prefix", console.ShellQuote(l.cluster.Prefix))
	}
	if l.cluster.Installation != "" {
		words = append(words, "--installation", console.ShellQuote(l.cluster.Installation))
	}

	return words
}
