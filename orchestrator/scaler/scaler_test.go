package scaler_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/proto/externalscaler"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A scaled is a pool as an autoscaler sees it.
type scaled struct {
	externalscaler.ExternalScalerClient
	t   *testing.T
	ref *externalscaler.ScaledObjectRef
}

// pool asks an orchestrator about a pool, through gRPC.
func pool(n *enginetest.Node, t *testing.T, metadata map[string]string) *scaled {
	t.Helper()
	srv, err := server.New(n.Orch, n.Orch, server.Config{Demand: n.Orch})
	if err != nil {
		t.Fatal(err)
	}
	return &scaled{externalscaler.NewExternalScalerClient(servertest.Connect(t, srv)), t, &externalscaler.ScaledObjectRef{Name: "workers", ScalerMetadata: metadata}}
}

// units returns what the metric of the pool is, after what was counted before is stale.
func (s *scaled) units() int64 {
	s.t.Helper()
	<-time.After(2 * time.Second)
	m, err := s.GetMetrics(s.t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: s.ref, MetricName: "m"})
	if err != nil {
		s.t.Fatal(err)
	}
	active, err := s.IsActive(s.t.Context(), s.ref)
	if err != nil {
		s.t.Fatal(err)
	}
	n := m.MetricValues[0].MetricValue
	if active.Result != (n > 0) {
		s.t.Errorf("active is %t, and %d units could run", active.Result, n)
	}
	return n
}

func (s *scaled) want(n int64, when string) {
	s.t.Helper()
	if got := s.units(); got != n {
		s.t.Errorf("%s: %d units could run, want %d", when, got, n)
	}
}

// A fleet is scaled from zero to what one job can use, and back to zero. What runs stays
// counted, or the fleet would shrink while it works.
func TestScaleFromZeroAndBack(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, enginetest.Steady())
		n := f.Any()
		s := pool(n, t, map[string]string{"slots": "4"})
		s.want(0, "without a job")
		spec := enginetest.Script(map[string]string{"script.latency": "10s"})
		spec.Parallelism, spec.ReduceContextLimit = 12, 1<<30
		id := n.Submit(spec, 100)
		s.want(12, "with 100 units, 12 of which may run at once")
		f.Join(worker.Config{Slots: 12})
		n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 50 })
		s.want(12, "while units run")
		n.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits >= 96 })
		if got := s.units(); got < 1 || got > 4 {
			t.Errorf("with the last 4 units running, %d could", got)
		}
		n.WantEnd(id, mapreduce.JobComplete)
		s.want(0, "after the end")
	})
}

// No worker is started to wait for a limit: of the fleet, of a model, of a rate, of a
// budget, or behind a breaker.
func TestNoWorkerIsStartedToWait(t *testing.T) {
	limited := func(l orchestrator.ModelLimits, calls int) orchestrator.Config {
		c := enginetest.Steady()
		c.MaxCalls = calls
		c.Limits = func(string) orchestrator.ModelLimits { return l }
		return c
	}
	for name, tt := range map[string]struct {
		config orchestrator.Config
		budget int64
		want   int64
	}{
		"nothing but the job's parallelism": {limited(orchestrator.ModelLimits{}, 1000), 0, 200},
		"calls of the fleet":                {limited(orchestrator.ModelLimits{}, 30), 0, 30},
		"calls of the model":                {limited(orchestrator.ModelLimits{Calls: 7}, 1000), 0, 7},
		"requests a minute":                 {limited(orchestrator.ModelLimits{Rates: mapreduce.Rates{Requests: 300}}, 1000), 0, 10},
		"a budget for few units":            {limited(orchestrator.ModelLimits{}, 1000), 40_000, 3},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				tt.config.Rates = twoSecondCalls
				f := enginetest.NewFleet(t, 1, 1, nil, tt.config)
				n := f.Any()
				spec := enginetest.Script(map[string]string{"script.latency": "2s", "script.tokens": "100"})
				spec.Parallelism, spec.ReduceContextLimit, spec.Budget = 200, 1<<30, tt.budget
				n.Submit(spec, 1000)
				pool(n, t, map[string]string{"slots": "4"}).want(tt.want, "with 1,000 units waiting")
			})
		})
	}
}

// twoSecondCalls are what is assumed of calls before there were any.
func twoSecondCalls(*mapreduce.JobSpec) plan.Rates {
	return plan.Rates{Model: true, CallTime: 2 * time.Second}
}

// Two tenants and two kinds of workers share one limit: each pool gets its part of it,
// and together they come to the limit.
func TestPoolsShareALimit(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.Steady()
		c.MaxCalls = 40
		f := enginetest.NewFleet(t, 1, 1, nil, c)
		n := f.Any()
		for _, tenant := range []mapreduce.TenantID{"a", "b"} {
			spec := enginetest.Script(nil)
			spec.Tenant, spec.Parallelism = tenant, 100
			n.Submit(spec, 500)
		}
		pool(n, t, map[string]string{"slots": "4", "tenants": "a"}).want(20, "of tenant a")
		pool(n, t, map[string]string{"slots": "4", "tenants": "b"}).want(20, "of tenant b")
		pool(n, t, map[string]string{"slots": "4", "tenants": "a, b"}).want(40, "of both")
		pool(n, t, map[string]string{"slots": "4", "providers": "scripted"}).want(40, "of the provider")
		pool(n, t, map[string]string{"slots": "4", "providers": "openai"}).want(0, "of another provider")
		pool(n, t, map[string]string{"slots": "4", "models": "scripted/"}).want(40, "of the model")
		pool(n, t, map[string]string{"slots": "4", "models": "scripted/other"}).want(0, "of another model")
	})
}

// The autoscaler is told of the first unit, and of the end of the last, without asking.
func TestScalerTellsOfWork(t *testing.T) {
	testenv.Raced(t)

	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 1, 1, nil, enginetest.Steady())
		n := f.Any()
		s := pool(n, t, map[string]string{"slots": "4"})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stream, err := s.StreamIsActive(ctx, s.ref)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{false, true, false} {
			switch i {
			case 1:
				n.Submit(enginetest.Script(nil), 3)
			case 2:
				f.Join(worker.Config{Slots: 4})
			}
			start := time.Now()
			m, err := stream.Recv()
			if err != nil || m.Result != want {
				t.Fatalf("message %d: active is %t (%v), want %t", i, m.GetResult(), err, want)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("message %d came after %v", i, took)
			}
		}
	})
}

// A trigger whose metadata is wrong is refused with what to write instead: a filter that
// is ignored would scale a pool for the units of all others.
func TestScalerRefusesMetadata(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
	for name, metadata := range map[string]map[string]string{
		"no slots":      {},
		"no number":     {"slots": "many"},
		"none":          {"slots": "0"},
		"a misspelling": {"slots": "4", "tenant": "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool(n, t, metadata)
			if _, err := s.GetMetricSpec(t.Context(), s.ref); status.Code(err) != codes.InvalidArgument {
				t.Errorf("error %v, want that the metadata is invalid", err)
			}
			if _, err := s.IsActive(t.Context(), s.ref); status.Code(err) != codes.InvalidArgument {
				t.Errorf("error %v, want that the metadata is invalid", err)
			}
		})
	}
	s := pool(n, t, map[string]string{"slots": "4", "pool": "small", "scalerAddress": "orchestrator:7600"})
	spec, err := s.GetMetricSpec(t.Context(), s.ref)
	if err != nil || len(spec.MetricSpecs) != 1 || spec.MetricSpecs[0].TargetSize != 4 || spec.MetricSpecs[0].MetricName != "coditect_units_small" {
		t.Errorf("got %v (%v), want that a worker of the pool small is for 4 units", spec, err)
	}
}
