package mail_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
	"github.com/coditect/mapreduce/internal/document/mail"
	"github.com/coditect/mapreduce/internal/document/plain"
)

const head = "From: =?utf-8?q?Ann_G=C3=B6?= <ann@example.org>\r\nTo: bob@example.org,\r\n carl@example.org\r\nDate: Mon, 4 Mar 2024 05:06:07 +0100\r\nSubject: =?iso-8859-1?q?Gr=FC=DFe?=\r\nMessage-ID: <2@example.org>\r\nReferences: <1@example.org> <9@example.org>\r\nMIME-Version: 1.0\r\n"

const shown = "From: Ann Gö <ann@example.org>\nTo: bob@example.org, carl@example.org\nDate: Mon, 4 Mar 2024 05:06:07 +0100\nSubject: Grüße\n\n"

func part(boundary, header, content string) string {
	return "--" + boundary + "\r\n" + header + "\r\n\r\n" + content + "\r\n"
}

const attachment = "Content-Type: text/csv; name=\"../list.csv\"\r\nContent-Disposition: attachment; filename=\"../list.csv\"\r\nContent-Transfer-Encoding: base64"

func TestText(t *testing.T) {
	html := "Content-Type: text/html; charset=utf-8"
	for _, test := range []struct{ name, message, want string }{
		{"plain", head + "\r\nHello\r\n\r\n> quoted\r\n", shown + "Hello\n\n> quoted\n"},
		{"charset", head + "Content-Type: text/plain; charset=windows-1251\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C4=E0=\r\n!\r\n", shown + "Да!\n"},
		{"HTML alone", head + html + "\r\n\r\n<h1>A</h1><table><tr><td>1<td>2<tr><td>3<td>4</table>", shown + "# A\n\n| 1 | 2 |\n| --- | --- |\n| 3 | 4 |\n"},
		{"alternatives", head + "Content-Type: multipart/alternative; boundary=b\r\n\r\n" + part("b", html, "<p>rich") + part("b", "Content-Type: text/plain", "plain") + "--b--\r\n", shown + "plain\n"},
		{"empty alternative", head + "Content-Type: multipart/alternative; boundary=b\r\n\r\n" + part("b", "Content-Type: text/plain", " ") + part("b", html, "<p>rich") + "--b--\r\n", shown + "rich\n"},
		{
			"attachments", head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + part("b", "Content-Type: multipart/related; boundary=c", part("c", html, "<p>see<img src=cid:x>")+part("c", "Content-Type: image/png\r\nContent-ID: <x>", "png")+"--c--") +
				part("b", attachment, base64.StdEncoding.EncodeToString([]byte("a,b\n"))) + part("b", "Content-Type: application/pgp-signature", "sig") + "--b--\r\n",
			shown + "see\n\nAttachments: list.csv\n",
		},
		{"not closed", head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + part("b", "Content-Type: text/plain", "cut"), shown + "cut\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, err := zipmake.Parse(t, mail.Format(), "a.eml", []byte(test.message))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			at := strings.Index(d.Text, "Grüße")
			if l := d.Layout.Locate(at, at+5); l == nil || l.Header != "Subject" {
				t.Errorf("the subject is at %+v", l)
			}
			at = strings.Index(d.Text, "\n\n") + 2
			if l := d.Layout.Locate(at, at+3); l == nil || l.Part == "" {
				t.Errorf("the text is at %+v", l)
			}
		})
	}
}

// TestUndeclared: headers in bytes of a charset that they do not say, and texts of Windows that say
// another charset.
func TestUndeclared(t *testing.T) {
	const plain = "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset="
	for _, test := range []struct{ name, message, want string }{
		{"as the text", "From: a@example.org\r\nSubject: \xc4\xe0" + plain + "windows-1251\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C4=E0\r\n", "From: a@example.org\nSubject: Да\n\nДа\n"},
		{"as it looks", "From: a@example.org\r\nSubject: Forma\xe7\xe3o em Lisboa: Grande Campanha Final de Ver\xe3o\r\n\r\nx\r\n", "From: a@example.org\nSubject: Formação em Lisboa: Grande Campanha Final de Verão\n\nx\n"},
		{"as it looks, beside ASCII", "From: a@example.org\r\nSubject: \xf0\xd2\xc9\xd7\xc5\xd4 \xc4\xcf\xd2\xcf\xc7\xcf\xca \xc4\xd2\xd5\xc7" + plain + "us-ascii\r\n\r\nx\r\n", "From: a@example.org\nSubject: Привет дорогой друг\n\nx\n"},
		{"too short to look like anything, beside ASCII", "From: a@example.org\r\nSubject: \xc4" + plain + "us-ascii\r\n\r\nx\r\n", "From: a@example.org\nSubject: Ä\n\nx\n"},
		{"quotes of Windows", "From: a@example.org\r\nSubject: x" + plain + "iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=93we=92re=94 =FC\r\n", "From: a@example.org\nSubject: x\n\n“we’re” ü\n"},
	} {
		d, err := zipmake.Parse(t, mail.Format(), "a.eml", []byte(test.message))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, d.Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	nested := head
	for i := range 300 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	for _, test := range []struct{ name, message, want string }{
		{"nested", nested, "more than 200 parts that have parts"},
		{"headers", head + "X: " + strings.Repeat("x", 2<<20) + "\r\n\r\n", "headers of"},
		{"parts", head + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" + strings.Repeat("--b\r\n\r\nx\r\n", 30_000), "more than 20000 parts"},
		{"empty", "\r\n\r\n", "no headers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := zipmake.Parse(t, mail.Format(), "a.eml", []byte(test.message))
			if refused, ok := errors.AsType[*document.RefusedError](err); !ok || !strings.Contains(refused.Reason, test.want) {
				t.Errorf("got %v, want one that refuses for %q", err, test.want)
			}
		})
	}
}

// members returns the members of a file: name, beginning of the content, thread.
func members(t testing.TB, f document.Format, data string) []string {
	t.Helper()
	var all []string
	for m, err := range f.Members(context.Background(), document.Input{Content: strings.NewReader(data)}) {
		if err != nil {
			t.Fatal(err)
		}
		begin, _, _ := strings.Cut(string(m.Content), "\n")
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", m.Name, strings.TrimSpace(begin), m.Metadata["thread"], m.Skip)))
	}
	return all
}

func message(n int, references, body string) string {
	return fmt.Sprintf("From: a@example.org\nSubject: %d\nMessage-ID: <%d@x>\n%sContent-Type: multipart/mixed; boundary=b\n\n--b\n\n%s\n--b\n%s\n\n%s\n--b\n%s\n\n%s\n--b--\n",
		n, n, references, body, strings.ReplaceAll(attachment, "\r", ""), base64.StdEncoding.EncodeToString([]byte("a,b")),
		strings.ReplaceAll(attachment, "\r", ""), base64.StdEncoding.EncodeToString([]byte("c")))
}

func TestMembers(t *testing.T) {
	forwarded := "From: x@example.org\nSubject: outer\nMessage-ID: <o@x>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=f\n\n--f\nContent-Type: message/rfc822\n\n" + message(7, "", "hello") + "\n--f--\n"
	want := []string{
		": From: x@example.org o@x", "attachment 1.eml: From: a@example.org 7@x", "attachment 1.eml!/list.csv: a,b 7@x", "attachment 1.eml!/list.csv#2: c 7@x",
	}
	if diff := cmp.Diff(want, members(t, mail.Format(), forwarded)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := members(t, mail.Format(), "\n\n"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestMailbox(t *testing.T) {
	box := "From a@example.org Mon Mar  4 05:06:07 2024\n" + message(1, "", "hello\n\nFrom here on it is text\n>From quoted") +
		"\nFrom - Mon Mar  4 05:06:07 2024\n" + message(2, "References: <1@x>\n", "two") +
		"\nFrom x\n" + message(3, "In-Reply-To: <2@x>\n", "three")
	want := []string{
		"1: From: a@example.org 1@x", "1!/list.csv: a,b 1@x", "1!/list.csv#2: c 1@x",
		"2: From: a@example.org 1@x", "2!/list.csv: a,b 1@x", "2!/list.csv#2: c 1@x",
		"3: From: a@example.org 1@x", "3!/list.csv: a,b 1@x", "3!/list.csv#2: c 1@x",
	}
	if diff := cmp.Diff(want, members(t, mail.MailboxFormat(), box)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for m, err := range mail.MailboxFormat().Members(t.Context(), document.Input{Content: strings.NewReader(box)}) {
		if err != nil || !strings.Contains(string(m.Content), "From here on it is text\nFrom quoted\n") {
			t.Errorf("got %q, %v", m.Content, err)
		}
		break
	}
}

func TestSniff(t *testing.T) {
	r, err := document.NewRegistry(document.Format{Kind: "text", MediaTypes: []string{"text/plain"}, Extensions: []string{".txt"}}, mail.Format(), mail.MailboxFormat())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, data string
		want       document.Kind
	}{
		{"", head + "\r\nx", mail.Kind},
		{"1", "Received: x\nDate: y\nSubject: z\n\nfrom", mail.Kind},
		{"a.txt", head, "text"},
		{"a.eml", "Subject: x\n\ny", mail.Kind},
		{"", "From here: to there\nTo: x\n", "text"},
		{"inbox", "From a@b Mon\nSubject: x\n", mail.MailboxKind},
		{"a.mbox", "From a\n", mail.MailboxKind},
		{"", "From here on\nit is text", "text"},
	} {
		if got, err := r.Detect(test.name, []byte(test.data), ""); got != test.want || err != nil {
			t.Errorf("%q, %.20q: got %s, %v, want %s", test.name, test.data, got, err, test.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + "\r\nHello"))
	f.Add([]byte(message(1, "", "x")))
	f.Add([]byte("Content-Type: multipart/alternative; boundary=\"b\"\n\n--b\nContent-Type: text/html\n\n<p>x\n--b--"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := zipmake.Parse(t, mail.Format(), "a.eml", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
		for _, format := range []document.Format{mail.Format(), mail.MailboxFormat()} {
			seen := map[string]bool{}
			for m, err := range format.Members(t.Context(), document.Input{Content: strings.NewReader(string(data))}) {
				if err != nil || seen[m.Name] {
					t.Errorf("got %q, twice: %v, %v", m.Name, seen[m.Name], err)
				}
				seen[m.Name] = true
			}
		}
	})
}

// TestWideMessage: messages that were stored as texts in UTF-16 are read like others.
func TestWideMessage(t *testing.T) {
	const message = "From: a@example.org\r\nTo: b@example.org\r\nSubject: Größe\r\n\r\nTotal: 12.50\r\n"
	units := utf16.Encode([]rune(message))
	little, big := make([]byte, 0, 2*len(units)), make([]byte, 0, 2*len(units))
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, content := range map[string]string{
		"little": "\xff\xfe" + string(little), "big": "\xfe\xff" + string(big), "without a mark": string(little), "big without a mark": string(big),
		"cut off": string(little) + "x",
	} {
		r, err := document.NewRegistry(plain.TextFormat(), mail.Format())
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Parse(t.Context(), document.Input{Name: "a.eml", Content: strings.NewReader(content)})
		if err != nil || !strings.Contains(d.Text, "Subject: Größe\n") || !strings.Contains(d.Text, "Total: 12.50") || d.Title != "Größe" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}
