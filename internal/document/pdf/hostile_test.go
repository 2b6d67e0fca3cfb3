package pdf_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
)

// TestHostilePages: pages that nobody would print give their text, within the limits of a
// document, and a note where something is left out.
func TestHostilePages(t *testing.T) {
	text := prose(50, 700, "Total 12.50")
	var copies []line
	for i := range 1000 {
		x := 50 + float64(i%2)/2
		copies = append(copies, line{x, 700, "Total 12.50"}, line{x, 600, "Tax 1.50"})
	}
	var ruled, grid strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&ruled, "%d %d m 500 %d l S\n", i%400, i%700, i%700)
	}
	for i := range 2000 {
		fmt.Fprintf(&grid, "0 %v m 600 %v l S %v 0 m %v 800 l S\n", float64(i)*0.4, float64(i)*0.4, float64(i)*0.3, float64(i)*0.3)
	}
	for _, test := range []struct {
		name       string
		sheet      sheet
		want, note string
	}{
		{"text outside of the page", sheet{lines: append([]line{{-900, 700, "nobody sees it"}, {50, 9000, "nor that"}}, text...)}, "Total 12.50\n", "5 words that stand outside"},
		{"text on itself", sheet{lines: copies}, "Total 12.50\n\nTax 1.50\n", ""},
		{"hundreds of thousands of lines", sheet{lines: text, drawn: ruled.String()}, "Total 12.50\n", "more lines and figures"},
		{"a grid of millions of fields", sheet{lines: text, drawn: grid.String()}, "Total 12.50\n", ""},
		{"a huge page", sheet{lines: text, more: "/MediaBox [0 0 1e7 1e7]"}, "Total 12.50\n", ""},
		{"a tiny page", sheet{lines: append([]line{{0, 0, "x"}}, text...), more: "/MediaBox [0 0 1 1]"}, "x\n", "words that stand outside"},
		{"a page that is turned inside out", sheet{lines: text, more: "/MediaBox [600 800 0 0]"}, "Total 12.50\n", ""},
		{"a form that does itself", sheet{lines: text, drawn: "/X Do\n", loop: true}, "Total 12.50\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := read(t, shared, makeFile("", test.sheet))
			if d.Text != test.want {
				t.Errorf("got %.200q, want %q", d.Text, test.want)
			}
			if notes := strings.Join(d.Notes, "; "); test.note == "" && notes != "" || !strings.Contains(notes, test.note) {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
		})
	}
}

// TestCyclicTrees: trees of pages that contain themselves are read or refused.
func TestCyclicTrees(t *testing.T) {
	for name, kids := range map[string]string{"itself": "2 0 R", "itself among pages": "3 0 R 2 0 R 3 0 R", "its child's": "4 0 R"} {
		m := new(maker)
		root := m.add("<< /Type /Catalog /Pages 2 0 R >>")
		m.add(fmt.Sprintf("<< /Type /Pages /Count 1000000 /Kids [%s] >>", kids))
		m.add("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources << /Font << /F1 6 0 R >> >> >>")
		m.add("<< /Type /Pages /Parent 2 0 R /Count 7 /Kids [2 0 R 3 0 R] >>")
		c := content(prose(50, 700, "Total 12.50"))
		m.add(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
		m.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
		d, err := parse(t.Context(), shared, m.file(root))
		var refused *document.RefusedError
		switch {
		case err == nil:
			if !strings.Contains(d.Text, "Total 12.50") || len(d.Text) > 1<<10 {
				t.Errorf("%s: got %.200q", name, d.Text)
			}
		case !errors.As(err, &refused):
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

// TestAtOnce reads ten contracts with any number of them at once, beside goroutines that are
// busy: none is refused that is read alone within the same limit, which counts the work of the
// document and not its wait for a processor.
func TestAtOnce(t *testing.T) {
	testenv.Raced(t)

	clause := strings.Fields(strings.Repeat(contractText+" ", 4))
	var pages []sheet
	for range 12 {
		var s sheet
		for i := range 45 {
			s.lines = append(s.lines, line{50, float64(750 - 15*i), strings.Join(clause[i%20:i%20+14], " ")})
		}
		pages = append(pages, s)
	}
	data := makeFile("", pages...)
	const limit = 2 * time.Second // of a processor; one contract takes a fraction of it, and all ten more
	alone, err := parseWithin(t, shared, data, document.NewTurns(0), limit)
	if err != nil {
		t.Fatalf("alone: %v", err)
	}

	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	defer busy.Wait()
	defer close(stop)
	for _, parallelism := range []int{1, 10} { // one after the other, and all ten
		turns, slots := document.NewTurns(0), make(chan struct{}, parallelism)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				d, err := parseWithin(t, shared, data, turns, limit)
				if err != nil {
					t.Errorf("contract %d of 10, %d at once: %v", i, parallelism, err)
				} else if d.Text != alone.Text {
					t.Errorf("contract %d of 10, %d at once: its text differs from that read alone", i, parallelism)
				}
			})
		}
		all.Wait()
	}
}

// parseWithin reads a file in turns, within a limit of the time of a processor.
func parseWithin(t *testing.T, r *pdf.Reader, data []byte, turns *document.Turns, limit time.Duration) (*document.Document, error) {
	all, err := document.NewRegistry(r.Format())
	if err != nil {
		return nil, err
	}
	return all.Within(document.Limits{Time: limit}, turns).Parse(t.Context(), document.Input{Name: "a.pdf", Content: strings.NewReader(string(data))})
}
