// Package oci writes images of a program, with the shared libraries that it needs and
// nothing else, as an OCI layout that Docker loads too: the same input gives the same bytes.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A Program is the file of one platform.
type Program struct {
	Platform string // such as linux/amd64
	Path     string
	// Libraries are those of a program that is not static, see LibrariesOf.
	Libraries []Library
}

// A Config says what is in an image.
type Config struct {
	Reference    string // name with a tag
	Version      string
	Revision     string
	Made         time.Time // of all files
	Certificates string    // PEM file of public authorities
	Programs     []Program
}

// The user of the image, who owns nothing but the data directory.
const (
	uid     = 65532
	dataDir = "var/lib/coditect"
	program = "usr/local/bin/coditect"
)

// Media types.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeInToto   = "application/vnd.in-toto+json"
)

// A descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// A layout is a tar file of blobs.
type layout struct {
	tar  *tar.Writer
	made time.Time
	has  map[string]bool
}

func (l *layout) writeFile(name string, data []byte) error {
	err := l.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: l.made, Format: tar.FormatPAX})
	if err == nil {
		_, err = l.tar.Write(data)
	}
	return err
}

// addBlob adds a blob once, and returns its descriptor.
func (l *layout) addBlob(mediaType string, data []byte) (descriptor, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: int64(len(data))}
	if l.has[name] {
		return d, nil
	}
	l.has[name] = true
	return d, l.writeFile("blobs/sha256/"+name, data)
}

func (l *layout) writeJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return l.addBlob(mediaType, data)
}

// Write writes the image of all programs, and returns the digest of its index.
func Write(w io.Writer, c Config) (digest string, err error) {
	l := &layout{tar: tar.NewWriter(w), made: c.Made, has: make(map[string]bool)}
	index := manifest{SchemaVersion: 2, MediaType: typeIndex, Annotations: c.labels()}
	var attestations []descriptor
	var docker []dockerImage

	for i, p := range c.Programs {
		made, err := l.addImage(&c, p)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.Path, err)
		}
		index.Manifests = append(index.Manifests, made.image)
		attestations = append(attestations, made.attestation)

		tag := c.Reference
		if i > 0 {
			tag += "-" + made.image.Platform.Architecture
		}
		docker = append(docker, dockerImage{made.config.path(), []string{tag}, []string{made.layer.path()}})
	}

	index.Manifests = append(index.Manifests, attestations...)
	top, err := l.writeJSON(typeIndex, index)
	if err != nil {
		return "", err
	}
	top.Annotations = map[string]string{"org.opencontainers.image.ref.name": c.Reference, "io.containerd.image.name": c.Reference}

	// Docker reads manifest.json, and others read index.json.
	data, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{top}})
	if err == nil {
		err = l.writeFile("index.json", data)
	}
	if err == nil {
		err = l.writeFile("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	}
	if err == nil {
		data, err = json.Marshal(docker)
	}
	if err == nil {
		err = l.writeFile("manifest.json", data)
	}

	if err != nil {
		return "", err
	}
	return top.Digest, l.tar.Close()
}

// labels say what the image is.
func (c *Config) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "coditect",
		"org.opencontainers.image.description": "Map-reduce over documents with language models",
		"org.opencontainers.image.source":      "https://github.com/coditect/mapreduce",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     c.Version,
		"org.opencontainers.image.revision":    c.Revision,
		"org.opencontainers.image.created":     c.Made.Format(time.RFC3339),
	}
}

// A dockerImage is an image as Docker, which does not load every OCI layout, finds it in
// manifest.json. The second platform and those after it have a tag of their own.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// path returns where a blob is in the layout.
func (d descriptor) path() string { return "blobs/sha256/" + strings.TrimPrefix(d.Digest, "sha256:") }

// A made image is that of one program, with what is attested of it.
type made struct{ image, config, layer, attestation descriptor }

// addImage adds the image of one program, and what is attested of it.
func (l *layout) addImage(c *Config, p Program) (m made, err error) {
	osName, arch, found := strings.Cut(p.Platform, "/")
	if !found {
		return m, fmt.Errorf("%q is no platform such as linux/amd64", p.Platform)
	}

	binary, err := os.ReadFile(p.Path)
	if err != nil {
		return m, err
	}

	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return m, err
	}
	if err := checkBuild(info, osName, arch, len(p.Libraries) > 0); err != nil {
		return m, err
	}

	files, err := c.files(binary)
	if err != nil {
		return m, err
	}
	libraries, err := members(p.Libraries)
	if err != nil {
		return m, err
	}

	// Everything is in one layer.
	var diffID string
	if m.layer, diffID, err = l.addLayer(append(files, libraries...)); err != nil {
		return m, err
	}
	if m.config, err = l.writeJSON(typeConfig, c.imageConfig(osName, arch, diffID)); err != nil {
		return m, err
	}

	m.image, err = l.writeJSON(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: &m.config, Layers: []descriptor{m.layer}, Annotations: c.labels()})
	if err != nil {
		return m, err
	}

	m.image.Platform = &platform{Architecture: arch, OS: osName}
	m.attestation, err = l.attestImage(c, m.image, info, binary, p.Libraries)
	return m, err
}

// checkBuild refuses a program that is of another platform, or that needs a C library which
// the image does not have.
func checkBuild(info *buildinfo.BuildInfo, osName, arch string, libraries bool) error {
	set := make(map[string]string)
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}

	if set["GOOS"] != osName || set["GOARCH"] != arch {
		return fmt.Errorf("it is built for %s/%s, not for %s/%s", set["GOOS"], set["GOARCH"], osName, arch)
	}
	if set["CGO_ENABLED"] != "0" && !libraries {
		return fmt.Errorf("it is built with cgo, and needs a C library that the image does not have; build it with CGO_ENABLED=0")
	}
	return nil
}

// A member is a file or folder of an image.
type member struct {
	name string
	mode int64
	id   int
	data []byte // nil for a folder
}

func (c *Config) files(binary []byte) ([]member, error) {
	certificates, err := os.ReadFile(c.Certificates)
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(certificates, []byte("BEGIN CERTIFICATE")) {
		return nil, fmt.Errorf("%s has no certificate", c.Certificates)
	}

	return []member{
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates},
		{name: "etc/passwd", mode: 0o644, data: fmt.Appendf(nil, "coditect:x:%d:%d::/%s:/nonexistent\n", uid, uid, dataDir)},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/local/bin/", mode: 0o755},
		{name: program, mode: 0o755, data: binary},
		{name: dataDir + "/", mode: 0o700, id: uid},
	}, nil
}

// addLayer adds a layer, and returns the digest of what it unpacks to.
func (l *layout) addLayer(files []member) (d descriptor, diffID string, err error) {
	var packed bytes.Buffer
	// A layer has two digests: of what is unpacked, and of its blob.
	zip, sum := gzip.NewWriter(&packed), sha256.New()
	t := tar.NewWriter(io.MultiWriter(zip, sum))

	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.id, Gid: f.id, Size: int64(len(f.data)), ModTime: l.made, Format: tar.FormatPAX}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return d, "", err
		}
		if _, err := t.Write(f.data); err != nil {
			return d, "", err
		}
	}

	if err := t.Close(); err != nil {
		return d, "", err
	}
	if err := zip.Close(); err != nil {
		return d, "", err
	}

	d, err = l.addBlob(typeLayer, packed.Bytes())
	return d, "sha256:" + hex.EncodeToString(sum.Sum(nil)), err
}

func (c *Config) imageConfig(osName, arch, diffID string) any {
	type execution struct {
		User         string
		ExposedPorts map[string]struct{}
		Env          []string
		Entrypoint   []string
		WorkingDir   string
		Labels       map[string]string
	}
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	type history struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}

	return struct {
		Created      time.Time `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       execution `json:"config"`
		RootFS       rootfs    `json:"rootfs"`
		History      []history `json:"history"`
	}{
		c.Made, arch, osName, execution{
			User: fmt.Sprintf("%d:%d", uid, uid), ExposedPorts: map[string]struct{}{"7600/tcp": {}},
			Env:        []string{"PATH=/usr/local/bin", "CODITECT_DATA_DIR=/" + dataDir, "HOME=/" + dataDir},
			Entrypoint: []string{"/" + program}, WorkingDir: "/" + dataDir, Labels: c.labels(),
		}, rootfs{"layers", []string{diffID}}, []history{{c.Made, "make images"}},
	}
}
