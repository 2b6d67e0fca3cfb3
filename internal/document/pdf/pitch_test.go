package pdf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// typed returns texts as a typewriter has them, one below the other.
func typed(texts ...string) (lines []line) {
	for i, t := range texts {
		if t != "" {
			lines = append(lines, line{50, 700 - 10*float64(i), t})
		}
	}
	return lines
}

// TestTyped: a single blank of a font of one pitch is wider than a gap between cells of other
// fonts, but parts words. Two and more part cells.
func TestTyped(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []line
		want  string
	}{
		{
			"lines of a receipt", typed("NO.53 55,57 & 59, JALAN SAGU 18,", "TAMAN DAYA,", "81100 JOHOR BAHRU,", "JOHOR.", "DOCUMENT NO : TD01167104", "DATE:", "25/12/2018 8:13:39 PM"),
			"NO.53 55,57 & 59, JALAN SAGU 18,\nTAMAN DAYA,\n81100 JOHOR BAHRU,\nJOHOR.\nDOCUMENT NO : TD01167104\nDATE:\n25/12/2018 8:13:39 PM\n",
		},
		{
			"sentences parted by two blanks", typed("It is so.  He saw it.  We go on.", "It is ok.  We did it.  He is in.", "He is in.  We see it.  Do go on."),
			"It is so. He saw it. We go on.\nIt is ok. We did it. He is in.\nHe is in. We see it. Do go on.\n",
		},
		{
			"blanks below each other", typed("THE OLD MAN SAW", "HER BIG DOG RUN", "AND ALL WAS WON"),
			"THE OLD MAN SAW\nHER BIG DOG RUN\nAND ALL WAS WON\n",
		},
		{
			"a table", typed("ITEM        QTY   PRICE OF ONE", "KIDDY FISH    2           9.00", "CLAY TO RUB  10          12.50", "TOY           1            3.20"),
			"| ITEM | QTY | PRICE OF ONE |\n| --- | --- | --- |\n| KIDDY FISH | 2 | 9.00 |\n| CLAY TO RUB | 10 | 12.50 |\n| TOY | 1 | 3.20 |\n",
		},
		{
			"labels and values", typed("Order date  2 May", "Due in days 30", "Paid        no"),
			"Order date\t2 May\nDue in days\t30\nPaid\tno\n",
		},
	} {
		d := read(t, shared, makeFile("", sheet{lines: test.lines, pitch: true}))
		if diff := cmp.Diff(test.want, d.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestTypedCells: cells of a table may begin anywhere, also those of a font of one pitch. What is
// written in each keeps its words together.
func TestTypedCells(t *testing.T) {
	lines := rowsAt(700, 10, []float64{50, 131.5, 323.7},
		[]string{"Sum of all the parts", "", "198.00"}, []string{"Tax in EUR", "", "37.62"}, []string{"To be paid now", "", "235.62"},
		[]string{"Name", ": Transport of Ulm", ""}, []string{"IBAN", ": DE12 1234 5678 9012", ""}, []string{"BIC", ": ULMD EFFX", ""})
	want := "Sum of all the parts\t198.00\nTax in EUR\t37.62\nTo be paid now\t235.62\n" +
		"Name\t: Transport of Ulm\nIBAN\t: DE12 1234 5678 9012\nBIC\t: ULMD EFFX\n"
	if diff := cmp.Diff(want, read(t, shared, makeFile("", sheet{lines: lines, pitch: true})).Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEvenColumns: columns of numbers of equal length, at equal distances, are no font of one pitch.
func TestEvenColumns(t *testing.T) {
	lines := rowsAt(700, 12, []float64{50, 85, 120, 155}, []string{"Year", "2021", "2022", "2023"}, []string{"Sold", "1234", "2345", "3456"}, []string{"Left", "4321", "5432", "6543"})
	want := "| Year | 2021 | 2022 | 2023 |\n| --- | --- | --- | --- |\n| Sold | 1234 | 2345 | 3456 |\n| Left | 4321 | 5432 | 6543 |\n"
	if diff := cmp.Diff(want, read(t, shared, makeFile("", sheet{lines: lines})).Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
