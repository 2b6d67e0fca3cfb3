// Package retrieval measures search_local: how many of the right passages it finds, on sets
// for which people have marked the right ones, beside a scan of all passages; and what an index
// of many passages costs.
//
// It imports the tool and the formats of documents that its sets have.
package retrieval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/worker/tool/search/passage"
)

// TopN is how many passages of an answer count.
const TopN = 10

// A Place is a passage of a document, in characters; all of the document if it has no end.
type Place struct {
	Document   string
	Start, End int
}

// A Question is asked of a set, and is answered by places of it.
type Question struct {
	Text  string
	Right map[Place]bool
}

// A Set is documents with questions whose answers are known.
type Set struct {
	Files     map[string]string // by their paths in the folder that is searched
	Questions []Question
	Whole     bool // places are whole documents
	Malformed int  // lines of the data that could not be read

	places  []Place // of the passages, in order
	scanned passage.Scan
}

// Passages returns how many passages a scan looks at.
func (s *Set) Passages() int { return len(s.places) }

// add adds the passages of a text under a title.
func (s *Set) add(title, text string, place func(passage.Span) Place) {
	for _, span := range passage.Cut(text, passage.DefaultLength) {
		s.scanned.Add(passage.TermsOf(title + "\n" + span.In(text)))
		s.places = append(s.places, place(span))
	}
}

// scan returns the places that have most of a question, best first, by looking at all.
func (s *Set) scan(question string, most int) []Place {
	var found []Place
	for _, r := range s.scanned.Search(passage.QueryOf(question), most) {
		found = append(found, s.places[r.Number])
	}
	return found
}

// Answers returns the set of a folder with questions.jsonl and, for each question, the
// passages that experts cited when they answered it. All of them are searched at once.
func Answers(folder string) (*Set, error) {
	s := &Set{Files: make(map[string]string), Whole: true}
	questions, err := readLines[struct{ ID, Question string }](s, filepath.Join(folder, "questions.jsonl"))
	if err != nil {
		return nil, err
	}

	for _, q := range questions {
		name := q.ID + ".jsonl"
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}

		s.Files[name] = string(data)
		cited, err := readLines[struct {
			ID      string `json:"document_id"`
			Title   string
			Passage string
		}](s, filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}

		right := make(map[Place]bool)
		for _, c := range cited {
			// A line of the file is a document, and its place is all of it.
			at := Place{Document: name + "#" + c.ID}
			if strings.TrimSpace(c.Passage) == "" {
				continue
			}
			right[at] = true
			s.add(c.Title, c.Passage, func(passage.Span) Place { return at })
		}

		s.Questions = append(s.Questions, Question{q.Question, right})
	}
	return s, nil
}

// A relation is between two names in a text, which people have found.
type relation struct {
	Document       string `json:"documentId"`
	SourceBegin    int
	TargetBegin    int
	Source, Target string
}

// Relations returns the set of a folder with news in which people found relations between
// names: the question is two names, and right are the passages that say how they are related.
func Relations(folder string) (*Set, error) {
	s := &Set{Files: make(map[string]string)}
	pairs := make(map[string][]relation) // by the two names
	for _, source := range []string{"centcom", "uk-government", "us-state-department"} {
		if err := s.addNews(filepath.Join(folder, source), pairs); err != nil {
			return nil, err
		}
	}

	var names []string
	for name := range pairs {
		names = append(names, name)
	}
	slices.Sort(names)

	for _, name := range names {
		right := make(map[Place]bool)
		for _, p := range s.places {
			for _, r := range pairs[name] {
				if r.Document+".txt" == p.Document && p.Start <= min(r.SourceBegin, r.TargetBegin) && max(r.SourceBegin, r.TargetBegin) < p.End {
					right[p] = true
				}
			}
		}

		if n := len(right); n > 0 && n <= TopN && len(passage.QueryOf(name).Words) > 1 {
			s.Questions = append(s.Questions, Question{name, right})
		}
	}
	return s, nil
}

// addNews adds the documents and relations of one source.
func (s *Set) addNews(folder string, pairs map[string][]relation) error {
	documents, err := readLines[struct {
		ID   string `json:"_id"`
		Text string
	}](s, filepath.Join(folder, "documents.json"))
	if err != nil {
		return err
	}

	texts := make(map[string][]rune)
	for _, d := range documents {
		name, text := d.ID+".txt", d.Text
		s.Files[name], texts[d.ID] = text, []rune(text)
		s.add(name, text, func(span passage.Span) Place {
			return Place{name, len([]rune(text[:span.Start])), len([]rune(text[:span.End]))}
		})
	}

	relations, err := readLines[relation](s, filepath.Join(folder, "relations.json"))
	if err != nil {
		return err
	}

	for _, r := range relations {
		all, size := texts[r.Document], len([]rune(r.Source))
		if r.Source == r.Target || r.SourceBegin < 0 || r.SourceBegin+size > len(all) || string(all[r.SourceBegin:r.SourceBegin+size]) != r.Source {
			continue // the data has spans that are wrong
		}

		names := []string{r.Source, r.Target}
		slices.Sort(names)
		pairs[strings.Join(names, " ")] = append(pairs[strings.Join(names, " ")], r)
	}
	return nil
}

// readLines reads JSON lines. The data has a few that are none, which are counted.
func readLines[T any](s *Set, path string) ([]T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	var all []T
	lines := bufio.NewScanner(bytes.NewReader(data))
	// Some lines are longer than a scanner takes by default.
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}

		var v T
		if json.Unmarshal(lines.Bytes(), &v) != nil {
			s.Malformed++
			continue
		}
		all = append(all, v)
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}
