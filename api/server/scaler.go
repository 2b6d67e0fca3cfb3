package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/proto/externalscaler"
)

// A scaler answers KEDA, which scales pools of workers.
type scaler struct {
	externalscaler.UnimplementedExternalScalerServer
	demander protocol.Demander
	leaving  <-chan struct{}
}

// The keys of the metadata of a trigger. KEDA adds some of its own, among them
// scalerAddress, and adds the parameters of the trigger's authentication.
const (
	scalePool      = "pool"      // the name of the pool, for the name of the metric
	scaleSlots     = "slots"     // of one worker of the pool
	scaleProviders = "providers" // that its workers have, by commas; all if it is missing
	scaleTools     = "tools"     // that its workers have, by commas; all if it is missing
	scaleParsers   = "parsers"   // that its workers have, by commas; all if it is missing
	scaleTenants   = "tenants"   // whose units it runs, by commas; all if it is missing
	scaleModels    = "models"    // "provider/model" of its units, by commas; all if it is missing
)

var scaleKeys = []string{scalePool, scaleSlots, scaleProviders, scaleTools, scaleParsers, scaleTenants, scaleModels}

// kedaKeys are those that KEDA uses itself.
var kedaKeys = []string{
	"scalerAddress", "metricType", "caCert", "tlsCertFile", "tlsClientCert", "tlsClientKey", "unsafeSsl", "enableTLS",
}

// A pool is what one scaled object asks about.
type pool struct {
	name  string
	slots int64
	lists map[string][]string // by key; a list that is missing holds all
}

// poolOf reads the metadata of a trigger. What it does not know is refused, as a filter
// that is misspelt would scale the pool for the units of all others.
func poolOf(ref *externalscaler.ScaledObjectRef) (*pool, error) {
	meta := ref.GetScalerMetadata()
	p := &pool{name: meta[scalePool], lists: make(map[string][]string)}

	for _, key := range slices.Sorted(maps.Keys(meta)) {
		switch {
		case slices.Contains(kedaKeys, key), key == scalePool, key == scaleSlots:
		case slices.Contains(scaleKeys, key):
			for part := range strings.SplitSeq(meta[key], ",") {
				if part = strings.TrimSpace(part); part != "" {
					p.lists[key] = append(p.lists[key], part)
				}
			}
		default:
			return nil, errs.Field("scalerMetadata", "has the key %q; the keys are %s", key, strings.Join(scaleKeys, ", "))
		}
	}

	if p.name == "" {
		p.name = ref.GetName()
	}

	var err error
	if p.slots, err = strconv.ParseInt(meta[scaleSlots], 10, 64); err != nil || p.slots < 1 {
		return nil, errs.Field("scalerMetadata.slots", "is %q; it must be the number of units that one worker runs at once, --slots", meta[scaleSlots])
	}
	return p, nil
}

// has reports whether a list of the pool holds all of some values. An empty value needs
// nothing.
func (p *pool) has(key string, values ...string) bool {
	list, limited := p.lists[key]
	for _, v := range values {
		if limited && v != "" && !slices.Contains(list, v) {
			return false
		}
	}
	return true
}

// runs reports whether workers of the pool run the units of a demand.
func (p *pool) runs(d *protocol.Demand) bool {
	if models, limited := p.lists[scaleModels]; limited && !slices.Contains(models, d.Model) {
		return false
	}
	return p.has(scaleProviders, d.Needs.Provider) && p.has(scaleTools, d.Needs.Tools...) &&
		p.has(scaleParsers, d.Needs.Parser) && p.has(scaleTenants, string(d.Tenant))
}

// units counts the units that workers of the pool could run at once.
func (s *scaler) units(ctx context.Context, p *pool) (n int64, err error) {
	all, err := s.demander.Demand(ctx, callerOf(ctx))
	if err != nil {
		return 0, err
	}
	for i := range all {
		if p.runs(&all[i]) {
			n += all[i].Units
		}
	}
	return n, nil
}

// metricName names the metric of a pool.
func (p *pool) metricName() string { return fmt.Sprintf("coditect_units_%s", p.name) }

// IsActive implements externalscaler.ExternalScalerServer.
func (s *scaler) IsActive(ctx context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	p, err := poolOf(ref)
	if err != nil {
		return nil, err
	}
	n, err := s.units(ctx, p)
	if err != nil {
		return nil, err
	}
	return &externalscaler.IsActiveResponse{Result: n > 0}, nil
}

// activeLook is how often a stream looks whether there is work.
const activeLook = 2 * time.Second

// StreamIsActive implements externalscaler.ExternalScalerServer. It says whether there is
// work at once, and then whenever that changes, so that the first worker need not wait
// until the autoscaler asks again.
func (s *scaler) StreamIsActive(ref *externalscaler.ScaledObjectRef, stream externalscaler.ExternalScaler_StreamIsActiveServer) error {
	p, err := poolOf(ref)
	if err != nil {
		return err
	}

	ctx := stream.Context()
	tick := time.NewTicker(activeLook)
	defer tick.Stop()

	for said, before := false, false; ; {
		n, err := s.units(ctx, p)
		if err != nil {
			return err
		}

		if active := n > 0; !said || active != before {
			if err := stream.Send(&externalscaler.IsActiveResponse{Result: active}); err != nil {
				return err
			}
			said, before = true, active
		}

		select {
		case <-tick.C:
		case <-s.leaving:
			return errs.New(errs.Unavailable, "this server is stopping; ask another")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// GetMetricSpec implements externalscaler.ExternalScalerServer.
func (s *scaler) GetMetricSpec(_ context.Context, ref *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	p, err := poolOf(ref)
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{
		{MetricName: p.metricName(), TargetSize: p.slots, TargetSizeFloat: float64(p.slots)},
	}}, nil
}

// GetMetrics implements externalscaler.ExternalScalerServer.
func (s *scaler) GetMetrics(ctx context.Context, q *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	p, err := poolOf(q.GetScaledObjectRef())
	if err != nil {
		return nil, err
	}

	n, err := s.units(ctx, p)
	if err != nil {
		return nil, err
	}
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: q.GetMetricName(), MetricValue: n, MetricValueFloat: float64(n)},
	}}, nil
}
