package search

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The folder of an index has
//
//	lock          held by the process that builds
//	current       the name of the generation that counts, and the hash of its manifest
//	gen-…/        a generation: the engine's files, and their manifest
//	vectors-…     vectors of passages by the hash of their text; see vectorLog
//	new-…/        a generation that is being built, or that a crash has left
//
// A generation does not change once current names it. The next one begins with links to its
// files, which the engine never changes either. So readers need no lock, a crash
// leaves the generation that was there, and several processes read the same files.
const (
	lockName     = "lock"
	currentName  = "current"
	manifestName = "manifest.json"
	genPrefix    = "gen-"
	newPrefix    = "new-"
	vectorPrefix = "vectors-"
	engineRoot   = "root.bolt" // the one file that the engine changes
)

// layoutVersion is that of the files of an index; another one is built anew.
const layoutVersion = 1

// A manifest says what a generation holds.
type manifest struct {
	Layout   int               `json:"layout"`
	Settings string            `json:"settings"` // what else the index depends on; see Kit.settings
	Passages int64             `json:"passages"`
	Words    int64             `json:"words"` // in all passages
	Files    map[string]*file  `json:"files"` // by path below the folder, with forward slashes
	Engine   map[string]engine `json:"engine"`
}

// A file is one of a store's folder as it was read last.
type file struct {
	Size     int64    `json:"size"`
	Modified int64    `json:"modified"`       // Unix nanoseconds
	Sum      string   `json:"sum,omitempty"`  // SHA-256 of the bytes
	Skip     string   `json:"skip,omitempty"` // why nothing of it is in the index
	Notes    []string `json:"notes,omitempty"`
	Keys     []string `json:"keys,omitempty"` // of its documents

	// Fresh says that the file was changed so shortly before it was read that a later
	// change may not show in its time. It is read again.
	Fresh bool `json:"fresh,omitempty"`
}

// An engine file has its size and checksum.
type engine struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc"`
}

// damagedError says that an index cannot be used and has to be built anew.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what }

// readCurrent returns the name and the manifest of the generation that counts, after it has
// checked each of its files. It returns fs.ErrNotExist if there is none yet, and a
// *damagedError if there is one that is not whole.
func readCurrent(dir string) (string, *manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, currentName))
	if err != nil {
		return "", nil, err
	}

	name, sum, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	if !strings.HasPrefix(name, genPrefix) || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
		return "", nil, &damagedError{"the file " + currentName + " names no index"}
	}

	text, err := os.ReadFile(filepath.Join(dir, name, manifestName)) //nolint:gosec // the name was checked above
	if err != nil {
		return "", nil, &damagedError{fmt.Sprintf("its manifest cannot be read: %v", err)}
	}
	if got := sha256.Sum256(text); hex.EncodeToString(got[:]) != sum {
		return "", nil, &damagedError{"its manifest has changed"}
	}

	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return "", nil, &damagedError{"its manifest is no JSON"}
	}

	for file, want := range m.Engine { // their names are in the hash of the manifest
		got, err := sumFile(filepath.Join(dir, name, file))
		switch {
		case err != nil:
			return "", nil, &damagedError{fmt.Sprintf("its file %s cannot be read: %v", file, err)}
		case got != want:
			return "", nil, &damagedError{fmt.Sprintf("its file %s has changed", file)}
		}
	}

	return name, &m, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumFile(path string) (engine, error) {
	f, err := os.Open(path) //nolint:gosec // of a file that the manifest names
	if err != nil {
		return engine{}, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, f)
	return engine{n, sum.Sum32()}, err
}

// beginGeneration makes the folder of a new generation that has the files of an old one, or
// none if old is "".
func beginGeneration(dir, old string, m *manifest) (string, error) {
	path, err := os.MkdirTemp(dir, newPrefix)
	if err != nil || old == "" {
		return path, err
	}

	for name := range m.Engine {
		from, to := filepath.Join(dir, old, name), filepath.Join(path, name)
		// The engine changes its root, and the old generation must stay as it is.
		if name == engineRoot {
			err = copyFile(from, to)
		} else {
			err = os.Link(from, to)
		}
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(path))
		}
	}

	return path, nil
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600) //nolint:gosec // within the folder of the index
}

// publish makes the generation that was built in a folder the one that counts, and removes
// all others. Processes that read an older one have its files open, and go on.
func publish(dir, built string, m *manifest) (string, error) {
	entries, err := os.ReadDir(built)
	if err != nil {
		return "", err
	}

	m.Engine = make(map[string]engine)
	for _, e := range entries {
		if m.Engine[e.Name()], err = sumFile(filepath.Join(built, e.Name())); err != nil {
			return "", err
		}
	}

	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	if err := writeSynced(filepath.Join(built, manifestName), text); err != nil {
		return "", err
	}

	name := genPrefix + strings.TrimPrefix(filepath.Base(built), newPrefix)
	sum := sha256.Sum256(text)
	// The folder is on the disk, under its name, before current names it.
	if err := errors.Join(syncFolder(built), os.Rename(built, filepath.Join(dir, name))); err != nil {
		return "", err
	}

	next := filepath.Join(dir, currentName+".new")
	if err := writeSynced(next, []byte(name+" "+hex.EncodeToString(sum[:])+"\n")); err != nil {
		return "", err
	}
	if err := errors.Join(os.Rename(next, filepath.Join(dir, currentName)), syncFolder(dir)); err != nil {
		return "", err
	}

	return name, removeOthers(dir, name)
}

// removeOthers removes all generations but one, and what crashes have left. Its caller holds
// the lock.
func removeOthers(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		old := strings.HasPrefix(e.Name(), genPrefix) || strings.HasPrefix(e.Name(), newPrefix)
		if old && e.Name() != keep {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lockPause is how long a process waits before it asks for a lock again.
const lockPause = 50 * time.Millisecond

// lockIndex waits until no other process builds the index in a folder, and returns what ends
// the lock. It calls waiting once if there is another. The lock ends with the process, too.
func lockIndex(ctx context.Context, dir string, waiting func()) (func() error, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}

	timer := time.NewTicker(lockPause)
	defer timer.Stop()
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// Closing the file ends the lock.
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, f.Close())
		}

		if !told {
			waiting()
		}

		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-timer.C:
		}
	}
}

// isMissing reports whether there is no index yet.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
