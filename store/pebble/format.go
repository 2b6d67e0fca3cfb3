package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
)

// formatFile says what wrote the folder. It is read before Pebble sees the
// folder, for Pebble may change what it opens.
//
// Its text is "coditect store format N STATE\n". A program refuses any N above
// its own; it may turn a lower one into its own while it holds the lock.
const formatFile = "CODITECT_STORE"

// formatVersion is the N of this program. Raise it together with options.format
// or with any change of what is stored that older programs would misread.
const formatVersion = 1

const formatText = "coditect store format %d %s\n"

// A formatState is how far the making of a store has come.
type formatState string

const (
	formatNone     formatState = ""         // there is no file
	formatCreating formatState = "creating" // Pebble's files may be missing
	formatReady    formatState = "ready"
)

func readFormat(files vfs.FS, folder string) (formatState, error) {
	path := files.PathJoin(folder, formatFile)
	text, err := readFile(files, path)
	if errors.Is(err, fs.ErrNotExist) {
		return formatNone, nil
	}
	if err != nil {
		return "", fmt.Errorf("store/pebble: %w", err)
	}
	var version int
	var state formatState
	if n, _ := fmt.Sscanf(text, formatText, &version, &state); n >= 1 && version > formatVersion {
		return "", fmt.Errorf("%w: %s has format %d, this program knows formats up to %d",
			store.ErrNewer, folder, version, formatVersion)
	}
	if state != formatCreating && state != formatReady || version < 1 || !strings.HasSuffix(text, "\n") {
		return "", corrupt(fmt.Sprintf("%s reads %q", path, text))
	}
	return state, nil
}

func readFile(files vfs.FS, path string) (text string, err error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	const limit = 1 << 10
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return string(b), errors.Join(err, f.Close())
}

// writeFormat replaces the file as a whole, and durably.
func writeFormat(files vfs.FS, folder string, state formatState) error {
	path := files.PathJoin(folder, formatFile)
	err := writeFile(files, path+".new", fmt.Sprintf(formatText, formatVersion, state))
	if err == nil {
		err = files.Rename(path+".new", path)
	}
	if err == nil {
		err = syncFolder(files, folder)
	}
	if err != nil {
		return fmt.Errorf("store/pebble: write %s: %w", path, err)
	}
	return nil
}

func writeFile(files vfs.FS, path, text string) error {
	f, err := files.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(files vfs.FS, folder string) error {
	d, err := files.OpenDir(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
