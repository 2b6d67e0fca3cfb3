package steps_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
)

const shopReceipt = `{"title":"receipt","type":"object","properties":{
	"company":{"type":"string","description":"Name of the shop"},
	"address":{"type":"string","description":"Address of the shop"},
	"date":{"type":"string","format":"date"},
	"total":{"type":"number","minimum":0}}}`

// A knower answers as the truth about a document says, with the passage that a reader would show, or
// with values alone.
type knower struct {
	truth map[string]string
	text  string
	asked string // where values stand
}

// lineWith returns the line of a text in which words stand; of several the one behind, or in, which a
// label stands, else the last.
func lineWith(text, words, label string) string {
	lines := strings.Split(text, "\n")
	best, labelled := "", false
	for i, l := range lines {
		if !strings.Contains(strings.ToLower(l), strings.ToLower(words)) {
			continue
		}
		passage := l
		above := ""
		if i > 0 {
			above = lines[i-1]
		}
		if i > 0 && strings.Trim(l, " 0123456789.,RM$") == "" {
			passage = above + "\n" + l
		}
		has := label != "" && strings.Contains(strings.ToUpper(passage), label) && !strings.Contains(strings.ToUpper(passage), "SUB")
		if best == "" || has && !labelled || has == labelled {
			best, labelled = passage, has
		}
	}
	return best
}

func (k *knower) passage(field string) string {
	v := k.truth[field]
	switch field {
	case "total":
		return lineWith(k.text, v, "TOTAL")
	case "date":
		return lineWith(k.text, v, "DATE")
	}
	return v
}

func (k *knower) value(field string) any {
	switch v := k.truth[field]; field {
	case "total":
		n, _ := format.ParseNumber(v)
		return json.Number(n)
	case "date":
		iso, _ := calendar.ParseDate(v)
		return iso
	default:
		return v
	}
}

var receiptFields = []string{"company", "address", "date", "total"}

// reply answers a call of either way of asking.
func (k *knower) reply(c fakellm.Call) fakellm.Reply {
	if len(c.Turns) > 1 {
		k.asked = c.Prompt()
		passages := make(map[string]string)
		for _, f := range receiptFields {
			passages[f+":"] = k.passage(f)
		}
		return shortly("", passages)(c)
	}

	short, long := map[string]any{}, map[string]any{}
	for _, f := range receiptFields {
		short[f], long[f] = []any{}, []any{}
		if k.truth[f] != "" && k.value(f) != "" {
			short[f], long[f] = []any{k.value(f)}, say(k.value(f), k.passage(f))
		}
	}
	if strings.Contains(string(c.Schema), "quotes") {
		return fakellm.Reply{Text: answer(long)}
	}
	raw, err := json.Marshal(map[string]any{"fields": short})
	if err != nil {
		panic(err)
	}
	return fakellm.Reply{Text: string(raw)}
}

// What it costs to ask for quotes always, or only where they are needed, of a model that knows the
// truth, and how often the same places come out.
func TestShortAnswersOnReceipts(t *testing.T) {
	dir := os.Getenv("CODITECT_TESTDATA")
	if dir == "" {
		t.Skip("CODITECT_TESTDATA names no folder with receipts")
	}
	file, err := os.Open(filepath.Join(dir, "receipts", "truth.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()

	type figures struct{ Calls, In, Out, Micros, Values, Cited int64 }
	var sum [2]figures
	same, both := 0, 0
	asked := make(map[string]int)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var truth map[string]string
		if err := json.Unmarshal(lines.Bytes(), &truth); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "receipts", "docs", truth["document"]))
		if err != nil {
			t.Fatal(err)
		}

		var cited [2]map[string]*output.Citation
		for i, quotes := range settings.Quotes() {
			k := &knower{truth: truth, text: string(text)}
			fake := fakellm.New(fakellm.Config{Model: k.reply})
			r := rigOn(t, "anthropic", fake, "http://vendor.test", fake.Transport())
			r.spec.Schema, r.spec.Vars[settings.VarQuotes] = canonical(t, shopReceipt), quotes
			out, _, err := r.run(t, string(text))
			if err != nil {
				t.Fatalf("%s: %v", truth["document"], err)
			}

			for _, name := range receiptFields {
				if strings.Contains(k.asked, ". "+name+": ") {
					asked[name]++
				}
			}
			f := &sum[i]
			f.Calls, f.In, f.Out, f.Micros = f.Calls+int64(r.purse.calls), f.In+r.purse.spent.In, f.Out+r.purse.spent.Out, f.Micros+r.purse.cost
			cited[i] = citedOf(out, r.resolved(t, out))
			f.Values += int64(len(receiptFields))
			f.Cited += int64(len(cited[i]))
		}

		for _, name := range receiptFields {
			a, b := cited[0][name], cited[1][name]
			if a == nil || b == nil {
				if a != nil {
					t.Logf("%s %s %q: only always cites %q", truth["document"], name, truth[name], a.Quote)
				}
				continue
			}
			if both++; a.ByteStart < b.ByteEnd && b.ByteStart < a.ByteEnd {
				same++
			} else {
				t.Logf("%s %s %q: always %q, auto %q", truth["document"], name, truth[name], a.Quote, b.Quote)
			}
		}
	}

	for i, quotes := range settings.Quotes() {
		t.Logf("%s: %+v", quotes, sum[i])
	}
	t.Logf("asked about: %v", asked)
	t.Logf("%d of %d values that both cite are cited at the same place", same, both)
	if sum[1].Cited < sum[0].Cited || sum[1].Out >= sum[0].Out {
		t.Error("short answers cite fewer values, or are no shorter")
	}
}

// citedOf returns the first citation of each field of a record.
func citedOf(out *output.Output, r merge.Result) map[string]*output.Citation {
	all := make(map[string]*output.Citation)
	for name, cited := range r.Citations {
		if len(cited) == 0 || r.Values[name] == nil {
			continue
		}
		if c, ok := out.Citations[cited[0]]; ok {
			all[name] = &c
		}
	}
	return all
}
