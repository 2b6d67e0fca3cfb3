package picture_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/internal/text/lookalike"
)

// leastJoined is how many bytes a word has at least that is looked for in what others make together: shorter
// ones stand there by chance.
const leastJoined = 3

// A page is a picture that people have read: a line of words.jsonl.
type page struct {
	Picture string   `json:"picture"`
	Words   []string `json:"words"`
	Lines   []string `json:"lines"` // the same by lines, where that is known

	text string // that was recognised
}

// TestScans reads real scans and photographs, of which people have said what stands there, and logs how many of
// their words are found and how often words are right by how sure recognition is of them. The factors of
// docs/confidence.md are measured by it. Each folder of scans in the data of CODITECT_TESTDATA has words.jsonl and
// the pictures that it names.
func TestScans(t *testing.T) {
	testenv.Lengthy(t)
	e := engine(t)
	sets, err := filepath.Glob(filepath.Join(os.Getenv("CODITECT_TESTDATA"), "scans", "*", "words.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(sets) == 0 {
		t.Skip("there are no scans in the data of CODITECT_TESTDATA")
	}

	for _, set := range sets {
		t.Run(filepath.Base(filepath.Dir(set)), func(t *testing.T) {
			var bins [10][2]int // words by tenths of how sure they are: all, and those that are right
			words, found, unread := 0, 0, 0
			pages := pagesOfSet(t, set)
			for i := range pages {
				p := &pages[i]
				data, err := os.ReadFile(filepath.Join(filepath.Dir(set), p.Picture))
				if err != nil {
					t.Fatal(err)
				}
				record := &recorder{Engine: e}
				d, err := registry(t, record, picture.Config{}).Parse(t.Context(), document.Input{Content: bytes.NewReader(data)})
				switch {
				case err == nil:
					p.text = d.Text
				case errors.As(err, new(*document.RefusedError)):
					unread++
				default:
					t.Errorf("%s: %v", p.Picture, err)
				}

				// People cut words at other places, such as before a colon, and may write all of them in
				// capitals: what stands in their words one after the other is right, too.
				left, joined := make(tally), strings.ToUpper(strings.Join(p.Words, ""))
				for _, w := range p.Words {
					left[strings.ToUpper(w)]++
				}
				words += len(p.Words)
				for _, w := range record.words {
					text := strings.ToUpper(w.Text)
					right := left.take(text)
					found += right
					if right == 0 && len(text) >= leastJoined && strings.Contains(joined, text) {
						right = 1
					}
					bin := &bins[min(int(w.Sure*10), 9)]
					bin[0], bin[1] = bin[0]+1, bin[1]+right
				}
			}

			t.Logf("of %d words %d are found; %d pictures have no text", words, found, unread)
			for i, n := range bins {
				t.Logf("sure by %.1f: %5d words, of which %.3f are right", float64(i)/10, n[0], float64(n[1])/float64(max(n[0], 1)))
			}
			logLookalikes(t, pages)
			if bins[9][1]*10 < bins[9][0]*8 {
				t.Errorf("of %d words that recognition is sure of %d are right", bins[9][0], bins[9][1])
			}
		})
	}
}

// logLookalikes logs how often lines that are not found as they are look like what was recognised: lines of the
// page itself, as a model that sees it quotes them, and lines of another page, as one quotes that makes them up.
func logLookalikes(t *testing.T, pages []page) {
	t.Helper()
	var own, others [3]int // lines; those that stand there as they are; those that look like what does
	count := func(of *[3]int, text *lookalike.Text, plain, line string) {
		of[0]++
		switch {
		case strings.Contains(plain, strings.ToUpper(strings.Join(strings.Fields(line), " "))):
			of[1]++
		case len(text.Find(line, 1)) > 0:
			of[2]++
		}
	}

	for i, p := range pages {
		text, plain := lookalike.New(p.text), strings.ToUpper(strings.Join(strings.Fields(p.text), " "))
		for _, line := range p.Lines {
			count(&own, text, plain, line)
		}
		for _, line := range pages[(i+1)%len(pages)].Lines {
			if !slices.Contains(p.Lines, line) {
				count(&others, text, plain, line)
			}
		}
	}
	if own[0] > 0 {
		t.Logf("of %d lines of a page %d stand in its text and %d look like it; of %d lines of another page %d and %d", own[0], own[1], own[2], others[0], others[1], others[2])
	}
}

// pagesOfSet returns the pictures of a set.
func pagesOfSet(t *testing.T, name string) (all []page) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var p page
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
