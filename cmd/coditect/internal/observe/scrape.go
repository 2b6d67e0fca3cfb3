package observe

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// prefix begins the names of all metrics, so that those of this program stand together
// wherever they are kept.
const prefix = "coditect_"

// newScrape returns a reader of metrics, and what gathers them with those of the process.
func newScrape(version string) (sdkmetric.Reader, prometheus.Gatherer, error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, nil, fmt.Errorf("/metrics: %w", err)
	}

	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "build_info", Help: "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)

	for _, c := range []prometheus.Collector{build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return nil, nil, fmt.Errorf("/metrics: %w", err)
		}
	}

	return reader, prefixed{registry}, nil
}

// prefixed gathers metrics under names that begin with the prefix.
type prefixed struct{ prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (p prefixed) Gather() ([]*dto.MetricFamily, error) {
	all, err := p.Gatherer.Gather()
	for _, family := range all {
		if !strings.HasPrefix(family.GetName(), prefix) {
			name := prefix + family.GetName()
			family.Name = &name
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, err
}

// scrapeWait bounds one scrape.
const scrapeWait = 10 * time.Second

// scrapeHandler answers scrapes, with exemplars for those who ask for OpenMetrics.
func scrapeHandler(g prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(g, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: scrapeWait,
	})
}
