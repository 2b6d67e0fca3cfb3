package resultfile

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Quote is a citation of a record, as the result of the record's job shows it.
type Quote struct {
	Document  mapreduce.DocumentID `json:"document_id"`
	Start     int64                `json:"start"` // code points, half-open
	End       int64                `json:"end"`
	ByteStart int64                `json:"byte_start"`
	ByteEnd   int64                `json:"byte_end"`
	Quote     string               `json:"quote"`
	Cut       bool                 `json:"cut,omitempty"` // Quote is only the beginning
	Grade     string               `json:"grade"`
	Via       *Via                 `json:"via,omitempty"` // if the document is a record too
}

// A Via leads from a quote in a record to what the record rests on.
type Via struct {
	Job       mapreduce.JobID  `json:"job_id"`
	Record    int64            `json:"record"`           // in aggregated_data, from 1
	Fields    []string         `json:"fields,omitempty"` // of the record that the quote touches
	Citations map[string]Quote `json:"citations"`        // by reference in the record's job
	More      int              `json:"more,omitempty"`   // citations that were left out
}

// A part is the place of a field in a record's text.
type part struct {
	Field string   `json:"field"`
	Start int64    `json:"start"` // code points of the text, half-open
	End   int64    `json:"end"`
	Refs  []string `json:"refs"` // of citations
}

// A carried is the form in which a document has what its record rests on, as metadata.
type carried struct {
	Job       mapreduce.JobID  `json:"job_id"`
	Record    int64            `json:"record"`
	Parts     []part           `json:"parts,omitempty"`
	Citations map[string]Quote `json:"citations,omitempty"`
	More      int              `json:"more,omitempty"`
}

// maxCarried bounds the JSON of a carried, in bytes: less than the service takes as
// metadata of a document.
const maxCarried = 3600

// quoteLengths are the lengths in code points to which quotes are cut, one after the
// other, until they fit.
var quoteLengths = []int{240, 80, 24}

// Encode returns what the record numbered n of a job rests on, as JSON that fits a
// document's metadata. Quotes that are too long for it are cut. Citations that still
// do not fit are left out and counted.
func (r *Record) Encode(job mapreduce.JobID, n int64, citations map[string]*mapreduce.Citation) (string, error) {
	c := carried{Job: job, Record: n, Parts: r.parts, Citations: make(map[string]Quote, len(citations))}
	for ref, cite := range citations {
		c.Citations[ref] = quoteOf(cite)
	}

	text, err := encode(c)
	for _, length := range quoteLengths {
		if err != nil || len(text) <= maxCarried {
			return text, err
		}
		c.Citations = cutQuotes(c.Citations, length)
		text, err = encode(c)
	}

	refs := r.Refs()
	most := sort.Search(len(refs), func(i int) bool { // of refs that fit
		if err == nil {
			text, err = encode(c.keep(refs[:i+1]))
		}
		return err != nil || len(text) > maxCarried
	})

	if err != nil {
		return "", err
	}
	return encode(c.keep(refs[:most]))
}

// keep returns c with these citations alone, and the parts that have one of them.
func (c carried) keep(refs []string) carried {
	kept := carried{Job: c.Job, Record: c.Record, Citations: make(map[string]Quote, len(refs))}
	listed := make(map[string]bool, len(refs))

	for _, ref := range refs {
		listed[ref] = true
		if q, ok := c.Citations[ref]; ok {
			kept.Citations[ref] = q
		}
	}

	kept.More = len(c.Citations) - len(kept.Citations)
	for _, p := range c.Parts {
		p.Refs = slices.DeleteFunc(slices.Clone(p.Refs), func(ref string) bool { return !listed[ref] })
		if len(p.Refs) > 0 {
			kept.Parts = append(kept.Parts, p)
		}
	}

	return kept
}

func encode(c carried) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(c)
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), err
}

func quoteOf(c *mapreduce.Citation) Quote {
	return Quote{
		Document: c.Document, Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
		Quote: c.Quote, Grade: c.Grade, Via: ViaOf(c),
	}
}

// cutQuotes returns quotes of at most so many code points.
func cutQuotes(quotes map[string]Quote, length int) map[string]Quote {
	cut := make(map[string]Quote, len(quotes))
	for ref, q := range quotes {
		if utf8.RuneCountInString(q.Quote) > length {
			q.Quote, q.Cut = string([]rune(q.Quote)[:length]), true
		}

		if q.Via != nil {
			via := *q.Via
			via.Citations = cutQuotes(via.Citations, length)
			q.Via = &via
		}
		cut[ref] = q
	}
	return cut
}

// ViaOf returns what leads on from a citation, or nil if its document is not a record of
// another job. It names the fields that the quote touches, and their citations; if it
// touches none that has citations, all citations of the record.
func ViaOf(cite *mapreduce.Citation) *Via {
	var c carried
	if cite.Via == "" || json.Unmarshal([]byte(cite.Via), &c) != nil || !c.Job.Valid() || c.Record < 1 {
		return nil // metadata of the same name that means something else
	}

	v := &Via{Job: c.Job, Record: c.Record, Citations: make(map[string]Quote), More: c.More}
	for _, p := range c.Parts {
		if cite.Start >= p.End || p.Start >= cite.End {
			continue
		}
		v.Fields = append(v.Fields, p.Field)
		for _, ref := range p.Refs {
			if q, ok := c.Citations[ref]; ok {
				v.Citations[ref] = q
			}
		}
	}

	if len(v.Fields) == 0 {
		maps.Copy(v.Citations, c.Citations)
	}
	return v
}
