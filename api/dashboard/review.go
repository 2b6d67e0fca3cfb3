package dashboard

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/dashboard/jobs"
	"github.com/coditect/mapreduce/api/dashboard/results"
	"github.com/coditect/mapreduce/api/dashboard/review"
	"github.com/coditect/mapreduce/api/dashboard/visit"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/reviewfile"
	"github.com/coditect/mapreduce/api/schema"
)

// sampleSize is how many values chance chooses for a review, unless its address says another number:
// they bound the share of right values to within 14 hundredths or less.
const sampleSize = 50

// firstReviewed is of how many records of a large result the values come first.
const firstReviewed = 2000

// A reviewPage is where people decide about values of a result.
type reviewPage struct {
	Queue, Text     string // addresses
	Picture         string // address of the pages of documents
	Decide          string // address; empty for a caller who may look and not decide
	Claim           string // address at which it says which records it is about to decide about; empty likewise
	Caller          string // whose decisions the browser keeps until the server has them
	Records, Table  string // addresses of the records, and of their file
	Others          string // address of the same review with all values, as far as a queue has room for them
	Truth, Examples string // addresses of the files of what was decided
	Rubric          []rubric
	Keys            []string
	Part            string // i/n, if the records are divided among several people
}

// reviews answer what the page of a review asks for.
type reviews struct{ *Dashboard }

// A rubric says what a field is to hold.
type rubric struct{ Field, Title, Text string }

// reviewKeys are the keys of the page, by the word for what each does.
var (
	reviewKeys  = []string{"accept", "correct", "reject", "absent", "undo", "next", "back", "help"}
	lookingKeys = []string{"next", "back", "help"} // of those who may not decide
)

// loadReview makes the page of a review. The browser asks for the queue by itself.
func (d reviews) loadReview(v *visit.Visit) (any, error) {
	p, err := jobs.OpenJob(v, "review")
	if err != nil {
		return nil, err
	}
	if _, err := choiceOf(v); err != nil {
		return nil, err
	}

	r := &reviewPage{Text: v.JobPath(p.ID, "review", "text"), Picture: v.JobPath(p.ID, "picture"), Keys: lookingKeys, Caller: v.Known().Name, Part: v.Query.Get("part")}
	if v.Known().Has(mapreduce.Reviewer) {
		r.Decide, r.Keys = v.JobPath(p.ID, "review"), reviewKeys
		r.Claim = v.JobPath(p.ID, "review", "claim")
	}
	r.Records = v.JobPath(p.ID, "records")
	r.Truth, r.Examples = v.JobPath(p.ID, "files", truthFile), v.JobPath(p.ID, "files", examplesFile)
	if _, exported := d.config.Exports["csv"]; exported {
		r.Table = v.JobPath(p.ID, "files", "records.csv")
	}
	r.Queue = visit.Address(v.JobPath(p.ID, "review", "queue"), v.Query)
	others := maps.Clone(v.Query)
	others.Set("sample", strconv.Itoa(review.MaxItems))
	r.Others = visit.Address(v.JobPath(p.ID, "review"), others)
	s, err := schema.Parse("schema", p.Spec.Schema)
	if err != nil {
		s = new(schema.Schema) // a job without one has no records to review
	}
	for _, f := range s.Fields() {
		one := rubric{f.Path, f.Property.Title, f.Property.Description}
		if labels := f.Property.Hints.Labels; len(labels) > 0 {
			one.Text = strings.TrimSpace(one.Text + " [" + strings.Join(labels, ", ") + "]")
		}
		r.Rubric = append(r.Rubric, one)
	}
	p.Content = r
	return p, nil
}

// choiceOf returns which values of a job the address of a page asks for.
func choiceOf(v *visit.Visit) (review.Choice, error) {
	c := review.Choice{Seed: 1}
	var err error
	if c.Sample, err = v.Number("sample", sampleSize); err != nil {
		return c, err
	}
	if seed, err := v.Number("seed", 1); err != nil {
		return c, err
	} else if seed > 0 {
		c.Seed = uint64(seed)
	}

	c.Part, c.Parts, err = review.ParsePart(v.Query.Get("part"))
	return c, err
}

// sendQueue sends the queue of a job as JSON.
func (d reviews) sendQueue(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}
	choice, err := choiceOf(v)
	if err != nil {
		return err
	}
	j, err := v.Jobs.GetJob(v, id)
	if err != nil {
		return err
	}
	s, err := schema.Parse("schema", j.Spec.Schema)
	if err != nil {
		return errs.New(errs.Precondition, "job %s has no schema, so there are no values to review", id)
	}

	// Of a large result its first values come at once, for somebody to begin with.
	if v.Query.Has("first") && j.TotalUnits >= jobs.ManyUnits {
		choice.Records, choice.Sample = firstReviewed, 0
	}
	decisions, err := mapreduce.AllDecisions(v, v.Jobs, id)
	if err != nil {
		return err
	}
	b := review.NewBuilder(s, decisions, choice)
	if err := b.Read(v, v.Jobs, j); err != nil {
		return err
	}
	q, err := b.Queue()
	if err != nil {
		return errs.New(errs.DataLoss, "the result cannot be shown: %w", err)
	}
	return sendJSON(w, q)
}

// sendText sends the text of a document as it is.
func (d reviews) sendText(w http.ResponseWriter, r *http.Request) error {
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}

	var text []byte
	err = v.Jobs.ReadText(v, id, mapreduce.UnitID(v.Query.Get("unit")), mapreduce.DocumentID(v.Query.Get("document")), func(part []byte) error {
		if len(text)+len(part) > results.MaxBytes {
			return errs.New(errs.Exhausted, "the text is larger than the %d bytes that a page shows", results.MaxBytes)
		}
		text = append(text, part...)
		return nil
	})
	if err != nil {
		return err
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", "attachment") // it is for the script of the page alone
	_, _ = w.Write(text)
	return nil
}

// decide keeps a decision, and answers with it.
func (d reviews) decide(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}

	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}

	n := mapreduce.NewDecision{
		Job: id, Record: mapreduce.RecordID(r.PostFormValue("record")), Field: r.PostFormValue("field"), Request: mapreduce.RequestID(r.PostFormValue("request")),
		Verdict: mapreduce.ReviewVerdictOf(r.PostFormValue("verdict")), Value: []byte(r.PostFormValue("value")), Model: []byte(r.PostFormValue("model")),
	}
	if document := r.PostFormValue("document"); document != "" {
		n.Passage = &mapreduce.Passage{Document: mapreduce.DocumentID(document), Unit: mapreduce.UnitID(r.PostFormValue("unit"))}
		for name, into := range map[string]*int64{"start": &n.Passage.ByteStart, "end": &n.Passage.ByteEnd} {
			if *into, err = strconv.ParseInt(r.PostFormValue(name), 10, 64); err != nil {
				return errs.Field(name, "%q is no number of bytes", r.PostFormValue(name))
			}
		}
	}

	kept, err := v.Jobs.DecideValue(v, n)
	if err != nil {
		return err
	}
	return sendJSON(w, map[string]any{"verdict": kept.Verdict.String(), "by": kept.By, "number": kept.Number})
}

// claimTime is for how long a page holds the records that somebody is about to decide about: it asks again while
// they are at it.
const claimTime = 5 * time.Minute

// A claimed record is one that somebody is about to review.
type claimed struct {
	Record mapreduce.RecordID `json:"record"`
	By     string             `json:"by"`
	Own    bool               `json:"own"`
	Left   int64              `json:"left"` // milliseconds until it lapses
}

// claim holds records for the caller, and answers with all that are held.
func (d reviews) claim(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	v := d.visit(r)
	id, err := v.Job()
	if err != nil {
		return err
	}

	c := mapreduce.Claim{Job: id, Time: claimTime}
	for _, record := range r.PostForm["record"] {
		c.Records = append(c.Records, mapreduce.RecordID(record))
	}
	all, err := v.Jobs.ClaimRecords(v, c)
	if err != nil {
		return err
	}

	shown := make([]claimed, 0, len(all))
	for _, c := range all {
		shown = append(shown, claimed{c.Record, c.By, c.Own, c.End.Sub(v.Now).Milliseconds()})
	}
	return sendJSON(w, shown)
}

// The files of what people have decided.
const (
	truthFile    = "truth.jsonl"
	examplesFile = "examples.yaml"
)

// reviewExport returns what writes a file of what people have decided.
func reviewExport(v *visit.Visit, name string) Export {
	return func(out io.Writer, j *mapreduce.Job, read resultfile.Reader) error {
		if name == examplesFile {
			_, err := reviewfile.WriteExamples(v, out, v.Jobs, j)
			return err
		}
		s, err := schema.Parse("schema", j.Spec.Schema)
		if err != nil {
			return errs.New(errs.Precondition, "job %s has no schema, so nothing of it is true or false", j.ID)
		}
		return reviewfile.WriteTruth(out, s, read)
	}
}
