package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/deploy/images/oci"
)

// compile builds a small static program for an architecture.
func compile(t *testing.T, arch string) string {
	t.Helper()
	return compileWith(t, "package main\n\nfunc main() {}\n", arch)
}

// compileWith builds a small program.
func compileWith(t *testing.T, source, arch string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/small\n\ngo 1.26\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "small")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-s -w", "-o", out, ".")
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS="), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func config(t *testing.T, programs ...oci.Program) oci.Config {
	t.Helper()
	certificates := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(certificates, []byte("-----BEGIN CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return oci.Config{
		Reference: "coditect/mapreduce:pure", Version: "v1", Revision: "abc", Made: time.Unix(1_700_000_000, 0).UTC(),
		Certificates: certificates, Programs: programs,
	}
}

// unpack returns the files of a tar by name.
func unpack(t *testing.T, r io.Reader) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = make(map[string][]byte), make(map[string]*tar.Header)
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers[h.Name] = data, h
	}
}

// A doc is any of the JSON documents of a layout.
type doc struct {
	MediaType   string `json:"mediaType"`
	Digest      string `json:"digest"`
	Size        int64  `json:"size"`
	Platform    struct{ Architecture, OS string }
	Manifests   []doc
	Layers      []doc
	Config      json.RawMessage
	Annotations map[string]string
	RootFS      struct {
		DiffIDs []string `json:"diff_ids"`
	}
	PredicateType string
	Subject       []struct{ Digest map[string]string }
	Predicate     struct {
		SPDXVersion string
		Packages    []struct{ Name, VersionInfo string }
	}
}

func open(t *testing.T, files map[string][]byte, d doc) (out doc, data []byte) {
	t.Helper()
	data = files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if sum := sha256.Sum256(data); "sha256:"+hex.EncodeToString(sum[:]) != d.Digest || int64(len(data)) != d.Size {
		t.Fatalf("the blob %s has %d bytes of another digest", d.Digest, len(data))
	}
	if strings.HasSuffix(d.MediaType, "json") {
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
	}
	return out, data
}

// The layout has an image for each platform, whose digests hold, whose user is not root,
// and whose parts are listed; the same input gives the same bytes.
func TestImage(t *testing.T) {
	programs := []oci.Program{{Platform: "linux/amd64", Path: compile(t, "amd64")}, {Platform: "linux/arm64", Path: compile(t, "arm64")}}
	c := config(t, programs...)
	var first, again bytes.Buffer
	digest, err := oci.Write(&first, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.Write(&again, c); err != nil || !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Errorf("the same input gives other bytes (%v)", err)
	}
	files, _ := unpack(t, &first)
	var top doc
	if err := json.Unmarshal(files["index.json"], &top); err != nil {
		t.Fatal(err)
	}
	if top.Manifests[0].Digest != digest || files["oci-layout"] == nil {
		t.Fatalf("the index names %s, and %s was returned", top.Manifests[0].Digest, digest)
	}
	index, _ := open(t, files, top.Manifests[0])
	if len(index.Manifests) != 4 {
		t.Fatalf("%d manifests, want two images and what is attested of each", len(index.Manifests))
	}
	for i, arch := range []string{"amd64", "arm64"} {
		if got := index.Manifests[i].Platform; got.Architecture != arch || got.OS != "linux" {
			t.Errorf("image %d is of %+v, want linux/%s", i, got, arch)
		}
		checkImage(t, files, index.Manifests[i], programs[i].Path)
		checkAttested(t, files, index.Manifests[i], index.Manifests[i+2])
	}
}

func checkImage(t *testing.T, files map[string][]byte, d doc, path string) {
	t.Helper()
	image, _ := open(t, files, d)
	var of doc
	if err := json.Unmarshal(image.Config, &of); err != nil {
		t.Fatal(err)
	}
	conf, text := open(t, files, of)
	if !bytes.Contains(text, []byte(`"User":"65532:65532"`)) || !bytes.Contains(text, []byte(`"org.opencontainers.image.version":"v1"`)) {
		t.Errorf("the image has another user, or no labels: %s", text)
	}
	_, layer := open(t, files, image.Layers[0])
	zip, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(plain); "sha256:"+hex.EncodeToString(sum[:]) != conf.RootFS.DiffIDs[0] {
		t.Error("the layer unpacks to another digest than the image says")
	}
	inside, headers := unpack(t, bytes.NewReader(plain))
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(inside["usr/local/bin/coditect"], binary) || headers["usr/local/bin/coditect"].Mode != 0o755 {
		t.Error("the image has another program")
	}
	for name, h := range headers {
		if owned := name == "var/lib/coditect/"; (h.Uid != 0) != owned {
			t.Errorf("%s belongs to %d", name, h.Uid)
		}
	}
}

func checkAttested(t *testing.T, files map[string][]byte, image, attestation doc) {
	t.Helper()
	if attestation.Annotations["vnd.docker.reference.digest"] != image.Digest {
		t.Errorf("attested is %s, want %s", attestation.Annotations["vnd.docker.reference.digest"], image.Digest)
	}
	m, _ := open(t, files, attestation)
	seen := make(map[string]bool)
	for _, l := range m.Layers {
		s, _ := open(t, files, l)
		seen[s.PredicateType] = true
		if "sha256:"+s.Subject[0].Digest["sha256"] != image.Digest {
			t.Errorf("%s is about %v", s.PredicateType, s.Subject)
		}
		if s.PredicateType == "https://spdx.dev/Document" && (s.Predicate.SPDXVersion != "SPDX-2.3" || s.Predicate.Packages[0].Name != "example.com/small" || s.Predicate.Packages[1].Name != "stdlib") {
			t.Errorf("the list of parts is %+v", s.Predicate)
		}
	}
	if !seen["https://spdx.dev/Document"] || !seen["https://slsa.dev/provenance/v1"] {
		t.Errorf("attested are %v", seen)
	}
}

// A program that is not static brings what it needs along, and what that needs, and the
// list of parts says so. Docker finds the images of both platforms under names of their own.
func TestImageWithLibraries(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed, so there is no library to bring along")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"deep.c": "int deep(void) { return 1; }\n", "near.c": "int deep(void); int near_(void) { return deep(); }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"-shared", "-o", "libdeep.so", "deep.c"}, {"-shared", "-o", "libnear.so", "near.c", "-L.", "-ldeep"}} {
		cmd := exec.CommandContext(t.Context(), gcc, args...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	program := compileWith(t, "package main\n\n// #cgo LDFLAGS: -L"+dir+" -lnear -Wl,-rpath-link,"+dir+"\n// int near_(void);\nimport \"C\"\n\nfunc main() { C.near_() }\n",
		runtime.GOARCH, "CGO_ENABLED=1", "CGO_LDFLAGS_ALLOW=.*")
	dirs := []string{dir, "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
	libraries, err := oci.LibrariesOf(program, dirs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oci.LibrariesOf(program, dirs[1:]); err == nil || !strings.Contains(err.Error(), "needs libnear.so") {
		t.Errorf("error %v, want that libnear.so is missing", err)
	}
	for i := range libraries {
		if filepath.Base(libraries[i].Path) == "libnear.so" {
			libraries[i].Package, libraries[i].Version = "near", "1.2"
		}
	}
	var out bytes.Buffer
	if _, err := oci.Write(&out, config(t, oci.Program{Platform: "linux/" + runtime.GOARCH, Path: program, Libraries: libraries})); err != nil {
		t.Fatal(err)
	}
	files, _ := unpack(t, &out)
	var images []struct {
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &images); err != nil {
		t.Fatal(err)
	}
	if len(images) != 1 || images[0].RepoTags[0] != "coditect/mapreduce:pure" {
		t.Fatalf("Docker finds %+v", images)
	}
	zip, err := gzip.NewReader(bytes.NewReader(files[images[0].Layers[0]]))
	if err != nil {
		t.Fatal(err)
	}
	_, headers := unpack(t, zip)
	for _, want := range []string{strings.TrimPrefix(dir, "/") + "/libdeep.so", strings.TrimPrefix(dir, "/") + "/libnear.so", "etc/nsswitch.conf", "usr/local/bin/coditect"} {
		if headers[want] == nil {
			t.Errorf("the image lacks %s", want)
		}
	}
	if len(libraries) < 4 { // these two, the loader, and the C library
		t.Errorf("the program needs %v", libraries)
	}
	found := false
	for _, data := range files {
		found = found || bytes.Contains(data, []byte(`pkg:deb/debian/near@1.2`))
	}
	if !found {
		t.Error("the list of parts does not have the library's package")
	}
}

// A program of another platform is refused, and one without certificates.
func TestRefusals(t *testing.T) {
	path := compile(t, "amd64")
	for name, tt := range map[string]struct {
		change func(*oci.Config)
		want   string
	}{
		"another platform": {func(c *oci.Config) { c.Programs[0].Platform = "linux/arm64" }, "it is built for linux/amd64, not for linux/arm64"},
		"no platform":      {func(c *oci.Config) { c.Programs[0].Platform = "amd64" }, "is no platform"},
		"no libraries": {func(c *oci.Config) {
			c.Programs[0].Path = compileWith(t, "package main\n\nimport \"C\"\n\nfunc main() {}\n", runtime.GOARCH, "CGO_ENABLED=1")
			c.Programs[0].Platform = "linux/" + runtime.GOARCH
		}, "needs a C library that the image does not have"},
		"no program":      {func(c *oci.Config) { c.Programs[0].Path = c.Certificates }, "unrecognized file format"},
		"no certificates": {func(c *oci.Config) { c.Certificates = path }, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t, oci.Program{Platform: "linux/amd64", Path: path})
			tt.change(&c)
			if _, err := oci.Write(io.Discard, c); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
