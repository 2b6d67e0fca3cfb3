package answer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// maxMended bounds the faults of one answer that are mended.
const maxMended = 32

// Mend returns an answer with its faults mended by a reply that was asked for them. Only what
// was faulty is taken from the reply, fault by fault, and only where it makes the answer better:
// all else stays as it was. In a list the reply holds the elements that have faults, or all.
// Faults are JSON pointers; better compares the answer as it would be with the one so far.
func (s *Shape) Mend(old, reply any, faults []string, better func(now, before any) bool) any {
	m := &mender{shape: s, faulty: make(map[string][]int)}
	var paths [][]string
	for _, fault := range slices.Compact(slices.Sorted(slices.Values(faults))) {
		if path := splitPointer(fault); len(paths) < maxMended {
			paths = append(paths, path)
			m.noteElements(old, path)
		}
	}

	for _, path := range paths {
		if now, ok := m.mend(old, reply, path, ""); ok && better(now, old) {
			old = now
		}
	}
	return old
}

// A mender mends one answer.
type mender struct {
	shape  *Shape
	faulty map[string][]int // by the list, the elements that have faults, in order
}

// splitPointer returns the steps of a JSON pointer.
func splitPointer(pointer string) []string {
	if pointer == "" {
		return nil
	}
	steps := strings.Split(pointer[1:], "/")
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps
}

// noteElements notes the elements that a path leads through.
func (m *mender) noteElements(v any, path []string) {
	at := ""
	for _, step := range path {
		switch node := v.(type) {
		case Object:
			v, _ = node.Get(step)
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return
			}
			// Faults may lead through the same element, and in any order.
			if had := m.faulty[at]; !slices.Contains(had, i) {
				m.faulty[at] = append(had, i)
				slices.Sort(m.faulty[at])
			}
			v = node[i]
		default:
			return
		}
		at = child(at, step)
	}
}

// mend returns a part of the answer with what the path leads to from the same part of the reply.
func (m *mender) mend(old, reply any, path []string, at string) (any, bool) {
	if len(path) == 0 {
		return replaceValue(old, reply), true
	}

	switch old := old.(type) {
	case Object:
		reply, ok := reply.(Object)
		if !ok {
			return nil, false
		}
		return m.mendMember(old, reply, path, at)
	case []any:
		reply, ok := reply.([]any)
		i, err := strconv.Atoi(path[0])
		if !ok || err != nil || i < 0 || i >= len(old) {
			return nil, false
		}
		return m.mendElement(old, reply, i, path, at)
	}
	return nil, false
}

// replaceValue returns what stands for a value that does not fit. Of an object, only what it
// lacks is taken.
func replaceValue(old, reply any) any {
	o, isObject := old.(Object)
	r, areObjects := reply.(Object)
	if !isObject || !areObjects {
		return reply
	}

	out := slices.Clone(o)
	for _, member := range r {
		if out.index(member.Key) < 0 {
			out = append(out, member)
		}
	}
	return out
}

// mendMember mends a member of an object. One that the reply leaves out is left out.
func (m *mender) mendMember(old, reply Object, path []string, at string) (any, bool) {
	i, j := old.index(path[0]), reply.index(path[0])
	out := slices.Clone(old)
	switch {
	case j < 0 && i < 0:
		return nil, false
	case j < 0:
		return slices.Delete(out, i, i+1), true
	case i < 0:
		return append(out, reply[j]), true
	}

	v, ok := m.mend(old[i].Value, reply[j].Value, path[1:], child(at, path[0]))
	if !ok {
		return nil, false
	}
	out[i].Value = v
	return out, true
}

// mendElement mends the ith element of a list by the element of the reply that is about the same.
func (m *mender) mendElement(old, reply []any, i int, path []string, at string) (any, bool) {
	// A reply holds either the faulty elements alone, or all elements.
	j := -1
	if some := m.faulty[at]; len(reply) == len(some) {
		j = slices.Index(some, i)
	} else if len(reply) == len(old) {
		j = i
	}

	if j < 0 || contradictsElement(old[i], reply[j], path[len(path)-1]) {
		return nil, false
	}

	v, ok := m.mend(old[i], reply[j], path[1:], child(at, path[0]))
	if !ok {
		return nil, false
	}

	out := slices.Clone(old)
	out[i] = m.joinTexts(v, reply[j], child(at, path[0]))
	return out, true
}

// joinTexts adds the texts that show a value in the reply to those of the answer.
func (m *mender) joinTexts(v, reply any, at string) any {
	o, ok := v.(Object)
	r, isObject := reply.(Object)
	for _, p := range m.shape.hints.Values {
		if !ok || !isObject || p.Texts == "" || !p.Place.MatchString(at) {
			continue
		}

		i, j := o.index(p.Texts), r.index(p.Texts)
		if i < 0 || j < 0 {
			continue
		}
		// The other texts of the answer stay: only those that it lacks are added.
		had, _ := o[i].Value.([]any)
		more, _ := r[j].Value.([]any)
		all := slices.Clone(had)
		for _, text := range more {
			if !slices.ContainsFunc(all, func(t any) bool { return sameScalar(t, text) }) {
				all = append(all, text)
			}
		}

		o = slices.Clone(o)
		o[i].Value = all
		return o
	}

	return v
}

// contradictsElement reports whether two elements say different things of the same key, other than the
// one that is mended: then they are about different things.
func contradictsElement(a, b any, mended string) bool {
	x, ok := a.(Object)
	y, both := b.(Object)
	if !ok || !both {
		return false
	}

	for _, m := range x {
		other, has := y.Get(m.Key)
		if !has || m.Key == mended || m.Value == nil || other == nil {
			continue
		}
		switch v := m.Value.(type) {
		case Object:
			if contradictsElement(v, other, mended) {
				return true
			}
		case string:
			if text, ok := scalarText(other); ok && text != "" && v != "" && foldKey(text) != foldKey(v) {
				return true
			}
		}
	}
	return false
}

// Decode returns JSON as a value, in the order in which it was written.
func Decode(raw []byte) (any, error) {
	if !json.Valid(raw) {
		return nil, (&parser{text: string(raw)}).fault("no JSON")
	}
	p := &parser{text: string(raw) + " ", steps: leastSteps + stepsPerByte*len(raw)}
	return p.parseValue(0, false)
}
