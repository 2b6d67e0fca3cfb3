package vendors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// shown returns a picture of a type, whose pixels are those of a seed.
func shown(t testing.TB, mediaType string, width, height int, seed uint8) *llm.Picture {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = uint8(i) * seed
	}
	m.SetGray(0, 0, color.Gray{seed})

	var b bytes.Buffer
	err := png.Encode(&b, m)
	if mediaType == "image/jpeg" {
		b.Reset()
		err = jpeg.Encode(&b, m, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return llm.NewPicture(mediaType, width, height, 100, b.Bytes())
}

// askOf returns a request that shows pictures before its text.
func askOf(s *llm.Schema, all ...*llm.Picture) *llm.Request {
	req := ask(s)
	var parts []llm.Part
	for _, p := range all {
		parts = append(parts, llm.Part{Picture: p})
	}
	req.Messages[0].Parts = append(parts, req.Messages[0].Parts...)
	return req
}

// Each wire has pictures in its own form, in the order of the message, and the same text as before.
func TestPicturesOnEachWire(t *testing.T) {
	p := llm.NewPicture("image/png", 3, 4, 50, []byte("\x89PNG"))
	const url = `data:image/png;base64,iVBORw==`
	for _, c := range []struct{ vendor, base, want string }{
		{"anthropic", "", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"text","text":"T"}]`},
		{"vertex-claude", "", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"text","text":"T"}]`},
		{"openai", "", `[{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}},{"type":"text","text":"T"}]`},
		{"azure", "", `[{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}},{"type":"text","text":"T"}]`},
		{"mistral", "", `[{"type":"image_url","image_url":{"url":"` + url + `","detail":"high"}},{"type":"text","text":"T"}]`},
		{"openai", "https://api.openai.com/v1/responses", `[{"type":"input_image","detail":"high","image_url":"` + url + `"},{"type":"input_text","text":"T"}]`},
		{"gemini", "", `[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"text":"T"}]`},
		{"vertex", "", `[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"text":"T"}]`},
		{"bedrock", "", `[{"image":{"format":"png","source":{"bytes":"iVBORw=="}}},{"text":"T"}]`},
		{"ollama", "", `["iVBORw=="]`},
	} {
		t.Run(c.vendor+c.base, func(t *testing.T) {
			req := askOf(nil, p)
			req.Messages[0].Parts[1].Text = "T"
			sent := sentBy(t, c.vendor, c.base, req)
			var last map[string]any
			for _, list := range []string{"messages", "input", "contents"} {
				if all, ok := sent[list].([]any); ok {
					last = all[len(all)-1].(map[string]any)
				}
			}
			got := last["content"]
			switch c.vendor {
			case "gemini", "vertex":
				got = last["parts"]
			case "ollama":
				if got != "T" {
					t.Errorf("the text is %v", got)
				}
				got = last["images"]
			}
			var want any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what is sent differs (-want +got):\n%s", diff)
			}
		})
	}
}

// What a provider was given comes to its server, as it was and in order, beside a schema, in each
// format.
func TestServersSeePictures(t *testing.T) {
	for _, vendor := range []string{"anthropic", "openai", "gemini", "bedrock", "ollama", "responses"} {
		t.Run(vendor, func(t *testing.T) {
			name, change := vendor, func(*llm.Config) {}
			if vendor == "responses" {
				name, change = "openai", byResponses
			}
			given := []*llm.Picture{shown(t, "image/jpeg", 560, 280, 3), shown(t, "image/png", 30, 20, 5)}
			p, fake := start(t, name, fakellm.Config{Key: testKey, Model: says(goodReceipt), Lax: true}, change)
			res, err := (&decorator.Structured{Provider: p}).Complete(t.Context(), askOf(schema(t, receipt), given...))
			if err != nil || string(res.Answer) != goodReceipt {
				t.Fatalf("%v, %v", res, err)
			}
			got := fake.Entries()[0].Pictures
			if len(got) != len(given) {
				t.Fatalf("the server saw %d pictures, want %d", len(got), len(given))
			}
			for i, g := range given {
				if got[i].MediaType != g.MediaType || got[i].Width != g.Width || got[i].Height != g.Height || !bytes.Equal(got[i].Data, g.Data) {
					t.Errorf("picture %d came as %s of %d×%d", i+1, got[i].MediaType, got[i].Width, got[i].Height)
				}
			}
			if got := res.Usage.In(); got < 20*10 {
				t.Errorf("the call took %d tokens with pictures of 206", got)
			}
		})
	}
}

// A picture that no vendor takes is refused before anything is sent.
func TestPicturesThatNobodyTakes(t *testing.T) {
	good := shown(t, "image/png", 3, 3, 1)
	for name, c := range map[string]struct {
		change func(*llm.Request)
		want   string
	}{
		"another type": {func(r *llm.Request) { r.Messages[0].Parts[0].Picture.MediaType = "image/tiff" }, "JPEG and PNG"},
		"empty":        {func(r *llm.Request) { r.Messages[0].Parts[0].Picture.Data = nil }, "is empty"},
		"uncounted":    {func(r *llm.Request) { r.Messages[0].Parts[0].Picture.Tokens = 0 }, "no tokens"},
		"the model's": {func(r *llm.Request) {
			r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Parts: r.Messages[0].Parts}, llm.Say(llm.User, "go on"))
		}, "users alone"},
	} {
		one := *good
		req := askOf(nil, &one)
		c.change(req)
		for _, vendor := range []string{"anthropic", "openai", "gemini", "ollama"} {
			p, fake := start(t, vendor, fakellm.Config{Key: testKey})
			_, err := p.Complete(t.Context(), req)
			if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %q", name, vendor, err, c.want)
			}
			if len(fake.Entries()) > 0 {
				t.Errorf("%s, %s: the server was asked", name, vendor)
			}
		}
	}
}

// A server that refuses a picture is asked once more without what else it might not take, as after any
// refusal, and then no more: the unit fails.
func TestPicturesThatAServerRefuses(t *testing.T) {
	broken := llm.NewPicture("image/png", 3, 3, 50, []byte("no picture"))
	for _, vendor := range []string{"anthropic", "openai", "gemini", "bedrock", "ollama"} {
		p, fake := start(t, vendor, fakellm.Config{Key: testKey, Model: says("ok")})
		_, err := p.Complete(t.Context(), askOf(nil, broken))
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Class == protocol.Retryable {
			t.Errorf("%s: %v", vendor, err)
		}
		if n := len(fake.Entries()); n > 2 {
			t.Errorf("%s: asked %d times", vendor, n)
		}
	}
}

// The identity of a request has the hash of each picture, its type and its size, and nothing else of
// it: not its bytes, and not what it counts as.
func TestPicturesArePartOfTheQuestion(t *testing.T) {
	a, b := shown(t, "image/png", 30, 20, 3), shown(t, "image/png", 30, 20, 4)
	keys := make(map[string]string)
	for name, req := range map[string]*llm.Request{
		"none": ask(nil), "a": askOf(nil, a), "b": askOf(nil, b), "a, b": askOf(nil, a, b), "b, a": askOf(nil, b, a), "a, a": askOf(nil, a, a),
	} {
		raw, err := decorator.AnswerKey(decorator.Origin{}, req)
		if err != nil {
			t.Fatal(err)
		}
		if other, known := keys[fmt.Sprintf("%x", raw)]; known {
			t.Errorf("%s has the key of %s", name, other)
		}
		keys[fmt.Sprintf("%x", raw)] = name
	}

	dearer := *a
	dearer.Tokens, dearer.Data = 5000, nil
	raw, err := decorator.AnswerKey(decorator.Origin{}, askOf(nil, &dearer))
	if err != nil || keys[fmt.Sprintf("%x", raw)] != "a" {
		t.Errorf("what a picture counts as changes the question: %v", err)
	}
	whole, err := json.Marshal(askOf(nil, a).Messages)
	if err != nil || len(whole) > 400 {
		t.Errorf("a message with a picture of %d bytes takes %d: %v", len(a.Data), len(whole), err)
	}
}
