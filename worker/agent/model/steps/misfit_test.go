package steps_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

// A value that is none of its field costs the record neither its other values nor the
// unit: after the model could not mend it, it is shown beside the constraint that it
// breaks, whichever provider asked.
func TestValuesThatDoNotFitAreShown(t *testing.T) {
	const order = `{"title":"order","type":"object","properties":{
		"company":{"type":"string"},"colour":{"type":"string","enum":["red","blue"]},
		"pieces":{"type":"integer"},"date":{"type":"string","format":"date"},"paid":{"type":"boolean"},
		"sizes":{"type":"array","items":{"type":"number"}}}}`
	const text = "ACME LTD\nColour: purple\nPieces: a dozen or so\nDate: soon\nPaid: in part\nSizes: 4, wide\n"
	said := answer(map[string]any{
		"company": say("ACME LTD", "ACME LTD"), "colour": say("purple", "Colour: purple"), "pieces": say("a dozen or so", "a dozen or so"),
		"date": say("soon", "Date: soon"), "paid": say("in part", "Paid: in part"),
		"sizes": append(say(4, "Sizes: 4"), say("wide", "wide")...),
	})
	for _, provider := range []string{"anthropic", "openai", "ollama"} {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, fakellm.Config{Model: always(said), Key: testKey})
			r.spec.Schema = canonical(t, order)
			out, _, err := r.run(t, text)
			if err != nil {
				t.Fatal(err)
			}
			got := r.resolved(t, out)
			want := map[string]any{"company": "ACME LTD", "sizes": []any{json.Number("4")}}
			if diff := cmp.Diff(want, got.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			constraints := make(map[string]string)
			for path, refusal := range got.Refused {
				constraints[path] = refusal.Constraint
				if len(refusal.Citations) == 0 || !strings.Contains(got.Missing[path], refusal.Constraint) && path != "sizes" {
					t.Errorf("%s: %+v, missing as %q", path, refusal, got.Missing[path])
				}
			}
			if diff := cmp.Diff(map[string]string{"colour": "enum", "pieces": "type", "date": "format", "paid": "type", "sizes": "type"}, constraints); diff != "" {
				t.Errorf("constraints that are broken (-want +got):\n%s", diff)
			}
			if n := len(r.fake.Entries()); n != 2 {
				t.Errorf("the model was asked %d times, want once and once more to mend it", n)
			}
		})
	}
}

// An answer of another form is read all the same, and a value without a quote is looked for.
func TestAnswersOfAnotherFormAreRead(t *testing.T) {
	r := newRig(t, "openai", fakellm.Config{Model: always(`Sure: {"company":"ACME LTD","colour":"purple"}`), Key: testKey})
	r.spec.Schema = canonical(t, `{"type":"object","properties":{"company":{"type":"string"},"total":{"type":"number"}}}`)
	out, res, err := r.run(t, "Invoice of ACME LTD\nTotal: 12.50\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"company": "ACME LTD"}, r.resolved(t, out).Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if n := len(r.fake.Entries()); n != 1 || len(res.Errors) != 1 || !strings.HasPrefix(res.Errors[0], mapreduce.MendedNote) {
		t.Errorf("%d calls, notes %q; want one call, and what was mended", n, res.Errors)
	}
}

// What holds no answer costs two attempts of two calls, and no more.
func TestModelsThatDoNotAnswerStop(t *testing.T) {
	r := newRig(t, "openai", fakellm.Config{Model: always("I'm sorry, I cannot do that."), Key: testKey})
	task := r.task(document)
	for attempt, class := range []protocol.FailureClass{protocol.Retryable, protocol.PermanentUnit} {
		if attempt > 0 {
			r.purse.retry(task)
		}
		_, err := r.agent.Run(t.Context(), task, r.purse)
		if got, _ := agent.Classify(err); got != class || !strings.Contains(err.Error(), "is not one JSON value, and begins") {
			t.Errorf("attempt %d: %v of class %v, want %v", attempt+1, err, got, class)
		}
	}
	if n := len(r.fake.Entries()); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
}

// One wrong member is corrected alone: the reply is short, and what it leaves out stays.
func TestCorrectionsAreOfWhatIsWrong(t *testing.T) {
	const people = `{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","required":["name"],"properties":{
		"name":{"type":"string"},"email":{"type":"string"},"year":{"type":"integer","minimum":1000}}}}}}`
	const text = "Ann Lee is here. Bob Ray, bob@x.org, born 1970, too."
	ann := map[string]any{"value": map[string]any{"name": "Ann Lee", "email": nil, "year": nil}, "quotes": []string{"Ann Lee"}, "confidence": 0.9}
	bob := func(year any) map[string]any {
		return map[string]any{"value": map[string]any{"name": "Bob Ray", "email": "bob@x.org", "year": year}, "quotes": []string{"Bob Ray, bob@x.org, born 1970"}, "confidence": 0.9}
	}
	first := answer(map[string]any{"people": []any{ann, bob(5)}})
	for name, c := range map[string]struct {
		second string
		year   any
	}{
		"corrected":                 {answer(map[string]any{"people": []any{bob(1970)}}), json.Number("1970")},
		"corrected, and emptier":    {answer(map[string]any{"people": []any{map[string]any{"value": map[string]any{"name": "Bob Ray", "email": nil, "year": 1970}, "quotes": []string{}, "confidence": 0.9}}}), json.Number("1970")},
		"the same again":            {first, nil},
		"of somebody else":          {answer(map[string]any{"people": []any{map[string]any{"value": map[string]any{"name": "Cy Poe", "email": nil, "year": 1970}, "quotes": []string{}, "confidence": 0.9}}}), nil},
		"nothing":                   {answer(map[string]any{"people": []any{}}), nil},
		"an apology":                {"Sorry, I do not know.", nil},
		"all of it, and all better": {answer(map[string]any{"people": []any{ann, bob(1970)}}), json.Number("1970")},
	} {
		t.Run(name, func(t *testing.T) {
			var complaint string
			reply := c.second
			r := newRig(t, "openai", fakellm.Config{Key: testKey, Model: func(c fakellm.Call) fakellm.Reply {
				if len(c.Turns) == 1 {
					return fakellm.Reply{Text: first}
				}
				complaint = c.Prompt()
				return fakellm.Reply{Text: reply}
			}})
			r.spec.Schema = canonical(t, people)
			out, _, err := r.run(t, text)
			if err != nil {
				t.Fatal(err)
			}
			second := map[string]any{"name": "Bob Ray", "email": "bob@x.org"}
			if c.year != nil {
				second["year"] = c.year
			}
			want := map[string]any{"people": []any{map[string]any{"name": "Ann Lee"}, second}}
			if diff := cmp.Diff(want, r.resolved(t, out).Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if !strings.Contains(complaint, "/fields/people/1/value/year") || strings.Contains(complaint, "/fields/people/0") || strings.Contains(complaint, "email") {
				t.Errorf("the correction asks for more than the year: %s", complaint)
			}
			if n := len(r.fake.Entries()); n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
		})
	}
}

// A job whose first units all have no answer ends, and says what came instead.
func TestJobsWithoutAnswersStopEarly(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		want string
	}{
		"no JSON":      {"I'm sorry, I cannot do that.", `20 of 20 answers were no JSON; the first begins "I'm sorry`},
		"another form": {`{"colours":[1,2]}`, "20 of 20 answers do not fit their form"},
	} {
		r := newRig(t, "openai", fakellm.Config{Model: always(c.said), Key: testKey})
		for i := range 20 {
			task := r.task(document)
			task.Unit = mapreduce.UnitID(fmt.Sprintf("%d.txt", i))
			_, err := r.agent.Run(t.Context(), task, r.purse)
			class, _ := agent.Classify(err)
			if last := i == 19; last != (class == protocol.PermanentJob) || last && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, unit %d: %v of class %v", name, i+1, err, class)
			}
		}
	}
}

// One answer that could be read says that the model follows the form.
func TestJobsWithAnswersGoOn(t *testing.T) {
	said := goodAnswer()
	r := newRig(t, "openai", fakellm.Config{Model: func(fakellm.Call) fakellm.Reply { return fakellm.Reply{Text: said} }, Key: testKey})
	for i := range 25 {
		task := r.task(document)
		task.Unit = mapreduce.UnitID(fmt.Sprintf("%d.txt", i))
		_, err := r.agent.Run(t.Context(), task, r.purse)
		if class, _ := agent.Classify(err); i > 0 && class == protocol.PermanentJob {
			t.Fatalf("unit %d: %v", i+1, err)
		}
		said = "no"
	}
}

// What was answered and is no value has a reason that is true.
func TestReasonsAreTrue(t *testing.T) {
	const people = `{"type":"object","properties":{"people":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"year":{"type":"integer","minimum":1000}}}}}}`
	said := answer(map[string]any{"people": say(map[string]any{"name": "", "year": 7}, "Ann Lee")})
	r := newRig(t, "openai", fakellm.Config{Model: always(said), Key: testKey})
	r.spec.Schema = canonical(t, people)
	out, _, err := r.run(t, "Ann Lee is here.")
	if err != nil {
		t.Fatal(err)
	}
	if got := r.resolved(t, out).Missing["people"]; !strings.Contains(got, "name: is empty") {
		t.Errorf("missing for %q, want what is wrong with what was answered", got)
	}
}

// Values that are looked for in the document: what stands there by itself is shown by that, and what
// could be meant by several places is not believed.
func TestValuesWithoutQuotes(t *testing.T) {
	const doc = `{"type":"object","properties":{"name":{"type":"string"},"total":{"type":"number"}}}`
	const text = "Acme Ltd, a part of ACME LTD HOLDING\nOf 12.50 paid, 7 is VAT; 7 items\n"
	for name, c := range map[string]struct {
		name, total []any
		want        map[string]any
		missing     string // why there is no total
	}{
		"found":              {say("Acme Ltd"), say(12.5), map[string]any{"name": "Acme Ltd", "total": json.Number("12.5")}, ""},
		"in another case":    {say("acme ltd holding"), nil, map[string]any{"name": "acme ltd holding"}, "the model found none"},
		"twice":              {nil, say(7), map[string]any{}, "no citation supports what was found"},
		"a part of a word":   {say("Acm"), nil, map[string]any{}, "the model found none"},
		"a part of a number": {nil, say(2.5), map[string]any{}, "no citation supports what was found"},
		"negative":           {nil, say(-12.5), map[string]any{}, "no citation supports what was found"},
		"dots in a quote":    {say("Acme Ltd", "Acme ... HOLDING"), nil, map[string]any{"name": "Acme Ltd"}, "the model found none"},
		"a quote, no value":  {nil, say(nil, "12.50"), map[string]any{}, "what the model answered is no value of the field: there is a quote, and no value"},
	} {
		fields := map[string]any{"name": []any{}, "total": []any{}}
		if c.name != nil {
			fields["name"] = c.name
		}
		if c.total != nil {
			fields["total"] = c.total
		}
		r := newRig(t, "openai", fakellm.Config{Model: always(answer(fields)), Key: testKey})
		r.spec.Schema = canonical(t, doc)
		out, _, err := r.run(t, text)
		if err != nil {
			t.Fatal(err)
		}
		got := r.resolved(t, out)
		if diff := cmp.Diff(c.want, got.Values); diff != "" || got.Missing["total"] != c.missing {
			t.Errorf("%s: total missing for %q, want %q; values (-want +got):\n%s", name, got.Missing["total"], c.missing, diff)
		}
	}
}
