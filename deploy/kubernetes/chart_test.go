package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// chart is the folder of the chart.
const chart = "../helm/coditect"

// tool returns the path of a program, from the folder that CODITECT_KUBE_TOOLS names, or
// from PATH. The test is skipped where it is missing.
func tool(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv("CODITECT_KUBE_TOOLS"); dir != "" {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is neither in the folder CODITECT_KUBE_TOOLS nor in PATH; docs/kubernetes.md says where it comes from", name)
	}
	return path
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// run runs a program and returns what it printed to both streams.
func run(t testing.TB, input []byte, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// values are those of the chart, as YAML has them.
type values = map[string]any

// render returns the objects of the chart with values, or what Helm said.
func render(t testing.TB, v values) ([][]byte, error) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	// All that is asked of the cluster is whether it has a kind.
	cmd := exec.CommandContext(t.Context(), tool(t, "helm"), "template", "demo", chart, "--namespace", "jobs", "--values", "-")
	cmd.Stdin = bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	var all [][]byte
	for doc := range bytes.SplitSeq(out, []byte("\n---\n")) {
		if len(bytes.TrimSpace(stripComments(doc))) > 0 {
			all = append(all, doc)
		}
	}
	return all, nil
}

func stripComments(doc []byte) []byte {
	var kept [][]byte
	for line := range bytes.Lines(doc) {
		if s := bytes.TrimSpace(line); len(s) > 0 && s[0] != '#' && !bytes.Equal(s, []byte("---")) {
			kept = append(kept, line)
		}
	}
	return bytes.Join(kept, nil)
}

// A kind is what an object says of itself.
type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct{ Name string }
}

func kindOf(t testing.TB, doc []byte) kind {
	t.Helper()
	var k kind
	if err := yaml.Unmarshal(doc, &k); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	return k
}

// types are the kinds of Kubernetes' own API that the chart has.
var types = map[string]func() any{
	"apps/v1 Deployment":                     func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                    func() any { return new(appsv1.StatefulSet) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1 Ingress":           func() any { return new(networkingv1.Ingress) },
	"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":          func() any { return new(policyv1.PodDisruptionBudget) },
	"v1 ConfigMap":                           func() any { return new(corev1.ConfigMap) },
	"v1 Pod":                                 func() any { return new(corev1.Pod) },
	"v1 Service":                             func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                      func() any { return new(corev1.ServiceAccount) },
}

// others are kinds of others, which kubectl-validate checks where their definitions are.
var others = []string{
	"apps.foundationdb.org/v1beta2 FoundationDBCluster",
	"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer", "gateway.networking.k8s.io/v1 HTTPRoute",
	"keda.sh/v1alpha1 ScaledObject", "keda.sh/v1alpha1 TriggerAuthentication",
	"monitoring.coreos.com/v1 PodMonitor", "monitoring.coreos.com/v1 PrometheusRule", "monitoring.coreos.com/v1 ServiceMonitor",
}

// check decodes an object strictly, and holds its pods against the restricted level.
func check(t testing.TB, doc []byte) {
	t.Helper()
	k := kindOf(t, doc)
	name := k.APIVersion + " " + k.Kind
	make := types[name]
	if make == nil {
		if !slices.Contains(others, name) {
			t.Errorf("%s is of no kind that is known here", name)
		}
		return
	}
	object := make()
	if err := yaml.UnmarshalStrict(doc, object); err != nil {
		t.Errorf("%s %s: %v\n%s", name, k.Metadata.Name, err, doc)
		return
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		checkPod(t, name, &o.Spec.Template.ObjectMeta.Labels, &o.Spec.Template.Spec)
	case *appsv1.StatefulSet:
		checkPod(t, name, &o.Spec.Template.ObjectMeta.Labels, &o.Spec.Template.Spec)
	case *corev1.Pod:
		checkPod(t, name, &o.Labels, &o.Spec)
	case *corev1.ServiceAccount:
		if o.AutomountServiceAccountToken == nil || *o.AutomountServiceAccountToken {
			t.Errorf("service account %s mounts a token", o.Name)
		}
	}
}

// checkPod holds a pod against the restricted level of the pod security standards, and
// what the chart promises beside it.
func checkPod(t testing.TB, name string, labels *map[string]string, pod *corev1.PodSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	o := &corev1.Pod{Spec: *pod}
	o.Labels = *labels
	results := evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &o.ObjectMeta, pod)
	if r := policy.AggregateCheckResults(results); !r.Allowed {
		t.Errorf("%s is not restricted: %s", name, r.ForbiddenDetail())
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s mounts a token of its service account", name)
	}
	for _, c := range pod.Containers {
		if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: the container %s may write to its root", name, c.Name)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: the container %s has no limit of memory", name, c.Name)
		}
	}
}

// A leaf is one value of the chart.
type leaf struct {
	path  []string
	value any // other than the default
}

func (l leaf) String() string { return strings.Join(l.path, ".") }

// set puts a leaf into values.
func (l leaf) set(v values) {
	at := v
	for _, key := range l.path[:len(l.path)-1] {
		next, ok := at[key].(values)
		if !ok {
			next = values{}
			at[key] = next
		}
		at = next
	}
	at[l.path[len(l.path)-1]] = l.value
}

// samples are values for those that a pattern or a meaning bounds more than a type does.
var samples = map[string]any{
	"affinity":                  values{"nodeAffinity": values{}},
	"egress":                    []any{values{"ports": []any{values{"protocol": "TCP", "port": 443}}}},
	"orchestratorEgress":        []any{values{"ports": []any{values{"protocol": "TCP", "port": 8443}}}},
	"tolerations":               []any{values{"key": "pool", "operator": "Exists"}},
	"topologySpreadConstraints": []any{values{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}},
	"clients":                   []any{values{"podSelector": values{}}},
	"monitoring":                []any{values{"namespaceSelector": values{}}},
	"dns":                       []any{values{"podSelector": values{}}},
	"parentRefs":                []any{values{"name": "public"}},
	"hostnames":                 []any{"jobs.example.com"},
	"host":                      "jobs.example.com",
	"rates":                     []any{"openai/gpt-5=requests:500"},
	"secretEnv":                 []any{values{"name": "OPENAI_API_KEY", "secret": "keys", "key": "openai"}},
	"policy":                    values{"principals": []any{values{"match": "dns:a", "tenant": "a", "roles": []any{"submitter"}}}},
	"accessModes":               []any{"ReadWriteOncePod"},
	"models":                    []any{"openai/gpt-5"},
	"storageClass":              "fast",
	"size":                      "20Gi",
	"duration":                  "720h",
	"renewBefore":               "240h",
	"interval":                  "10s",
	"issuer":                    "https://issuer.example.com",
	"otlpEndpoint":              "http://collector:4317",
	"address":                   "orchestrators:7600",
	"requests":                  values{"cpu": "100m", "memory": "1Gi"},
	"limits":                    values{"memory": "3Gi", "cpu": 2},
	"maxUnavailable":            "50%",
	"clusterFile":               "a:b@fdb.example.com:4500",
	"memoryBudget":              512,
	"replicas":                  3,
	"type":                      "foundationdb",
	"workerPools":               values{"one": values{"slots": 4}, "two": values{"providers": []any{"openai"}, "tools": []any{"search"}}},
}

// needed are values without which another would be refused, or would have no effect.
var needed = map[string]values{
	"store.type":                     {"store": values{"foundationdb": values{"existingConfigMap": "fdb-config"}}},
	"store.foundationdb":             {"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config"}}},
	"store.foundationdb.clusterFile": {"store": values{"type": "foundationdb"}},
	"orchestrator.replicas":          {"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config"}}},
	"orchestrator.antiAffinity":      {"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config"}}},
	"orchestrator.disruptionBudget":  {"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config"}}},
	"security.tls.source":            {"security": values{"tls": values{"existingSecret": "a", "workerSecret": "b", "clientSecret": "c", "scalerSecret": "d"}}},
	"security.oidc.issuer":           {"security": values{"oidc": values{"audience": "jobs"}}},
	"security.oidc.audience":         {"security": values{"oidc": values{"issuer": "https://issuer.example.com"}}},
	"workerDefaults.browser":         {"workerDefaults": values{"browserImage": "browser:1"}},
	"workerDefaults.browserImage":    {"workerDefaults": values{"browser": true}},
	"workerDefaults.autoscaling":     {"keda": values{"enabled": true}},
	"workerDefaults.autoscaling.min": {"keda": values{"enabled": true}},
	"workerDefaults.tenants":         {"keda": values{"enabled": true}},
	"workerDefaults.models":          {"keda": values{"enabled": true}},
	"workerDefaults.tools":           {"keda": values{"enabled": true}},
	"keda":                           {"keda": values{"enabled": true}},
	"security.tls.scalerSecret":      {"keda": values{"enabled": true}},
	"hpa":                            {"hpa": values{"enabled": true}, "workerDefaults": values{"autoscaling": values{"min": 1}}},
	"http":                           {"http": values{"enabled": true}},
	"ingress":                        {"http": values{"enabled": true}, "ingress": values{"enabled": true, "host": "jobs.example.com"}},
	"gateway":                        {"http": values{"enabled": true}, "gateway": values{"enabled": true, "parentRefs": []any{values{"name": "public"}}}},
	"serviceMonitor":                 {"serviceMonitor": values{"enabled": true}},
	"networkPolicy.clients":          {"http": values{"enabled": true}},
	"dashboards":                     {"dashboards": values{"enabled": true}},
	"alerts":                         {"alerts": values{"enabled": true}},
	"security.tls.issuer":            {"security": values{"tls": values{"issuer": values{"name": "corporate"}}}},
}

// withNeeded returns values with a leaf and what it needs, by the longest path that has
// needs.
func withNeeded(l leaf) values {
	v := values{}
	for n := len(l.path); n > 0 && l.value != "embedded"; n-- {
		if more, ok := needed[strings.Join(l.path[:n], ".")]; ok {
			merge(v, more)
			break
		}
	}
	l.set(v)
	return v
}

// merge puts what is in b into a, beside what is there.
func merge(a, b values) {
	for key, value := range b {
		into, ok := a[key].(values)
		if from, deep := value.(values); deep && ok {
			merge(into, from)
		} else if deep {
			copied := values{}
			merge(copied, from)
			a[key] = copied
		} else if _, there := a[key]; !there {
			a[key] = value
		}
	}
}

// schema is that of the values.
func schema(t testing.TB) values {
	t.Helper()
	return readYAML(t, "values.schema.json")
}

func readYAML(t testing.TB, name string) values {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, name))
	if err != nil {
		t.Fatal(err)
	}
	var v values
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// leaves lists the values of the schema, each with a value for it.
func leaves(t testing.TB, at values, path ...string) (all []leaf) {
	t.Helper()
	properties, _ := at["properties"].(values)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		p := properties[key].(values)
		here := append(slices.Clone(path), key)
		if sub, ok := p["properties"].(values); ok && len(sub) > 0 && key != "resources" {
			all = append(all, leaves(t, p, here...)...)
			continue
		}
		for _, v := range sampleOf(t, key, p, here) {
			all = append(all, leaf{here, v})
		}
	}
	return all
}

// sampleOf returns values for one of the schema.
func sampleOf(t testing.TB, key string, p values, path []string) []any {
	t.Helper()
	if enum, ok := p["enum"].([]any); ok {
		return enum
	}
	if s, ok := samples[strings.Join(path, ".")]; ok {
		return []any{s}
	}
	name := p["type"]
	if list, ok := name.([]any); ok {
		name = list[0]
	}
	if s, ok := samples[key]; ok && (name != "boolean" && (name != "string" || fmt.Sprintf("%T", s) == "string")) {
		return []any{s}
	}
	switch name {
	case "boolean":
		return []any{true, false}
	case "integer":
		least, _ := p["minimum"].(float64)
		return []any{int(max(least, 7))}
	case "string":
		return []any{"sample"}
	case "array":
		return []any{[]any{"sample"}}
	case "object":
		if key == "resources" {
			return []any{values{"requests": samples["requests"], "limits": samples["limits"]}}
		}
		return []any{values{"sample": "value"}}
	}
	t.Fatalf("%v: a value of the type %v is not known here", path, name)
	return nil
}

// Each value alone, each with what it needs, gives objects that the API's types have, and
// pods of the restricted level.
func TestEveryValueAlone(t *testing.T) {
	tool(t, "helm")
	seen := make(objects)
	all := leaves(t, schema(t))
	for _, l := range all {
		t.Run(fmt.Sprintf("%v=%v", l, l.value), func(t *testing.T) {
			docs, err := render(t, withNeeded(l))
			if err != nil {
				t.Fatal(err)
			}
			seen.check(t, docs)
		})
	}
	t.Logf("%d values, %d different objects", len(all), len(seen))
	seen.validate(t)
}

// A hundred combinations of values at random: each is refused with what to do, or good.
func TestRandomCombinations(t *testing.T) {
	tool(t, "helm")
	random, seen := rand.New(rand.NewPCG(23, 1)), make(objects)
	all := leaves(t, schema(t))
	refused := 0
	for n := range 100 {
		v := values{}
		for range 2 + random.IntN(20) {
			merge(v, withNeeded(all[random.IntN(len(all))]))
		}
		docs, err := render(t, v)
		if err != nil {
			if !explained(err) {
				t.Errorf("combination %d: %v\n%v", n, err, v)
			}
			refused++
			continue
		}
		seen.check(t, docs)
	}
	t.Logf("%d of 100 refused with what to do, %d different objects", refused, len(seen))
	if refused > 60 {
		t.Errorf("%d of 100 combinations were refused: the test shows little", refused)
	}
	seen.validate(t)
}

// The examples beside the chart are objects as their definitions have them.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../helm/examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	all := make(objects)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.check(t, [][]byte{text})
	}
	all.validate(t)
}

// explained reports whether an error is one of the chart's own sentences.
func explained(err error) bool {
	text := err.Error()
	return strings.Contains(text, "checks.yaml") && strings.Contains(text, "execution error") && !strings.Contains(text, "nil pointer")
}

// objects are those that were checked, by their text.
type objects map[string]bool

func (o objects) check(t testing.TB, docs [][]byte) {
	t.Helper()
	for _, doc := range docs {
		if !o[string(doc)] {
			o[string(doc)] = true
			check(t, doc)
		}
	}
}

// schemas is the release of Kubernetes whose definitions kubectl-validate has built in, the
// latest that it has.
const schemas = "1.30"

// validate has kubectl-validate check all objects, those of other kinds by the
// definitions in the folders that CODITECT_KUBE_CRDS names.
func (o objects) validate(t *testing.T) {
	t.Run("kubectl-validate", func(t *testing.T) {
		program := tool(t, "kubectl-validate")
		definitions := t.TempDir()
		for _, dir := range filepath.SplitList(os.Getenv("CODITECT_KUBE_CRDS")) {
			copyDefinitions(t, dir, definitions)
		}
		dir, n, left := t.TempDir(), 0, make(map[string]int)
		for _, doc := range slices.Sorted(maps.Keys(o)) {
			k := kindOf(t, []byte(doc))
			group, _, _ := strings.Cut(k.APIVersion, "/")
			if name := k.APIVersion + " " + k.Kind; slices.Contains(others, name) && !hasDefinition(t, definitions, group, k.Kind) {
				left[name]++
				continue
			}
			n++
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%05d.yaml", n)), []byte(doc), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := run(t, nil, program, "--version", schemas, "--local-crds", definitions, dir); err != nil {
			lines := strings.Split(out, "\n")
			// Colours stand around what it says.
			lines = slices.DeleteFunc(lines, func(l string) bool {
				return strings.TrimSpace(l) == "" || strings.HasSuffix(l, "OK\x1b[0m") || strings.HasSuffix(l, "OK")
			})
			t.Fatalf("%v:\n%s", err, strings.Join(lines[:min(60, len(lines))], "\n"))
		}
		t.Logf("%d objects are valid; left out for want of definitions: %v", n, left)
	})
}

// copyDefinitions copies the YAML files of a folder.
func copyDefinitions(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("kind: CustomResourceDefinition")) {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.Base(path)), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hasDefinition(t testing.TB, dir, group, kind string) bool {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("group: "+group)) && bytes.Contains(text, []byte("kind: "+kind+"\n")) {
			return true
		}
	}
	return false
}

// Values that contradict each other are refused with the sentence that says what to do.
func TestContradictionsAreRefused(t *testing.T) {
	tool(t, "helm")
	fdb := values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config"}}
	for name, tt := range map[string]struct {
		v    values
		want string
	}{
		"two orchestrators on one volume": {values{"orchestrator": values{"replicas": 2}}, "set store.type=foundationdb to have several"},
		"a cluster file that is not used": {values{"store": values{"foundationdb": values{"clusterFile": "a:b@c:1"}}}, "set store.type=foundationdb, or remove the cluster file"},
		"no cluster file":                 {values{"store": values{"type": "foundationdb"}}, "set clusterFile to its content, or existingConfigMap"},
		"two cluster files":               {values{"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "a", "clusterFile": "b"}}}, "keep one of them"},
		"two autoscalers":                 {values{"keda": values{"enabled": true}, "hpa": values{"enabled": true}}, "enable one of them"},
		"an HPA to zero":                  {values{"hpa": values{"enabled": true}}, "set min to 1 or more, or use keda.enabled"},
		"a policy for nobody":             {values{"security": values{"insecure": true, "tokensSecret": "t"}}, "set security.insecure=false, or remove them"},
		"everybody from outside":          {values{"security": values{"insecure": true}, "http": values{"enabled": true}, "ingress": values{"enabled": true, "host": "a"}}, "or disable ingress and gateway"},
		"no certificate":                  {values{"security": values{"tls": values{"source": "existingSecret"}}}, "or set security.tls.source=certManager"},
		"no certificate of workers":       {values{"security": values{"tls": values{"source": "existingSecret", "existingSecret": "a"}}}, "name the Secret with its tls.crt"},
		"two policies":                    {values{"security": values{"policy": values{"principals": []any{}}, "existingPolicyConfigMap": "p"}}, "one policy counts"},
		"an issuer without an audience":   {values{"security": values{"oidc": values{"issuer": "https://a"}}}, "given together, or neither"},
		"an ingress to nothing":           {values{"ingress": values{"enabled": true, "host": "a"}}, "set http.enabled=true"},
		"an ingress without a host":       {values{"http": values{"enabled": true}, "ingress": values{"enabled": true}}, "name the host"},
		"a route of no gateway":           {values{"http": values{"enabled": true}, "gateway": values{"enabled": true}}, "name the Gateway"},
		"nobody works":                    {values{"workerPools": values{"default": nil}, "store": fdb}, "add a pool, or set orchestrator.slots"},
		"a range that is none":            {values{"workerPools": values{"default": values{"autoscaling": values{"min": 5, "max": 2}}}}, "min must not be above max"},
		"a browser without its image":     {values{"workerPools": values{"default": values{"browser": true}}}, "name the image"},
		"the tool without the browser":    {values{"workerPools": values{"default": values{"tools": []any{"browser"}}}}, "set browser=true"},
		"a misspelling":                   {values{"keda": values{"enable": true}}, "additional properties"},
		"a pool's misspelling":            {values{"workerPools": values{"default": values{"slot": 3}}}, "additional properties"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tt.v)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want it to say %q", err, tt.want)
			}
		})
	}
}

// A label that several values name stands once, and the one nearest to the object counts;
// those by which objects are found cannot be taken away.
func TestLabelsStandOnce(t *testing.T) {
	tool(t, "helm")
	labels := func(v string) values {
		return values{"team": v, "app.kubernetes.io/name": v, "app.kubernetes.io/component": v, "coditect.dev/pool": v}
	}
	docs, err := render(t, values{
		"commonLabels": labels("common"), "orchestrator": values{"podLabels": labels("own")}, "workerDefaults": values{"podLabels": labels("own")},
		"serviceMonitor": values{"enabled": true, "labels": labels("own")}, "alerts": values{"enabled": true, "labels": labels("own")}, "dashboards": values{"enabled": true, "labels": labels("own")},
	})
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, doc := range docs {
		check(t, doc)
		var strict map[string]any
		if err := yaml.UnmarshalStrict(doc, &strict); err != nil {
			t.Errorf("%v in\n%s", err, doc)
		}
		own += bytes.Count(doc, []byte("team: own"))
		if bytes.Contains(doc, []byte("app.kubernetes.io/name: own")) || bytes.Contains(doc, []byte("component: common")) {
			t.Errorf("a label by which objects are found was taken away in\n%s", doc)
		}
	}
	if own != 6 { // two pods, two monitors, the alerts, a board
		t.Errorf("%d objects have the label of their own, want 6", own)
	}
}

// The schema describes every value that there is, and there is a default for every value
// that it describes.
func TestEveryValueIsDescribed(t *testing.T) {
	compare(t, schema(t), readYAML(t, "values.yaml"))
}

func compare(t *testing.T, s, v values, path ...string) {
	t.Helper()
	properties, ok := s["properties"].(values)
	if !ok {
		return
	}
	for key, p := range properties {
		here := append(slices.Clone(path), key)
		p := p.(values)
		if text, _ := p["description"].(string); !strings.HasSuffix(text, ".") || len(text) < 10 {
			t.Errorf("%v is described as %q, want a sentence", here, text)
		}
		value, there := v[key]
		if !there && key != "global" && !slices.Contains(path, "resources") {
			t.Errorf("%v has no default in values.yaml", here)
		}
		if sub, ok := value.(values); ok {
			compare(t, p, sub, here...)
		}
	}
	for key := range v {
		if _, there := properties[key]; !there && s["additionalProperties"] == false {
			t.Errorf("%v.%s is not in the schema", path, key)
		}
	}
}

func TestLint(t *testing.T) {
	if out, err := run(t, nil, tool(t, "helm"), "lint", "--strict", chart); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// Each argument of each container is one that the program knows, with a value that it can
// have: whatever is switched on.
func TestEveryFlagExists(t *testing.T) {
	program := programOf(t)
	everything := values{
		"orchestrator": values{"rates": []any{"openai/gpt-5=requests:500"}, "slots": 2},
		"security":     values{"tokensSecret": "tokens", "oidc": values{"issuer": "https://issuer.example.com", "audience": "jobs"}},
		"keda":         values{"enabled": true},
		"workerPools":  values{"models": values{"providers": []any{"openai", "anthropic"}, "tools": []any{"fetch"}}},
	}
	help, err := run(t, nil, program, "serve", "--help")
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	if strings.Contains(help, "--http ") {
		everything["http"] = values{"enabled": true}
	} else {
		t.Log("this program has no HTTP listener, so http.enabled was not checked")
	}
	shared := values{"store": values{"type": "foundationdb", "foundationdb": values{"existingConfigMap": "fdb-config", "prefix": "a"}}}
	merge(shared, everything)
	seen := make(map[string]bool)
	for name, v := range map[string]values{"nothing": {}, "everything": everything, "on a cluster": shared, "without security": {"security": values{"insecure": true}}} {
		docs, err := render(t, v)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, doc := range docs {
			for _, args := range argumentsOf(t, doc) {
				line := strings.Join(args, " ")
				if seen[line] {
					continue
				}
				seen[line] = true
				if out, err := run(t, nil, program, append(args, "--help")...); err != nil {
					t.Errorf("%s: %s: %v\n%s", name, line, err, out)
				}
			}
		}
	}
	t.Logf("%d different command lines", len(seen))
}

// argumentsOf returns the arguments of the containers of an object.
func argumentsOf(t *testing.T, doc []byte) (all [][]string) {
	t.Helper()
	var o struct {
		Spec struct {
			Containers []corev1.Container
			Template   struct{ Spec corev1.PodSpec }
		}
	}
	if err := yaml.Unmarshal(doc, &o); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(o.Spec.Containers, o.Spec.Template.Spec.Containers...) {
		all = append(all, c.Args)
	}
	return all
}
