package oci

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Library is a shared library that a program needs, or the loader of these.
type Library struct {
	// Path is where the file is, on this machine and in the image.
	Path string
	// Package and Version are those of the distribution that it is from, such as libc6 and
	// 2.36-9; empty if nobody knows.
	Package, Version string
}

// LibrariesOf returns the loader of a program and all libraries that it needs, as the loader
// finds them in dirs, in order of their paths. It returns none for a static program, and an
// error if one is missing, or is of another machine.
func LibrariesOf(program string, dirs []string) ([]Library, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	found := make(map[string]string) // paths by name
	loader, err := loaderOf(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	if loader == "" {
		return nil, nil
	}
	found[filepath.Base(loader)] = loader

	for open := []string{program}; len(open) > 0; open = open[1:] {
		needed, err := neededBy(open[0], file.Machine)
		if err != nil {
			return nil, err
		}
		for _, name := range needed {
			if found[name] != "" {
				continue
			}
			if found[name] = findLibrary(name, file.Machine, dirs); found[name] == "" {
				return nil, fmt.Errorf("%s needs %s, which is in none of %s", open[0], name, strings.Join(dirs, ", "))
			}
			open = append(open, found[name])
		}
	}

	var all []Library
	for _, path := range found {
		all = append(all, Library{Path: path})
	}
	slices.SortFunc(all, func(a, b Library) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// loaderOf returns the path of a program's loader; "" if it is static.
func loaderOf(file *elf.File) (string, error) {
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			_, err := p.ReadAt(text, 0)
			return strings.TrimRight(string(text), "\x00"), err
		}
	}
	return "", nil
}

func neededBy(path string, machine elf.Machine) ([]string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Machine != machine {
		return nil, fmt.Errorf("%s is for %v, not for %v", path, file.Machine, machine)
	}

	needed, err := file.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return needed, nil
}

// findLibrary returns the first file of a name in dirs that is for a machine, or "".
func findLibrary(name string, machine elf.Machine, dirs []string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if _, err := neededBy(path, machine); err == nil {
			return path
		}
	}
	return ""
}

// members returns the files of libraries, with the folders that they are in, and what a C
// library needs to find hosts by name.
func members(libraries []Library) ([]member, error) {
	if len(libraries) == 0 {
		return nil, nil
	}
	all := []member{{name: "etc/nsswitch.conf", mode: 0o644, data: []byte("hosts: files dns\n")}}
	made := make(map[string]bool)

	for _, l := range libraries {
		data, err := os.ReadFile(l.Path)
		if err != nil {
			return nil, err
		}

		name := strings.TrimPrefix(filepath.Clean(l.Path), "/")
		for at := range strings.Count(name, "/") {
			dir := strings.Join(strings.Split(name, "/")[:at+1], "/") + "/"
			// The folders of the program are made elsewhere.
			if !made[dir] && !strings.HasPrefix("usr/local/bin/", dir) {
				made[dir] = true
				all = append(all, member{name: dir, mode: 0o755})
			}
		}

		all = append(all, member{name: name, mode: 0o755, data: data})
	}
	return all, nil
}
