package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

// Open opens the store in folder, and creates the folder if necessary. It
// distinguishes these errors, and none of them changes what is stored:
//   - store.ErrInUse: another store, of this process or another, holds it;
//   - store.ErrNewer: a newer version of this program wrote it;
//   - store.ErrForeign: it holds files of others, and no store;
//   - store.ErrNoSpace: the disk is full;
//   - store.ErrCorrupt: files are missing or damaged.
func Open(folder string, config Config) (*Store, error) {
	s, err := openFolder(folder, config.withDefaults())
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	}
	return s, err
}

// An opening is a store that is being opened: nothing runs yet, and its files are checked
// before any is changed.
type opening struct {
	*Store
	recorded files.Format // what is to be there, once the folder is locked
}

func openFolder(folder string, config Config) (*Store, error) {
	folder, err := prepareFolder(folder, config.FS)
	if err != nil {
		return nil, err
	}

	if config.FS == vfs.Default {
		config.FS = files.PrivateFS{FS: config.FS, ReadOnly: config.ReadOnly}
	}

	s := &Store{config: config, folder: folder, seed: maphash.MakeSeed(), queue: newQueue()}
	opening := &opening{Store: s}
	if err := opening.checkOwnership(); err != nil { // before the lock, for that would make a file
		return nil, err
	}

	if s.lock, err = lockFolder(config.FS, folder); err != nil {
		return nil, err
	}

	if err := opening.openDatabase(); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// prepareFolder creates folder and returns its canonical path. Pebble tracks by
// name which folders this process has locked. Opening and closing the lock file
// under another name would lose the lock.
func prepareFolder(folder string, fsys vfs.FS) (string, error) {
	if err := fsys.MkdirAll(folder, files.PrivateFolder); err != nil {
		return "", fmt.Errorf("store/pebble: %w", err)
	}

	if fsys != vfs.Default {
		return folder, nil
	}

	real, err := filepath.EvalSymlinks(folder)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", fmt.Errorf("store/pebble: %w", err)
	}
	return real, nil
}

// checkOwnership returns an error unless the folder holds a store that this program
// can read, or no files of others. Otherwise their files could be deleted together
// with the store, or the store with their files.
func (o *opening) checkOwnership() error {
	// The names first: the format is written before all other files, so it is there if they are.
	// The other way round, a store that another process is making would seem to have lost it.
	names, unlisted := o.config.FS.List(o.folder)
	recorded, err := files.ReadFormat(o.config.FS, o.folder)
	if err != nil || recorded.State != files.StateNone {
		return err
	}

	if unlisted != nil {
		return fmt.Errorf("store/pebble: %w", unlisted)
	}

	slices.Sort(names)
	for _, name := range names {
		if !files.OfStore(name) && !slices.Contains(o.config.Beside, name) {
			return fmt.Errorf("%w: %s holds %q and no store; name a folder that is new, empty, or a store's",
				store.ErrForeign, o.folder, name)
		}
	}

	for _, name := range names { // that file is written before all others
		if files.OfPebble(name) || name == files.MarkFile {
			return fmt.Errorf("%w: %s holds %q, and %s is missing, which every store has; restore it from a copy", store.ErrCorrupt, o.folder, name, files.FormatFile)
		}
	}
	return nil
}

func lockFolder(fsys vfs.FS, folder string) (*pebbledb.Lock, error) {
	lock, err := pebbledb.LockDirectory(folder, fsys)
	switch {
	case err == nil:
		return lock, nil
	case isLockHeld(err):
		return nil, fmt.Errorf("%w: %s", store.ErrInUse, folder)
	default:
		return nil, fmt.Errorf("store/pebble: lock %s: %w", folder, err)
	}
}

// isLockHeld reports whether err means that another store holds the lock. A failure
// to open the lock file is an fs.PathError. A file system without locks gives
// another errno. A lock held by this process gives an error without a type.
func isLockHeld(err error) bool {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return false
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno == syscall.EAGAIN || errno == syscall.EACCES
	}
	return true
}

// openDatabase opens the database in the locked folder and starts its goroutines.
func (o *opening) openDatabase() error {
	var err error
	if o.recorded, err = files.ReadFormat(o.config.FS, o.folder); err != nil { // it may have changed before the lock
		return err
	}

	o.register = files.NewRegister(o.config.FS, o.folder, o.recorded)
	o.config.ReadOnly = o.config.ReadOnly && o.recorded.IsComplete()
	version, manifest, err := o.verifyFiles()
	if err != nil {
		return err
	}

	if o.config.ReadOnly {
		if o.db, err = o.openReadOnly(); err == nil {
			o.startWorkers(version)
		}
		return err
	}

	if err := o.checkRoom(); err != nil {
		return err
	}
	if _, onDisk := o.config.FS.(files.PrivateFS); onDisk {
		if err := o.makeFilesPrivate(); err != nil {
			return fmt.Errorf("store/pebble: %w", err)
		}
	}

	if err := o.markInUse(version); err != nil {
		return err
	}
	if o.mark, err = files.OpenMark(o.config.FS, o.folder, version, manifest); err != nil {
		return err
	}

	if o.db, err = pebbledb.Open(o.folder, o.pebbleOptions()); err != nil {
		return errors.Join(o.openError(err), o.mark.Close())
	}

	err = o.confirmVersion(version)
	if err == nil && !o.recorded.IsComplete() {
		err = o.register.SetState(files.StateOpen, 0)
	}
	if err != nil {
		return errors.Join(err, o.db.Close(), o.mark.Close())
	}

	o.startWorkers(version)
	return nil
}

// confirmVersion returns an error if the newest group of the open database is older than
// the files had when they were checked: they have been damaged since. The mark still
// holds the version that was checked, so that the store is refused from now on.
func (o *opening) confirmVersion(checked uint64) error {
	version, err := readVersion(o.db)
	if err == nil {
		err = o.checkVersion(version, checked)
	}
	return err
}

// verifyFiles checks the files without changing anything, so that a damaged store
// stays as it was found. It returns the version of the last group and the number of the
// manifest, which are 0 if the store is not complete.
func (o *opening) verifyFiles() (version, manifest uint64, err error) {
	found, err := pebbledb.Peek(o.folder, o.config.FS)
	if err != nil {
		return 0, 0, o.openError(err)
	}

	switch {
	case found.Exists && o.recorded.State == files.StateNone:
		return 0, 0, files.Damaged(o.folder + " holds a database without the file " + files.FormatFile)
	case !o.recorded.IsComplete():
		return 0, 0, nil
	case !found.Exists:
		return 0, 0, files.Damaged(o.folder + " lacks its database: no MANIFEST is named by a marker file")
	}

	had, err := files.ReadMark(o.config.FS, o.folder)
	if err != nil {
		return 0, 0, err
	}

	manifest, _ = files.ManifestNumber(o.config.FS.PathBase(found.ManifestFilename)) // Peek knows it by that name
	if err := files.CheckManifest(o.config.FS, found.ManifestFilename, had.LengthOf(manifest), o.recorded.State == files.StateClosed); err != nil {
		return 0, 0, err
	}
	if err := files.CheckLogs(o.config.FS, o.folder, o.recorded.Logs); err != nil {
		return 0, 0, err
	}

	version, err = o.storedVersion()
	if o.config.ReadOnly && errors.Is(err, store.ErrCorrupt) {
		return o.recorded.Version, manifest, nil // the version is in a damaged table; opening reports any further damage
	}

	if err == nil {
		err = o.checkVersion(version, max(had.Version, o.recorded.Version))
	}
	return version, manifest, err
}

// checkVersion returns an error if version is that of the newest group, and newer
// groups were acknowledged.
func (o *opening) checkVersion(version, acknowledged uint64) error {
	if version >= acknowledged {
		return nil
	}
	return files.Damaged(fmt.Sprintf("%s holds commits up to version %d, and those up to %d were acknowledged: its newest *.log file is cut short, damaged or missing, and what was stored last is lost with it",
		o.folder, version, acknowledged))
}

// markInUse records that from now on a failure of the machine may leave files half
// written.
func (o *opening) markInUse(version uint64) error {
	switch o.recorded.State {
	case files.StateNone:
		return o.register.Reset(files.StateCreating)
	case files.StateCreating:
		return o.removeUnfinished()
	default:
		return o.register.SetState(files.StateOpen, version)
	}
}

// storedVersion returns the version of the last group, or an error if Pebble finds
// damage on the way to it.
func (o *opening) storedVersion() (uint64, error) {
	db, err := o.openReadOnly()
	if err != nil {
		return 0, err
	}
	version, err := readVersion(db)
	if e := db.Close(); err == nil && e != nil {
		err = o.openError(e)
	}
	return version, err
}

// openReadOnly opens the database without changing any file. Tables may be missing
// or damaged if the store is opened for reading only.
func (o *opening) openReadOnly() (*pebbledb.DB, error) {
	options := o.pebbleOptions()
	options.ReadOnly = true
	options.DisableConsistencyCheck = o.config.ReadOnly
	db, err := pebbledb.Open(o.folder, options)
	if err != nil {
		return nil, o.openError(err)
	}
	return db, nil
}

// removeUnfinished removes Pebble's files of a store whose creation was interrupted
// by a failure of the machine. Nothing was committed before
// files.StateOpen. Files that are not Pebble's stay.
func (o *opening) removeUnfinished() error {
	err := o.register.Reset(files.StateCreating)
	if err != nil {
		return err
	}

	names, err := o.config.FS.List(o.folder)
	for _, name := range names {
		if err == nil && files.OfPebble(name) {
			err = o.config.FS.Remove(o.config.FS.PathJoin(o.folder, name))
		}
	}

	if err != nil {
		return fmt.Errorf("store/pebble: recreate %s: %w", o.folder, err)
	}
	return nil
}

// openError distinguishes damage, which trying again does not repair, from errors
// of the operating system. Missing files and invalid contents count as damage.
func (o *opening) openError(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.ENOENT || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("store/pebble: open %s: %w", o.folder, err)
	}
	return files.Damaged(o.folder + ": " + err.Error())
}

// readVersion returns the version of the last group in db.
func readVersion(db *pebbledb.DB) (uint64, error) {
	value, closer, err := db.Get(versionKey)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, readError(err)
	}

	defer func() { _ = closer.Close() }() // only frees memory
	if len(value) != 8 {
		return 0, files.Damaged(fmt.Sprintf("the version has %d bytes", len(value)))
	}
	return binary.BigEndian.Uint64(value), nil
}

// startWorkers publishes the stored state and starts the committer and the
// publisher. Close waits for both.
func (s *Store) startWorkers(version uint64) {
	s.views.publishView(&view{version: version, snapshot: s.db.NewSnapshot()})

	groups := make(chan *group, maxInFlight)
	c := &committer{
		store:   s,
		version: version,
		history: newHistory(version, s.config.Now(), s.config.HistorySize),
		space:   spaceGuard{free: s.freeSpace(), folder: s.folder, minimum: s.config.MinFree, logger: s.config.Logger},
		groups:  groups,
	}

	s.workers.Go(c.serveQueue)
	s.workers.Go(func() { s.publishGroups(groups) })
}

func (s *Store) freeSpace() func() (uint64, error) {
	if s.config.FreeSpace != nil {
		return s.config.FreeSpace
	}
	return func() (uint64, error) {
		usage, err := s.config.FS.GetDiskUsage(s.folder)
		return usage.AvailBytes, err
	}
}
