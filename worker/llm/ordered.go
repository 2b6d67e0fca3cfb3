package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/schema/format"
)

// Models fill in fields in the order of the schema, and a vendor's cache wants
// the same bytes each time: so JSON is held here with its order. A value is an
// object, a []any, a string, a json.Number, a bool or nil.
type object []member

type member struct {
	key   string
	value any
}

// maxDepth bounds how deep values are nested.
const maxDepth = 100

// parseJSON reads one value and nothing after it. A key that stands twice in an
// object is an error: readers differ in which one they take.
func parseJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the value")
	}
	return v, nil
}

// wildNumbers returns the places of a value whose numbers are not in range.
func wildNumbers(v any) []Fault {
	var faults []Fault
	var walk func(v any, place []string)
	walk = func(v any, place []string) {
		switch v := v.(type) {
		case json.Number:
			if !format.IsComputable(v.String()) {
				faults = append(faults, Fault{jsonPointer(place), fmt.Sprintf(
					"the number %.40s is out of range: write one between -1e308 and 1e308, in at most %d characters", v, format.MaxNumber)})
			}
		case []any:
			for i, item := range v {
				walk(item, append(place, strconv.Itoa(i)))
			}
		case object:
			for _, m := range v {
				walk(m.value, append(place, m.key))
			}
		}
	}

	walk(v, nil)
	return faults
}

// jsonPointer returns the JSON pointer of a place: the keys that lead to it.
func jsonPointer(place []string) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, key := range place {
		b.WriteString("/" + escape.Replace(key))
	}
	return b.String()
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}

	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}

	switch t {
	case json.Delim('{'):
		return parseObject(d, depth)
	case json.Delim('['):
		return parseList(d, depth)
	}
	return t, nil
}

func parseObject(d *json.Decoder, depth int) (any, error) {
	o := object{}

	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}

		key, ok := t.(string)
		if !ok || seen[key] {
			return nil, fmt.Errorf("the key %.40q stands twice", key)
		}
		seen[key] = true

		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{key, v})
	}
	// The bracket that closes the object.
	_, err := d.Token()
	return o, err
}

func parseList(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

// encodeJSON writes a value as json.Marshal does, without escaping what only matters in web
// pages. It writes each part once, into one buffer: a json.Marshaler in a json.Marshaler has all
// that it holds compacted again at each level.
func encodeJSON(v any) ([]byte, error) { return appendJSON(nil, v) }

// appendJSON appends a value to what was written before it.
func appendJSON(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case object:
		return appendObject(b, v)
	case []any:
		return appendList(b, v)
	case string:
		if isPlainText(v) {
			return append(append(append(b, '"'), v...), '"'), nil
		}
	}
	return appendOther(b, v)
}

func appendObject(b []byte, o object) ([]byte, error) {
	var err error
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}

		if b, err = appendJSON(b, m.key); err != nil {
			return nil, err
		}

		b = append(b, ':')
		if b, err = appendJSON(b, m.value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendList(b []byte, list []any) ([]byte, error) {
	var err error
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}

		if b, err = appendJSON(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// isPlainText reports whether a text stands in JSON as it is, between quotation marks.
func isPlainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendOther appends what needs the rules of encoding/json: texts with escapes, numbers.
func appendOther(b []byte, v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...), nil
}

// get returns the value of a key.
func (o object) get(key string) (any, bool) {
	i := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if i < 0 {
		return nil, false
	}
	return o[i].value, true
}

// getText returns the string of a key, or "".
func (o object) getText(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

// getObject returns the object of a key, or nil.
func (o object) getObject(key string) object {
	v, _ := o.get(key)
	m, _ := v.(object)
	return m
}

// getList returns the list of a key, or nil.
func (o object) getList(key string) []any {
	v, _ := o.get(key)
	l, _ := v.([]any)
	return l
}

// withKey returns o with a value set, at its place or at the end.
func (o object) withKey(key string, value any) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].key == key {
			o[i].value = value
			return o
		}
	}
	return append(o, member{key, value})
}
