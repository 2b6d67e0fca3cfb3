// Command images makes the image of a program, for several platforms, without a daemon and
// without a registry: an OCI layout in a tar file, with a list of what is in it (SPDX) and
// of how it was made (SLSA) attached to each platform's image. A program that is not static
// brings the shared libraries along that it needs on this machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coditect/mapreduce/deploy/images/oci"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run() error {
	var c oci.Config
	out := flag.String("out", "", "`file` to write")
	made := flag.Int64("date", 0, "seconds since 1970 that all files bear; that of the commit makes images of one commit equal")
	flag.StringVar(&c.Version, "version", "unknown", "version of the program")
	flag.StringVar(&c.Revision, "revision", "", "commit that it was built from")
	flag.StringVar(&c.Reference, "reference", "coditect/mapreduce:pure", "name of the image")
	flag.StringVar(&c.Certificates, "certificates", "/etc/ssl/certs/ca-certificates.crt", "`file` of the certificates of public authorities")
	dirs := flag.String("libraries", "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib:/usr/lib", "`folders` of shared libraries, as the loader of the image looks for them")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "images -out FILE PLATFORM=PROGRAM...    such as linux/amd64=bin/coditect")
		flag.PrintDefaults()
	}
	flag.Parse()

	c.Made = time.Unix(*made, 0).UTC()
	for _, arg := range flag.Args() {
		platform, program, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q is not PLATFORM=PROGRAM, such as linux/amd64=bin/coditect", arg)
		}
		libraries, err := oci.LibrariesOf(program, filepath.SplitList(*dirs))
		if err != nil {
			return err
		}
		// The package that a library is from goes into the list of contents.
		for i := range libraries {
			libraries[i].Package, libraries[i].Version = packageOf(libraries[i].Path)
		}
		c.Programs = append(c.Programs, oci.Program{Platform: platform, Path: program, Libraries: libraries})
	}

	if *out == "" || len(c.Programs) == 0 {
		return fmt.Errorf("-out and at least one PLATFORM=PROGRAM are needed")
	}

	f, err := os.Create(*out)
	if err != nil {
		return err
	}

	digest, err := oci.Write(f, c)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}

	fmt.Printf("%s: %s, %d platforms, %s\n", *out, c.Reference, len(c.Programs), digest)
	return nil
}

// packageOf returns the package of Debian that a file is from, with its version. They are
// empty where dpkg does not know the file, or is not there.
func packageOf(path string) (name, version string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", ""
	}

	// A file may be listed under the folder that a merged /usr has moved it from.
	for _, listed := range []string{path, real, strings.TrimPrefix(real, "/usr")} {
		out, err := exec.Command("dpkg-query", "--search", listed).Output() //nolint:gosec // a path is no option: it begins with /
		if err != nil {
			continue
		}
		name, _, _ = strings.Cut(string(out), ":")

		out, err = exec.Command("dpkg-query", "--show", "--showformat", "${Version}\\n", name).Output() //nolint:gosec // the name is one that dpkg-query has said
		if err != nil {
			continue
		}

		version, _, _ = strings.Cut(string(out), "\n")
		return name, version
	}
	return "", ""
}
