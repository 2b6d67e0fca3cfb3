package oci

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// A statement says something of an image, in the form of in-toto.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

// attestImage adds what is in an image and how it was made, attached to the image as BuildKit
// does it.
func (l *layout) attestImage(c *Config, image descriptor, info *buildinfo.BuildInfo, binary []byte, libraries []Library) (descriptor, error) {
	of := []subject{{c.Reference, map[string]string{"sha256": strings.TrimPrefix(image.Digest, "sha256:")}}}

	config, err := l.writeJSON(typeConfig, map[string]any{
		"architecture": "unknown", "os": "unknown", "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": []string{}},
	})
	if err != nil {
		return descriptor{}, err
	}

	m := manifest{SchemaVersion: 2, MediaType: typeManifest, Config: &config}
	for _, s := range []statement{
		{"https://in-toto.io/Statement/v1", of, "https://spdx.dev/Document", c.spdx(info, binary, libraries)},
		{"https://in-toto.io/Statement/v1", of, "https://slsa.dev/provenance/v1", c.provenance(info)},
	} {
		d, err := l.writeJSON(typeInToto, s)
		if err != nil {
			return descriptor{}, err
		}
		d.Annotations = map[string]string{"in-toto.io/predicate-type": s.PredicateType}
		m.Layers = append(m.Layers, d)
	}

	d, err := l.writeJSON(typeManifest, m)
	// The platform "unknown" marks what is no image, as BuildKit has it.
	d.Platform = &platform{"unknown", "unknown"}
	d.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": image.Digest}
	return d, err
}

type spdxPackage struct {
	ID           string         `json:"SPDXID"`
	Name         string         `json:"name"`
	Version      string         `json:"versionInfo"`
	Download     string         `json:"downloadLocation"`
	Analyzed     bool           `json:"filesAnalyzed"`
	License      string         `json:"licenseConcluded"`
	ExternalRefs []spdxRef      `json:"externalRefs"`
	Checksums    []spdxChecksum `json:"checksums,omitempty"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRelation struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// spdx lists the modules of a program, as the linker has noted them in it, and the shared
// libraries beside it.
func (c *Config) spdx(info *buildinfo.BuildInfo, binary []byte, libraries []Library) any {
	sum := sha256.Sum256(binary)

	one := func(i int, path, version string) spdxPackage {
		return spdxPackage{
			ID: fmt.Sprintf("SPDXRef-%d", i), Name: path, Version: version, Download: "NOASSERTION", License: "NOASSERTION",
			ExternalRefs: []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
		}
	}

	own := one(0, info.Main.Path, c.Version)
	own.License, own.Checksums = "Apache-2.0", []spdxChecksum{{"SHA256", hex.EncodeToString(sum[:])}}
	packages := []spdxPackage{own, one(1, "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	relations := []spdxRelation{{"SPDXRef-DOCUMENT", "DESCRIBES", own.ID}, {own.ID, "DEPENDS_ON", packages[1].ID}}

	for _, d := range info.Deps {
		// The module that replaces another is the one that was built in.
		if d.Replace != nil {
			d = d.Replace
		}
		p := one(len(packages), d.Path, d.Version)
		packages = append(packages, p)
		relations = append(relations, spdxRelation{own.ID, "DEPENDS_ON", p.ID})
	}

	for _, lib := range libraries {
		p := one(len(packages), lib.Path, cmp.Or(lib.Version, "NOASSERTION"))
		p.ExternalRefs = []spdxRef{}
		if lib.Package != "" {
			p.ExternalRefs = []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:deb/debian/" + lib.Package + "@" + lib.Version}}
		}
		packages = append(packages, p)
		relations = append(relations, spdxRelation{own.ID, "DYNAMIC_LINK", p.ID})
	}

	return map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": c.Reference,
		"documentNamespace": "https://github.com/coditect/mapreduce/spdx/" + hex.EncodeToString(sum[:]),
		"creationInfo":      map[string]any{"created": c.Made.Format(time.RFC3339), "creators": []string{"Tool: coditect-images"}},
		"packages":          packages, "relationships": relations,
	}
}

// provenance says how a program was built.
func (c *Config) provenance(info *buildinfo.BuildInfo) any {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}

	type resource struct {
		URI    string            `json:"uri"`
		Digest map[string]string `json:"digest"`
	}

	materials := []resource{{"git+https://github.com/coditect/mapreduce", map[string]string{"gitCommit": c.Revision}}}
	for _, d := range info.Deps {
		materials = append(materials, resource{"pkg:golang/" + d.Path + "@" + d.Version, map[string]string{"dirHash1": sumOf(d)}})
	}

	return map[string]any{
		"buildDefinition": map[string]any{
			"buildType":            "https://github.com/coditect/mapreduce/make-images@v1",
			"externalParameters":   map[string]any{"version": c.Version, "settings": settings, "go": info.GoVersion},
			"resolvedDependencies": materials,
		},
		"runDetails": map[string]any{
			"builder":  map[string]any{"id": "https://github.com/coditect/mapreduce/make-images"},
			"metadata": map[string]any{"startedOn": c.Made.Format(time.RFC3339)},
		},
	}
}

func sumOf(m *debug.Module) string {
	if m.Replace != nil {
		return m.Replace.Sum
	}
	return m.Sum
}
