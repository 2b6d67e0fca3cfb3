package files

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// An OrderedFS syncs a folder before a marker file is created in it. Pebble creates
// a manifest, then a marker that names it, and only then syncs the folder. A
// machine that failed in between could keep the marker and lose the manifest.
type OrderedFS struct{ vfs.FS }

// Create creates a file.
func (f OrderedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.") {
		if err := syncFolder(f.FS, f.PathDir(name)); err != nil {
			return nil, err
		}
	}
	return f.FS.Create(name, category)
}

// Unwrap returns the underlying file system.
func (f OrderedFS) Unwrap() vfs.FS { return f.FS }
