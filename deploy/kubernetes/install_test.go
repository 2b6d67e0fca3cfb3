package kubernetes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownCertificates are values for certificates that exist.
const ownCertificates = `
security:
  tls: {source: existingSecret, existingSecret: server, workerSecret: worker, clientSecret: client, scalerSecret: scaler}
`

func (p *plane) makeCertificates() *authority {
	p.t.Helper()
	a := newAuthority(p.t, "jobs")
	for _, who := range []string{"server", "worker", "client", "scaler"} {
		p.secret(who, a, "fleet-coditect-"+who, "localhost")
	}
	return a
}

// The chart installs, upgrades, rolls back and uninstalls with an embedded store, in a
// namespace that admits restricted pods alone. The volume outlives the release.
func TestInstallEmbedded(t *testing.T) {
	p := startPlane(t)
	p.node("a", nil)
	p.makeCertificates()
	p.volume("v1")
	p.mustHelm(ownCertificates, "install", "fleet", chart, "--values", "-", "--wait", "--timeout", "2m")
	p.wantPods("orchestrator", 1)
	p.wantPods("worker", 1)
	p.mustHelm(ownCertificates, "upgrade", "fleet", chart, "--values", "-", "--wait", "--timeout", "2m", "--set", "workerPools.default.replicas=3,workerPools.extra.slots=4")
	p.wantPods("worker", 4)
	p.mustHelm("", "rollback", "fleet", "1", "--wait", "--timeout", "2m")
	p.wantPods("worker", 1)
	p.mustHelm("", "uninstall", "fleet", "--wait", "--timeout", "2m")
	p.until("nothing but the volume is left", time.Minute, func() error {
		if left := p.objects("fleet"); left != "1 PersistentVolumeClaim" {
			return fmt.Errorf("left are %s", left)
		}
		return nil
	})
}

// volume makes a volume for a claim of an embedded store.
func (p *plane) volume(name string) {
	p.t.Helper()
	_, err := p.api.CoreV1().PersistentVolumes().Create(p.t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("10Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// On FoundationDB: each orchestrator has a node of its own, pools go where they belong, a
// drained node takes no more orchestrators with it than the budget says, and no pod has a
// token of the API server.
func TestInstallFleet(t *testing.T) {
	p := startPlane(t)
	for _, name := range []string{"a", "b", "c"} {
		p.node(name, nil)
	}
	gpu := corev1.Taint{Key: "pool", Value: "large", Effect: corev1.TaintEffectNoSchedule}
	p.node("large", map[string]string{"pool": "large"}, gpu)
	p.makeCertificates()
	values := ownCertificates + `
store: {type: foundationdb, foundationdb: {clusterFile: "a:b@fdb.example.com:4500"}}
orchestrator: {replicas: 3, antiAffinity: required}
workerDefaults: {replicas: 2}
workerPools:
  default: null
  small: {}
  large: {nodeSelector: {pool: large}, tolerations: [{key: pool, operator: Exists}], disruptionBudget: {maxUnavailable: 1}}
`
	p.mustHelm(values, "install", "fleet", chart, "--values", "-", "--wait", "--timeout", "2m")
	orchestrators, workers := p.wantPods("orchestrator", 3), p.wantPods("worker", 4)
	p.checkPlacement(orchestrators, workers)
	p.checkBudget(orchestrators)
	p.checkPolicies()
	p.rollOut(values)
	p.mustHelm("", "uninstall", "fleet", "--wait", "--timeout", "2m")
	p.until("nothing is left", time.Minute, func() error {
		if left := p.objects("fleet"); left != "" {
			return fmt.Errorf("left are %s", left)
		}
		return nil
	})
}

func (p *plane) checkPlacement(orchestrators, workers []corev1.Pod) {
	p.t.Helper()
	var nodes []string
	for _, pod := range orchestrators {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	slices.Sort(nodes)
	if want := []string{"a", "b", "c"}; !slices.Equal(nodes, want) {
		p.t.Errorf("orchestrators are on %v, want %v", nodes, want)
	}
	for _, pod := range workers {
		if large := pod.Labels["coditect.dev/pool"] == "large"; large != (pod.Spec.NodeName == "large") {
			p.t.Errorf("%s is on the node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	for _, pod := range append(orchestrators, workers...) {
		for _, v := range pod.Spec.Volumes {
			if v.Projected != nil {
				p.t.Errorf("%s mounts a token of the API server", pod.Name)
			}
		}
		if *pod.Spec.TerminationGracePeriodSeconds < 40 {
			p.t.Errorf("%s is killed after %d s", pod.Name, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
}

// checkBudget drains nodes: while no orchestrator can be replaced, only one may go.
func (p *plane) checkBudget(orchestrators []corev1.Pod) {
	p.t.Helper()
	for _, name := range []string{"a", "b", "c"} {
		p.cordon(name, true)
	}
	evicted, refused := 0, 0
	for _, pod := range orchestrators {
		err := p.api.PolicyV1().Evictions(namespace).Evict(p.t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace}})
		switch {
		case err == nil:
			evicted++
			p.until("the budget knows", time.Minute, func() error {
				b, err := p.api.PolicyV1().PodDisruptionBudgets(namespace).Get(p.t.Context(), "fleet-coditect-orchestrator", metav1.GetOptions{})
				if err == nil && b.Status.DisruptionsAllowed > 0 {
					err = fmt.Errorf("it allows %d", b.Status.DisruptionsAllowed)
				}
				return err
			})
		case apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), "budget"):
			refused++
		default:
			p.t.Fatal(err)
		}
	}
	p.t.Logf("three evictions of orchestrators that cannot be replaced: %d done, %d refused by the budget; wanted 1 and 2", evicted, refused)
	if evicted != 1 || refused != 2 {
		p.t.Error("the budget does not hold")
	}
	for _, name := range []string{"a", "b", "c"} {
		p.cordon(name, false)
	}
	p.wantPods("orchestrator", 3)
}

func (p *plane) cordon(node string, off bool) {
	p.t.Helper()
	p.until("the node "+node+" is changed", time.Minute, func() error {
		n, err := p.api.CoreV1().Nodes().Get(p.t.Context(), node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Spec.Unschedulable = off
		_, err = p.api.CoreV1().Nodes().Update(p.t.Context(), n, metav1.UpdateOptions{})
		return err
	})
}

// checkPolicies reads the network policies back: all pods of the release are denied all,
// and workers reach nothing but DNS and orchestrators.
func (p *plane) checkPolicies() {
	p.t.Helper()
	deny, err := p.api.NetworkingV1().NetworkPolicies(namespace).Get(p.t.Context(), "fleet-coditect-default-deny", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(deny.Spec.PolicyTypes) != 2 || len(deny.Spec.Ingress)+len(deny.Spec.Egress) > 0 {
		p.t.Errorf("%s allows something: %+v", deny.Name, deny.Spec)
	}
	worker, err := p.api.NetworkingV1().NetworkPolicies(namespace).Get(p.t.Context(), "fleet-coditect-worker-small", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if len(worker.Spec.Ingress) > 0 || len(worker.Spec.Egress) != 2 {
		p.t.Errorf("%s has %d rules in and %d out, want 0 and 2: DNS and orchestrators", worker.Name, len(worker.Spec.Ingress), len(worker.Spec.Egress))
	}
	for _, e := range worker.Spec.Egress {
		if len(e.To) == 0 || len(e.Ports) == 0 {
			p.t.Errorf("%s has a rule for everywhere: %+v", worker.Name, e)
		}
	}
}

// rollOut replaces all orchestrators: as many as before are ready all the time.
func (p *plane) rollOut(values string) {
	p.t.Helper()
	p.node("d", nil) // where the new one is ready before an old one goes
	before := p.pods("orchestrator")
	least, ended := len(before), make(chan struct{})
	go func() {
		defer close(ended)
		p.mustHelm(values, "upgrade", "fleet", chart, "--values", "-", "--wait", "--timeout", "3m", "--set", "orchestrator.maxCalls=51")
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-tick.C:
			least = min(least, len(p.pods("orchestrator")))
		case <-ended:
			done = true
		}
	}
	p.t.Logf("while all orchestrators were replaced, at least %d were ready; wanted %d", least, len(before))
	if least < len(before) {
		p.t.Error("too few orchestrators were ready during an upgrade")
	}
	for _, pod := range p.wantPods("orchestrator", 3) {
		if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
			p.t.Errorf("%s was not replaced", pod.Name)
		}
	}
}
