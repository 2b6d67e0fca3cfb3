package main

import (
	"fmt"
	"strconv"
)

// A Column has the figures of one project.
type Column struct {
	Name       string
	Functions  [4]int // lines: median, 90 %, 99 %, the longest
	Files      [2]int // lines: 90 %, the longest
	Unbroken   int    // per cent of the functions of LongFrom lines or more, without a blank line
	Silent     int    // per cent of the same, without a comment inside
	Documented int    // per cent of exported names
	OneWord    int    // per cent of private functions
	Private    int    // distinct names of private functions
}

// ColumnOf returns the figures of what was counted.
func ColumnOf(name string, c Code) Column {
	column := Column{Name: name, Unbroken: percent(c.Unbroken, c.Long), Silent: percent(c.Silent, c.Long), Documented: percent(c.Explained, c.Exported), OneWord: percent(c.OneWord, c.Private), Private: c.Private}
	for i, q := range []float64{0.5, 0.9, 0.99, 1} {
		column.Functions[i] = Quantile(c.Functions, q)
	}
	for i, q := range []float64{0.9, 1} {
		column.Files[i] = Quantile(c.Files, q)
	}
	return column
}

func percent(part, whole int) int {
	if whole == 0 {
		return 0
	}
	return (200*part + whole) / (2 * whole)
}

// Models returns the figures of projects whose code is read with ease, each
// measured by this package at the commit that is named.
func Models() []Column {
	return []Column{
		{"river", [4]int{9, 44, 266, 1078}, [2]int{713, 3025}, 2, 33, 46, 4, 267},    // github.com/riverqueue/river at fdf6cdf12567
		{"restic", [4]int{9, 41, 122, 222}, [2]int{371, 1355}, 2, 32, 71, 11, 766},   // github.com/restic/restic at a80be1478a4c
		{"boulder", [4]int{12, 56, 147, 267}, [2]int{485, 2879}, 11, 37, 75, 8, 641}, // github.com/letsencrypt/boulder at 2d00c8e27919
		{"upspin", [4]int{11, 43, 104, 186}, [2]int{496, 1293}, 27, 16, 95, 23, 588}, // github.com/upspin/upspin at 891166a946f5
	}
}

// Rows returns a table: a row of names, and one for each figure.
func Rows(columns []Column) [][]string {
	rows := [][]string{{""}, {"functions, lines: median / 90 % / 99 % / max"}, {"files, lines: 90 % / max"}, {fmt.Sprintf("functions of %d lines or more without a blank line", LongFrom)}, {"the same without a comment inside"}, {"exported names documented"}, {"private functions of one word (distinct)"}}
	for _, c := range columns {
		for i, cell := range []string{
			c.Name,
			fmt.Sprintf("%d / %d / %d / %d", c.Functions[0], c.Functions[1], c.Functions[2], c.Functions[3]),
			fmt.Sprintf("%d / %d", c.Files[0], c.Files[1]),
			strconv.Itoa(c.Unbroken) + " %",
			strconv.Itoa(c.Silent) + " %",
			strconv.Itoa(c.Documented) + " %",
			fmt.Sprintf("%d %% of %d", c.OneWord, c.Private),
		} {
			rows[i] = append(rows[i], cell)
		}
	}

	return rows
}
