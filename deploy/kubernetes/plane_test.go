package kubernetes_test

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A plane is a control plane of Kubernetes in processes of this machine, with nodes on
// which pods are only said to run.
type plane struct {
	t          *testing.T
	dir        string
	kubeconfig string
	config     *rest.Config
	api        *kubernetes.Clientset
	dynamic    *dynamic.DynamicClient
	ports      []port // that were given out
}

// namespace is where the chart is installed. It admits restricted pods alone.
const namespace = "jobs"

// startPlane starts one, or skips the test where a program of it is missing.
func startPlane(t *testing.T) *plane {
	t.Helper()
	for _, name := range []string{"helm", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		tool(t, name)
	}
	p := &plane{t: t, dir: t.TempDir()}
	clients, peers, secure := p.port(), p.port(), p.port()
	p.writeKeys()
	p.start("etcd", "--data-dir", p.path("etcd"), "--listen-client-urls", clients.url("http"), "--advertise-client-urls", clients.url("http"), "--listen-peer-urls", peers.url("http"))
	p.start("kube-apiserver", "--etcd-servers", clients.url("http"), "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(int(secure)),
		"--cert-dir", p.path("certs"), "--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", p.path("accounts.key"), "--service-account-signing-key-file", p.path("accounts.key"),
		"--token-auth-file", p.path("tokens.csv"), "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.96.0.0/16",
		"--proxy-client-cert-file", p.path("proxy.crt"), "--proxy-client-key-file", p.path("proxy.key"),
		"--requestheader-client-ca-file", p.path("proxy.crt"), "--requestheader-username-headers", "X-Remote-User",
		"--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-")
	p.connect(secure)
	p.until("the API server is ready", time.Minute, func() error {
		_, err := p.api.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	p.start("kube-controller-manager", "--kubeconfig", p.kubeconfig, "--leader-elect=false", "--secure-port", fmt.Sprint(int(p.port())),
		"--service-account-private-key-file", p.path("accounts.key"), "--root-ca-file", p.path("certs/apiserver.crt"),
		"--horizontal-pod-autoscaler-sync-period", "2s", "--horizontal-pod-autoscaler-initial-readiness-delay", "1s",
		"--kube-api-qps", "200", "--kube-api-burst", "400")
	p.start("kube-scheduler", "--kubeconfig", p.kubeconfig, "--leader-elect=false", "--secure-port", fmt.Sprint(int(p.port())))
	p.start("kwok", "--kubeconfig", p.kubeconfig, "--manage-all-nodes", "--server-address", p.port().host())
	p.makeNamespace()
	return p
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

// A port is one of the loopback that nobody listens on.
type port int

func (p *plane) port() port {
	p.t.Helper()
	// Nobody takes one of these for a connection, as systems take those from higher ports.
	const from, to = 20000, 32000
	for range 100 {
		n := port(from + rand.IntN(to-from))
		l, err := net.Listen("tcp", n.host())
		if err != nil || slices.Contains(p.ports, n) {
			continue
		}
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
		p.ports = append(p.ports, n)
		return n
	}
	p.t.Fatal("no port is free")
	return 0
}

func (n port) host() string             { return fmt.Sprintf("127.0.0.1:%d", n) }
func (n port) url(scheme string) string { return scheme + "://" + n.host() }

func (p *plane) write(name string, text []byte) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), text, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// writeKeys writes the key of service accounts, the token of the administrator, and the
// certificate by which the API server talks to others behind it.
func (p *plane) writeKeys() {
	p.t.Helper()
	key, err := rsa.GenerateKey(cryptorand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("accounts.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	p.write("tokens.csv", []byte("administrator,admin,admin,system:masters\n"))
	c := newAuthority(p.t, "proxy")
	p.write("proxy.crt", c.certPEM)
	p.write("proxy.key", c.keyPEM)
}

// connect makes clients of the API server.
func (p *plane) connect(secure port) {
	p.t.Helper()
	p.kubeconfig = p.path("kubeconfig")
	p.write("kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: plane, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: administrator}}]
contexts: [{name: plane, context: {cluster: plane, user: admin, namespace: %s}}]
current-context: plane
`, secure.url("https"), namespace))
	p.config = &rest.Config{Host: secure.url("https"), BearerToken: "administrator", QPS: 200, Burst: 400}
	p.config.Insecure = true
	var err error
	if p.api, err = kubernetes.NewForConfig(p.config); err != nil {
		p.t.Fatal(err)
	}
	if p.dynamic, err = dynamic.NewForConfig(p.config); err != nil {
		p.t.Fatal(err)
	}
}

// start runs a program until the end of the test. What it said is shown if the test fails.
func (p *plane) start(name string, args ...string) *exec.Cmd {
	p.t.Helper()
	return p.startWith(name, tool(p.t, name), nil, args...)
}

func (p *plane) startWith(title, program string, env []string, args ...string) *exec.Cmd {
	p.t.Helper()
	log, err := os.Create(p.path(title + ".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = log.Close()
		if p.t.Failed() {
			p.t.Logf("%s said at last:\n%s", title, tail(p.path(title+".log"), 15))
		}
	})
	return cmd
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), 250)]
	}
	return strings.Join(all, "\n")
}

// until waits for something to be so.
func (p *plane) until(what string, most time.Duration, check func() error) {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.t.Context(), most)
	defer stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("%s: not within %v: %v", what, most, err)
		}
	}
}

func (p *plane) makeNamespace() {
	p.t.Helper()
	_, err := p.api.CoreV1().Namespaces().Create(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"},
	}}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// node adds a node, which kwok says is ready.
func (p *plane) node(name string, labels map[string]string, taints ...corev1.Taint) {
	p.t.Helper()
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("500"),
		}},
	}
	n.Status.Capacity = n.Status.Allocatable
	for k, v := range labels {
		n.Labels[k] = v
	}
	if _, err := p.api.CoreV1().Nodes().Create(p.t.Context(), n, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// helm runs Helm against the plane and returns what it printed.
func (p *plane) helm(input string, args ...string) (string, error) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), tool(p.t, "helm"), append(args, "--namespace", namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "HELM_CACHE_HOME="+p.path("helm-cache"), "HELM_CONFIG_HOME="+p.path("helm-config"), "HELM_DATA_HOME="+p.path("helm-data"))
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *plane) mustHelm(input string, args ...string) string {
	p.t.Helper()
	start := time.Now()
	out, err := p.helm(input, args...)
	if err != nil {
		p.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	p.t.Logf("helm %s: %.1f s", strings.Join(args[:2], " "), time.Since(start).Seconds())
	return out
}

// pods returns the pods of a component that are ready and are not being deleted.
func (p *plane) pods(component string) []corev1.Pod {
	p.t.Helper()
	list, err := p.api.CoreV1().Pods(namespace).List(p.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=" + component})
	if err != nil {
		p.t.Fatal(err)
	}
	var ready []corev1.Pod
	for _, pod := range list.Items {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				ready = append(ready, pod)
			}
		}
	}
	return ready
}

// wantPods waits until so many pods of a component are ready.
func (p *plane) wantPods(component string, n int) []corev1.Pod {
	p.t.Helper()
	var got []corev1.Pod
	p.until(fmt.Sprintf("%d pods of the component %s are ready", n, component), time.Minute, func() error {
		if got = p.pods(component); len(got) != n {
			return fmt.Errorf("%d are", len(got))
		}
		return nil
	})
	return got
}

// secret makes a Secret with a certificate for names.
func (p *plane) secret(name string, a *authority, names ...string) {
	p.t.Helper()
	c := a.issue(p.t, names...)
	_, err := p.api.CoreV1().Secrets(namespace).Create(p.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{"ca.crt": a.certPEM, "tls.crt": c.certPEM, "tls.key": c.keyPEM},
	}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
}

// objects lists what a release has left, by kind.
func (p *plane) objects(release string) string {
	p.t.Helper()
	var b bytes.Buffer
	o, ctx := metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release}, p.t.Context()
	add := func(kind string, n int, err error) {
		if err != nil {
			p.t.Fatal(err)
		}
		if n > 0 {
			fmt.Fprintf(&b, "%d %s ", n, kind)
		}
	}
	deployments, err := p.api.AppsV1().Deployments(namespace).List(ctx, o)
	add("Deployment", len(deployments.Items), err)
	sets, err := p.api.AppsV1().StatefulSets(namespace).List(ctx, o)
	add("StatefulSet", len(sets.Items), err)
	services, err := p.api.CoreV1().Services(namespace).List(ctx, o)
	add("Service", len(services.Items), err)
	accounts, err := p.api.CoreV1().ServiceAccounts(namespace).List(ctx, o)
	add("ServiceAccount", len(accounts.Items), err)
	maps, err := p.api.CoreV1().ConfigMaps(namespace).List(ctx, o)
	add("ConfigMap", len(maps.Items), err)
	policies, err := p.api.NetworkingV1().NetworkPolicies(namespace).List(ctx, o)
	add("NetworkPolicy", len(policies.Items), err)
	budgets, err := p.api.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, o)
	add("PodDisruptionBudget", len(budgets.Items), err)
	claims, err := p.api.CoreV1().PersistentVolumeClaims(namespace).List(ctx, o)
	add("PersistentVolumeClaim", len(claims.Items), err)
	return strings.TrimSpace(b.String())
}
