package pdf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBlocks: a gap is one between cells where each row of a block has it, however narrow it is,
// and one between words where only some have it.
func TestBlocks(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []line
		want  string
	}{
		{"values near to their labels", rowsAt(700, 12, []float64{50, 111}, []string{"Order date", "2 May"}, []string{"Due in days", "30"}, []string{"Paid", "no"}), "Order date\t2 May\nDue in days\t30\nPaid\tno\n"},
		{"a gap in one row", rowsAt(700, 12, []float64{50, 111}, []string{"Order date", "2 May"}, []string{"is what stands in all letters"}, []string{"that we have"}), "Order date 2 May\nis what stands in all letters\nthat we have\n"},
	} {
		d := read(t, shared, makeFile("", sheet{lines: test.lines}))
		if diff := cmp.Diff(test.want, d.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestJustified: justified text of a narrow column has wide gaps, but they part no columns.
func TestJustified(t *testing.T) {
	var lines []line
	all := strings.Fields("the mean of biomedical variables which are of interest to users and a population deviation is often used as measure for each sample when its distribution seems approximately symmetric so that an error remains unknown")
	for i := range 20 {
		var words []string
		for k := range 4 + i%2 {
			words = append(words, all[(i*11+k*7)%len(all)])
		}
		letters := 0
		for _, w := range words {
			letters += len(w)
		}
		x, gap := 50.0, (200-5*float64(letters))/float64(len(words)-1)
		for _, w := range words {
			lines = append(lines, line{x, 700 - 12*float64(i), w})
			x += 5*float64(len(w)) + gap
		}
	}
	d := read(t, shared, makeFile("", sheet{lines: lines}))
	if strings.Contains(d.Text, "---") {
		t.Errorf("it became a table:\n%s", d.Text)
	}
}
