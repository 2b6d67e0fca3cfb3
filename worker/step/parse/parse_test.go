package parse_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/html"
	"github.com/coditect/mapreduce/internal/document/plain"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step/parse"
)

func run(ctx context.Context, name, mediaType, content string) (*agent.Result, error) {
	formats, err := document.NewRegistry(plain.TextFormat(), html.Format())
	if err != nil {
		return nil, err
	}
	return parse.Runner{Formats: formats}.Run(ctx, &agent.Task{Assignment: protocol.Assignment{
		Kind: mapreduce.KindParse,
		Text: &protocol.Text{Document: mapreduce.DocumentID(name), MediaType: mediaType, Content: []byte(content)},
	}}, new(scripted.Calls))
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, document, mediaType, content, want string
	}{
		{"text", "a.txt", "text/plain", "one\ntwo", "one\ntwo"},
		{"a page", "p.html", "text/html", "<html><p>one</p></html>", "one"},
		// By its empty output the document is skipped.
		{"a page without text", "p.html", "text/html", "<html><script>x</script></html>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := run(t.Context(), tt.document, tt.mediaType, tt.content)
			if err != nil {
				t.Fatal(err)
			}
			got, err := payload.DecodeParsed(res.Output)
			if err != nil || string(got.Text) != tt.want || (tt.want == "") != (len(res.Output) == 0) {
				t.Errorf("got %+v and error %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestReadingOfTheJob: a document is read as its job says.
func TestReadingOfTheJob(t *testing.T) {
	page := "<body><nav>Basket</nav><main>" + strings.Repeat("The supplier delivers the goods. ", 20) + "</main></body>"
	formats, err := document.NewRegistry(plain.TextFormat(), html.Format())
	if err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[bool]*mapreduce.JobSpec{
		false: {Reading: mapreduce.Reading{PageText: mapreduce.PageTextMain}},
		true:  {Reading: mapreduce.Reading{PageText: mapreduce.PageTextFull}},
	} {
		res, err := parse.Runner{Formats: formats}.Run(t.Context(), &agent.Task{Spec: spec, Assignment: protocol.Assignment{
			Kind: mapreduce.KindParse, Text: &protocol.Text{Document: "p.html", MediaType: "text/html", Content: []byte(page)},
		}}, new(scripted.Calls))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := payload.DecodeParsed(res.Output); err != nil || strings.Contains(string(got.Text), "Basket") != want {
			t.Errorf("%+v: %+v, %v", spec.Reading, got, err)
		}
	}
}

// TestSkips: a document that cannot be read as it is gives an empty output, by which it is
// skipped, and the reason.
func TestSkips(t *testing.T) {
	for name, content := range map[string]string{
		"a foreign format": "%PDF-1.4\x00\x01",
		"no text":          " ",
	} {
		res, err := run(t.Context(), "a.txt", "text/plain", content)
		if err != nil || len(res.Output) > 0 || len(res.Errors) != 1 {
			t.Errorf("%s: %+v, %v; want an empty output and one reason", name, res, err)
		}
	}
}

func TestParseFails(t *testing.T) {
	_, err := parse.Runner{}.Run(t.Context(), &agent.Task{}, nil)
	if class, _ := agent.Classify(err); err == nil || class != protocol.PermanentUnit {
		t.Errorf("no document: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, "a.txt", "", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
}
