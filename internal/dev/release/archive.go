package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Member is a file of an archive.
type Member struct {
	Name         string // below the folder of the archive
	Data         []byte
	IsExecutable bool
}

// WriteArchive writes a tar file, packed by gzip, whose members are in one folder in the order
// given. All have the same time, to the second, and belong to nobody in particular.
func WriteArchive(w io.Writer, folder string, at time.Time, members []Member) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}

	archive := tar.NewWriter(packed)
	for _, m := range members {
		mode := int64(0o644)
		if m.IsExecutable {
			mode = 0o755
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: folder + "/" + m.Name, Size: int64(len(m.Data)), Mode: mode,
			ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if _, err := archive.Write(m.Data); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}

	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// Checksums returns the SHA-256 of files by their names, sorted, as `sha256sum --check` reads them.
func Checksums(files map[string][]byte) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return text.String()
}
