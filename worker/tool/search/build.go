package search

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"
	"golang.org/x/sync/errgroup"

	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// A builder brings the index of one store up to date with its folder.
type builder struct {
	name     string // of the store, for messages
	folder   string
	dir      string // of the index
	settings string
	length   int // of passages
	open     func() (*folderReader, error)
	note     func(string)
	progress func(done, all int)
}

// update returns the name and manifest of a generation that has what the folder has. It
// changes nothing if the one that counts is that already. Only one process at a time builds.
func (b *builder) update(ctx context.Context) (name string, m *manifest, err error) {
	folder, err := b.open()
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, folder.root.Close()) }()
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return "", nil, err
	}
	unlock, err := lockIndex(ctx, b.dir, func() { b.note("another process builds the index; waiting for it") })
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	old, was, err := b.readOld()
	if err == nil {
		err = removeOthers(b.dir, old) // which processes have left that were killed
	}
	if err != nil {
		return "", nil, err
	}

	now, paths, err := folder.walk(ctx)
	if err != nil {
		return "", nil, err
	}

	var changed, gone []string
	for name, f := range now {
		before := was.Files[name]
		if before == nil || !before.same(f) || before.Fresh && !folder.stillFresh(before, paths[name]) {
			changed = append(changed, name)
		}
	}
	for name := range was.Files {
		if now[name] == nil {
			gone = append(gone, name)
		}
	}

	if len(changed)+len(gone) == 0 && old != "" {
		return old, was, nil
	}

	slices.Sort(changed)
	built, err := beginGeneration(b.dir, old, was)
	if err != nil {
		return "", nil, err
	}

	u := &updating{builder: b, folder: folder, built: built, was: was, now: &manifest{
		Layout: layoutVersion, Settings: b.settings, Passages: was.Passages, Words: was.Words, Files: maps.Clone(was.Files),
	}}
	if err := errors.Join(u.run(ctx, changed, gone, now, paths), removeUnused(built)); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(built))
	}

	name, err = publish(b.dir, built, u.now)
	return name, u.now, err
}

// readOld returns the generation that counts, or an empty one if there is none that can be
// used.
func (b *builder) readOld() (string, *manifest, error) {
	old, m, err := readCurrent(b.dir)
	damaged, isDamaged := errors.AsType[*damagedError](err)
	switch {
	case err == nil && m.Layout == layoutVersion && m.Settings == b.settings:
		return old, m, nil
	case err == nil:
		b.note("the index was made by another version or with other settings, and is built again")
	case isDamaged:
		b.note(fmt.Sprintf("the index in %s is damaged (%s), and is built again", b.dir, damaged.what))
	case !isMissing(err):
		return "", nil, err
	}
	return "", &manifest{Files: make(map[string]*file)}, nil
}

// same reports whether a file is as it was when it was read last, as far as its size and time
// tell.
func (f *file) same(now *file) bool {
	if now.Skip != "" || f.Sum == "" {
		return f.Skip == now.Skip && f.Size == now.Size
	}
	return f.Size == now.Size && f.Modified == now.Modified
}

// An updating is a generation that is being built.
type updating struct {
	*builder
	folder *folderReader
	built  string
	was    *manifest
	now    *manifest

	engine index.Index
	batch  *index.Batch
	size   int // bytes of text in the batch
	added  int // passages in the batch
}

// run applies the changes of the folder to the engine in the folder of the new generation.
func (u *updating) run(ctx context.Context, changed, gone []string, now map[string]*file, paths map[string]string) (err error) {
	queue := index.NewAnalysisQueue(runtime.GOMAXPROCS(0))
	defer queue.Close()

	u.engine, err = scorch.NewScorch(scorch.Name, map[string]any{
		"path": u.built, "unsafe_batch": true, "numSnapshotsToKeep": 1, // what is unsafe of a batch is mended by flush
	}, queue)
	if err != nil {
		return err
	}
	if err := u.engine.Open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.engine.Close()) }()

	u.batch = index.NewBatch()
	for _, name := range gone {
		if err := u.remove(slices.Clone(u.was.Files[name].Keys)); err != nil {
			return err
		}
		delete(u.now.Files, name)
	}

	if err := u.addAll(ctx, changed, now, paths); err != nil {
		return err
	}
	if err := u.flush(ctx, true); err != nil {
		return err
	}
	return u.compact(ctx)
}

// A readFile is a file that was read, with its documents and their terms.
type readFile struct {
	name  string
	file  *file
	docs  []*stored
	terms [][]passage.Terms
}

// addAll reads files and adds them, as many at a time as there are cores. The result does not
// depend on their order.
func (u *updating) addAll(ctx context.Context, changed []string, now map[string]*file, paths map[string]string) error {
	g, within := errgroup.WithContext(ctx)
	names, results := make(chan string), make(chan *readFile)

	// One goroutine hands out names, several read, and one adds, as the engine takes a
	// batch at a time.
	g.Go(func() error {
		defer close(names)
		for _, name := range changed {
			select {
			case names <- name:
			case <-within.Done():
				return context.Cause(within)
			}
		}
		return nil
	})

	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			for name := range names {
				r, err := u.readFile(within, name, now[name], paths[name])
				if err != nil {
					return err
				}
				select {
				case results <- r:
				case <-within.Done():
					return context.Cause(within)
				}
			}
			return nil
		})
	}

	g.Go(func() error {
		for n := range changed {
			u.progress(n, len(changed))
			select {
			case r := <-results:
				if err := u.add(within, r); err != nil {
					return err
				}
			case <-within.Done():
				return context.Cause(within)
			}
		}
		return nil
	})

	return g.Wait()
}

// readFile reads one file. One whose bytes are those of last time is not parsed again.
func (u *updating) readFile(ctx context.Context, name string, seen *file, rel string) (*readFile, error) {
	if seen.Skip != "" {
		return &readFile{name: name, file: seen}, nil
	}

	if was := u.was.Files[name]; was != nil && was.Sum != "" {
		if again, _, err := u.folder.readBytes(rel); err == nil && again.Sum == was.Sum {
			// Only its time has changed.
			same := *was
			same.Modified, same.Fresh = again.Modified, again.Fresh
			return &readFile{name: name, file: &same}, nil
		}
	}

	f, docs, err := u.folder.read(ctx, name, rel)
	if err != nil {
		return nil, err
	}

	r := &readFile{name: name, file: f, docs: docs, terms: make([][]passage.Terms, len(docs))}
	for i, d := range docs {
		r.terms[i] = d.cutText(u.length)
	}
	return r, nil
}

// add replaces what a file was by what it is. Documents of it that are as they were stay.
func (u *updating) add(ctx context.Context, r *readFile) error {
	had, has := make(map[string]bool), make(map[string]bool)
	if was := u.now.Files[r.name]; was != nil {
		for _, key := range was.Keys {
			had[key] = true
		}
	}

	u.now.Files[r.name] = r.file
	for _, key := range r.file.Keys {
		has[key] = true
	}

	var gone []string
	for key := range had {
		if !has[key] {
			gone = append(gone, key)
		}
	}
	if err := u.remove(gone); err != nil {
		return err
	}

	for i, d := range r.docs {
		if had[d.key] {
			continue
		}
		had[d.key] = true // the same document twice in a file is one
		if err := d.addTo(u.batch, r.terms[i]); err != nil {
			return err
		}

		u.count(d, 1)
		u.size += len(d.text)
		u.added += len(d.cuts)
		if u.size > batchBytes || u.added > batchPassages {
			if err := u.flush(ctx, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// How much is handed to the engine at a time.
const (
	batchBytes    = 8 << 20 // of texts
	batchPassages = 2000
)

// remove takes documents out of the index. They are in a generation that was published, or
// were added to this one before.
func (u *updating) remove(keys []string) error {
	if len(keys) == 0 {
		return nil
	}

	r, err := u.engine.Reader()
	if err != nil {
		return err
	}

	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		d, err := readStored(r, key)
		if err != nil {
			return errors.Join(err, r.Close())
		}
		d.removeFrom(u.batch)
		u.count(d, -1)
	}

	return r.Close()
}

func (u *updating) count(d *stored, sign int64) {
	u.now.Passages += sign * int64(len(d.cuts))
	for _, c := range d.cuts {
		u.now.Words += sign * int64(c.words)
	}
}

// flush hands the batch to the engine. The last one waits until all of them are on the disk.
func (u *updating) flush(ctx context.Context, last bool) error {
	durable := make(chan error, 1)
	if last {
		u.batch.SetInternal([]byte("whole"), []byte{1}) // so that the batch is never empty
		u.batch.SetPersistedCallback(func(err error) { durable <- err })
	}

	if err := u.engine.Batch(u.batch); err != nil {
		return err
	}
	u.batch, u.size, u.added = index.NewBatch(), 0, 0

	if !last {
		return nil
	}

	select {
	case err := <-durable:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// compact makes one part of all parts that the engine has written, if there are so many that
// questions would take longer.
func (u *updating) compact(ctx context.Context) error {
	parts, err := filepath.Glob(filepath.Join(u.built, "*.zap"))
	if err != nil || len(parts) <= maxParts {
		return err
	}
	if engine, ok := u.engine.(*scorch.Scorch); ok {
		if err := engine.ForceMerge(ctx, nil); err != nil {
			return err
		}
	}
	return u.flush(ctx, true) // until the merged part is the one that counts
}

// maxParts is how many parts an index has at most.
const maxParts = 8

// removeUnused removes the files of parts that the engine has merged into others, and would
// remove later.
func removeUnused(dir string) error {
	engine, err := scorch.NewScorch(scorch.Name, map[string]any{"path": dir, "read_only": true}, nil)
	if err != nil {
		return err
	}
	if err := engine.Open(); err != nil {
		return err
	}

	used := make(map[string]bool)
	r, err := engine.Reader()
	if err == nil {
		if now, ok := r.(*scorch.IndexSnapshot); ok {
			for _, part := range now.Segments() {
				if stored, ok := part.Segment().(segment.PersistedSegment); ok {
					used[stored.Path()] = true
				}
			}
		}
		err = r.Close()
	}

	if err := errors.Join(err, engine.Close()); err != nil {
		return err
	}

	parts, err := filepath.Glob(filepath.Join(dir, "*.zap"))
	for _, part := range parts {
		// If it is not known which parts are used, none is removed.
		if len(used) > 0 && !used[part] {
			err = errors.Join(err, os.Remove(part))
		}
	}
	return err
}
