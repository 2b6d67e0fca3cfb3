package pebble

import (
	"fmt"
	"os"

	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

// checkRoom returns an error if there is no space to write the contents of the logs
// into tables. Pebble does that when it opens, and would try for ever.
func (o *opening) checkRoom() error {
	free, err := o.freeSpace()()
	if err != nil || free >= o.config.MinFree {
		return nil
	}

	names, err := o.config.FS.List(o.folder)
	if err != nil {
		return fmt.Errorf("store/pebble: %w", err)
	}

	// A little, and as much as the logs hold.
	need := o.config.MinFree / 16
	for _, name := range names {
		if _, ok := files.LogNumber(name); !ok {
			continue
		}
		if info, err := o.config.FS.Stat(o.config.FS.PathJoin(o.folder, name)); err == nil {
			need += uint64(info.Size())
		}
	}

	if need = min(need, o.config.MinFree); free < need {
		return fmt.Errorf("%w to open it; nothing is lost: free some space", noSpaceError(o.folder, free, need))
	}
	return nil
}

// makeFilesPrivate takes the permissions of others from the files of a store that was
// made without this care.
func (o *opening) makeFilesPrivate() error {
	names, err := o.config.FS.List(o.folder)
	for _, name := range names {
		path := o.config.FS.PathJoin(o.folder, name)
		info, statErr := os.Lstat(path)
		if files.OfStore(name) && statErr == nil && info.Mode().IsRegular() && info.Mode().Perm()&^files.PrivateFile != 0 {
			files.MakePrivate(path)
		}
	}
	return err
}
