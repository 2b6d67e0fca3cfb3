// Package search is the tool search_local: passages of documents in folders of this machine,
// found by their words, and by their meaning where there is an embedder.
//
// Each folder is a store with a name. Its index is made once and kept: only files that were
// added, changed or deleted are read again. Package passage decides what a passage and a word
// are, and how passages are ranked; the engine, bleve, keeps the words.
//
//	search.go      the kit, its stores and the search in one store or several
//	call.go        the tool: what is asked, and what it brings
//	build.go       brings an index up to date with its folder; files.go reads the folder
//	generation.go  an index on the disk: changed at once or not at all
//	index.go       what the engine keeps, and the ranking of passages by their words
//	vectors.go     vectors of passages, and the ranking by these
package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/worker/tool"
	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// Name is the name of the kit and of its tool.
const Name = "search_local"

// A Store is a folder of documents with a name.
type Store struct{ Name, Dir string }

// Config configures a kit.
type Config struct {
	// Stores are searched. At least one is needed, each with a name of its own.
	Stores []Store
	// Formats are those that documents may have. Needed.
	Formats *document.Registry
	// Cache is the folder in which indexes are kept. They hold the texts of documents, so
	// nobody else can read them. Needed.
	Cache string
	// FormatSettings says what the text of documents depends on beside their bytes, such as a
	// password or how web pages are read. Indexes that were made with others are made again.
	FormatSettings string
	// Embedder finds passages by their meaning, too: the rankings by words and by vectors
	// become one by reciprocal ranks. Defaults to none.
	Embedder Embedder
	// TopK is how many passages a store gives if a call does not say. Defaults to 3.
	TopK int
	// PassageLength is how long a passage is, in characters. Defaults to
	// passage.DefaultLength.
	PassageLength int
	// Refresh is how long the files of a store are believed to be as they were. Defaults to
	// 10 s; less than 0 means that each session looks at them.
	Refresh time.Duration
	// Note tells the operator something about a store. Defaults to nothing.
	Note func(message string)
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Bounds of a search.
const (
	DefaultTopK = 3
	MaxTopK     = 20
	MaxQuery    = 4000 // characters
)

// Bounds of a kit.
const (
	maxStores  = 64
	maxPassage = 10_000 // characters of a passage
)

var storeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// check returns an error that says what is wrong with the configuration.
func (c *Config) check() error {
	switch {
	case c.Formats == nil || c.Cache == "":
		return errors.New("search_local: formats and a folder for indexes are needed")
	case c.TopK < 0 || c.TopK > MaxTopK:
		return fmt.Errorf("search_local: the passages of a store must be from 1 to %d, and not %d", MaxTopK, c.TopK)
	case c.PassageLength < 0 || c.PassageLength > maxPassage:
		return fmt.Errorf("search_local: a passage must have from 1 to %d characters, and not %d", maxPassage, c.PassageLength)
	}
	return CheckStores(c.Stores)
}

// CheckStores returns an error that says what is wrong with the names or folders of stores.
func CheckStores(all []Store) error {
	switch {
	case len(all) == 0:
		return errors.New("there is no store: name a folder as NAME=DIR")
	case len(all) > maxStores:
		return fmt.Errorf("there are %d stores, and at most %d are accepted", len(all), maxStores)
	}

	for i, s := range all {
		if !storeName.MatchString(s.Name) {
			return fmt.Errorf("a store cannot be named %.80q: a name has 1 to 64 letters, digits, _, . and -, and begins with a letter or digit", s.Name)
		}
		if slices.ContainsFunc(all[:i], func(other Store) bool { return other.Name == s.Name }) {
			return fmt.Errorf("two stores are named %q", s.Name)
		}

		info, err := os.Stat(s.Dir)
		switch {
		case err != nil:
			return fmt.Errorf("the folder of store %s: %w", s.Name, err)
		case !info.IsDir():
			return fmt.Errorf("the folder of store %s: %s is not a folder", s.Name, s.Dir)
		}
	}
	return nil
}

// A Kit searches stores. It is safe for concurrent use.
type Kit struct {
	config Config
	stores []*store
}

var _ tool.Kit = (*Kit)(nil)

// New returns the kit of stores. It reads none of their files yet; see Prepare.
func New(c Config) (*Kit, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	c.TopK = cmp.Or(c.TopK, DefaultTopK)
	c.PassageLength = cmp.Or(c.PassageLength, passage.DefaultLength)
	c.Refresh = cmp.Or(c.Refresh, 10*time.Second)
	if c.Note == nil {
		c.Note = func(string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	k := &Kit{config: c}
	for _, s := range c.Stores {
		// An absolute path means the same index wherever the process runs.
		dir, err := filepath.Abs(s.Dir)
		if err != nil {
			return nil, fmt.Errorf("search_local: the folder of store %s: %w", s.Name, err)
		}
		k.stores = append(k.stores, &store{kit: k, name: s.Name, folder: dir, dir: filepath.Join(c.Cache, k.folderName(s.Name, dir)), turn: make(chan struct{}, 1)})
	}
	return k, nil
}

// settings are what an index depends on beside the files of its store.
func (k *Kit) settings() string {
	return fmt.Sprintf("passages %d; formats %s: %s", k.config.PassageLength, strings.Join(k.config.Formats.Parsers(), " "), k.config.FormatSettings)
}

// folderName returns the name of the folder of an index: another store, and another setting,
// has another.
func (k *Kit) folderName(name, dir string) string {
	sum := sha256.Sum256([]byte(dir + "\x00" + k.settings()))
	return name + "-" + hex.EncodeToString(sum[:8])
}

// Name implements tool.Kit.
func (*Kit) Name() string { return Name }

// Close implements tool.Kit.
func (k *Kit) Close() error {
	var errs []error
	for _, s := range k.stores {
		s.mu.Lock()
		errs = append(errs, s.now.close())
		s.now = nil
		s.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Prepare brings the indexes of all stores up to date. It returns an error for a store that
// cannot be searched; the others can.
func (k *Kit) Prepare(ctx context.Context) error {
	errs := make([]error, len(k.stores))
	var group sync.WaitGroup
	for i, s := range k.stores {
		group.Go(func() { errs[i] = s.refreshIndex(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// A Status says how the index of a store is.
type Status struct {
	Store               string
	Documents, Passages int64
	Skipped             int // files of which nothing is in the index
	FirstSkipped        string
}

// Status returns the status of each store, in their order; of a store that was not prepared
// it is empty but for the name.
func (k *Kit) Status() []Status {
	all := make([]Status, len(k.stores))
	for i, s := range k.stores {
		all[i].Store = s.name
		s.mu.RLock()
		if s.now != nil {
			all[i] = statusOf(s.name, &s.now.sum)
		}
		s.mu.RUnlock()
	}
	return all
}

func statusOf(name string, m *manifest) Status {
	st := Status{Store: name, Passages: m.Passages}
	first := ""
	for name, f := range m.Files {
		st.Documents += int64(len(f.Keys))
		if f.Skip != "" {
			st.Skipped++
			if first == "" || name < first {
				first = name
			}
		}
	}

	if first != "" {
		st.FirstSkipped = first + ": " + m.Files[first].Skip
	}
	return st
}

// A store is one of a kit.
type store struct {
	kit    *Kit
	name   string
	folder string
	dir    string // of the index

	turn chan struct{} // holds an element while the index is brought up to date

	checked time.Time // when that was done last; guarded by turn
	told    string    // the last line to the operator about files that are left out; guarded by turn

	mu  sync.RWMutex
	now *snapshot // nil before the first build; guarded by mu

	done, all atomic.Int64 // files of the build under way
}

// refreshIndex brings the index up to date, unless that was done a moment ago. An error has the
// name of the store.
func (s *store) refreshIndex(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return s.waitError(ctx)
	}
	defer func() { <-s.turn }()

	// The index may have been brought up to date while this call waited.
	now := s.kit.config.Now()
	if s.now != nil && now.Sub(s.checked) < s.kit.config.Refresh {
		return nil
	}

	if err := s.bringUpToDate(ctx); err != nil {
		if ctx.Err() != nil {
			return s.waitError(ctx)
		}
		return fmt.Errorf("store %s: %w", s.name, err)
	}

	s.checked = now
	return nil
}

// waitError is the error of a search that could not wait for the index.
func (s *store) waitError(ctx context.Context) error {
	return fmt.Errorf("store %s: its index is being built, %d of %d files are read; search again later: %w",
		s.name, s.done.Load(), s.all.Load(), context.Cause(ctx))
}

// openTimes is how often an index is opened that other processes replace meanwhile.
const openTimes = 10

func (s *store) bringUpToDate(ctx context.Context) error {
	b := &builder{
		name: s.name, folder: s.folder, dir: s.dir, settings: s.kit.settings(), length: s.kit.config.PassageLength,
		open:     func() (*folderReader, error) { return openFolder(s.folder, s.kit.config.Formats, s.kit.config.Now) },
		note:     func(text string) { s.kit.config.Note(fmt.Sprintf("store %s: %s", s.name, text)) },
		progress: func(done, all int) { s.done.Store(int64(done)); s.all.Store(int64(all)) },
	}

	for n := 1; ; n++ {
		name, m, err := b.update(ctx)
		if err != nil {
			return err
		}
		if s.now != nil && s.now.name == name && (s.now.vec != nil) == (s.kit.config.Embedder != nil) {
			return nil
		}

		next, err := openSnapshot(filepath.Join(s.dir, name), name, m)
		if err != nil {
			if _, gone := os.Stat(filepath.Join(s.dir, name)); gone != nil && n < openTimes {
				continue // another process has published a newer one
			}
			return err
		}

		if err := s.addVectors(ctx, next); err != nil {
			return errors.Join(err, next.close())
		}

		if text := s.tellShortage(m); text != s.told {
			s.told = text
			s.kit.config.Note(fmt.Sprintf("store %s: %s", s.name, cmp.Or(text, "all files are read now")))
		}

		s.mu.Lock()
		old := s.now
		s.now = next
		s.mu.Unlock()
		return old.close()
	}
}

// tellShortage says which files are not in the index, or "" if all are.
func (s *store) tellShortage(m *manifest) string {
	st := statusOf(s.name, m)
	switch {
	case st.Documents == 0 && st.Skipped == 0:
		return fmt.Sprintf("there is nothing to search in %s: no file was found, and hidden ones do not count", s.folder)
	case st.Documents == 0:
		return fmt.Sprintf("there is nothing to search in %s: every file is left out, the first is %s", s.folder, st.FirstSkipped)
	case st.Skipped > 0:
		return fmt.Sprintf("%d files are left out, the first is %s", st.Skipped, st.FirstSkipped)
	}
	return ""
}

// A Query is what is searched for.
type Query struct {
	Text   string
	Stores []string // to search, in the order of the answer; none means all
	TopK   int      // passages of each store; 0 means Config.TopK
}

// A Hit is a passage of a document.
type Hit struct {
	Store    string
	Document string // its name in the store
	Title    string
	Media    string
	Read     time.Time
	Metadata map[string]string

	// Start and End are the passage's bytes in the text of the document, CharStart and
	// CharEnd its code points.
	Start, End         int
	CharStart, CharEnd int
	Quote              string
	Score              float64 // by BM25, or by reciprocal ranks where vectors are used; comparable within a store

	text string // of the document
	cuts []cut  // all its passages
}

// A StoreHits is what one store has.
type StoreHits struct {
	Store string
	Hits  []Hit  // best first
	Empty bool   // the store has no documents
	Note  string // what the reader has to know of the hits
	Err   error  // why the store could not be searched
}

// checkQuery returns the stores that a query names, or an error if it makes no sense.
func (k *Kit) checkQuery(q *Query) ([]*store, error) {
	q.TopK = cmp.Or(q.TopK, k.config.TopK)
	switch n := utf8.RuneCountInString(q.Text); {
	case strings.TrimSpace(q.Text) == "":
		return nil, errors.New("the query is empty: say in words what to look for")
	case !utf8.ValidString(q.Text):
		return nil, errors.New("the query is not UTF-8")
	case n > MaxQuery:
		return nil, fmt.Errorf("the query has %d characters, and at most %d are accepted: name what to look for in fewer words", n, MaxQuery)
	case q.TopK < 1 || q.TopK > MaxTopK:
		return nil, fmt.Errorf("top_k is %d, and must be from 1 to %d", q.TopK, MaxTopK)
	}

	if len(q.Stores) == 0 {
		return k.stores, nil
	}

	var chosen []*store
	for _, name := range q.Stores {
		i := slices.IndexFunc(k.stores, func(s *store) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no store %.80q; the stores are %s", name, strings.Join(k.names(), ", "))
		}
		// A store that is named twice is searched once.
		if !slices.Contains(chosen, k.stores[i]) {
			chosen = append(chosen, k.stores[i])
		}
	}
	return chosen, nil
}

func (k *Kit) names() []string {
	names := make([]string, len(k.stores))
	for i, s := range k.stores {
		names[i] = s.name
	}
	return names
}

// Search returns the passages that fit a query best, store by store. The text of the query is
// a text: no character of it is a command. An error means that the query makes no sense, that
// no store could be searched, or that ctx ended.
func (k *Kit) Search(ctx context.Context, q Query) ([]StoreHits, error) {
	stores, err := k.checkQuery(&q)
	if err != nil {
		return nil, err
	}

	terms, v := passage.QueryOf(q.Text), &vectorQuery{}
	all := make([]StoreHits, len(stores))
	var errs []error
	for i, s := range stores {
		all[i] = StoreHits{Store: s.name}
		if all[i].Err = s.search(ctx, q, terms, v, &all[i]); all[i].Err != nil {
			errs = append(errs, all[i].Err)
		}
	}

	if ctx.Err() != nil || len(errs) == len(stores) {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// search searches one store.
func (s *store) search(ctx context.Context, q Query, terms passage.Query, v *vectorQuery, out *StoreHits) error {
	if err := s.ready(ctx); err != nil {
		return err
	}

	// While the lock is held, the snapshot is not replaced and closed.
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.now == nil {
		return fmt.Errorf("store %s: the kit is closed", s.name)
	}

	out.Empty = s.now.sum.Passages == 0
	best, note, err := s.rank(ctx, q, terms, v)
	if err != nil {
		return fmt.Errorf("store %s: %w", s.name, err)
	}
	out.Note = note

	docs := make(map[string]*stored)
	for _, f := range best {
		d := docs[f.key]
		if d == nil {
			if d, err = readStored(s.now.reader, f.key); err != nil {
				return fmt.Errorf("store %s: %w", s.name, err)
			}
			docs[f.key] = d
		}
		out.Hits = append(out.Hits, hitOf(s.name, d, f))
	}
	return nil
}

// ready waits for the first index of the store.
func (s *store) ready(ctx context.Context) error {
	s.mu.RLock()
	there := s.now != nil
	s.mu.RUnlock()
	if there {
		return nil
	}
	return s.refreshIndex(ctx)
}

func hitOf(store string, d *stored, f found) Hit {
	quote := d.text[f.start:f.end]
	before := utf8.RuneCountInString(d.text[:f.start])
	return Hit{
		Store: store, Document: d.Name, Title: d.Title, Media: d.Media, Read: d.Read, Metadata: d.Metadata,
		Start: f.start, End: f.end, CharStart: before, CharEnd: before + utf8.RuneCountInString(quote),
		Quote: quote, Score: f.score, text: d.text, cuts: d.cuts,
	}
}
