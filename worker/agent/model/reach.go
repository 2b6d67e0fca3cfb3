package model

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// connections are to the servers of a provider's models, as the jobs ask them.
type connections struct {
	cfg *Config

	mu      sync.Mutex // guards the field below
	vendors map[vendorKey]llm.Provider
}

// A vendorKey is what providers differ in.
type vendorKey struct {
	base      string
	window    int64
	tools     bool
	elsewhere bool
}

// configOf returns how the provider of a job is reached.
func (c *connections) configOf(s settings.Settings) (llm.Config, error) {
	cfg := c.cfg.LLM
	if s.BaseURL != "" && s.BaseURL != cfg.BaseURL {
		if !c.cfg.Trusted {
			return cfg, fmt.Errorf("this worker does not call %s at the address that the job names, for its key would go there; "+
				"start workers with --endpoint %s=URL and the job without --base-url", s.Provider, s.Provider)
		}
		cfg.BaseURL = s.BaseURL
	}
	cfg.Window, cfg.ToolMode = s.Window, s.ToolMode
	return cfg, nil
}

// batchesOf returns what makes the batches of a job.
func (c *connections) batchesOf(s settings.Settings) (batch.Vendor, error) {
	cfg, err := c.configOf(s)
	if err != nil {
		return nil, err
	}
	return c.cfg.Vendors.NewBatches(s.Provider, cfg)
}

// vendorOf returns the provider that a job asks; elsewhere says that other models stand for its model.
func (c *connections) vendorOf(s settings.Settings, elsewhere bool) (llm.Provider, error) {
	cfg, err := c.configOf(s)
	if err != nil {
		return nil, err
	}
	if elsewhere {
		cfg.First = min(cmp.Or(cfg.First, llm.DefaultFirst), c.cfg.FirstElsewhere)
	}

	// Jobs that ask in the same way share a provider, and what it has learned.
	key := vendorKey{cfg.BaseURL, s.Window, s.ToolMode, elsewhere}

	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.vendors[key]; v != nil {
		return v, nil
	}

	v, err := c.cfg.Vendors.New(s.Provider, cfg)
	if err != nil {
		return nil, err
	}

	if len(c.vendors) == maxKept {
		clear(c.vendors)
	}
	c.vendors[key] = v
	return v, nil
}

// silentProvider returns the provider of a job that repeats another: its dialect and the
// rest are the vendor's, and it is never called, so no key is needed.
func (c *connections) silentProvider(s settings.Settings) (llm.Provider, error) {
	cfg := c.cfg.LLM
	cfg.Key, cfg.Window, cfg.ToolMode = llm.NewKey("not-used"), s.Window, s.ToolMode
	return c.cfg.Vendors.New(s.Provider, cfg)
}

// limitsOf returns what is known of the parameters that the model of a job takes.
func (c *connections) limitsOf(s settings.Settings) parameters.Limits {
	i := slices.IndexFunc(c.cfg.Vendors, func(v vendors.Vendor) bool { return v.Name == s.Provider })
	if i < 0 {
		return parameters.Limits{}
	}
	return c.cfg.Vendors[i].LimitsOf(cmp.Or(s.BaseURL, c.cfg.LLM.BaseURL), s.Model)
}
