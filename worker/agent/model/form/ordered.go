package form

import (
	"bytes"
	"encoding/json"
	"slices"
)

// dict is a JSON object in the order in which it is written: models fill in
// fields in that order. What it holds is dicts, lists and scalars.
type dict []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (d dict) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range d {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(p.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// with returns d with one more key.
func (d dict) with(key string, value any) dict { return append(slices.Clip(d), pair{key, value}) }

// get returns the value of a key, if it is there.
func (d dict) get(key string) (any, bool) {
	if i := slices.IndexFunc(d, func(p pair) bool { return p.key == key }); i >= 0 {
		return d[i].value, true
	}
	return nil, false
}
