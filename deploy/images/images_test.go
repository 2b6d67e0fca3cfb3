package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// restricted are the constraints of the chart's pods, in the words of Docker, whose default
// profile of seccomp is that of Kubernetes' RuntimeDefault.
var restricted = []string{"--user", "65532:65532", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--memory", "1536m", "--network", "host"}

// docker runs Docker and returns what it printed.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// The images that make images has made run as pods have them run: a job to its end, and a
// server that stops when it is told to. The figures are those of their sizes.
func TestImagesRunRestricted(t *testing.T) {
	dir := os.Getenv("CODITECT_IMAGES")
	if dir == "" {
		t.Skip("CODITECT_IMAGES names no folder of images; make test-images makes them and names it")
	}
	if err := exec.CommandContext(t.Context(), "docker", "info").Run(); err != nil {
		t.Skip("no Docker daemon answers, so the images were made and not run")
	}
	work := t.TempDir()
	for name, text := range map[string]string{"a.txt": "TOTAL: 1.50\n", "schema.yaml": "type: object\nproperties:\n  total: {type: number, x-coditect: {labels: [TOTAL]}}\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil { // the user of the container reads it
			t.Fatal(err)
		}
	}
	data := filepath.Join(work, "data")
	if err := os.Mkdir(data, 0o777); err != nil { // the user of the container writes there
		t.Fatal(err)
	}
	for _, path := range []string{work, data} {
		if err := os.Chmod(path, 0o777); err != nil { // the same, whatever the mask
			t.Fatal(err)
		}
	}
	for name, program := range map[string]string{"pure": "coditect-" + goarch(t), "fdb": "coditect-fdb"} {
		t.Run(name, func(t *testing.T) {
			tar := filepath.Join(dir, name+".tar")
			if _, err := os.Stat(tar); err != nil {
				t.Skipf("%s was not made", tar)
			}
			docker(t, "load", "--input", tar)
			image := "coditect/mapreduce:" + name
			logSizes(t, image, filepath.Join(dir, program), tar)
			of := append([]string{"run", "--rm"}, restricted...)
			of = append(of, "--volume", work+":/in:ro", "--volume", data+":/var/lib/coditect", image)
			out := docker(t, append(of, "mapreduce", "run", "--input", "/in/a.txt", "--schema", "/in/schema.yaml", "--output", "/var/lib/coditect/"+name)...)
			if !strings.Contains(out, "1 of 1 document mapped") {
				t.Errorf("a job says\n%s", out)
			}
			checkServer(t, image, data)
		})
	}
}

func goarch(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOHOSTARCH").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// logSizes prints how large an image is, beside its program.
func logSizes(t *testing.T, image, program, tar string) {
	t.Helper()
	var all []struct {
		Size   int64
		Config struct {
			User   string
			Labels map[string]string
		}
	}
	if err := json.Unmarshal([]byte(docker(t, "image", "inspect", image)), &all); err != nil || len(all) != 1 {
		t.Fatalf("%d images: %v", len(all), err)
	}
	if all[0].Config.User != "65532:65532" || all[0].Config.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("the image has the user %q and the labels %v", all[0].Config.User, all[0].Config.Labels)
	}
	binary, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.Stat(tar)
	if err != nil {
		t.Fatal(err)
	}
	const mega = 1e6
	t.Logf("%s: %.1f MB, of which the program is %.1f; the file of all platforms has %.1f MB", image, float64(all[0].Size)/mega, float64(binary.Size())/mega, float64(packed.Size())/mega)
}

// checkServer starts a server in a container, looks at its process, and stops it.
func checkServer(t *testing.T, image, data string) {
	t.Helper()
	run := append([]string{"run", "--detach"}, restricted...)
	id := docker(t, append(run, "--volume", data+":/var/lib/coditect", image, "serve", "--listen", "unix", "--workers", "1")...)
	defer docker(t, "rm", "--force", id)
	deadline := time.After(time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(docker(t, "logs", id), "msg=serving") {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it does not serve:\n%s", docker(t, "logs", id))
		}
	}
	pid := docker(t, "inspect", "--format", "{{.State.Pid}}", id)
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its process has no %q:\n%s", want, status)
		}
	}
	mounts, err := os.ReadFile(filepath.Join("/proc", pid, "mounts"))
	if err != nil {
		t.Fatal(err)
	}
	root, _, _ := strings.Cut(string(mounts), "\n")
	if fields := strings.Fields(root); len(fields) < 4 || fields[1] != "/" || !strings.HasPrefix(fields[3], "ro,") {
		t.Errorf("its root is mounted as %q, want read-only", root)
	}
	start := time.Now()
	docker(t, "stop", "--time", "40", id)
	code := docker(t, "inspect", "--format", "{{.State.ExitCode}}", id)
	t.Logf("a server runs as user 65532 with a read-only root, no capability, the default profile of seccomp, and %s bytes of memory at most; told to stop it ended with %s after %.1f s", docker(t, "inspect", "--format", "{{.HostConfig.Memory}}", id), code, time.Since(start).Seconds())
	if code != "0" {
		t.Errorf("it ended with %s:\n%s", code, docker(t, "logs", id))
	}
}
