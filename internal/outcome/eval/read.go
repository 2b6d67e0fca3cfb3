package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// maxLine bounds a line of a truth file, in bytes.
const maxLine = 16 << 20

// ReadTruth reads JSON lines {"document": …, field: value, …}. Blank lines are
// skipped. The name is used in errors, which name the line.
func ReadTruth(name string, r io.Reader) ([]Truth, error) {
	var truth []Truth
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)

	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())

		// Editors may have written a byte order mark at the beginning.
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}

		if len(line) == 0 {
			continue
		}

		t, err := readLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		truth = append(truth, t)
	}

	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}

	if len(truth) == 0 {
		return nil, fmt.Errorf("%s: is empty, so there are no true values to compare with", name)
	}
	return truth, nil
}

func readLine(line []byte) (Truth, error) {
	var values map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()

	if err := dec.Decode(&values); err != nil {
		return Truth{}, fmt.Errorf("not a JSON object: %w", err)
	}
	// A second value behind the first would be lost without a word.
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Truth{}, errors.New("more than one JSON value on a line")
	}

	if err := checkKeys(line); err != nil {
		return Truth{}, err
	}

	document, ok := values["document"].(string)
	if !ok || document == "" {
		return Truth{}, errors.New(`"document" must name a document`)
	}

	delete(values, "document")
	return Truth{Document: document, Values: values}, nil
}

// checkKeys returns an error if an object has a key twice: of two values a decoder takes the
// last, whichever is meant.
func checkKeys(raw []byte) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return checkValueKeys(dec, "")
}

// checkValueKeys reads one value, which stands at a path.
func checkValueKeys(dec *json.Decoder, path string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}

	switch token {
	case json.Delim('['):
		for i := 0; dec.More(); i++ {
			if err := checkValueKeys(dec, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := make(map[string]struct{})
		for dec.More() {
			token, err := dec.Token()
			if err != nil {
				return err
			}

			key, _ := token.(string)
			at := strings.TrimPrefix(path+"."+key, ".")
			if _, twice := seen[key]; twice {
				return fmt.Errorf("the key %q is there twice; leave one of them out", at)
			}
			seen[key] = struct{}{}
			if err := checkValueKeys(dec, at); err != nil {
				return err
			}
		}
	default:
		return nil
	}

	_, err = dec.Token() // the end
	return err
}

// ReadResult reads the records of a result.json with the quotes of their values. The
// name is used in errors.
func ReadResult(name string, r io.Reader) ([]Result, error) {
	results, _, err := ReadResultFile(name, r)
	return results, err
}

// ReadResultFile is ReadResult that also returns the names of the documents without a
// record, and of those that failed or were skipped, as far as the file has them.
func ReadResultFile(name string, r io.Reader) (results []Result, others []string, err error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	f := resultFile{quotes: make(map[string]string)}

	if err := f.readMembers(dec); err != nil {
		return nil, nil, fmt.Errorf("%s: at byte %d: %w", name, dec.InputOffset(), err)
	}

	// The citations may stand before or behind the records.
	f.resolveQuotes()
	return f.results, f.others, nil
}

// A resultFile is what is read of a result.json.
type resultFile struct {
	results []Result
	found   bool
	quotes  map[string]string // by reference
	others  []string
}

func (f *resultFile) readMembers(dec *json.Decoder) error {
	if err := expectDelim(dec, '{'); err != nil {
		return err
	}

	seen := make(map[json.Token]bool)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}

		if seen[key] {
			return fmt.Errorf("the key %q is there twice", key)
		}
		seen[key] = true

		// Large members are read piece by piece, others are passed over.
		switch key {
		case "aggregated_data":
			f.found = true
			f.results, err = readRecords(dec)
		case "citations":
			err = f.readQuotes(dec)
		case "source_units":
			var units []string
			err = dec.Decode(&units)
			for _, unit := range units {
				f.others = append(f.others, documentOf(unit))
			}
		case "failed_units", "skipped_documents":
			var list []struct {
				Unit     string `json:"unit_id"`
				Document string `json:"document_id"`
			}
			err = dec.Decode(&list)
			for _, one := range list {
				f.others = append(f.others, documentOf(one.Unit+one.Document))
			}
		default:
			err = dec.Decode(new(json.RawMessage))
		}

		if err != nil {
			return err
		}
	}

	if !f.found {
		return errors.New(`there is no "aggregated_data": this is no result of a job`)
	}
	return nil
}

// chunkName is the end of the name of a unit that read a piece of a document.
var chunkName = regexp.MustCompile(`_chunk_[0-9]+$`)

// documentOf returns the document of a unit that read one.
func documentOf(unit string) string {
	return strings.TrimPrefix(chunkName.ReplaceAllString(unit, ""), "parse_")
}

// readQuotes reads the citations one by one: there may be many.
func (f *resultFile) readQuotes(dec *json.Decoder) error {
	if err := expectDelim(dec, '{'); err != nil {
		return err
	}

	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}

		// Of a citation only the quote is needed, so the rest is not held.
		var c struct {
			Quote string `json:"quote"`
		}
		if err := dec.Decode(&c); err != nil {
			return err
		}

		ref, _ := key.(string)
		f.quotes[ref] = c.Quote
	}

	return expectDelim(dec, '}')
}

// resolveQuotes replaces references by what they quote.
func (f *resultFile) resolveQuotes() {
	resolve := func(refs []string) {
		for i, ref := range refs {
			if quote, ok := f.quotes[ref]; ok {
				refs[i] = quote
			}
		}
	}

	for _, r := range f.results {
		for _, refs := range r.Quotes {
			resolve(refs)
		}
		for _, u := range r.Unverified {
			resolve(u.Quotes)
		}
	}
}

// CheckNames returns an error if the truth speaks of a document that the result does not
// know, others included, or of a field that the schema lacks: such a truth would look
// like a bad result. s may be nil.
func CheckNames(s *schema.Schema, results []Result, others []string, truth []Truth) error {
	known := make(map[string]*document)
	for _, r := range results {
		if len(r.Documents) == 0 {
			return checkFields(s, truth) // a summary is of no document
		}
		for _, name := range r.Documents {
			known[name] = nil
		}
	}

	for _, name := range others {
		known[name] = nil
	}

	find := newNames(known)

	if err := checkOnce(s, truth); err != nil {
		return err
	}

	var strange []string
	for _, t := range truth {
		if _, ok := find.find(t.Document); !ok && !slices.Contains(strange, t.Document) {
			strange = append(strange, t.Document)
		}
	}

	if len(strange) > 0 {
		return fmt.Errorf("the result knows no document %s: give the ids that result.json has under _sources", listNames(strange))
	}

	return checkFields(s, truth)
}

// checkOnce returns an error if the truth has two records of a document, and the schema makes
// one of each: one of the two would count as a record that was not found.
func checkOnce(s *schema.Schema, truth []Truth) error {
	if s == nil || s.Kind == schema.KindRecords {
		return nil
	}

	seen := make(map[string]struct{}, len(truth))
	var twice []string
	for _, t := range truth {
		if _, known := seen[t.Document]; known && !slices.Contains(twice, t.Document) {
			twice = append(twice, t.Document)
		}
		seen[t.Document] = struct{}{}
	}

	if len(twice) == 0 {
		return nil
	}
	return fmt.Errorf("the truth has more than one record of document %s, and the schema makes one record of each document: leave the others out, or use a schema of a list", listNames(twice))
}

func checkFields(s *schema.Schema, truth []Truth) error {
	if s == nil {
		return nil
	}

	var strange []string
	for _, t := range truth {
		for path := range flattenRecord("", t.Values) {
			if s.Field(path) == nil && !slices.Contains(strange, path) {
				strange = append(strange, path)
			}
		}
	}

	if len(strange) == 0 {
		return nil
	}

	// They come out of maps, and have to read the same each time.
	slices.Sort(strange)
	return fmt.Errorf("the schema has no field %s", listNames(strange))
}

// listNames names at most five.
func listNames(names []string) string {
	more := ""
	if n := len(names) - 5; n > 0 {
		names, more = names[:5], fmt.Sprintf(", and %d more", n)
	}

	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}

	return strings.Join(quoted, ", ") + more
}

// readRecords reads a list of records, or a single one.
func readRecords(dec *json.Decoder) ([]Result, error) {
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}

	switch open {
	case json.Delim('['):
		results := []Result{}
		for dec.More() {
			r, err := readRecord(dec)
			if err != nil {
				return nil, fmt.Errorf("record %d: %w", len(results), err)
			}
			results = append(results, r)
		}
		return results, expectDelim(dec, ']')

	case json.Delim('{'):
		values := map[string]any{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}

			var v any
			if err := dec.Decode(&v); err != nil {
				return nil, err
			}

			name, _ := key.(string) // as keys of objects are
			if _, twice := values[name]; twice {
				return nil, fmt.Errorf("the key %q is there twice", name)
			}
			values[name] = v
		}

		// A summary is of all documents.
		summary, err := newResult(values)
		if err != nil {
			return nil, err
		}

		summary.Documents = nil
		return []Result{summary}, expectDelim(dec, '}')

	case nil:
		return nil, nil

	default:
		return nil, errors.New(`"aggregated_data" must be a list of records or one record`)
	}
}

// readRecord reads one record of a list.
func readRecord(dec *json.Decoder) (Result, error) {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return Result{}, err
	}

	var values map[string]any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if err := in.Decode(&values); err != nil {
		return Result{}, err
	}

	if err := checkKeys(raw); err != nil {
		return Result{}, err
	}

	return newResult(values)
}

func expectDelim(dec *json.Decoder, want json.Delim) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("found %v, expected %v", tok, want)
	}
	return nil
}

// newResult separates the values of a record from its sources and confidences. A confidence
// that is none is an error: it would count as some other.
func newResult(values map[string]any) (Result, error) {
	r := Result{Values: make(map[string]any, len(values))}

	sources, _ := values["_sources"].([]any)
	for _, s := range sources {
		if name, ok := s.(string); ok {
			r.Documents = append(r.Documents, name)
		}
	}

	if sure, ok := values["_confidence"].(map[string]any); ok {
		r.Confidence = make(map[string]float64, len(sure))
		for field, v := range sure {
			n, ok := v.(json.Number)
			if !ok {
				continue
			}

			c, err := n.Float64()
			if err != nil || c < 0 || c > 1 {
				return r, fmt.Errorf("_confidence.%s is %s; a confidence is a number from 0 to 1", field, n)
			}
			r.Confidence[field] = c
		}
	}

	if cited, ok := values["_citations"].(map[string]any); ok {
		r.Quotes = make(map[string][]string, len(cited))
		for field, v := range cited {
			r.Quotes[field] = textsOf(v)
		}
	}

	// What a derived value follows from stands apart from the citations of the others.
	if derived, ok := values["_derived"].(map[string]any); ok {
		for field, v := range derived {
			one, _ := v.(map[string]any)
			r.Quotes = setQuotes(r.Quotes, field, textsOf(one["citations"]))
		}
	}

	if held, ok := values["_unverified"].(map[string]any); ok {
		r.Unverified = make(map[string]Unverified, len(held))
		for field, v := range held {
			r.Unverified[field] = newUnverified(v)
		}
	}

	for key, v := range values {
		if !schema.IsAbout(key) {
			r.Values[key] = v
		}
	}

	// What a result is compared for is what the job found, whatever people have decided since.
	if reviewed, ok := values["_reviewed"].(map[string]any); ok {
		r.undo(reviewed)
	}
	return r, nil
}

func setQuotes(all map[string][]string, field string, quotes []string) map[string][]string {
	if all == nil {
		all = make(map[string][]string)
	}
	all[field] = quotes
	return all
}

// textsOf returns the texts of a JSON list.
func textsOf(v any) []string {
	list, _ := v.([]any)
	var texts []string
	for _, one := range list {
		if s, ok := one.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// newUnverified returns an entry of _unverified: an object with the constraint that the value
// breaks, or the value alone if its quote was not found.
func newUnverified(v any) Unverified {
	entry, _ := v.(map[string]any)
	constraint, _ := entry["constraint"].(string)
	message, refused := entry["message"].(string)

	if constraint == "" || !refused {
		return Unverified{Value: v}
	}
	return Unverified{Value: entry["value"], Constraint: constraint, Message: message, Quotes: textsOf(entry["citations"])}
}
