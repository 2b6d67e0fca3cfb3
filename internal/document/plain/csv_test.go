package plain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/plain"
)

func TestText(t *testing.T) {
	for _, test := range []struct{ name, file, data, want, charset string }{
		{"commas", "a.csv", "name,size\r\n\"a, b\",1\r\nc|d,\"2\"\"\"\r\n", "| name | size |\n| --- | --- |\n| a, b | 1 |\n| c\\|d | 2\" |\n", "utf-8"},
		{"semicolons", "a.csv", "name;price\na;1,50\nb;2,50\n", "| name | price |\n| --- | --- |\n| a | 1,50 |\n| b | 2,50 |\n", "utf-8"},
		{"tabs", "a.tsv", "name\tsize\na,b\t1\n", "| name | size |\n| --- | --- |\n| a,b | 1 |\n", "utf-8"},
		{"semicolons below a title", "a.csv", "Doctors by year, region, sex and speciality\n****\nRegion:;all\n;1985;1993\nA;1;2\nB;3;4\nC;5;6\n", "| Doctors by year, region, sex and speciality |\n| --- |\n| **** |\n| Region: | all |\n|  | 1985 | 1993 |\n| A | 1 | 2 |\n| B | 3 | 4 |\n| C | 5 | 6 |\n", "utf-8"},
		{"decimal commas below a title", "a.csv", "Prices, net\na;b;c\n1,5;2,5;3,5\n1,5;2,5;3,5\n", "| Prices, net |\n| --- |\n| a | b | c |\n| 1,5 | 2,5 | 3,5 |\n| 1,5 | 2,5 | 3,5 |\n", "utf-8"},
		{"semicolons below lines of no cells", "a.csv", "Report\n\nCreated 2024\n\nName;Amount\nA;1,5\nB;2,5\n", "| Report |\n| --- |\n| Created 2024 |\n| Name | Amount |\n| A | 1,5 |\n| B | 2,5 |\n", "utf-8"},
		{"a semicolon below lines of no cells", "a.csv", "notes\nfirst\nsecond\nthird; last\n", "| notes |\n| --- |\n| first |\n| second |\n| third; last |\n", "utf-8"},
		{"decimal commas without names of columns", "a.csv", "1,5;2,5;3,5\n4,5;2,5;1,5\n", "| 1,5 | 2,5 | 3,5 |\n| --- | --- | --- |\n| 4,5 | 2,5 | 1,5 |\n", "utf-8"},
		{"decimal commas between tabs", "a.csv", "1,5\t2,5\n4,5\t1,5\n", "| 1,5 | 2,5 |\n| --- | --- |\n| 4,5 | 1,5 |\n", "utf-8"},
		{"whole numbers", "a.csv", "1,2,3\n4,5,6;7\n", "| 1 | 2 | 3 |\n| --- | --- | --- |\n| 4 | 5 | 6;7 |\n", "utf-8"},
		{"rows of several widths", "a.csv", "a,b\n1\n1,2,3\n4,5,6,7\nnote; see below\n", "| a | b |\n| --- | --- |\n| 1 |  |\n| 1 | 2 | 3 |\n| 4 | 5 | 6 | 7 |\n| note; see below |  |\n", "utf-8"},
		{"bars", "a.csv", "name|size\na|1\n", "| name | size |\n| --- | --- |\n| a | 1 |\n", "utf-8"},
		{"said by Excel", "a.csv", "sep=;\nname,x;size\na;1\n", "| name,x | size |\n| --- | --- |\n| a | 1 |\n", "utf-8"},
		{"lines in cells", "a.csv", "a,b\n\"x\ny\",2\n", "| a | b |\n| --- | --- |\n| x y | 2 |\n", "utf-8"},
		{"stray quotes", "a.csv", "a,b\n5\" pipe,\"x\" y\n", "| a | b |\n| --- | --- |\n| 5\" pipe | \"x\" y |\n", "utf-8"},
		{"widths", "a.csv", "a,b\n1\n1,2,3\n\n,\n", "| a | b |\n| --- | --- |\n| 1 |  |\n| 1 | 2 | 3 |\n", "utf-8"},
		{"lines of old Macs", "a.csv", "a,b\r1,2\r\"x\ry\",4\r", "| a | b |\n| --- | --- |\n| 1 | 2 |\n| x y | 4 |\n", "utf-8"},
		{"lines of several kinds", "a.csv", "a,b\r\n1,2\r3,4\n5,6\r\r\n7,8", "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n| 7 | 8 |\n", "utf-8"},
		{"UTF-16", "a.csv", "\xff\xfea\x00,\x00b\x00", "| a | b |\n| --- | --- |\n", "utf-16le"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, plain.CSVFormat(), test.file, []byte(test.data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" || d.Charset != test.charset {
				t.Errorf("in %s (-want +got):\n%s", d.Charset, diff)
			}
		})
	}
}

// TestOpenQuote: a quote that does not close is a character, and the lines behind it are rows.
func TestOpenQuote(t *testing.T) {
	const note = "a quote that opens in line 3 does not close, and was read as a character"
	for _, test := range []struct {
		name, data, want string
		notes            []string
	}{
		{"in a line", "a;b\n\"u;v\";0\n\"x;1\n\"\";2\n\"z;3\n", "| a | b |\n| --- | --- |\n| u;v | 0 |\n| \"x | 1 |\n|  | 2 |\n| \"z | 3 |\n", []string{note}},
		{"below the separator", "sep=;\na;b\n\"x;1\ny;2\n", "| a | b |\n| --- | --- |\n| \"x | 1 |\n| y | 2 |\n", []string{note}},
		{"in the last cell", "a,b\r\n1,2\r\n3,\"4", "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | \"4 |\n", []string{note}},
		{"above a cell that closes", "a,b\n\"w\",\"4\"\n\"x\",\"5\n\"y\",\"6\"\n\"z\",\"7\"\n", "| a | b |\n| --- | --- |\n| w | 4 |\n| x | \"5 |\n| y | 6 |\n| z | 7 |\n", []string{note}},
		{"above others that do not", "a,b,c\n1,u,v\n2,\"5 inch,x\n3,\"7 inch,y\n4,\"z\",\"\"\n", "| a | b | c |\n| --- | --- | --- |\n| 1 | u | v |\n| 2 | \"5 inch | x |\n| 3 | \"7 inch | y |\n| 4 | z |  |\n", []string{note}},
		{"lines of a cell, which begin with quotes", "a,b\n1,\"x,\n\"\"y\"\" z\"\n\"He said:\n\"yes\" to it\",2\n", "| a | b |\n| --- | --- |\n| 1 | x, \"y\" z |\n| He said: \"yes\" to it | 2 |\n", nil},
		{"of a word in a cell", "a,b\n0,x\n1,\"A\"_c\n2,\"B\"\n3,d\n", "| a | b |\n| --- | --- |\n| 0 | x |\n| 1 | \"A\"_c |\n| 2 | B |\n| 3 | d |\n", []string{note}},
		{"of a word within the quotes of its cell", "a,b\n1,\"the \"A\" c, d\"\n2,e\n", "| a | b |\n| --- | --- |\n| 1 | the \"A\" c, d |\n| 2 | e |\n", nil},
		{"behind backslashes", "a,b\n\"x \\\"y\\\" and\nz\",2\n", "| a | b |\n| --- | --- |\n| x \\\"y\\\" and z | 2 |\n", nil},
		{"closed before blanks", "a,b\n\"c, d\" ,\"1\"\t\n\"e\nf\",2\n", "| a | b |\n| --- | --- |\n| c, d | 1 |\n| e f | 2 |\n", nil},
		{"opened behind blanks", "a, b\n1, \"c, d\"\n\t\"e \"\"f\"\"\", 2\n3, \"\"\n", "| a | b |\n| --- | --- |\n| 1 | c, d |\n| e \"f\" | 2 |\n| 3 |  |\n", nil},
		{"of words behind blanks", "a,b\n1, \"x\" or \"y\"\n2, \"u\n3,v\"\n", "| a | b |\n| --- | --- |\n| 1 | \"x\" or \"y\" |\n| 2 | \"u |\n| 3 | v\" |\n", nil},
		{"one that closes at the end", "a,b\n1,\"2\n3\"", "| a | b |\n| --- | --- |\n| 1 | 2 3 |\n", nil},
		{"two for one", "a,b\n1,\"2\"\"\"\r\n", "| a | b |\n| --- | --- |\n| 1 | 2\" |\n", nil},
	} {
		d, err := zipmake.Parse(t, plain.CSVFormat(), "a.csv", []byte(test.data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, d.Text) + cmp.Diff(test.notes, d.Notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, data := range map[string]string{
		"a line of more than 32768 cells": strings.Repeat("x,", 40_000),
		"more than 16384 cells in line 2": "a,b\n" + strings.Repeat("x,", 20_000),
	} {
		_, err := zipmake.Parse(t, plain.CSVFormat(), "a.csv", []byte(data))
		if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, want) {
			t.Errorf("got %v, want one that refuses for %q", err, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	d, err := zipmake.Parse(t, plain.CSVFormat(), "", []byte("sep=;\na;b\n\"1\n2\";3\n4;5\n"))
	if err != nil {
		t.Fatal(err)
	}
	for word, cell := range map[string]string{"a": "A2", "1 2": "A3", "5": "B5"} {
		at := strings.Index(d.Text, word)
		if l := d.Layout.Locate(at, at+1); l == nil || l.Cell != cell {
			t.Errorf("%q is at %+v, want %s", word, l, cell)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a,b\n\"1\"\"\n2\";3\n"))
	f.Add([]byte("sep=\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := zipmake.Parse(t, plain.CSVFormat(), "a.csv", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
	})
}
