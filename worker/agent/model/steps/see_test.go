package steps_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A press draws pages of one shade.
type press struct {
	shade uint8
	pages int
	drawn int // how often
	err   error
}

// draw is what a task has as Pictures.
func (p *press) draw(_ context.Context, fit func(int, int) (int, int)) ([]agent.Picture, error) {
	p.drawn++
	if p.err != nil {
		return nil, p.err
	}
	var all []agent.Picture
	for page := range p.pages {
		width, height := fit(1700, 2200)
		m := image.NewGray(image.Rect(0, 0, width, height))
		m.Pix[0], m.Pix[1] = p.shade, uint8(page)
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			return nil, err
		}
		all = append(all, agent.Picture{Page: page + 1, Width: width, Height: height, MediaType: "image/png", Data: b.Bytes()})
	}
	return all, nil
}

// seeingTask returns a unit of a job that has its models see pages.
func (r *rig) seeingTask(see mapreduce.See, p *press) *agent.Task {
	r.spec.Vars[mapreduce.VarSee] = string(see)
	task := r.task(document)
	task.Text.Shown = &protocol.ShownPages{Pages: []int{1}}
	task.Pictures = p.draw
	return task
}

// seenAnswer is goodAnswer of a model that is shown pages, with a value that is on one of them alone.
func seenAnswer() string {
	said := func(value any, quote string, page int) []any {
		return []any{map[string]any{"value": value, "quotes": []string{quote}, "confidence": 0.9, "page": page}}
	}
	return answer(map[string]any{
		"company": said("INDAH GIFT & HOME DECO", "1NDAH G1FT & HOME DECO", 0),
		"date":    said("2018-10-20", "stamped 20/10/2018", 1),
		"total":   said(60.3, "TOTAL RM 60.30", 0),
	})
}

// A unit is shown its pages by each vendor. An attempt that follows draws them again, finds its answer in
// the journal, and asks nothing; of another page it asks again. Nothing of a picture is in the journal but
// its hash.
func TestPagesThroughRetries(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "gemini", "bedrock", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, fakellm.Config{Model: always(seenAnswer()), Key: testKey})
			r.spec.Vars["window"] = "60000"
			p := &press{shade: 3, pages: 1}
			task := r.seeingTask(mapreduce.SeeAlways, p)
			for attempt, want := range []int{1, 1, 2} {
				if attempt > 0 {
					r.purse.retry(task)
				}
				if attempt == 2 {
					p.shade = 4
				}
				res, err := r.agent.Run(t.Context(), task, r.purse)
				if err != nil {
					t.Fatal(err)
				}
				out, err := output.Decode(res.Output)
				if err != nil {
					t.Fatal(err)
				}
				got := r.resolved(t, out)
				if len(got.Values) != 2 || len(got.Refused["date"].Seen) != 1 || got.Refused["date"].Constraint != mapreduce.SeenOnly {
					t.Errorf("values %v, seen %v", got.Values, got.Refused)
				}
				if n := len(r.fake.Entries()); n != want || p.drawn != attempt+1 {
					t.Errorf("after attempt %d the model was asked %d times, want %d; pages were drawn %d times", attempt+1, n, want, p.drawn)
				}
			}
			for _, e := range r.fake.Entries() {
				if len(e.Pictures) != 1 || max(e.Pictures[0].Width, e.Pictures[0].Height) > 2048 {
					t.Errorf("the model was shown %d pictures", len(e.Pictures))
				}
			}
			if r.purse.over || r.purse.reserved != 0 {
				t.Errorf("more was spent than reserved: %v; still reserved are %d tokens", r.purse.over, r.purse.reserved)
			}
			if len(task.Journal) > 8<<10 {
				t.Errorf("the journal has %d bytes", len(task.Journal))
			}
		})
	}
}

// A grade says that words only look like a quote.
func TestQuotesThatLookAlike(t *testing.T) {
	r := newRig(t, "anthropic", fakellm.Config{Model: always(seenAnswer()), Key: testKey})
	for _, see := range []mapreduce.See{mapreduce.SeeNever, mapreduce.SeeAuto} {
		task := r.seeingTask(see, &press{pages: 1})
		if see == mapreduce.SeeNever {
			task.Text.Shown, task.Pictures = nil, nil
		}
		res, err := r.agent.Run(t.Context(), task, r.purse)
		if see == mapreduce.SeeNever {
			if err == nil { // an answer of another form is mended, and its quote is in no text
				out, err := output.Decode(res.Output)
				if err != nil || r.resolved(t, out).Values["company"] != nil {
					t.Errorf("without pages, letters are taken for others: %v", err)
				}
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := output.Decode(res.Output)
		if err != nil {
			t.Fatal(err)
		}
		alike := 0
		for _, c := range out.Citations {
			if c.Grade == "lookalike" && c.Quote == "INDAH GIFT & HOME DECO" {
				alike++
			}
		}
		if got := r.resolved(t, out); alike != 1 || got.Values["company"] != "INDAH GIFT & HOME DECO" || got.Confidence["company"] >= got.Confidence["total"] {
			t.Errorf("%d citations look alike; %v, %v", alike, got.Values, got.Confidence)
		}
	}
}

// Pages that nobody draws, or that are more than the vendor takes, are told of; a job that has to show
// pages fails its unit where nothing draws any.
func TestPagesThatAreNotShown(t *testing.T) {
	for name, c := range map[string]struct {
		see   mapreduce.See
		press press
		shown int
		note  string
		fails string
	}{
		"nothing draws":         {mapreduce.SeeAuto, press{err: agent.ErrNoPages}, 0, "shown no pages", ""},
		"nothing draws, always": {mapreduce.SeeAlways, press{err: agent.ErrNoPages}, 0, "", "nothing draws pages"},
		"no connection":         {mapreduce.SeeAuto, press{err: errors.New("no connection")}, 0, "", "no connection"},
		"no page can be drawn":  {mapreduce.SeeAlways, press{}, 0, "", ""},
		"more than are taken":   {mapreduce.SeeAlways, press{pages: 23}, 20, "20 of 23 pages", ""},
	} {
		r := newRig(t, "bedrock", fakellm.Config{Model: always(seenAnswer()), Key: testKey})
		res, err := r.agent.Run(t.Context(), r.seeingTask(c.see, &c.press), r.purse)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || len(r.fake.Entries()) > 0 {
				t.Errorf("%s: %v after %d calls, want %q and none", name, err, len(r.fake.Entries()), c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := len(r.fake.Entries()[0].Pictures); n != c.shown || !strings.Contains(strings.Join(res.Errors, "\n"), c.note) {
			t.Errorf("%s: shown were %d pages, want %d; notes %q", name, n, c.shown, res.Errors)
		}
	}
}

// A job that would show pages to nobody, or in which a stage that reads documents is shown none although it has to
// be, is refused before anything is asked; a job that shows none has any stages.
func TestWhoseStagesSee(t *testing.T) {
	const (
		find   = "- {name: find, from: documents, each: document, agent: {role: Clerk}, task: Find.}\n"
		settle = "- {name: settle, from: find, each: group, agent: {role: Chief}, task: Settle.}\n"
		all    = "- {name: whole, from: documents, each: all, when: tokens <= budget, agent: {role: Clerk}, task: Read all.}\n"
		later  = "- {name: find, from: documents, each: chunk, when: tokens > budget, agent: {role: Clerk}, task: Find.}\n"
		sum    = "- {name: sum, from: documents, each: document, agent: {role: Clerk}, task: Sum up., output: report}\n- {name: end, from: sum, each: all, agent: {role: Chief}, task: Put together., output: report}\n"
	)
	for _, test := range []struct {
		name, stages string
		auto, always string // why it is refused; "" if it is not
	}{
		{"records", find + settle, "", ""},
		{"all documents at once", all + later + settle, "reads all documents in one call", "reads all documents in one call"},
		{"no records", sum, "nobody would be shown pages", "finds no records"},
	} {
		for see, want := range map[mapreduce.See]string{mapreduce.SeeNever: "", mapreduce.SeeAuto: test.auto, mapreduce.SeeAlways: test.always} {
			r := newRig(t, "anthropic", fakellm.Config{Model: always(seenAnswer()), Key: testKey})
			r.audited(t, "name: mine\nstages:\n"+test.stages)
			r.spec.Vars[mapreduce.VarSee] = string(see)
			switch err := r.bare.Check(&r.spec); {
			case want == "" && err != nil:
				t.Errorf("%s, %s: %v", test.name, see, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s, %s: %v, want %q", test.name, see, err, want)
			}
			if n := len(r.fake.Entries()); n != 0 {
				t.Errorf("%s, %s: the model was asked %d times", test.name, see, n)
			}
		}
	}
}
