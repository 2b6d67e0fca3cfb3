package storetest

import (
	"bytes"
	"strings"

	"github.com/coditect/mapreduce/store"
)

// keysOfAllKinds returns keys that are easy to get wrong, in order.
func keysOfAllKinds() []string {
	return []string{
		"", "\x00", "\x00\x00", "\x00\xff", "\x01", "a", "a\x00", "a\x00\x00", "a\x00\xff",
		"aa", "a\xff", "a\xff\x00", "a\xff\xff", "b", "\x7f", "\x80", "é", "\xfe", "\xff", "\xff\x00", "\xff\xff",
	}
}

func pointChecks() []Check {
	return []Check{
		{Name: "a missing key reads as nil", check: missingIsNil},
		{Name: "an empty value is present", check: emptyIsPresent},
		{Name: "keys and values are any bytes", check: anyBytes},
		{Name: "get all keeps the order of keys", check: getAllOrder},
		{Name: "set replaces", check: setReplaces},
		{Name: "clear removes one key", check: clearOne},
		{Name: "clear range is half open", check: clearHalfOpen},
		{Name: "what is read belongs to the caller", check: readerOwns},
		{Name: "writes are seen when they commit", check: uncommittedUnseen},
		{Name: "discarded writes are never seen", check: discardedUnseen},
		{Name: "a commit is whole", check: commitIsWhole},
	}
}

func missingIsNil(e *env) {
	e.put("b", "1")
	a := e.begin()
	for _, key := range []string{"", "a", "b\x00", "c"} {
		a.wantMissing(key)
		e.wantMissing(a.Snapshot(), key)
	}
	a.wantRange(e.prefixedRange("c", "d"), store.RangeOptions{}, false)
}

func emptyIsPresent(e *env) {
	a := e.begin()
	a.set("a", "")
	a.Set(e.prefixedKey("b"), nil)
	a.wantGet("a", "")
	a.wantGet("b", "")
	a.commit()

	b := e.begin()
	b.wantGet("a", "")
	b.wantGet("b", "")
	values, err := b.GetAll(e.ctx, [][]byte{e.prefixedKey("a"), e.prefixedKey("c")})
	e.must("get all", err)
	e.wantEqual("presence", []bool{values[0] != nil, values[1] != nil}, []bool{true, false})

	e.wantContents("a", "", "b", "")
}

func anyBytes(e *env) {
	var pairs []string
	for _, key := range keysOfAllKinds() {
		pairs = append(pairs, key, key+"\x00\xff value of "+key)
	}
	e.put(pairs...)

	a := e.begin()
	for i := 0; i < len(pairs); i += 2 {
		a.wantGet(pairs[i], pairs[i+1])
	}

	var every [256]byte
	for i := range every {
		every[i] = byte(i)
	}
	e.put("every", string(every[:]))
	e.begin().wantGet("every", string(every[:]))
}

func getAllOrder(e *env) {
	e.put("a", "1", "b", "2", "c", "3")
	a := e.begin()
	a.set("d", "4")
	a.clear("a")

	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		var keys [][]byte
		for _, name := range []string{"c", "x", "b", "c", "d", "a"} {
			keys = append(keys, e.prefixedKey(name))
		}

		values, err := r.GetAll(e.ctx, keys)
		e.must("get all", err)
		e.wantEqual("values", values, [][]byte{[]byte("3"), nil, []byte("2"), []byte("3"), []byte("4"), nil})

		none, err := r.GetAll(e.ctx, nil)
		e.must("get all of nothing", err)
		e.wantEqual("number of values", len(none), 0)
	}
}

func setReplaces(e *env) {
	e.put("a", "long value", "b", "1")
	e.put("a", "2")
	e.wantContents("a", "2", "b", "1")
}

func clearOne(e *env) {
	e.put("a", "1", "a\x00", "2", "b", "3")
	a := e.begin()
	a.clear("a")
	a.clear("missing")
	a.commit()
	e.wantContents("a\x00", "2", "b", "3")
}

func clearHalfOpen(e *env) {
	e.put("a", "1", "b", "2", "b\xff", "3", "c", "4", "d", "5")
	a := e.begin()
	a.clearRange("b", "c")
	a.clearRange("d", "d") // nothing
	a.commit()
	e.wantContents("a", "1", "c", "4", "d", "5")
	b := e.begin()
	b.ClearRange(e.allKeys())
	b.commit()
	e.wantContents()
}

func readerOwns(e *env) {
	e.put("a", "stored", "b", "stored")
	a := e.begin()
	a.set("c", "own")
	for range 2 {
		for key, want := range map[string]string{"a": "stored", "c": "own"} {
			value := a.get(key)
			e.wantEqual("value of "+key, string(value), want)
			// This must not change what the store or the transaction holds.
			copy(value, "######")
		}

		values, err := a.GetAll(e.ctx, [][]byte{e.prefixedKey("a")})
		e.must("get all", err)
		copy(values[0], "######")

		pairs, _, err := a.GetRange(e.ctx, e.allKeys(), store.RangeOptions{})
		e.must("get range", err)
		for _, kv := range pairs {
			copy(kv.Key, bytes.Repeat([]byte("#"), len(kv.Key)))
			copy(kv.Value, "######")
		}
	}

	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "stored", "b", "stored", "c", "own")
	a.commit()
	e.wantContents("a", "stored", "b", "stored", "c", "own")
}

func uncommittedUnseen(e *env) {
	e.put("a", "1", "b", "1")
	w := e.begin()
	w.set("a", "2")
	w.clear("b")
	w.set("c", "2")
	w.wantGet("a", "2")
	e.wantContents("a", "1", "b", "1")
	w.commit()
	e.wantContents("a", "2", "c", "2")
}

func discardedUnseen(e *env) {
	e.put("a", "1")
	w := e.begin()
	w.set("a", "2")
	w.clearRange("", "b")
	w.wantMissing("a")
	w.Discard()
	w.Discard() // harmless
	e.wantContents("a", "1")
}

// commitIsWhole reads many keys of one transaction in others that began before and
// after it.
func commitIsWhole(e *env) {
	var before, after []string
	for i := range 200 {
		name := strings.Repeat("k", i)
		before = append(before, name, "1")
		after = append(after, name, "2")
	}
	e.put(before...)

	old := e.begin().pinVersion()
	e.put(after...)

	old.wantRange(e.allKeys(), store.RangeOptions{}, false, before...)
	old.wantGet("k", "1")
	e.wantContents(after...)
}
