package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/document/recognise"
	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/layout"
)

// A page is a picture that people have read.
type page struct {
	Name  string   `json:"picture"`
	Words []string `json:"words"`
	Lines []string `json:"lines"`

	truth  map[string]any // values that are true; nil if nobody has said so
	text   string         // that was recognised; empty if none was
	layout layout.Layout
}

// A set is pictures, and what was found in them.
type set struct {
	pages  []*page
	values []found // of truth.jsonl
	words  []found // each word for itself
}

// A source says how folders are read.
type source struct{ schemaFile, languages string }

// read returns the pictures of a folder, with what is recognised in them.
func (s source) read(ctx context.Context, folder string) (*set, error) {
	pages, err := pagesOf(folder)
	if err != nil {
		return nil, err
	}
	if err := s.recognise(ctx, folder, pages); err != nil {
		return nil, err
	}

	if own := filepath.Join(folder, "schema.yaml"); isFile(own) {
		s.schemaFile = own
	}
	data, err := os.ReadFile(s.schemaFile)
	if err != nil {
		return nil, err
	}
	parsed, err := schema.Parse(s.schemaFile, data)
	if err != nil {
		return nil, err
	}
	return judge(ctx, parsed, pages)
}

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// pagesOf returns the pictures that people have read of a folder, by name.
func pagesOf(folder string) ([]*page, error) {
	pages := make(map[string]*page)
	if err := readWords(filepath.Join(folder, "words.jsonl"), pages); err != nil {
		return nil, err
	}
	if err := readTruth(filepath.Join(folder, "truth.jsonl"), pages); err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s has neither truth.jsonl nor words.jsonl with pictures", folder)
	}

	var all []*page
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		all = append(all, pages[name])
	}
	return all, nil
}

// readWords adds what people read in pictures, if there is such a file.
func readWords(name string, pages map[string]*page) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Buffer(nil, 4<<20); lines.Scan(); {
		p := new(page)
		if err := json.Unmarshal(lines.Bytes(), p); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pages[p.Name] = p
	}
	return lines.Err()
}

// readTruth adds which values are true, if there is such a file.
func readTruth(name string, pages map[string]*page) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	truths, err := eval.ReadTruth(name, f)
	if err != nil {
		return err
	}

	for _, t := range truths {
		if pages[t.Document] == nil {
			pages[t.Document] = &page{Name: t.Document}
		}
		pages[t.Document].truth = t.Values
	}
	return nil
}

// recognise reads pictures as a job does, as many at once as there are processors.
func (s source) recognise(ctx context.Context, folder string, pages []*page) error {
	engine := recognise.NewTesseract(s.languages)
	if why := engine.Missing(); why != "" {
		return errors.New(why)
	}
	formats, err := document.NewRegistry(picture.New(picture.Config{Engine: engine}).Formats()...)
	if err != nil {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, p := range pages {
		g.Go(func() error {
			data, err := os.ReadFile(filepath.Join(folder, p.Name))
			if err != nil {
				return err
			}
			d, err := formats.Parse(ctx, document.Input{Name: p.Name, Content: bytes.NewReader(data)})
			if errors.As(err, new(*document.RefusedError)) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			p.text, p.layout = d.Text, d.Layout
			return nil
		})
	}
	return g.Wait()
}

// unread counts the pictures without text.
func (s *set) unread() (n int) {
	for _, p := range s.pages {
		if p.text == "" {
			n++
		}
	}
	return n
}

// sampleOf returns that on which the factor of a form is chosen: values, and with them words that are a number or a
// date by themselves, which are many. A text is mostly of several words, and right only if all of them are: of texts the
// words are taken only if nobody has said which values are true.
func (s *set) sampleOf(form confidence.Form) []found {
	all := ofForm(s.values, form)
	if form != confidence.TextForm || len(s.values) == 0 {
		all = append(all, ofForm(s.words, form)...)
	}
	return all
}

// halves returns the pictures on which factors are chosen, and the others, by the hash of their names.
func (s *set) halves() (chosen, held *set) {
	both := [2]*set{{}, {}}
	half := func(name string) *set {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // never fails
		return both[h.Sum32()>>8%2]
	}

	for _, p := range s.pages {
		to := half(p.Name)
		to.pages = append(to.pages, p)
	}
	for _, f := range s.values {
		to := half(f.picture)
		to.values = append(to.values, f)
	}
	for _, f := range s.words {
		to := half(f.picture)
		to.words = append(to.words, f)
	}
	return both[0], both[1]
}
