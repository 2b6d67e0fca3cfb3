package main

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A lie is a message of which one field is not as it should be.
type lie struct {
	name    string // the path of the field, and what is wrong with it
	message proto.Message
}

// deepest bounds how far into a message lies go.
const deepest = 5

// often is how many times what comes too often comes.
const often = 3000

// lies yields a lie for every field of a truth, and of the messages in it, and everything
// that can be wrong with a field of its type: absent, huge, negative, no number, unknown,
// another's, too often. Fields that the truth leaves out are lied about too.
func lies(truth proto.Message, other map[string]string) iter.Seq[lie] {
	return func(yield func(lie) bool) {
		g := &liar{truth: truth, other: other, yield: yield}
		g.message(truth.ProtoReflect().Descriptor(), nil, "")
	}
}

// A liar makes lies of a truth.
type liar struct {
	truth proto.Message
	other map[string]string // what others call what a field of that name names
	yield func(lie) bool
	done  bool
}

// A step leads from a message to one in it.
type step struct {
	field protoreflect.FieldDescriptor
}

// message lies about the fields of the message that a path leads to.
func (g *liar) message(of protoreflect.MessageDescriptor, path []step, name string) {
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		g.field(f, path, strings.TrimPrefix(name+"."+string(f.Name()), "."))
		if f.Message() != nil && !f.IsMap() && len(path) < deepest {
			g.message(f.Message(), append(slices.Clip(path), step{f}), strings.TrimPrefix(name+"."+string(f.Name()), "."))
		}
	}
}

// tell makes one lie: change is given the message that has the field.
func (g *liar) tell(path []step, name string, change func(protoreflect.Message)) {
	if g.done {
		return
	}

	m := proto.Clone(g.truth)
	at := m.ProtoReflect()
	for _, s := range path {
		if !s.field.IsList() {
			at = at.Mutable(s.field).Message()
			continue
		}
		list := at.Mutable(s.field).List()
		// A list that is empty gets an element to lie about.
		if list.Len() == 0 {
			list.AppendMutable()
		}
		at = list.Get(list.Len() - 1).Message()
	}

	change(at)
	g.done = !g.yield(lie{name, m})
}

// field tells all lies about one field.
func (g *liar) field(f protoreflect.FieldDescriptor, path []step, name string) {
	g.tell(path, name+" is absent", func(m protoreflect.Message) { m.Clear(f) })

	switch {
	case f.IsMap():
		g.tell(path, name+" has too many entries", func(m protoreflect.Message) {
			for i := range often {
				entries := m.Mutable(f).Map()
				value := entries.NewValue()
				if f.MapValue().Kind() == protoreflect.StringKind {
					value = protoreflect.ValueOfString("v")
				}
				entries.Set(protoreflect.ValueOfString(fmt.Sprint(i)).MapKey(), value)
			}
		})
	case f.IsList():
		g.tell(path, name+" comes too often", func(m protoreflect.Message) { repeat(m.Mutable(f).List(), f, often) })
		g.tell(path, name+" comes twice", func(m protoreflect.Message) { repeat(m.Mutable(f).List(), f, 1) })
		// Messages in lists have fields of their own, which message visits.
		if f.Message() == nil {
			for what, v := range g.values(f) {
				g.tell(path, name+" has one that is "+what, func(m protoreflect.Message) { m.Mutable(f).List().Append(v) })
			}
		}
	case f.Message() != nil:
		g.tell(path, name+" is empty", func(m protoreflect.Message) { m.Set(f, m.NewField(f)) })
	default:
		for what, v := range g.values(f) {
			g.tell(path, name+" is "+what, func(m protoreflect.Message) { m.Set(f, v) })
		}
	}
}

// repeat appends the last element of a list, or an empty one, so many times.
func repeat(list protoreflect.List, f protoreflect.FieldDescriptor, times int) {
	for range times {
		if f.Message() == nil {
			v := list.NewElement()
			if list.Len() > 0 {
				v = list.Get(list.Len() - 1)
			}
			list.Append(v)
			continue
		}

		v := list.NewElement()
		if list.Len() > 0 {
			v = protoreflect.ValueOfMessage(proto.Clone(list.Get(list.Len() - 1).Message().Interface()).ProtoReflect())
		}
		list.Append(v)
	}
}

// values yields the values that a field should not have.
func (g *liar) values(f protoreflect.FieldDescriptor) iter.Seq2[string, protoreflect.Value] {
	return func(yield func(string, protoreflect.Value) bool) {
		for _, v := range g.valuesOf(f) {
			if !yield(v.what, v.value) {
				return
			}
		}
	}
}

type wrongValue struct {
	what  string
	value protoreflect.Value
}

func (g *liar) valuesOf(f protoreflect.FieldDescriptor) []wrongValue {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return []wrongValue{{"true", protoreflect.ValueOfBool(true)}, {"false", protoreflect.ValueOfBool(false)}}
	case protoreflect.EnumKind:
		return []wrongValue{{"unknown", protoreflect.ValueOfEnum(999)}, {"negative", protoreflect.ValueOfEnum(-1)}, {"the last", protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())}}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return []wrongValue{{"-1", protoreflect.ValueOfInt32(-1)}, {"the least", protoreflect.ValueOfInt32(math.MinInt32)}, {"the most", protoreflect.ValueOfInt32(math.MaxInt32)}, {"another", protoreflect.ValueOfInt32(7)}}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return []wrongValue{{"-1", protoreflect.ValueOfInt64(-1)}, {"the least", protoreflect.ValueOfInt64(math.MinInt64)}, {"the most", protoreflect.ValueOfInt64(math.MaxInt64)}, {"another", protoreflect.ValueOfInt64(7)}}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return []wrongValue{{"the most", protoreflect.ValueOfUint32(math.MaxUint32)}}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return []wrongValue{{"the most", protoreflect.ValueOfUint64(math.MaxUint64)}}
	case protoreflect.DoubleKind:
		return []wrongValue{{"no number", protoreflect.ValueOfFloat64(math.NaN())}, {"infinite", protoreflect.ValueOfFloat64(math.Inf(1))}, {"negative", protoreflect.ValueOfFloat64(-1)}, {"huge", protoreflect.ValueOfFloat64(math.MaxFloat64)}}
	case protoreflect.StringKind:
		all := []wrongValue{
			{"huge", protoreflect.ValueOfString(strings.Repeat("x", 300<<10))},
			{"a control character", protoreflect.ValueOfString("a\x00b\u0085\x1b[2J")},
			{"made up", protoreflect.ValueOfString("made-up")},
			{"a path", protoreflect.ValueOfString("../../../etc/passwd")},
			{"deep", protoreflect.ValueOfString(strings.Repeat("[", 20000))},
		}
		if name, ok := g.other[string(f.Name())]; ok {
			all = append(all, wrongValue{"another's", protoreflect.ValueOfString(name)})
		}
		return all
	case protoreflect.BytesKind:
		return []wrongValue{
			{"huge", protoreflect.ValueOfBytes(make([]byte, 300<<10))},
			{"garbage", protoreflect.ValueOfBytes([]byte("\xff\xfe\x00garbage"))},
			{"deep", protoreflect.ValueOfBytes([]byte(strings.Repeat("[", 20000)))},
		}
	}
	return nil
}
