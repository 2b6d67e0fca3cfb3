package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/worker/step"
)

// A storeLocation says where jobs are kept: in a data directory or in a cluster.
type storeLocation struct {
	dir     string // "" if there is a cluster
	cluster embedded.Cluster
}

// String returns the data directory, or the cluster as --store names it.
func (p storeLocation) String() string {
	if p.cluster.File == "" {
		return p.dir
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

// storeFlags are the flags that say where jobs are kept.
type storeFlags struct {
	store   string
	dataDir string
	cluster embedded.Cluster
	strict  bool
}

func (p *storeFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.dataDir, "data-dir", "", "`folder` in which jobs are kept (default $XDG_DATA_HOME/coditect)")
	f.BoolVar(&p.strict, "strict", false, "refuse a data directory that others can read, instead of a warning")
	f.StringVar(&p.store, "store", "", "where jobs are kept, pebble:DIR or fdb:`CLUSTER_FILE` (default pebble in --data-dir)")
	f.StringVar(&p.cluster.Prefix, "store-prefix", "", "first part of all keys in a FoundationDB cluster, a `name` that separates installations")
	f.StringVar(&p.cluster.Installation, "installation", "", "`name` that the installation in a FoundationDB cluster must have")
	f.DurationVar(&p.cluster.Timeout, "store-timeout", 5*time.Second, "how long to wait for the first answer of a FoundationDB cluster")
}

// storeLocation returns the location that the flags name, or the directory
// otherwise if they name none.
func (p *storeFlags) storeLocation(otherwise string) (storeLocation, error) {
	dir, isFolder := strings.CutPrefix(p.store, folderKind)
	file, isCluster := strings.CutPrefix(p.store, clusterKind)
	switch {
	case p.store == "" && p.dataDir != "":
		dir = p.dataDir
	case p.store == "" && otherwise == "":
		return storeLocation{}, usageError("no --data-dir is given, and there is no home folder")
	case p.store == "":
		dir = otherwise
	case isFolder && dir != "":
	case isCluster && file != "":
		return p.inCluster(file)
	default:
		return storeLocation{}, usageError("--store: %q is neither pebble:DIR nor fdb:CLUSTER_FILE", p.store)
	}
	return storeLocation{dir: dir}, nil
}

func (p *storeFlags) inCluster(file string) (storeLocation, error) {
	c := p.cluster
	c.File = file
	switch {
	case c.Timeout <= 0:
		return storeLocation{}, usageError("--store-timeout: must be positive")
	case c.Prefix == "mapreduce":
		return storeLocation{}, usageError("--store-prefix: %q is reserved for an installation without a prefix", c.Prefix)
	case len(c.Prefix) > maxPrefix:
		return storeLocation{}, usageError("--store-prefix: must have at most %d bytes, as it is part of every key", maxPrefix)
	}
	return storeLocation{cluster: c}, nil
}

// checkPrivacy warns of a data directory that others can read or write, or refuses it with
// --strict. One that does not exist yet will be private.
func (a *app) checkPrivacy(warn func(message string)) error {
	dir := a.global.location.dir
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o066 == 0 {
		return nil // opening the store reports the error
	}
	message := fmt.Sprintf("others can read or write the data directory %s, which has the mode %04o; make it private with chmod 700 %s",
		dir, info.Mode().Perm(), shellQuote(dir))
	if a.global.storeFlags.strict {
		return usageError("--strict: %s", message)
	}
	warn(message)
	return nil
}

// maxPrefix is the longest prefix, in bytes. The prefix is part of every key.
const maxPrefix = 64

// fleetTiming holds settings of an orchestrator for tests. Help does not show them.
type fleetTiming struct {
	lease, heartbeat, grace time.Duration
}

func (t *fleetTiming) addFlags(f *pflag.FlagSet) {
	f.DurationVar(&t.lease, "lease", 0, "how long a silent worker is believed to live")
	f.DurationVar(&t.heartbeat, "heartbeat", 0, "how often signs of life are given")
	f.DurationVar(&t.grace, "grace", 0, "how long a worker whose connection broke has to come back")
	for _, name := range []string{"lease", "heartbeat", "grace"} {
		_ = f.MarkHidden(name) // the flag exists
	}
}

// nodeConfig returns the configuration of the service in this process.
func (a *app) nodeConfig(all *step.Registry, log *slog.Logger) (embedded.Config, error) {
	hook, err := a.failpointHook()
	if err != nil {
		return embedded.Config{}, err
	}
	rates, err := a.planRates()
	if err != nil {
		return embedded.Config{}, err
	}
	limits, err := a.limits.modelLimits()
	if err != nil {
		return embedded.Config{}, err
	}
	askers, err := a.knowingAll()
	if err != nil {
		return embedded.Config{}, err
	}
	formats, err := documentFormats()
	if err != nil {
		return embedded.Config{}, err
	}
	g := &a.global
	return embedded.Config{
		MaxCalls: a.limits.maxCalls, ModelLimits: limits,
		Dir: g.location.dir, Cluster: g.location.cluster, Steps: all, Parsers: formats.Parsers(), Limits: a.gates, Version: versionOf(), Rates: rates, Hook: hook, Logger: log,
		Overhead: promptOverhead(askers), Warms: needsPriming(askers),
		Lease: g.timing.lease, Heartbeat: g.timing.heartbeat, Grace: g.timing.grace,
	}, nil
}

// placeWords returns the flags that name the same store on another command line.
func (a *app) placeWords() []string {
	p := a.global.location
	switch {
	case p.dir != "" && p.dir != a.defaultDataDir():
		return []string{"--data-dir", shellQuote(p.dir)}
	case p.dir != "":
		return nil
	}
	words := []string{"--store", shellQuote(clusterKind + p.cluster.File)}
	if p.cluster.Prefix != "" {
		words = append(words, "--store-prefix", shellQuote(p.cluster.Prefix))
	}
	if p.cluster.Installation != "" {
		words = append(words, "--installation", shellQuote(p.cluster.Installation))
	}
	return words
}
