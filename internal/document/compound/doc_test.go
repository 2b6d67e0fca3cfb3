package compound_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/compound"
)

func read(t testing.TB, file []byte) (*document.Document, error) {
	t.Helper()
	c, err := compound.Open(t.Context(), bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	if !compound.HoldsDoc(c) {
		return nil, document.Refuse("no document")
	}
	return compound.ParseDoc(t.Context(), document.Input{}, c)
}

func TestTexts(t *testing.T) {
	for _, test := range []struct {
		name       string
		paragraphs []run
		characters []run
		notes      int
		want       string
	}{
		{name: "headings and paragraphs", paragraphs: []run{{text: "Rules\r", style: 1}, {text: "One line\vand another.\r"}, {text: "Größe 5 😀\r"}}, want: "# Rules\n\nOne line\nand another.\nGröße 5 😀\n"},
		{name: "fields show what they come to", paragraphs: []run{{text: "See \x13 HYPERLINK \"x\" \x14the \x13 PAGE \x14list\x15\x15, and \x13 EMPTY \x15no more.\r"}}, want: "See the list, and no more.\n"},
		{name: "hyphens, pictures and breaks of pages", paragraphs: []run{{text: "a\x1eb c\x1fd \x01\x08e\f"}, {text: "next\r"}}, want: "a-b cd e\nnext\n"},
		{
			name: "deleted and hidden characters", paragraphs: []run{{text: "It costs 10 20 euros.\r"}},
			characters: []run{{text: "It costs "}, {text: "10 ", changes: deleted}, {text: "20"}, {text: " euros", changes: hidden}, {text: ".\r"}}, want: "It costs 20.\n",
		},
		{
			name: "a table whose last cell is empty", paragraphs: []run{
				{text: "Part\a", changes: inTable},
				{text: "Qty\a", changes: inTable},
				{text: "\a", changes: endsRow},
				{text: "Bolt\r", changes: inTable},
				{text: "zinc\a", changes: inTable},
				{text: "\a", changes: inTable},
				{text: "\a", changes: endsRow},
				{text: "after\r"},
			},
			want: "| Part | Qty |\n| --- | --- |\n| Bolt zinc |  |\n\nafter\n",
		},
		{
			name: "cells of several columns and of several rows", paragraphs: []run{
				{text: "Part\a", changes: inTable},
				{text: "Net\a", changes: inTable},
				{text: "\a", changes: rowEnd([]int{0, 1000, 3000})},
				{text: "\a", changes: inTable},
				{text: "EUR\a", changes: inTable},
				{text: "USD\a", changes: inTable},
				{text: "\a", changes: rowEnd([]int{0, 1010, 2000, 3000}, true)},
				{text: "Bolt\a", changes: inTable},
				{text: "1\a", changes: inTable},
				{text: "2\a", changes: inTable},
				{text: "\a", changes: rowEnd([]int{0, 1000, 2000, 3000})},
			},
			want: "| Part | Net | Net |\n| Part | EUR | USD |\n| --- | --- | --- |\n| Bolt | 1 | 2 |\n",
		},
		{name: "footnotes stand behind the text", paragraphs: []run{{text: "Text\x02.\r"}, {text: "\x02 A note.\r"}}, notes: len("\x02 A note.\r"), want: "Text.\n\n A note.\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.characters == nil {
				test.characters = []run{{text: "x"}}
			}
			d, err := read(t, makeFile(test.paragraphs, test.characters, test.notes))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	good := makeFile([]run{{text: "Text\r"}}, []run{{text: "x"}}, 0)
	at := bytes.Index(good, []byte{0xec, 0xa5})
	for name, change := range map[string]func(main []byte){
		"of before 1997":        func(main []byte) { main[2] = 0x68 },
		"encrypted":             func(main []byte) { main[0x0b] |= 1 },
		"no pieces":             func(main []byte) { main[0x1a6] = 0 },
		"pieces beyond the end": func(main []byte) { main[0x1a2] = 0xf0 },
	} {
		t.Run(name, func(t *testing.T) {
			file := bytes.Clone(good)
			change(file[at:])
			_, err := read(t, file)
			if refused := new(document.RefusedError); !errors.As(err, &refused) {
				t.Errorf("the error is %v, want that it is refused", err)
			}
		})
	}
}

// FuzzDocument: any bytes are text, or refused.
func FuzzDocument(f *testing.F) {
	f.Add(makeFile([]run{{text: "Text\r"}, {text: "a\a", changes: inTable}, {text: "\a", changes: rowEnd([]int{0, 100}, true)}}, []run{{text: "T", changes: deleted}}, 0))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, err := read(t, file)
		if refused := new(document.RefusedError); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
	})
}
