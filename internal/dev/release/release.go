package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A platform is one that programs are built for.
type platform struct{ os, arch string }

func platforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}
}

// A runner runs a program with variables added to the environment, and returns what it prints.
type runner interface {
	run(ctx context.Context, env []string, name string, args ...string) (string, error)
}

// commands runs programs of this machine in the current folder.
type commands struct{}

func (commands) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the names stand in this program
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// A release is a version with the commit that it is made of.
type release struct {
	notes  Notes
	tag    string // v0.1.0
	at     time.Time
	folder string // of the files
	bom    string // version of cyclonedx-gomod
	with   runner
}

// makeRelease makes the files of the newest version of the change log, and its tag if it is asked to.
func makeRelease(ctx context.Context, with runner, folder, bom string, tag bool) error {
	r, err := prepare(ctx, with, tag)
	if err != nil {
		return err
	}
	r.folder, r.bom = filepath.Join(folder, r.tag), bom

	if err := r.makeFiles(ctx); err != nil {
		return err
	}
	if !tag {
		return nil
	}

	// Lines with # are headings of the notes, and no comments.
	_, err = with.run(ctx, nil, "git", "tag", "--annotate", "--cleanup=verbatim", "--message", "Coditect "+r.notes.Version+"\n\n"+r.notes.Text, r.tag)
	if err == nil {
		fmt.Printf("tagged %s; publish it by: git push origin %s\n", r.tag, r.tag)
	}
	return err
}

// prepare returns what is released. It refuses files that no commit has, and, if the version is to
// be tagged, one that has a tag.
func prepare(ctx context.Context, with runner, tag bool) (*release, error) {
	status, err := with.run(ctx, nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if status != "" {
		return nil, fmt.Errorf("files are changed or not in git; commit or remove them first:\n%s", strings.TrimRight(status, "\n"))
	}

	log, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	notes, err := NewestNotes(string(log))
	if err != nil {
		return nil, err
	}

	r := &release{notes: notes, tag: "v" + notes.Version, with: with}
	existing, err := with.run(ctx, nil, "git", "tag", "--list", r.tag)
	if err != nil {
		return nil, err
	}
	if tag && existing != "" {
		return nil, fmt.Errorf("the tag %s exists; a released version does not change: write the notes of a new one in CHANGELOG.md", r.tag)
	}

	seconds, err := with.run(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(seconds), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git log: time of the commit: %w", err)
	}
	r.at = time.Unix(at, 0)
	return r, nil
}

// makeFiles makes all files anew, the checksums last.
func (r *release) makeFiles(ctx context.Context) (err error) {
	if err := os.RemoveAll(r.folder); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := os.MkdirAll(r.folder, 0o755); err != nil { //nolint:gosec // a release is for all to read
		return err
	}

	files := map[string][]byte{"NOTES.md": []byte("# Coditect " + r.notes.Version + "\n\n" + r.notes.Text)}
	for _, p := range platforms() {
		if err := r.makePlatform(ctx, p, filepath.Join(work, p.os+"_"+p.arch), files); err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}

	sums := Checksums(files)
	files["SHA256SUMS"] = []byte(sums)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(r.folder, name), data, 0o644); err != nil { //nolint:gosec // a release is for all to read
			return err
		}
	}
	fmt.Printf("%s has:\n%s", r.folder, sums)
	return nil
}

// makePlatform builds the program for a platform in a folder of its own, and adds its archive and
// its bill of materials to files.
func (r *release) makePlatform(ctx context.Context, p platform, work string, files map[string][]byte) error {
	program := filepath.Join(work, "coditect")
	if err := r.build(ctx, p, program); err != nil {
		return err
	}
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	members := []Member{{Name: "coditect", Data: binary, IsExecutable: true}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		members = append(members, Member{Name: name, Data: text})
	}

	name := "coditect_" + r.notes.Version + "_" + p.os + "_" + p.arch
	var archive bytes.Buffer
	if err := WriteArchive(&archive, name, r.at, members); err != nil {
		return err
	}
	files[name+".tar.gz"] = archive.Bytes()

	bom, err := r.billOfMaterials(ctx, program)
	files[name+".cdx.json"] = bom
	return err
}

// build builds the program, by nothing of the machine but the version of Go: not by its folders, its
// settings for Go or the state of its clone.
func (r *release) build(ctx context.Context, p platform, program string) error {
	env := []string{"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0", "CGO_ENABLED=0", "GOFLAGS=-trimpath"}
	_, err := r.with.run(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+r.tag, "-o", program, "./cmd/coditect")
	return err
}

// billOfMaterials returns what a program is made of, as CycloneDX in JSON: its modules with their
// versions, sums and licences, and the standard library.
func (r *release) billOfMaterials(ctx context.Context, program string) ([]byte, error) {
	out, err := r.with.run(ctx, []string{"GOFLAGS=-trimpath"}, "go", "run", "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@"+r.bom,
		"bin", "-json", "-std", "-licenses", "-noserial", "-notimestamp", "-version", r.tag, program)
	return []byte(out), err
}
