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
	err := d.writeTo(&b)
	return b.Bytes(), err
}

// writeTo writes all in one go: package json would read again what each dict within others
// wrote, once for each dict around it.
func (d dict) writeTo(b *bytes.Buffer) error {
	b.WriteByte('{')
	for i, p := range d {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeJSON(b, p.key); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeJSON(b, p.value); err != nil {
			return err
		}
	}

	b.WriteByte('}')
	return nil
}

func writeJSON(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case dict:
		return v.writeTo(b)
	case []dict:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item.writeTo(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}

	raw, err := json.Marshal(v)
	b.Write(raw)
	return err
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
