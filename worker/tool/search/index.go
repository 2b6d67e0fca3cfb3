package search

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// An index has two kinds of entries: the documents of a store with their texts, and the
// passages of these. The key of a document is part of the ids of both.
//
//	d KEY             fields record, text and cuts, which are stored and not searched
//	p KEY START END   fields words and singles, which are searched and not stored
const (
	documentPrefix = "d"
	passagePrefix  = "p"

	recordField  = "record"
	textField    = "text"
	cutsField    = "cuts"
	wordsField   = "w"
	singlesField = "s"
)

// keyLength is how many characters the key of a document has.
const keyLength = 32

// A stored document is one of a store, as the index keeps it.
type stored struct {
	Name     string            `json:"name"` // path below the folder, with forward slashes; what is in a file behind # or !/
	Title    string            `json:"title,omitempty"`
	Media    string            `json:"media,omitempty"`
	Read     time.Time         `json:"read"`
	Metadata map[string]string `json:"metadata,omitempty"`

	key  string
	text string
	cuts []cut
}

// A cut is where a passage is, with its length in words.
type cut struct{ start, end, words int }

func (s *stored) passageID(c cut) string {
	return passagePrefix + s.key + strconv.FormatInt(int64(c.start), 16) + "-" + strconv.FormatInt(int64(c.end), 16)
}

// parsePassageID splits the id of a passage into the key of its document and its bytes there.
func parsePassageID(id string) (key string, start, end int, err error) {
	rest, ok := strings.CutPrefix(id, passagePrefix)
	if !ok || len(rest) < keyLength {
		return "", 0, 0, fmt.Errorf("%q is not the id of a passage", id)
	}

	from, to, _ := strings.Cut(rest[keyLength:], "-")
	a, err1 := strconv.ParseInt(from, 16, 64)
	b, err2 := strconv.ParseInt(to, 16, 64)
	if err := errors.Join(err1, err2); err != nil || a < 0 || b < a {
		return "", 0, 0, fmt.Errorf("%q is not the id of a passage", id)
	}
	return rest[:keyLength], int(a), int(b), nil
}

// cutText finds the passages of the document's text, and their terms.
func (s *stored) cutText(length int) []passage.Terms {
	spans := passage.Cut(s.text, length)
	all := make([]passage.Terms, len(spans))
	s.cuts = make([]cut, len(spans))
	for i, span := range spans {
		all[i] = passage.TermsOf(s.Title + "\n" + span.In(s.text))
		s.cuts[i] = cut{span.Start, span.End, len(all[i].Words)}
	}
	return all
}

// addTo adds the document and its passages to a batch.
func (s *stored) addTo(b *index.Batch, terms []passage.Terms) error {
	record, err := json.Marshal(s)
	if err != nil {
		return err
	}

	var cuts []byte
	for _, c := range s.cuts {
		cuts = binary.AppendUvarint(cuts, uint64(c.start))
		cuts = binary.AppendUvarint(cuts, uint64(c.end))
		cuts = binary.AppendUvarint(cuts, uint64(c.words))
	}

	// The document is stored to be read; its passages are indexed to be found.
	d := document.NewDocument(documentPrefix + s.key)
	for name, value := range map[string][]byte{recordField: record, textField: []byte(s.text), cutsField: cuts} {
		d.AddField(document.NewTextFieldCustom(name, nil, value, index.StoreField, nil))
	}
	b.Update(d)

	for i, c := range s.cuts {
		p := document.NewDocument(s.passageID(c))
		p.AddField(document.NewTextFieldCustom(wordsField, nil, nil, index.IndexField, fixed(terms[i].Words)))
		if len(terms[i].Singles) > 0 {
			p.AddField(document.NewTextFieldCustom(singlesField, nil, nil, index.IndexField, fixed(terms[i].Singles)))
		}
		b.Update(p)
	}
	return nil
}

// removeFrom removes the document and its passages.
func (s *stored) removeFrom(b *index.Batch) {
	b.Delete(documentPrefix + s.key)
	for _, c := range s.cuts {
		b.Delete(s.passageID(c))
	}
}

// fixed is an analyzer of a text whose terms are known.
type fixed []string

var _ analysis.Analyzer = fixed(nil)

// Analyze implements analysis.Analyzer.
func (f fixed) Analyze([]byte) analysis.TokenStream {
	tokens := make([]analysis.Token, len(f))
	all := make(analysis.TokenStream, len(f))
	for i, term := range f {
		tokens[i] = analysis.Token{Term: []byte(term), Position: i + 1}
		all[i] = &tokens[i]
	}
	return all
}

// A snapshot is an index that is read. It is safe for concurrent use, and sees no change.
type snapshot struct {
	name   string // of its folder
	sum    manifest
	engine index.Index
	reader index.IndexReader
	vec    *matrix // nil if passages are found by their words alone
}

// openSnapshot opens the index in a folder that was checked.
func openSnapshot(dir, name string, m *manifest) (*snapshot, error) {
	engine, err := scorch.NewScorch(scorch.Name, map[string]any{"path": dir, "read_only": true, "bolt_timeout": "10s"}, nil)
	if err != nil {
		return nil, err
	}
	if err := engine.Open(); err != nil {
		return nil, err
	}

	reader, err := engine.Reader()
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &snapshot{name: name, sum: *m, engine: engine, reader: reader}, nil
}

func (s *snapshot) close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.reader.Close(), s.engine.Close())
}

// readStored returns a document that an index has.
func readStored(r index.IndexReader, key string) (*stored, error) {
	d, err := r.Document(documentPrefix + key)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, fmt.Errorf("the index lacks the document %s", key)
	}

	s := &stored{key: key}
	var record, cuts []byte
	d.VisitFields(func(f index.Field) {
		switch f.Name() {
		case recordField:
			record = slices.Clone(f.Value())
		case textField:
			s.text = string(f.Value())
		case cutsField:
			cuts = slices.Clone(f.Value())
		}
	})

	if err := json.Unmarshal(record, s); err != nil {
		return nil, fmt.Errorf("the index has a record of %s that cannot be read: %w", key, err)
	}

	// Three numbers are a cut, as addTo writes them.
	for len(cuts) > 0 {
		var v [3]int
		for i := range v {
			n, size := binary.Uvarint(cuts)
			if size <= 0 {
				return nil, fmt.Errorf("the index has passages of %s that cannot be read", s.Name)
			}
			v[i], cuts = int(n), cuts[size:]
		}
		s.cuts = append(s.cuts, cut{v[0], v[1], v[2]})
	}
	return s, nil
}

// maxWords bounds the words of a question by which passages are found; of more, the rarest
// count.
const maxWords = 64

// A found passage has its place and its score.
type found struct {
	key        string
	start, end int
	score      float64
}

// rank returns the passages that fit a query best by BM25, at most so many. Equal ones are in
// the order of their ids, whatever the order in which they were added.
//
// The engine has a search of its own with a score that it calls BM25. We do not use it: in
// version 2.6.3 it takes the root of a word's frequency, divides lengths by the number of
// different words in place of the number of words, counts the rarity of a word twice, and
// multiplies by the share of the words that match.
func (s *snapshot) rank(ctx context.Context, q passage.Query, most int) ([]found, error) {
	words, err := s.openWords(ctx, q)
	// There are readers to close even with an error.
	defer func() {
		for _, w := range words {
			w.close()
		}
	}()

	if err != nil {
		return nil, err
	}

	all := passage.Collection{Passages: s.sum.Passages, Words: s.sum.Words}
	scores := &scoreboard{}
	for _, w := range words {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := w.addTo(scores, all); err != nil {
			return nil, err
		}
	}
	return s.best(scores, most)
}

// A scoreboard has the scores of passages by the numbers that the engine gives them.
type scoreboard struct{ scores []float64 }

func (b *scoreboard) add(number uint64, score float64) {
	for uint64(len(b.scores)) <= number {
		b.scores = append(b.scores, 0)
		b.scores = b.scores[:cap(b.scores)]
	}
	b.scores[number] += score
}

// leastOf returns the score that a passage needs to be among so many best ones.
func (b *scoreboard) leastOf(most int) float64 {
	top := make([]float64, 0, most+1) // best first
	for _, score := range b.scores {
		if score <= 0 || len(top) == most && score <= top[most-1] {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, score, func(a, b float64) int { return cmp.Compare(b, a) })
		top = slices.Insert(top, at, score)
		top = top[:min(len(top), most)]
	}

	if len(top) == 0 {
		return math.Inf(1)
	}
	return top[len(top)-1]
}

// best returns the passages with the highest scores.
func (s *snapshot) best(b *scoreboard, most int) ([]found, error) {
	if most <= 0 {
		return nil, nil
	}

	least := b.leastOf(most)
	var all []found
	for number, score := range b.scores {
		if score <= 0 || score < least {
			continue
		}

		id, err := s.reader.ExternalID(index.NewIndexInternalID(nil, uint64(number)))
		if err != nil {
			return nil, err
		}
		f := found{score: score}
		if f.key, f.start, f.end, err = parsePassageID(id); err != nil {
			return nil, err
		}
		all = append(all, f)
	}

	// Equal scores may be more than are wanted, and the order of ids decides.
	slices.SortFunc(all, compareFound)
	return all[:min(most, len(all))], nil
}

func compareFound(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.key, b.key), cmp.Compare(a.start, b.start))
}

// openWords returns the words of a query that passages have, in the order of the query, so
// that sums of scores do not depend on anything else.
func (s *snapshot) openWords(ctx context.Context, q passage.Query) ([]*searchedWord, error) {
	var all []*searchedWord
	for i, terms := range q.Words {
		w := &searchedWord{number: i}
		all = append(all, w)
		for _, term := range terms {
			field := wordsField
			if passage.IsSingle(term) {
				field = singlesField
			}
			r, err := s.reader.TermFieldReader(ctx, []byte(term), field, true, true, false)
			if err != nil {
				return all, err
			}
			if n := r.Count(); n > 0 {
				w.readers, w.count = append(w.readers, r), w.count+n
			}
		}
		if w.count == 0 {
			all = all[:len(all)-1]
		}
	}

	if len(all) <= maxWords {
		return all, nil
	}

	// The rarest words are kept, in the order of the query.
	slices.SortFunc(all, func(a, b *searchedWord) int {
		return cmp.Or(cmp.Compare(a.count, b.count), cmp.Compare(a.number, b.number))
	})
	for _, w := range all[maxWords:] {
		w.close()
	}

	all = all[:maxWords]
	slices.SortFunc(all, func(a, b *searchedWord) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

// A searchedWord is a word of a query with the readers of its terms.
type searchedWord struct {
	number  int // in the query
	readers []index.TermFieldReader
	count   uint64 // of their passages
}

// addTo adds to the scores of passages what the word adds to them.
func (w *searchedWord) addTo(b *scoreboard, all passage.Collection) error {
	if len(w.readers) == 1 {
		rarity := all.Rarity(int(w.count))
		return eachPosting(w.readers[0], func(p posting) { b.add(p.passage, all.Score(rarity, p.times, p.length)) })
	}

	var postings []posting
	for _, r := range w.readers {
		if err := eachPosting(r, func(p posting) { postings = append(postings, p) }); err != nil {
			return err
		}
	}

	slices.SortFunc(postings, func(a, b posting) int { return cmp.Compare(a.passage, b.passage) })
	merged := postings[:0] // each passage once
	for _, p := range postings {
		if n := len(merged); n > 0 && merged[n-1].passage == p.passage {
			merged[n-1].times += p.times
			continue
		}
		merged = append(merged, p)
	}

	rarity := all.Rarity(len(merged))
	for _, p := range merged {
		b.add(p.passage, all.Score(rarity, p.times, p.length))
	}
	return nil
}

// A posting says how often a passage has a term, and how many words the passage has.
type posting struct {
	passage       uint64
	times, length int
}

// eachPosting calls add for each passage that has a term.
func eachPosting(r index.TermFieldReader, add func(posting)) error {
	var d index.TermFieldDoc
	for {
		next, err := r.Next(d.Reset())
		if err != nil || next == nil {
			return err
		}
		norm := next.Norm // one over the root of the length
		add(posting{next.ID.Value(), int(next.Freq), int(math.Round(1 / (norm * norm)))})
	}
}

// close gives back the readers of a word.
func (w *searchedWord) close() {
	for _, r := range w.readers {
		_ = r.Close() // of memory
	}
}

// keyOf returns the key of a document: of its name and its text, so that a document that
// changes has another.
func keyOf(sum []byte) string { return hex.EncodeToString(sum)[:keyLength] }
