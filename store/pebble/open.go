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
	"github.com/coditect/mapreduce/store/pebble/internal/integrity"
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

func openFolder(folder string, config Config) (*Store, error) {
	folder, err := prepareFolder(folder, config.FS)
	if err != nil {
		return nil, err
	}

	if config.FS == vfs.Default {
		config.FS = privateFS{FS: config.FS, readOnly: config.ReadOnly}
	}

	s := &Store{config: config, folder: folder, seed: maphash.MakeSeed(), queue: newQueue()}
	if err := s.checkOwnership(); err != nil { // before the lock, for that would make a file
		return nil, err
	}

	if s.lock, err = lockFolder(config.FS, folder); err != nil {
		return nil, err
	}

	if err := s.openDatabase(); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// prepareFolder creates folder and returns its canonical path. Pebble tracks by
// name which folders this process has locked. Opening and closing the lock file
// under another name would lose the lock.
func prepareFolder(folder string, files vfs.FS) (string, error) {
	if err := files.MkdirAll(folder, privateFolder); err != nil {
		return "", fmt.Errorf("store/pebble: %w", err)
	}

	if files != vfs.Default {
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
func (s *Store) checkOwnership() error {
	// The names first: the format is written before all other files, so it is there if they are.
	// The other way round, a store that another process is making would seem to have lost it.
	names, unlisted := s.config.FS.List(s.folder)
	recorded, err := integrity.ReadFormat(s.config.FS, s.folder)
	if err != nil || recorded.State != integrity.StateNone {
		return err
	}

	if unlisted != nil {
		return fmt.Errorf("store/pebble: %w", unlisted)
	}

	slices.Sort(names)
	for _, name := range names {
		if !ofStore(name) && !slices.Contains(s.config.Beside, name) {
			return fmt.Errorf("%w: %s holds %q and no store; name a folder that is new, empty, or a store's",
				store.ErrForeign, s.folder, name)
		}
	}

	for _, name := range names { // that file is written before all others
		if ofPebble(name) || name == integrity.MarkFile {
			return fmt.Errorf("%w: %s holds %q, and %s is missing, which every store has; restore it from a copy", store.ErrCorrupt, s.folder, name, integrity.FormatFile)
		}
	}
	return nil
}

func lockFolder(files vfs.FS, folder string) (*pebbledb.Lock, error) {
	lock, err := pebbledb.LockDirectory(folder, files)
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
func (s *Store) openDatabase() error {
	recorded, err := integrity.ReadFormat(s.config.FS, s.folder) // it may have changed before the lock
	if err != nil {
		return err
	}

	s.register = integrity.NewRegister(s.config.FS, s.folder, recorded)
	s.config.ReadOnly = s.config.ReadOnly && recorded.IsComplete()
	version, manifest, err := s.verifyFiles(recorded)
	if err != nil {
		return err
	}

	if s.config.ReadOnly {
		if s.db, err = s.openReadOnly(); err == nil {
			s.startWorkers(version)
		}
		return err
	}

	if err := s.checkRoom(); err != nil {
		return err
	}
	if _, onDisk := s.config.FS.(privateFS); onDisk {
		if err := s.makeFilesPrivate(); err != nil {
			return fmt.Errorf("store/pebble: %w", err)
		}
	}

	if err := s.markInUse(recorded, version); err != nil {
		return err
	}
	if s.mark, err = integrity.OpenMark(s.config.FS, s.folder, version, manifest); err != nil {
		return err
	}

	if s.db, err = pebbledb.Open(s.folder, s.pebbleOptions()); err != nil {
		return errors.Join(s.openError(err), s.mark.Close())
	}

	err = s.confirmVersion(version)
	if err == nil && !recorded.IsComplete() {
		err = s.register.SetState(integrity.StateOpen, 0)
	}
	if err != nil {
		return errors.Join(err, s.db.Close(), s.mark.Close())
	}

	s.startWorkers(version)
	return nil
}

// confirmVersion returns an error if the newest group of the open database is older than
// the files had when they were checked: they have been damaged since. The mark still
// holds the version that was checked, so that the store is refused from now on.
func (s *Store) confirmVersion(checked uint64) error {
	version, err := readVersion(s.db)
	if err == nil {
		err = s.checkVersion(version, checked)
	}
	return err
}

// verifyFiles checks the files without changing anything, so that a damaged store
// stays as it was found. It returns the version of the last group and the number of the
// manifest, which are 0 if the store is not complete.
func (s *Store) verifyFiles(recorded integrity.Format) (version, manifest uint64, err error) {
	found, err := pebbledb.Peek(s.folder, s.config.FS)
	if err != nil {
		return 0, 0, s.openError(err)
	}

	switch {
	case found.Exists && recorded.State == integrity.StateNone:
		return 0, 0, integrity.Damaged(s.folder + " holds a database without the file " + integrity.FormatFile)
	case !recorded.IsComplete():
		return 0, 0, nil
	case !found.Exists:
		return 0, 0, integrity.Damaged(s.folder + " lacks its database: no MANIFEST is named by a marker file")
	}

	had, err := integrity.ReadMark(s.config.FS, s.folder)
	if err != nil {
		return 0, 0, err
	}

	manifest, _ = integrity.ManifestNumber(s.config.FS.PathBase(found.ManifestFilename)) // Peek knows it by that name
	if err := integrity.CheckManifest(s.config.FS, found.ManifestFilename, had.LengthOf(manifest), recorded.State == integrity.StateClosed); err != nil {
		return 0, 0, err
	}
	if err := integrity.CheckLogs(s.config.FS, s.folder, recorded.Logs); err != nil {
		return 0, 0, err
	}

	version, err = s.storedVersion()
	if s.config.ReadOnly && errors.Is(err, store.ErrCorrupt) {
		return recorded.Version, manifest, nil // the version is in a damaged table; opening reports any further damage
	}

	if err == nil {
		err = s.checkVersion(version, max(had.Version, recorded.Version))
	}
	return version, manifest, err
}

// checkVersion returns an error if version is that of the newest group, and newer
// groups were acknowledged.
func (s *Store) checkVersion(version, acknowledged uint64) error {
	if version >= acknowledged {
		return nil
	}
	return integrity.Damaged(fmt.Sprintf("%s holds commits up to version %d, and those up to %d were acknowledged: its newest *.log file is cut short, damaged or missing, and what was stored last is lost with it",
		s.folder, version, acknowledged))
}

// markInUse records that from now on a failure of the machine may leave files half
// written.
func (s *Store) markInUse(recorded integrity.Format, version uint64) error {
	switch recorded.State {
	case integrity.StateNone:
		return s.register.Reset(integrity.StateCreating)
	case integrity.StateCreating:
		return s.removeUnfinished()
	default:
		return s.register.SetState(integrity.StateOpen, version)
	}
}

// storedVersion returns the version of the last group, or an error if Pebble finds
// damage on the way to it.
func (s *Store) storedVersion() (uint64, error) {
	db, err := s.openReadOnly()
	if err != nil {
		return 0, err
	}
	version, err := readVersion(db)
	if e := db.Close(); err == nil && e != nil {
		err = s.openError(e)
	}
	return version, err
}

// openReadOnly opens the database without changing any file. Tables may be missing
// or damaged if the store is opened for reading only.
func (s *Store) openReadOnly() (*pebbledb.DB, error) {
	options := s.pebbleOptions()
	options.ReadOnly = true
	options.DisableConsistencyCheck = s.config.ReadOnly
	db, err := pebbledb.Open(s.folder, options)
	if err != nil {
		return nil, s.openError(err)
	}
	return db, nil
}

// removeUnfinished removes Pebble's files of a store whose creation was interrupted
// by a failure of the machine. Nothing was committed before
// integrity.StateOpen. Files that are not Pebble's stay.
func (s *Store) removeUnfinished() error {
	err := s.register.Reset(integrity.StateCreating)
	if err != nil {
		return err
	}

	names, err := s.config.FS.List(s.folder)
	for _, name := range names {
		if err == nil && ofPebble(name) {
			err = s.config.FS.Remove(s.config.FS.PathJoin(s.folder, name))
		}
	}

	if err != nil {
		return fmt.Errorf("store/pebble: recreate %s: %w", s.folder, err)
	}
	return nil
}

// ofStore reports whether a file has a name as this package or Pebble gives.
// "lost+found" is in the root of every disk.
func ofStore(name string) bool {
	return ofPebble(name) || integrity.Owns(name) || name == "LOCK" || name == "lost+found"
}

// ofPebble reports whether a file has a name as Pebble gives.
func ofPebble(name string) bool {
	for _, pattern := range []string{
		"MANIFEST-[0-9]*", "OPTIONS-[0-9]*", "marker.*", "[0-9]*.log", "[0-9]*.sst", "[0-9]*.blob", "[0-9]*.dbtmp",
		"temporary.[0-9]*.dbtmp",
	} {
		if ok, _ := filepath.Match(pattern, name); ok { // the patterns are well formed
			return true
		}
	}
	return false
}

// openError distinguishes damage, which trying again does not repair, from errors
// of the operating system. Missing files and invalid contents count as damage.
func (s *Store) openError(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.ENOENT || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("store/pebble: open %s: %w", s.folder, err)
	}
	return integrity.Damaged(s.folder + ": " + err.Error())
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
		return 0, integrity.Damaged(fmt.Sprintf("the version has %d bytes", len(value)))
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
