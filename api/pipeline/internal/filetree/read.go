package filetree

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Entry reads the value of one key of a mapping, which is named at.
type Entry func(n *Node, at string)

// ReadMapping reads a mapping whose keys are known. Any other key is a fault.
func (r *Reader) ReadMapping(n *Node, at string, known map[string]Entry) {
	if n.Kind != yaml.MappingNode {
		r.RecordFault(orFile(at), n.Line, "must be a mapping, and is %s", n)
		return
	}

	for i, key := range n.Keys {
		read, ok := known[key.Text]
		if !ok {
			r.RecordFault(JoinKey(at, key.Text), key.Line, "there is no such key; the keys here are %s", ListNames(slices.Sorted(maps.Keys(known))))
			return
		}

		if read(n.Items[i], JoinKey(at, key.Text)); r.Err != nil {
			return
		}
	}
}

// JoinKey appends a key to the name of a mapping.
func JoinKey(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// orFile names the whole file where nothing inside it is named.
func orFile(at string) string {
	if at == "" {
		return "pipeline"
	}
	return at
}

// ReadList reads the items of a list, each named by its index.
func (r *Reader) ReadList(n *Node, at string, each Entry) {
	if n.Kind != yaml.SequenceNode {
		r.RecordFault(at, n.Line, "must be a list, and is %s", n)
		return
	}
	for i, item := range n.Items {
		if each(item, fmt.Sprintf("%s[%d]", at, i)); r.Err != nil {
			return
		}
	}
}

// ReadText reads a text, which may be a number or a flag as it is written.
func (r *Reader) ReadText(to *string) Entry {
	return func(n *Node, at string) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.RecordFault(at, n.Line, "must be a text, and is %s", n)
			return
		}
		*to = n.Text
	}
}

// ReadTexts reads a list of texts.
func (r *Reader) ReadTexts(to *[]string) Entry {
	return func(n *Node, at string) {
		r.ReadList(n, at, func(item *Node, at string) {
			var text string
			r.ReadText(&text)(item, at)
			*to = append(*to, text)
		})
	}
}

// ReadFlag reads true or false.
func (r *Reader) ReadFlag(to *bool) Entry {
	return func(n *Node, at string) {
		if n.Tag != "!!bool" {
			r.RecordFault(at, n.Line, "must be true or false, and is %s", n)
			return
		}
		*to = n.Text == "true"
	}
}

// MaxNumber bounds whole numbers: any JSON implementation keeps them exactly.
const MaxNumber = 1 << 53

// ReadNumber reads a whole number that is not below least.
func (r *Reader) ReadNumber(to *int64, least int64) Entry {
	return func(n *Node, at string) {
		v, err := strconv.ParseInt(n.Text, 10, 64)
		if n.Tag != "!!int" || err != nil || v < least || v > MaxNumber {
			r.RecordFault(at, n.Line, "must be a whole number that is at least %d, and is %s", least, n)
			return
		}
		*to = v
	}
}

// ReadOption reads a number that may be left to the run.
func (r *Reader) ReadOption(to **int64, least int64) Entry {
	return func(n *Node, at string) {
		v := new(int64)
		r.ReadNumber(v, least)(n, at)
		*to = v
	}
}

// ReadRatio reads a number above 0 and at most 1.
func (r *Reader) ReadRatio(to **float64) Entry {
	return func(n *Node, at string) {
		v, err := strconv.ParseFloat(n.Text, 64)
		if n.Tag != "!!int" && n.Tag != "!!float" || err != nil || v <= 0 || v > 1 {
			r.RecordFault(at, n.Line, "must be a number above 0 and at most 1, and is %s", n)
			return
		}
		*to = &v
	}
}

// ListNames joins names for a message.
func ListNames(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "there are none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
