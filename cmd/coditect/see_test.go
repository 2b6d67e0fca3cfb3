package main_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/sight"
)

const scanSchema = `type: object
properties:
  company: {type: string}
  total: {type: number}
  stamp: {type: string}
  due: {type: string, format: date}
  account: {type: string}
  tax: {type: number}
`

// readScan is a program for OCR that reads the same words in every picture, two of them wrongly.
const readScan = `cat > /dev/null
printf 'level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n'
y=10
for line in 'ACME Hardware' 'T0TAL 6O.30' 'Payment is due on 03.01.2024'; do
	x=10
	for word in $line; do
		printf "5\t1\t1\t1\t$y\t1\t$x\t$y\t60\t12\t93\t$word\n"
		x=$((x + 70))
	done
	y=$((y + 30))
done
`

// A scan is a picture that differs from others by its shade.
func (s *studio) scan(name string, width, height int, shade uint8) {
	s.t.Helper()
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = shade
	}
	m.SetGray(width/2, height/2, color.Gray{0})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		s.t.Fatal(err)
	}
	s.write(name, b.String())
}

// seeing answers as a model that reads what recognition cannot, misreads a date, and invents two values:
// of one it names a page that it was not shown, and of the other its own quote says something else.
func seeing(c fakellm.Call) fakellm.Reply {
	type finding struct {
		Value      any      `json:"value"`
		Quotes     []string `json:"quotes"`
		Confidence float64  `json:"confidence"`
		Page       int      `json:"page"`
	}
	found := func(value any, quote string, page int) []finding {
		if !strings.Contains(string(c.Schema), `"page"`) {
			page = 0
		}
		return []finding{{value, []string{quote}, 0.9, page}}
	}
	fields := map[string][]finding{
		"company": found("ACME Hardware", "ACME Hardware", 0),
		"total":   found(60.30, "TOTAL 60.30", 0),
		"stamp":   found("PAID IN FULL", "PAID IN FULL", 1),
		"due":     found("2024-01-02", "Payment is due on 02.01.2024", 1),
		"account": found("DE02 1203", "Account DE02 1203", 7),
		"tax":     found(19, "Tax 20", 1),
	}
	answer := map[string]any{"fields": fields, "not_found": []any{}}
	if !strings.Contains(string(c.Schema), `"page"`) { // another form, which has no page
		for _, list := range fields {
			list[0].Page = 0
		}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	if !strings.Contains(string(c.Schema), `"page"`) {
		raw = bytes.ReplaceAll(raw, []byte(`,"page":0`), nil)
	}
	return fakellm.Reply{Text: string(raw)}
}

// newScans returns a studio with scans and a program that reads them.
func newScans(t *testing.T, script fakellm.Config) *studio {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("a shell reads the pictures of the test: ", err)
	}
	s := newStudio(t, script)
	s.write("schema.yaml", scanSchema)
	s.write("read.sh", readScan)
	return s
}

// A seen record is what result.json says of one that a model saw.
type seenRecord struct {
	Values     map[string]any
	Citations  map[string]any `json:"_citations"`
	Unverified map[string]any `json:"_unverified"`
	Seen       map[string][]struct {
		Document   string `json:"document_id"`
		Page       int    `json:"page"`
		Quote      string `json:"quote"`
		Recognised string `json:"recognised"`
	} `json:"_seen"`
}

func (s *studio) seenRecord(output string) (r seenRecord) {
	s.t.Helper()
	raw, err := json.Marshal(s.result(output).Records[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.decode(string(raw), &r)
	s.decode(string(raw), &r.Values)
	return r
}

// What a vision model says is checked against the words that were recognised: what they have is cited,
// with its box; what only looks like them is graded so; what they lack is seen, and no value; and what
// the model made up is not verified.
func TestSeenIsNotFound(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	s.scan("docs/a.png", 3000, 2000, 200)
	if o := s.ask("out", "--ocr", "sh "+s.path("read.sh"), "--see", "auto", "--format", "csv", "--citations"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}

	calls := s.fake.Entries()
	if len(calls) != 1 || len(calls[0].Pictures) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	if p := calls[0].Pictures[0]; p.Width > 1568 || p.Height > 1568 || p.Width < 1200 {
		t.Errorf("the model was shown %d×%d pixels of 3000×2000", p.Width, p.Height)
	}

	r := s.seenRecord("out")
	for field, want := range map[string]any{"company": "ACME Hardware", "total": 60.3, "stamp": nil, "due": nil, "account": nil, "tax": nil} {
		if got := r.Values[field]; got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
		if _, cited := r.Citations[field]; cited != (want != nil) {
			t.Errorf("%s is cited: %v", field, cited)
		}
	}
	for _, field := range []string{"stamp", "due"} {
		at := r.Seen[field]
		if len(at) != 1 || at[0].Document != "a.png" || at[0].Page != 1 {
			t.Errorf("%s was seen at %+v", field, at)
		}
		if m, ok := r.Unverified[field].(map[string]any); !ok || m["constraint"] != "seen" {
			t.Errorf("%s stands there as %v", field, r.Unverified[field])
		}
	}
	if at := r.Seen["due"]; len(at) == 1 && !strings.Contains(at[0].Recognised, "03.01.2024") {
		t.Errorf("beside a date that was misread stands %q", at[0].Recognised)
	}
	for _, field := range []string{"account", "tax"} {
		if _, isSeen := r.Seen[field]; isSeen || r.Unverified[field] == nil {
			t.Errorf("what was made up of %s is seen: %v; not verified is %v", field, isSeen, r.Unverified[field])
		}
	}
	if len(r.Seen) != 2 {
		t.Errorf("seen are %v", r.Seen)
	}

	raw, err := os.ReadFile(s.path("out/result.json"))
	if err != nil || !bytes.Contains(raw, []byte(`"grade": "lookalike"`)) || !bytes.Contains(raw, []byte(`"quote": "T0TAL\t6O.30"`)) {
		t.Errorf("no citation that looks like its quote, %v:\n%s", err, raw)
	}
	table, err := os.ReadFile(s.path("out/records.csv"))
	if err != nil || !strings.Contains(string(table), "_seen") || !strings.Contains(string(table), "PAID IN FULL") {
		t.Errorf("records.csv tells nothing of what was seen: %v\n%s", err, table)
	}
	page, err := os.ReadFile(s.path("out/report.html"))
	if err != nil || !strings.Contains(string(page), "a model read \\\"PAID IN FULL\\\" in the picture of page 1") {
		t.Errorf("report.html tells nothing of what was seen: %v", err)
	}
}

// A model is shown pages only if the job says so, and if it can see; one that is known to see nothing
// is refused before anything is spent, if it has to.
func TestWhoIsShownPages(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	s.scan("docs/a.png", 300, 200, 200)
	ocr := []string{"--ocr", "sh " + s.path("read.sh")}
	for name, c := range map[string]struct {
		args     []string
		code     int
		pictures int
		says     string
	}{
		"unasked":        {nil, 0, 0, ""},
		"never":          {[]string{"--see", "never"}, 0, 0, ""},
		"always":         {[]string{"--see", "always"}, 0, 1, ""},
		"blind":          {[]string{"--see", "auto", "--model", "claude-instant-1.2"}, 0, 0, ""},
		"blind, and has": {[]string{"--see", "always", "--model", "claude-instant-1.2"}, 2, 0, "claude-instant-1.2 sees no pictures"},
		"another word":   {[]string{"--see", "sometimes"}, 2, 0, "never or auto or always"},
		"by a variable":  {[]string{"--var", "see=sometimes"}, 2, 0, "not one of never, auto, always"},
		"by rules":       {[]string{"--see", "always", "--provider", "rules", "--model", "", "--base-url", ""}, 2, 0, "asks no model"},
	} {
		before := len(s.fake.Entries())
		o := s.ask("out-"+strings.ReplaceAll(name, " ", "-"), append(ocr, c.args...)...)
		if o.code != c.code || !strings.Contains(o.stdout+o.stderr, c.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", name, o.code, c.code, c.says, o.stdout, o.stderr)
		}
		shown := 0
		for _, e := range s.fake.Entries()[before:] {
			shown += len(e.Pictures)
		}
		if shown != c.pictures {
			t.Errorf("%s: the model was shown %d pictures, want %d", name, shown, c.pictures)
		}
	}
}

// A plan counts the pictures that models will be shown, by the rule of the model: no fewer tokens than the run
// sets aside for them, and none where none is shown. Batches make no calls with pictures, and the plan says so.
func TestPlansCountPictures(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	s.scan("docs/a.png", 3000, 2000, 200)
	s.scan("small/b.png", 300, 200, 90)
	folder := s.docs
	plan := func(more ...string) (in int64, cost float64, said string) {
		t.Helper()
		args := []string{"plan", "--input", folder, "--schema", s.path("schema.yaml"), "--provider", "anthropic", "--model", "claude-haiku-4-5"}
		o := s.try(nil, append(append(args, more...), "-o", "json")...)
		if o.code != 0 {
			t.Fatalf("plan %q: exit code %d\n%s%s", more, o.code, o.stdout, o.stderr)
		}
		var p struct {
			Estimate struct {
				Input int64   `json:"inputTokens"`
				Cost  float64 `json:"cost"`
			} `json:"estimate"`
		}
		s.decode(o.stdout, &p)
		text := s.try(nil, append(args, more...)...)
		return p.Estimate.Input, p.Estimate.Cost, text.stdout
	}

	folder = s.path("small")
	smallText, _, _ := plan()
	small, _, _ := plan("--see", "auto")
	folder = s.docs
	text, _, _ := plan()
	seen, cost, _ := plan("--see", "auto")

	// The prompt is longer, too, where pages are shown.
	rule := sight.Of("anthropic", "claude-haiku-4-5")
	across, down := rule.Fit(3000, 2000)
	if want := rule.Tokens(across, down) - rule.Tokens(300, 200); seen-small != want {
		t.Errorf("a large picture has %d tokens more than a small one, want %d", seen-small, want)
	}
	if text != smallText { // a page, whatever its picture has of bytes
		t.Errorf("without pictures a plan has %d tokens, and %d", text, smallText)
	}
	if blind, _, _ := plan("--see", "auto", "--model", "claude-instant-1.2"); blind != text {
		t.Errorf("a model that sees nothing has %d tokens, want %d", blind, text)
	}
	if _, batch, said := plan("--see", "auto", "--batch"); batch != cost || !strings.Contains(said, "ask in real time and at the full price") || strings.Contains(said, "in the tier batch") {
		t.Errorf("by batch it costs %v, want %v:\n%s", batch, cost, said)
	}

	if o := s.ask("out", "--ocr", "sh "+s.path("read.sh"), "--see", "auto"); o.code != 0 {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	var sent int64
	for _, e := range s.fake.Entries() {
		for _, p := range e.Pictures {
			sent += rule.Tokens(p.Width, p.Height)
		}
	}
	if sent == 0 || seen-text < sent {
		t.Errorf("the run showed pictures of %d tokens, and the plan had %d", sent, seen-text)
	}
}

// A server may refuse pictures though nothing is known of its model: then the text is read alone, and
// later units are shown none; a job that has to show pages fails its unit.
func TestServersThatTakeNoPictures(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey, Rebuff: func(c fakellm.Call) *fakellm.Rebuff {
		if len(c.Pictures) == 0 {
			return nil
		}
		return &fakellm.Rebuff{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"this model does not support image input"}}`}
	}})
	s.scan("docs/a.png", 300, 200, 200)
	s.scan("docs/b.png", 300, 200, 90)
	args := []string{"--ocr", "sh " + s.path("read.sh"), "--parallelism", "1", "--see"}
	o := s.ask("auto", append(args, "auto")...)
	if r := s.result("auto"); o.code != 0 || len(r.Records) != 2 || r.Records[1]["company"] != "ACME Hardware" {
		t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	shown := 0
	for _, e := range s.fake.Entries() {
		shown += len(e.Pictures)
	}
	if shown < 1 || shown > 2 {
		t.Errorf("pictures were sent %d times after the first was refused", shown)
	}
	if o := s.ask("always", append(args, "always")...); o.code == 0 || !strings.Contains(o.stdout+o.stderr, "does not support image input") {
		t.Errorf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
	}
}

// A page in which nothing is recognised is shown all the same, with and without a program.
func TestPagesWithoutWordsAreShown(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	s.write("read.sh", "cat > /dev/null\nprintf 'level\\tpage_num\\tblock_num\\tpar_num\\tline_num\\tword_num\\tleft\\ttop\\twidth\\theight\\tconf\\ttext\\n'\n")
	s.scan("docs/a.png", 300, 200, 200)
	for name, args := range map[string][]string{"no-words": {"--ocr", "sh " + s.path("read.sh")}, "no-program": {"--ocr", "never"}} {
		before := len(s.fake.Entries())
		if o := s.ask(name, append(args, "--see", "always")...); o.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", name, o.code, o.stdout, o.stderr)
		}
		if calls := s.fake.Entries()[before:]; len(calls) != 1 || len(calls[0].Pictures) != 1 {
			t.Errorf("%s: %d calls", name, len(calls))
		}
		if r := s.seenRecord(name); len(r.Seen["stamp"]) != 1 || len(r.Citations) != 0 {
			t.Errorf("%s: seen is %v, cited %v", name, r.Seen, r.Citations)
		}
	}
}

// Jobs share answers to pictures by what these are: another picture with the same words is another
// question.
func TestPicturesAreShared(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	args := []string{"--ocr", "sh " + s.path("read.sh"), "--see", "always", "--cache"}
	for i, want := range []int{1, 1, 2} {
		shade := uint8(200)
		if i == 2 {
			shade = 90
		}
		s.scan("docs/a.png", 300, 200, shade)
		if o := s.ask("out", args...); o.code != 0 {
			t.Fatalf("exit code %d\n%s%s", o.code, o.stdout, o.stderr)
		}
		if got := len(s.fake.Entries()); got != want {
			t.Errorf("after run %d the model was asked %d times, want %d", i+1, got, want)
		}
	}
}

// What pictures count as is set aside before a call, in tokens and in dollars: a budget that is less
// refuses the call, and one that suffices is never passed.
func TestPicturesArePaidFor(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	t.Parallel()
	s := newScans(t, fakellm.Config{Model: seeing, Key: modelKey})
	s.scan("docs/a.png", 1200, 900, 200)
	args := []string{"--ocr", "sh " + s.path("read.sh"), "--max-answer", "2000", "--see"}
	small := s.ask("small", append(args, "always", "--budget", "6500")...)
	if n := len(s.fake.Entries()); n != 0 {
		t.Fatalf("%d calls were made for a budget without room for a picture\n%s%s", n, small.stdout, small.stderr)
	}
	if o := s.ask("words", append(args, "never", "--budget", "6500")...); o.code != 0 || len(s.fake.Entries()) != 1 {
		t.Fatalf("exit code %d, %d calls: the words alone have room\n%s%s", o.code, len(s.fake.Entries()), o.stdout, o.stderr)
	}
	job := s.spent(s.ask("large", append(args, "always", "--max-cost", "0.05", "-o", "json")...))
	if job.Cost == nil || *job.Cost <= 0 || *job.Cost > 0.05 {
		t.Errorf("the job cost %v", show(job.Cost))
	}
	if e := s.fake.Entries()[1]; e.In() < 43*33 || job.Tokens != e.In()+e.Output {
		t.Errorf("the job spent %d tokens, and the vendor says %d and %d", job.Tokens, e.In(), e.Output)
	}
}
