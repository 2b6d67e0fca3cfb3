package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// What TestKEDA scales: pools of workers with so many slots, up to the cap.
const (
	scaledUnits = 10_000
	scaledSlots = 20
	scaledCap   = 50
	modelCalls  = 120 // at once, which the limited model bears
)

// kedaNamespace is where KEDA believes to run.
const kedaNamespace = "keda"

// KEDA's own operator and metrics server, on a control plane, ask an orchestrator that runs,
// as the chart has them do: over TLS, with a certificate whose role is that of a scaler.
// From nothing to the workers that a model's limit has use for, to the cap, and back.
func TestKEDA(t *testing.T) {
	for _, name := range []string{"keda-operator", "keda-adapter"} {
		tool(t, name)
	}
	program := programOf(t)
	p := startPlane(t)
	p.node("a", nil)
	p.define("keda.sh", "eventing.keda.sh")
	authority := p.makeCertificates()
	grpc := p.port()
	chartValues := ownCertificates + fmt.Sprintf(`
orchestrator: {maxCalls: 50000, rates: ["openai/gpt-5-mini=calls:%d"]}
keda: {enabled: true, address: "localhost:%d", pollingInterval: 2, cooldownPeriod: 4, scaleDownStabilizationSeconds: 0, scaleDownPercent: 100}
workerDefaults: {slots: %d, autoscaling: {min: 0, max: %d}}
`, modelCalls, grpc, scaledSlots, scaledCap)
	p.volume("v1")
	p.startKEDA(authority)
	p.mustHelm(chartValues, "install", "fleet", chart, "--values", "-") // no --wait: pools are ready once an orchestrator runs
	p.startOrchestrator(program, authority, grpc)
	s := &scaling{plane: p, program: program, server: fmt.Sprintf("localhost:%d", grpc)}
	s.writeJob()
	s.reach("no job", 0, 0)
	limited := s.submit("openai", "gpt-5-mini", "10000")
	s.reach("10,000 units of a model that bears 120 calls", modelCalls, modelCalls/scaledSlots)
	free := s.submit("scripted", "", "10000")
	s.reach("10,000 more, without a limit", modelCalls+scaledUnits, scaledCap)
	s.mapreduce("cancel", "--job-id", limited)
	s.reach("the first 10,000 are cancelled", scaledUnits, scaledCap)
	p.startWith("worker", program, s.env(), append([]string{"worker", "--server", s.server, "--slots", "400"}, s.tls("worker")...)...)
	s.reach("a worker runs the others", 0, 0)
	if job := s.mapreduce("status", "--job-id", free, "-o", "json"); !strings.Contains(job, `"status": "complete"`) {
		t.Errorf("the job did not end well:\n%s", job)
	}
	t.Logf("\n%s", s.table.String())
}

// programOf returns the program that CODITECT_PROGRAM names, or skips the test.
func programOf(t *testing.T) string {
	t.Helper()
	program := os.Getenv("CODITECT_PROGRAM")
	if !isFile(program) {
		t.Skip("CODITECT_PROGRAM names no program; make test-kubernetes builds and names it")
	}
	return program
}

// define adds the definitions of groups from the folders that CODITECT_KUBE_CRDS names, or
// skips the test where there are none.
func (p *plane) define(groups ...string) {
	p.t.Helper()
	dir, found := p.t.TempDir(), 0
	for _, from := range filepath.SplitList(os.Getenv("CODITECT_KUBE_CRDS")) {
		copyDefinitions(p.t, from, dir)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			p.t.Fatalf("%s: %v", file, err)
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		if !strings.Contains(" "+strings.Join(groups, " ")+" ", " "+group+" ") {
			continue
		}
		p.create(runtimeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "", &o)
		found++
	}
	if found == 0 {
		p.t.Skipf("CODITECT_KUBE_CRDS names no folder with the definitions of %v", groups)
	}
}

// create makes an object.
func (p *plane) create(kind runtimeschema.GroupVersionResource, namespace string, o *unstructured.Unstructured) {
	p.t.Helper()
	var err error
	if namespace == "" {
		_, err = p.dynamic.Resource(kind).Create(p.t.Context(), o, metav1.CreateOptions{})
	} else {
		_, err = p.dynamic.Resource(kind).Namespace(namespace).Create(p.t.Context(), o, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		p.t.Fatalf("%s: %v", o.GetName(), err)
	}
}

// startKEDA starts KEDA's operator, which scales from and to zero, and its metrics server,
// which the control plane asks between them.
func (p *plane) startKEDA(a *authority) {
	p.t.Helper()
	_, err := p.api.CoreV1().Namespaces().Create(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kedaNamespace}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.Mkdir(p.path("keda"), 0o700); err != nil {
		p.t.Fatal(err)
	}
	own := a.issue(p.t, "localhost", "keda-operator", "keda-operator.keda.svc.cluster.local")
	p.write("keda/ca.crt", a.certPEM)
	p.write("keda/tls.crt", own.certPEM)
	p.write("keda/tls.key", own.keyPEM)
	env := []string{"KUBECONFIG=" + p.kubeconfig, "WATCH_NAMESPACE=" + namespace, "POD_NAMESPACE=" + kedaNamespace, "POD_NAME=keda", "KEDA_CLUSTER_OBJECT_NAMESPACE=" + kedaNamespace}
	metrics, adapter := p.port(), p.port()
	p.startWith("keda-operator", tool(p.t, "keda-operator"), env, "--metrics-bind-address", p.port().host(), "--health-probe-bind-address", p.port().host(),
		"--metrics-service-bind-address", metrics.host(), "--cert-dir", p.path("keda"), "--zap-log-level", "info")
	p.startWith("keda-adapter", tool(p.t, "keda-adapter"), env, "--secure-port", fmt.Sprint(int(adapter)), "--cert-dir", p.path("keda"),
		"--tls-cert-file", p.path("keda/tls.crt"), "--tls-private-key-file", p.path("keda/tls.key"),
		"--lister-kubeconfig", p.kubeconfig, "--authentication-kubeconfig", p.kubeconfig, "--authorization-kubeconfig", p.kubeconfig,
		"--authentication-skip-lookup=false", "--metrics-service-address", fmt.Sprintf("localhost:%d", metrics), "--port", fmt.Sprint(int(p.port())))
	// The API server hands what it is asked of this group on to the metrics server.
	_, err = p.api.CoreV1().Services(kedaNamespace).Create(p.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "keda-metrics"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: int32(adapter)}}},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.create(runtimeschema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, "", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.external.metrics.k8s.io"},
		"spec": map[string]any{
			"service": map[string]any{"name": "keda-metrics", "namespace": kedaNamespace, "port": int64(adapter)},
			"group":   "external.metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		},
	}})
	p.until("KEDA's metrics server answers", 2*time.Minute, func() error {
		_, err := p.api.Discovery().RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1").DoRaw(p.t.Context())
		return err
	})
}

// startOrchestrator starts the program with the arguments, the policy and the certificate
// that the chart has for its pod, at an address of this machine.
func (p *plane) startOrchestrator(program string, a *authority, at port) {
	p.t.Helper()
	set, err := p.api.AppsV1().StatefulSets(namespace).Get(p.t.Context(), "fleet-coditect-orchestrator", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	policy, err := p.api.CoreV1().ConfigMaps(namespace).Get(p.t.Context(), "fleet-coditect-policy", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("policy.yaml", []byte(policy.Data["policy.yaml"]))
	for _, name := range []string{"server", "worker", "client"} {
		secret, err := p.api.CoreV1().Secrets(namespace).Get(p.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.Mkdir(p.path(name), 0o700); err != nil {
			p.t.Fatal(err)
		}
		for file, text := range secret.Data {
			p.write(name+"/"+file, text)
		}
	}
	paths := strings.NewReplacer("/etc/coditect/tls", p.path("server"), "/etc/coditect/policy", p.dir, "/var/lib/coditect", p.path("store"),
		"--listen=0.0.0.0:7600", "--listen="+at.host(), "--admin=0.0.0.0:9600", "--admin="+p.port().host())
	var args []string
	for _, arg := range set.Spec.Template.Spec.Containers[0].Args {
		args = append(args, paths.Replace(arg))
	}
	p.startWith("orchestrator", program, []string{"HOME=" + p.dir, "XDG_DATA_HOME=" + p.path("data")}, args...)
}

// A scaling is an orchestrator, and the pool that is scaled by what it says.
type scaling struct {
	*plane
	program, server string
	table           bytes.Buffer
}

func (s *scaling) env() []string { return []string{"HOME=" + s.dir, "XDG_DATA_HOME=" + s.path("data")} }

// tls returns the flags of a peer.
func (s *scaling) tls(who string) []string {
	return []string{"--tls-ca", s.path(who + "/ca.crt"), "--tls-cert", s.path(who + "/tls.crt"), "--tls-key", s.path(who + "/tls.key")}
}

// mapreduce runs a command of the client and returns what it printed.
func (s *scaling) mapreduce(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, append(append([]string{"mapreduce"}, args...), append([]string{"--server", s.server}, s.tls("client")...)...)...)
	cmd.Env = append(os.Environ(), s.env()...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("mapreduce %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// writeJob writes the documents, a unit each, and the schema.
func (s *scaling) writeJob() {
	s.t.Helper()
	var b bytes.Buffer
	for n := range scaledUnits {
		fmt.Fprintf(&b, "{\"id\": \"d%05d\", \"text\": \"Name: number %d\"}\n", n, n)
	}
	s.write("documents.jsonl", b.Bytes())
	s.write("schema.yaml", []byte("title: name\ntype: object\nproperties:\n  name: {type: string, x-coditect: {labels: [Name]}}\n"))
}

// submit submits a job of all documents and returns its id.
func (s *scaling) submit(provider, model, parallelism string) string {
	s.t.Helper()
	args := []string{"run", "--detach", "--input", s.path("documents.jsonl"), "--schema", s.path("schema.yaml"), "--provider", provider, "--parallelism", parallelism}
	if model != "" {
		args = append(args, "--model", model)
	}
	if provider == "scripted" {
		args = append(args, "--var", "script.latency=50ms")
	}
	out := s.mapreduce(args...)
	at := strings.Index(out, "mr_")
	if at < 0 {
		s.t.Fatalf("no job was submitted:\n%s", out)
	}
	return out[at : at+len("mr_20261121_abcdef")]
}

// reach waits until the pool has the workers that are wanted, and notes the figures.
func (s *scaling) reach(step string, units, workers int64) {
	s.t.Helper()
	start := time.Now()
	path := "/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/s0-coditect_units_default"
	seen, counted := int32(0), int64(-1)
	stays := 0
	s.until(fmt.Sprintf("%s: %d workers", step, workers), 4*time.Minute, func() error {
		d, err := s.api.AppsV1().Deployments(namespace).Get(s.t.Context(), "fleet-coditect-worker-default", metav1.GetOptions{})
		if err != nil {
			return err
		}
		raw, err := s.api.Discovery().RESTClient().Get().AbsPath(path).Param("labelSelector", "scaledobject.keda.sh/name=fleet-coditect-worker-default").DoRaw(s.t.Context())
		if err != nil {
			return err
		}
		var list struct{ Items []struct{ Value string } }
		if err := json.Unmarshal(raw, &list); err != nil || len(list.Items) != 1 {
			return fmt.Errorf("the metric is %s (%w)", raw, err)
		}
		if _, err := fmt.Sscan(strings.TrimSuffix(list.Items[0].Value, "k")+strings.Repeat("000", strings.Count(list.Items[0].Value, "k")), &counted); err != nil {
			return fmt.Errorf("the metric is %s: %w", raw, err)
		}
		seen = d.Status.Replicas
		if int64(*d.Spec.Replicas) != workers || int64(seen) != workers || counted != units {
			stays = 0
			return fmt.Errorf("KEDA counts %d units, wanted %d; %d workers are asked for and %d are there", counted, units, *d.Spec.Replicas, seen)
		}
		if stays++; stays < 10 { // two seconds: it does not pass through
			return fmt.Errorf("it has not stayed so")
		}
		return nil
	})
	if s.table.Len() == 0 {
		fmt.Fprintf(&s.table, "%-48s %15s %15s %9s\n", "step", "units (wanted)", "workers (wanted)", "seconds")
	}
	fmt.Fprintf(&s.table, "%-48s %7d (%5d) %8d (%5d) %9.1f\n", step, counted, units, seen, workers, time.Since(start).Seconds())
}
