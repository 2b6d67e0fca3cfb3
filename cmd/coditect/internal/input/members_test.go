package input_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/document/zipfile"
)

// manyFormats are formats of files of several documents, and some of what is in them.
func manyFormats(t *testing.T) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), plain.JSONLinesFormat(), plain.CSVFormat(), mail.Format(), mail.MailboxFormat(), zipfile.ZipFormat(), zipfile.TarFormat())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// zipped returns a zip file of entries: names and contents in turn.
func zipped(t *testing.T, entries ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		e, err := w.Create(entries[i])
		if err == nil {
			_, err = e.Write([]byte(entries[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// letter returns a message with an attachment.
func letter(id, name, content string) string {
	return "From: ann@example.org\nSubject: " + id + "\nMessage-ID: <" + id + ">\nReferences: <first>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhello\n" +
		"--b\nContent-Type: application/octet-stream; name=\"" + name + "\"\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString([]byte(content)) + "\n--b--\n"
}

// listed returns the documents that are read: id, media type or reason, thread.
func listed(t *testing.T, c input.Config) []string {
	t.Helper()
	docs, err := read(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range docs {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s%s %s", d.ID, d.MediaType, d.Skip, d.Metadata["thread"])))
	}
	return lines
}

func TestMembers(t *testing.T) {
	inner := zipped(t, "deep.txt", "deep")
	dir := folder(t, map[string]string{
		"a.eml":  letter("a", "list.csv", "x,y\n"),
		"b.mbox": "From ann@example.org Mon Mar  4 05:06:07 2024\n" + letter("b", "n.txt", "note") + "\nFrom ann@example.org Mon Mar  4 05:06:07 2024\n" + letter("c", "z.zip", inner),
		"c.zip":  zipped(t, "d/one.txt", "one", "../two.txt", "two", "in.zip", inner, "m.eml", letter("d", "n.txt", "note"), "l.jsonl", "{\"id\": \"l1\", \"text\": \"x\"}\n", "bin", "\x00\x01\x02"),
		"d.zip":  "PK\x03\x04 damaged",
		"e.txt":  "neighbour",
		"f.zip":  zipped(t, "empty/", ""),
	})
	mails := []string{
		"a.eml: message/rfc822 first", "a.eml!/list.csv: text/csv first", "b.mbox!/1: message/rfc822 first", "b.mbox!/1!/n.txt: text/plain first", "b.mbox!/2: message/rfc822 first",
	}
	for _, test := range []struct {
		name   string
		config input.Config
		want   []string
	}{
		{"closed", input.Config{}, []string{"b.mbox!/2!/z.zip: an archive; --archives opens it", "c.zip: an archive; --archives opens it", "d.zip: an archive; --archives opens it", "e.txt: text/plain", "f.zip: an archive; --archives opens it"}},
		{"open", input.Config{Archives: true}, []string{
			"b.mbox!/2!/z.zip!/deep.txt: text/plain",
			"c.zip!/d/one.txt: text/plain", "c.zip!/two.txt: its name leads out of the archive", "c.zip!/in.zip: an archive within an archive, which stays closed",
			"c.zip!/m.eml: message/rfc822 first", "c.zip!/m.eml!/n.txt: text/plain first", "l1: text/plain", "c.zip!/bin: not text: 1 NUL and 2 other control characters in 3 bytes",
			"d.zip: a damaged zip file: zip: not a valid zip file", "e.txt: text/plain", "f.zip: no document is in it",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config.Formats, test.config.Inputs = manyFormats(t), []string{dir}
			got := listed(t, test.config)
			want := append(append([]string(nil), mails...), test.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	mailbox := "From ann@example.org Mon Mar  4 05:06:07 2024\n" + letter("b", "n.txt", "note")
	got := listed(t, input.Config{Formats: manyFormats(t), Inputs: []string{"-"}, Stdin: bufio.NewReader(strings.NewReader(mailbox))})
	if diff := cmp.Diff([]string{"stdin!/1: message/rfc822 first", "stdin!/1!/n.txt: text/plain first"}, got); diff != "" {
		t.Errorf("standard input (-want +got):\n%s", diff)
	}
}

// TestDamagedBehindMembers reads a file whose first members are whole, and its neighbour.
func TestDamagedBehindMembers(t *testing.T) {
	broken := document.Format{
		Kind: "broken", MediaTypes: []string{"application/x-broken"}, Extensions: []string{".broken"},
		Members: func(context.Context, document.Input) document.Members {
			return func(yield func(document.Member, error) bool) {
				if yield(document.Member{Content: []byte("itself"), MediaType: "text/plain"}, nil) && yield(document.Member{Name: "one", Content: []byte("1")}, nil) {
					yield(document.Member{}, document.Refuse("damaged"))
				}
			}
		},
	}
	formats, err := document.NewRegistry(plain.TextFormat(), broken)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"a.broken": "x", "b.txt": "neighbour"})
	want := []string{"a.broken!/one: text/plain", "a.broken!/the rest: damaged", "b.txt: text/plain"}
	if diff := cmp.Diff(want, listed(t, input.Config{Formats: formats, Inputs: []string{dir}})[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A title that was found in a member of an archive stays.
func TestTitlesOfMembers(t *testing.T) {
	dir := folder(t, map[string]string{"c.zip": zipped(t, "note.md", "# Head\n\ntext\n", "plain.txt", "text")})
	docs, err := read(t.Context(), input.Config{Inputs: []string{dir}, Archives: true, Formats: markdownInArchives(t)})
	if err != nil {
		t.Fatal(err)
	}

	titles := map[string]string{}
	for _, d := range docs {
		titles[string(d.ID)] = d.Metadata["title"]
	}
	want := map[string]string{"c.zip!/note.md": "Head", "c.zip!/plain.txt": ""}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("titles (-want +got):\n%s", diff)
	}
}

func markdownInArchives(t *testing.T) *document.Registry {
	t.Helper()
	r, err := document.NewRegistry(plain.TextFormat(), plain.MarkdownFormat(), zipfile.ZipFormat())
	if err != nil {
		t.Fatal(err)
	}
	return r
}
