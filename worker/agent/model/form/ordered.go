package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// dict is a JSON object in the order in which it is written: models fill in
// Fields in that order. What it holds is dicts, []any and scalars.
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

// readOrdered reads a value with its objects as dicts.
func readOrdered(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		out := dict{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := readOrdered(d)
			if err != nil {
				return nil, err
			}
			out = append(out, pair{fmt.Sprint(key), value})
		}
		_, err = d.Token()
		return out, err
	case json.Delim('['):
		out := []any{}
		for d.More() {
			value, err := readOrdered(d)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		_, err = d.Token()
		return out, err
	}
	return token, nil
}

func (d dict) indexOf(key string) int {
	return slices.IndexFunc(d, func(p pair) bool { return p.key == key })
}

// get returns the value of a key, if it is there.
func (d dict) get(key string) (any, bool) {
	if i := d.indexOf(key); i >= 0 {
		return d[i].value, true
	}
	return nil, false
}

// getDict returns the object of a key, nil if there is none.
func (d dict) getDict(key string) dict {
	v, _ := d.get(key)
	sub, _ := v.(dict)
	return sub
}

// getList returns the list of a key, if there is one.
func (d dict) getList(key string) ([]any, bool) {
	v, _ := d.get(key)
	list, ok := v.([]any)
	return list, ok
}

// withKey returns d with a value set, at its place or at the end.
func (d dict) withKey(key string, value any) dict {
	out := slices.Clone(d)
	if i := out.indexOf(key); i >= 0 {
		out[i].value = value
		return out
	}
	return append(out, pair{key, value})
}

// withoutKey returns d without a key.
func (d dict) withoutKey(key string) dict {
	return slices.DeleteFunc(slices.Clone(d), func(p pair) bool { return p.key == key })
}

// addMissing returns d with those keys of more that it has not itself after its own.
func (d dict) addMissing(more dict) dict {
	out := slices.Clone(d)
	for _, p := range more {
		if out.indexOf(p.key) < 0 {
			out = append(out, p)
		}
	}
	return out
}
