package retrieval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/worker/tool/search"
	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// Recall is how much of what is right is found: the mean, over questions, of the share of
// the right passages that are among the first ten, of as many as could be.
type Recall struct {
	Questions, Passages int
	Index, Scan         float64 // by search_local, and by looking at every passage
}

// open returns the kit of one store, prepared. The caller closes the kit.
func open(ctx context.Context, folder, cache string) (*search.Kit, error) {
	formats, err := document.NewRegistry(plain.TextFormat(), plain.JSONLinesFormat())
	if err != nil {
		return nil, err
	}

	k, err := search.New(search.Config{Stores: []search.Store{{Name: "set", Dir: folder}}, Formats: formats, Cache: cache})
	if err != nil {
		return nil, err
	}
	if err := k.Prepare(ctx); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// MeasureRecall asks all questions of a set, whose documents it writes below dir.
func MeasureRecall(ctx context.Context, s *Set, dir string) (r Recall, err error) {
	folder := filepath.Join(dir, "documents")
	for path, content := range s.Files {
		if err := writeFile(filepath.Join(folder, path), content); err != nil {
			return r, err
		}
	}

	k, err := open(ctx, folder, filepath.Join(dir, "index"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()

	for _, q := range s.Questions {
		found, err := k.Search(ctx, search.Query{Text: q.Text, TopK: search.MaxTopK})
		if err != nil {
			return r, err
		}

		var places []Place
		for _, h := range found[0].Hits {
			// Where the truth names documents alone, places in them do not count.
			if s.Whole {
				places = append(places, Place{Document: h.Document})
			} else {
				places = append(places, Place{h.Document, h.CharStart, h.CharEnd})
			}
		}

		r.Index += q.share(places)
		r.Scan += q.share(s.scan(q.Text, search.MaxTopK))
	}

	n := len(s.Questions)
	r.Questions, r.Passages = n, s.Passages()
	r.Index, r.Scan = r.Index/float64(n), r.Scan/float64(n)
	return r, nil
}

// share returns which share of what is right is among the first ten different places.
func (q *Question) share(found []Place) float64 {
	var seen []Place
	right := 0
	for _, p := range found {
		if slices.Contains(seen, p) || len(seen) == TopN {
			continue
		}
		if seen = append(seen, p); q.Right[p] {
			right++
		}
	}
	return float64(right) / float64(min(len(q.Right), TopN))
}

// Size is what an index of many passages costs.
type Size struct {
	Passages, Words int64         // in the index, and different words that texts are drawn from
	Texts, Index    int64         // bytes of the documents, and of the folder of the index
	Build, Bare     time.Duration // of the index, and of reading, cutting and finding the terms alone
	Reopen          time.Duration // of an index that is there, nothing having changed
	Queries         []time.Duration
	Scanned         int           // passages that a scan looks at
	Scan            time.Duration // the median of a query by a scan of these
}

const (
	vocabulary  = 50_000
	perDocument = 10 // passages
	scanned     = 10_000
	scanQueries = 20
)

// MeasureSize makes an index of about so many passages below dir, and asks it questions.
func MeasureSize(ctx context.Context, passages, queries int, dir string) (s Size, err error) {
	folder, index := filepath.Join(dir, "documents"), filepath.Join(dir, "index")
	w := newWriter()
	for i := range max(1, passages/perDocument) {
		content := w.document()
		s.Texts += int64(len(content))
		if err := writeFile(filepath.Join(folder, fmt.Sprint(i%100), fmt.Sprint(i, ".txt")), content); err != nil {
			return s, err
		}
	}

	scan, err := s.readAlone(folder)
	if err != nil {
		return s, err
	}

	begun := time.Now()
	k, err := open(ctx, folder, index)
	if err != nil {
		return s, err
	}
	s.Build = time.Since(begun)
	s.Passages, s.Words = k.Status()[0].Passages, vocabulary

	if err := k.Close(); err != nil {
		return s, err
	}
	if s.Index, err = bytesOf(index); err != nil {
		return s, err
	}

	// Nothing has changed, so only the opening takes time.
	begun = time.Now()
	if k, err = open(ctx, folder, index); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	s.Reopen = time.Since(begun)

	for range queries {
		q := search.Query{Text: w.question()}
		begun := time.Now()
		if _, err := k.Search(ctx, q); err != nil {
			return s, err
		}
		s.Queries = append(s.Queries, time.Since(begun))
	}

	var scans []time.Duration
	for range scanQueries {
		q := passage.QueryOf(w.question())
		begun := time.Now()
		scan.Search(q, search.DefaultTopK)
		scans = append(scans, time.Since(begun))
	}

	slices.Sort(scans)
	slices.Sort(s.Queries)
	s.Scan = scans[len(scans)/2]
	return s, nil
}

// readAlone does what cannot be spared when an index is made, by one goroutine, and returns
// some of the passages to be scanned.
func (s *Size) readAlone(folder string) (*passage.Scan, error) {
	scan, begun := new(passage.Scan), time.Now()
	var left time.Duration // of what a scan needs
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // it was written here
		if err != nil {
			return err
		}

		content := string(data)
		for _, span := range passage.Cut(content, passage.DefaultLength) {
			terms := passage.TermsOf(filepath.Base(path) + "\n" + span.In(content))
			if s.Scanned < scanned {
				begun := time.Now()
				scan.Add(terms)
				left += time.Since(begun)
				s.Scanned++
			}
		}
		return nil
	})

	s.Bare = time.Since(begun) - left
	return scan, err
}

// Quantile returns the least time that a part q of the queries do not exceed.
func (s *Size) Quantile(q float64) time.Duration {
	return s.Queries[max(0, int(math.Ceil(q*float64(len(s.Queries))))-1)]
}

// A writer draws texts whose words are as frequent as those of a language, the same in
// every run.
type writer struct {
	random *rand.Rand
	ranks  *rand.Zipf
	words  []string
}

func newWriter() *writer {
	random := rand.New(rand.NewPCG(3, 0))
	w := &writer{random: random, ranks: rand.NewZipf(random, 1.07, 4, vocabulary-1)}
	for range vocabulary {
		letters := make([]byte, 2+random.IntN(9))
		for i := range letters {
			letters[i] = "etaoinshrdlucmfwypvbgk"[min(random.IntN(22), random.IntN(22))]
		}
		w.words = append(w.words, string(letters))
	}
	return w
}

// sentence returns n words with a dot.
func (w *writer) sentence(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = w.words[w.ranks.Uint64()]
	}
	all[0] = strings.ToUpper(all[0][:1]) + all[0][1:]
	return strings.Join(all, " ") + "."
}

// document returns a text of about ten passages.
func (w *writer) document() string {
	var b strings.Builder
	for range perDocument {
		for part := b.Len() + passage.DefaultLength*9/10; b.Len() < part; {
			b.WriteString(w.sentence(8+w.random.IntN(16)) + " ")
		}
		b.WriteString("\n\n")
	}
	return b.String()
}

// question returns three to ten words of the vocabulary, each as often as it is in texts.
func (w *writer) question() string { return w.sentence(3 + w.random.IntN(8)) }

func writeFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o600)
}

// bytesOf returns the bytes of all files of a folder.
func bytesOf(folder string) (n int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
