package search

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// An Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Name names the model, such as "openai/text-embedding-3-small": vectors of different
	// models do not compare.
	Name() string
	// Embed returns a vector for each text, in their order, all of one length.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// How passages are embedded.
const (
	embedBatch = 64 // texts of a call
	embedCalls = 4  // at a time
)

// A matrix has the vectors of all passages of a snapshot, each of length one.
type matrix struct {
	places []found   // without scores
	rows   []float32 // those of a passage follow each other
	width  int
}

// A textHash identifies the text of a passage, with its title.
type textHash [sha256.Size]byte

// addVectors gives a snapshot the vectors of its passages. Those that no earlier index had
// are asked for and kept, call by call: what was paid for is not paid for again. If the embedder
// fails, the operator gets a line, and passages are found by their words alone until the next time.
func (s *store) addVectors(ctx context.Context, next *snapshot) error {
	e := s.kit.config.Embedder
	if e == nil {
		return nil
	}

	m, err := s.embedPassages(ctx, e, next)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		s.kit.config.Note(fmt.Sprintf("store %s: passages are found by their words alone, as %s failed: %v", s.name, e.Name(), err))
		return nil
	}

	next.vec = m
	return nil
}

func (s *store) embedPassages(ctx context.Context, e Embedder, next *snapshot) (*matrix, error) {
	unlock, err := lockIndex(ctx, s.dir, func() {})
	if err != nil {
		return nil, err
	}
	name := sha256.Sum256([]byte(e.Name()))
	log := &vectorLog{path: filepath.Join(s.dir, vectorPrefix+hex.EncodeToString(name[:8]))}
	m, err := s.embedLocked(ctx, e, next, log)
	return m, errors.Join(err, log.close(), unlock())
}

func (s *store) embedLocked(ctx context.Context, e Embedder, next *snapshot, log *vectorLog) (*matrix, error) {
	known, err := log.open()
	if err != nil {
		return nil, err
	}

	all := &embedding{store: s, embedder: e, known: known, log: log}
	if err := all.collect(ctx, next); err != nil {
		return nil, err
	}
	if err := all.embedMissing(ctx); err != nil {
		return nil, err
	}

	m, err := all.matrix()
	if err == nil && len(known) > 2*len(all.hashes)+1000 {
		err = log.rewrite(known, all.hashes)
	}
	return m, err
}

// An embedding is the work of finding the vectors of a snapshot.
type embedding struct {
	store    *store
	embedder Embedder
	log      *vectorLog

	places []found
	hashes []textHash          // of the texts at places
	texts  map[textHash]string // those without a vector
	mu     sync.Mutex          // guards known and log
	known  map[textHash][]float32
}

// collect finds all passages, and the texts among them that have no vector yet.
func (a *embedding) collect(ctx context.Context, next *snapshot) error {
	a.texts = make(map[textHash]string)
	for _, f := range next.sum.Files {
		for _, key := range slices.Compact(slices.Sorted(slices.Values(f.Keys))) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}

			d, err := readStored(next.reader, key)
			if err != nil {
				return err
			}

			for _, c := range d.cuts {
				// The title counts for vectors as it does for words.
				text := d.Title + "\n" + d.text[c.start:c.end]
				hash := textHash(sha256.Sum256([]byte(text)))
				a.places = append(a.places, found{key: key, start: c.start, end: c.end})
				a.hashes = append(a.hashes, hash)
				if a.known[hash] == nil {
					a.texts[hash] = text
				}
			}
		}
	}
	return nil
}

// embedMissing asks for the vectors that are missing.
func (a *embedding) embedMissing(ctx context.Context) error {
	if len(a.texts) == 0 {
		return nil
	}

	missing := make([]textHash, 0, len(a.texts))
	for hash := range a.texts {
		missing = append(missing, hash)
	}
	// In one order, so that the same texts are asked for together each time.
	slices.SortFunc(missing, func(x, y textHash) int { return slices.Compare(x[:], y[:]) })

	g, within := errgroup.WithContext(ctx)
	g.SetLimit(embedCalls)
	for batch := range slices.Chunk(missing, embedBatch) {
		g.Go(func() error {
			if within.Err() != nil {
				return context.Cause(within)
			}
			texts := make([]string, len(batch))
			for i, hash := range batch {
				texts[i] = a.texts[hash]
			}
			vectors, err := a.embedder.Embed(within, texts)
			if err != nil {
				return err
			}

			if len(vectors) != len(texts) {
				return fmt.Errorf("%d vectors came for %d texts", len(vectors), len(texts))
			}
			return a.keep(batch, vectors)
		})
	}
	return g.Wait()
}

// keep writes vectors to the log.
func (a *embedding) keep(batch []textHash, vectors [][]float32) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, hash := range batch {
		a.known[hash] = vectors[i]
		if err := a.log.appendVector(hash, vectors[i]); err != nil {
			return err
		}
	}
	return a.log.flush()
}

func (a *embedding) matrix() (*matrix, error) {
	m := &matrix{places: a.places}
	for i, hash := range a.hashes {
		v := a.known[hash]
		if i == 0 {
			m.width = len(v)
			m.rows = make([]float32, 0, len(v)*len(a.hashes))
		}

		if len(v) != m.width || m.width == 0 {
			return nil, fmt.Errorf("a vector has %d numbers, and another has %d", len(v), m.width)
		}
		m.rows = append(m.rows, unitVector(v)...)
	}
	return m, nil
}

// unitVector returns a vector of the same direction and the length one.
func unitVector(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}

	out := make([]float32, len(v))
	if sum == 0 {
		return out
	}

	by := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * by)
	}
	return out
}

// nearest returns the passages whose vectors are nearest to one, at most so many.
func (m *matrix) nearest(to []float32, most int) ([]found, error) {
	if len(m.places) == 0 {
		return nil, nil
	}
	if len(to) != m.width {
		return nil, fmt.Errorf("the vector of the query has %d numbers, and those of passages have %d", len(to), m.width)
	}

	to = unitVector(to)
	board := &scoreboard{scores: make([]float64, len(m.places))}
	for i := range m.places {
		board.scores[i] = float64(dotProduct(m.rows[i*m.width:(i+1)*m.width], to)) + 2 // above zero
	}

	least := board.leastOf(most)
	var all []found
	for i, score := range board.scores {
		if score >= least {
			f := m.places[i]
			f.score = score
			all = append(all, f)
		}
	}

	slices.SortFunc(all, compareFound)
	return all[:min(most, len(all))], nil
}

// dotProduct returns the product of two vectors of one length. Four sums at a time keep the
// processor busy.
func dotProduct(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0

	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}

	return s0 + s1 + s2 + s3
}

// How two rankings become one, by reciprocal ranks (Cormack, Clarke and Büttcher, Reciprocal
// Rank Fusion outperforms Condorcet and individual Rank Learning Methods, 2009).
const (
	fusionRank = 60 // the constant of the paper
	fusedDepth = 50 // passages of each ranking
)

// fuseRankings returns the passages that are best in two rankings.
func fuseRankings(a, b []found, most int) []found {
	type place struct {
		key   string
		start int
	}

	scores := make(map[place]*found)
	for _, ranking := range [][]found{a, b} {
		for rank, f := range ranking {
			at := place{f.key, f.start}
			if scores[at] == nil {
				scores[at] = &found{key: f.key, start: f.start, end: f.end}
			}
			// Ranks count from 1 in the paper, and from 0 here.
			scores[at].score += 1 / float64(fusionRank+rank+1)
		}
	}

	var all []found
	for _, f := range scores {
		all = append(all, *f)
	}

	slices.SortFunc(all, compareFound)
	return all[:min(most, len(all))]
}

// A vectorQuery has the vector of a query, which is asked for once.
type vectorQuery struct {
	once   sync.Once
	vector []float32
	err    error
}

func (v *vectorQuery) get(ctx context.Context, e Embedder, text string) ([]float32, error) {
	v.once.Do(func() {
		all, err := e.Embed(ctx, []string{text})
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d vectors came for one text", len(all))
		}
		if v.err = err; err == nil {
			v.vector = all[0]
		}
	})
	return v.vector, v.err
}

// rank returns the passages that fit a query best: by their words, and by their vectors where
// there are any. The note says why vectors could not be used.
func (s *store) rank(ctx context.Context, q Query, terms passage.Query, v *vectorQuery) (best []found, note string, err error) {
	if s.now.vec == nil {
		best, err = s.now.rank(ctx, terms, q.TopK)
		return best, "", err
	}

	// More is taken of each ranking than is wanted: what is lower in both may win.
	byWords, err := s.now.rank(ctx, terms, max(q.TopK, fusedDepth))
	if err != nil {
		return nil, "", err
	}

	to, err := v.get(ctx, s.kit.config.Embedder, q.Text)
	var byVectors []found
	if err == nil {
		byVectors, err = s.now.vec.nearest(to, max(q.TopK, fusedDepth))
	}

	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		return byWords[:min(q.TopK, len(byWords))], fmt.Sprintf("The passages of %s were found by their words alone, as the query could not be embedded: %v", s.name, err), nil
	}
	return fuseRankings(byWords, byVectors, q.TopK), "", nil
}

// A vectorLog is a file of vectors by the hash of their text, to which others are added. A record
// is the hash, the number of numbers, the numbers and a checksum; what follows a record that
// is not whole was not written to its end.
type vectorLog struct {
	path string
	file *os.File
	out  *bufio.Writer
}

// open reads the log, and cuts off what is not whole.
func (l *vectorLog) open() (map[textHash][]float32, error) {
	var err error
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}

	all := make(map[textHash][]float32)
	in, whole := bufio.NewReaderSize(l.file, 1<<20), int64(0)
	for {
		hash, v, err := readVector(in)
		if err != nil {
			break
		}
		all[hash] = v
		whole += recordSize(len(v))
	}

	// A record that is not whole is cut off, so that new ones behind it can be read.
	if err := l.file.Truncate(whole); err != nil {
		return nil, err
	}
	if _, err := l.file.Seek(whole, io.SeekStart); err != nil {
		return nil, err
	}

	l.out = bufio.NewWriterSize(l.file, 1<<16)
	return all, nil
}

func recordSize(numbers int) int64 { return sha256.Size + 4 + 4*int64(numbers) + 4 }

// maxNumbers bounds the numbers of a vector.
const maxNumbers = 1 << 16

func readVector(in io.Reader) (hash textHash, v []float32, err error) {
	head := make([]byte, sha256.Size+4)
	if _, err := io.ReadFull(in, head); err != nil {
		return hash, nil, err
	}

	n := binary.LittleEndian.Uint32(head[sha256.Size:])
	// A damaged length must not take the memory.
	if n > maxNumbers {
		return hash, nil, errors.New("no vector is so long")
	}

	body := make([]byte, 4*n+4)
	if _, err := io.ReadFull(in, body); err != nil {
		return hash, nil, err
	}

	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body[:4*n])
	if sum != binary.LittleEndian.Uint32(body[4*n:]) {
		return hash, nil, errors.New("the checksum differs")
	}

	v = make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[4*i:]))
	}
	return textHash(head[:sha256.Size]), v, nil
}

func appendVector(data []byte, hash textHash, v []float32) []byte {
	from := len(data)
	data = append(data, hash[:]...)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(v)))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data[from:], castagnoli))
}

func (l *vectorLog) appendVector(hash textHash, v []float32) error {
	_, err := l.out.Write(appendVector(nil, hash, v))
	return err
}

// flush writes what was appended to the disk.
func (l *vectorLog) flush() error { return cmp.Or(l.out.Flush(), l.file.Sync()) }

// rewrite leaves out the vectors of texts that are gone.
func (l *vectorLog) rewrite(known map[textHash][]float32, keep []textHash) error {
	var data []byte
	slices.SortFunc(keep, func(x, y textHash) int { return slices.Compare(x[:], y[:]) })
	for _, hash := range slices.Compact(keep) {
		data = appendVector(data, hash, known[hash])
	}
	next := l.path + ".new"
	return errors.Join(writeSynced(next, data), os.Rename(next, l.path))
}

func (l *vectorLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
