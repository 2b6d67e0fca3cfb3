package compound_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/document/compound"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
)

// properties returns the properties of fixed size of a message: numbers of 32 bits by their tags.
func properties(numbers map[uint32]uint32) []byte {
	b := bytes.NewBuffer(make([]byte, 32))
	for tag, n := range numbers {
		put(b, tag<<16|3, uint32(0), n, uint32(0))
	}
	return b.Bytes()
}

// TestCodePages: texts of one byte a character are in the code page that the message says.
func TestCodePages(t *testing.T) {
	const subject, page, web = "__substg1.0_0037001E", 0x3ffd, 0x3fde

	for _, test := range []struct {
		name    string
		numbers map[uint32]uint32
		raw     string
		want    string
	}{
		{"of the message", map[uint32]uint32{page: 950, web: 1252}, "\xae\xe6\xa6\xa1\xb4\xfa\xb8\xd5", "格式測試"},
		{"of the body alone", map[uint32]uint32{web: 28592}, "\xb1\xe6", "ąć"},
		{"UTF-8", map[uint32]uint32{page: 65001}, "Größe", "Größe"},
		{"not said", nil, "Gr\xf6\xdfe", "Größe"},
		{"one without such bytes", map[uint32]uint32{page: 20127}, "Gr\xf6\xdfe", "Größe"},
		{"UTF-8 that is said to be of Windows", map[uint32]uint32{page: 1252}, "Für 5 €", "Für 5 €"},
		{"UTF-8 of another language", map[uint32]uint32{page: 1252}, "Спецификация", "Спецификация"},
		{"UTF-8 of another page", map[uint32]uint32{page: 1251, web: 1252}, "Цена", "Цена"},
		{"by chance", map[uint32]uint32{page: 1250}, "SP\xd3\xa3KA", "SPÓŁKA"},
		{"by chance in the West", map[uint32]uint32{page: 1252}, "NESCAF\xc9\xae", "NESCAFÉ®"},
		{"by chance in Thai", map[uint32]uint32{page: 874}, "\xc3\xb6", "รถ"},
		{"of two bytes a character", map[uint32]uint32{page: 936}, "\xc4\xa3\xc4\xa3", "模模"},
		{"none of UTF-8", map[uint32]uint32{page: 1251}, "\xc8\xe7\xe4\xe5\xeb\xe8\xe5", "Изделие"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, compound.Format(), "a.msg", twoStreams("__properties_version1.0", properties(test.numbers), subject, []byte(test.raw)))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(d.Text, "Subject: "+test.want+"\n") || d.Title != test.want {
				t.Errorf("the text %q with the title %q, want %q", d.Text, d.Title, test.want)
			}
		})
	}
}

// TestPagesOfWeb: a body that is a page is in UTF-8, too, if it is so and says nothing else itself.
func TestPagesOfWeb(t *testing.T) {
	for _, test := range []struct{ name, raw, want string }{
		{"UTF-8", "<p>Größe</p>", "Größe"},
		{"as it says itself", "<meta charset=utf-8><p>Größe</p>", "Größe"},
		{"of Windows", "<p>Gr\xf6\xdfe</p>", "Größe"},
		{"of Windows as it says itself", "<meta charset=windows-1252><p>\xc3\xb6</p>", "Ã¶"},
	} {
		t.Run(test.name, func(t *testing.T) {
			page := []byte(test.raw + strings.Repeat(" ", 4096-len(test.raw))) // streams end with zeros
			d, err := zipmake.Parse(t, compound.Format(), "a.msg", twoStreams("__properties_version1.0", properties(map[uint32]uint32{0x3fde: 1252}), "__substg1.0_10130102", page))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(d.Text, test.want+"\n") {
				t.Errorf("the text %q, want %q", d.Text, test.want)
			}
		})
	}
}
