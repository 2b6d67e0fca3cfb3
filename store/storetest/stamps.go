package storetest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/coditect/mapreduce/store"
)

// placeholder stands where the versionstamp goes. It is the highest stamp. A driver
// that computes the range of possible stamps must include it.
const placeholder = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

func stampChecks() []Check {
	return []Check{
		{Name: "a versionstamp is the commit's", check: stampInKey},
		{Name: "versionstamps grow with commits", check: stampsGrow},
		{Name: "a pending versionstamp is unreadable", check: stampUnreadable},
		{Name: "beside a pending versionstamp all is readable", check: stampBeside},
		{Name: "a versionstamped key is a phantom", check: stampPhantom},
		{Name: "only what wrote has a versionstamp", check: stampOfWriters},
		{Name: "versionstamps go with read versions", check: stampVersions},
	}
}

// setStamped sets a key that consists of head, versionstamp and tail.
func (a *actor) setStamped(head, tail, value string) {
	a.SetVersionstampedKey(a.env.prefixedKey(head+placeholder+tail), len(a.env.prefix)+len(head), []byte(value))
}

// commitStamped commits and returns the versionstamp.
func (a *actor) commitStamped() string {
	a.commit()
	stamp, err := a.Versionstamp()
	a.env.must("versionstamp", err)
	return string(stamp[:])
}

func stampInKey(e *env) {
	a := e.begin()
	a.setStamped("a/", "", "1")
	a.setStamped("b/", "/tail", "2")
	a.setStamped("", "c", "3")
	a.set("plain", "4")
	stamp := a.commitStamped()

	// A key that begins with a stamp may sort anywhere.
	b := e.begin()
	b.wantGet("a/"+stamp, "1")
	b.wantGet("b/"+stamp+"/tail", "2")
	b.wantGet(stamp+"c", "3")
	b.wantGet("plain", "4")
	got, _ := b.scan(e.allKeys(), store.RangeOptions{})
	e.wantEqual("number of keys", len(got)/2, 4)
}

func stampsGrow(e *env) {
	var want []string
	for i := range 20 {
		value := fmt.Sprint(i)
		a := e.begin()
		a.setStamped("k", "", value)
		want = append(want, "k"+a.commitStamped(), value)
	}

	for i := 2; i < len(want); i += 2 {
		if want[i-2] >= want[i] {
			e.fail("versionstamp %x does not follow %x", want[i], want[i-2])
		}
	}

	e.wantContents(want...)
}

func stampUnreadable(e *env) {
	e.put("s/\x00stored", "1")
	a := e.begin()
	a.pinVersion()
	a.setStamped("s/", "", "1")
	key := e.prefixedKey("s/" + placeholder)

	for _, r := range []store.Reader{a.Tx, a.Snapshot()} {
		_, err := r.Get(e.ctx, key)
		e.wantErr("get", err, store.ErrUnreadable)
		_, err = r.GetAll(e.ctx, [][]byte{e.prefixedKey("a"), key})
		e.wantErr("get all", err, store.ErrUnreadable)
		_, _, err = r.GetRange(e.ctx, e.allKeys(), store.RangeOptions{})
		e.wantErr("get range", err, store.ErrUnreadable)
		_, _, err = r.GetRange(e.ctx, e.prefixedRange("s/\x01", "s0"), store.RangeOptions{Reverse: true})
		e.wantErr("get range backwards", err, store.ErrUnreadable)
	}

	if _, err := a.Versionstamp(); err == nil {
		e.fail("versionstamp before the commit: got no error, want %v", store.ErrUnreadable)
	}
}

func stampBeside(e *env) {
	e.put("a", "1", "r", "1", "t", "1")
	a := e.begin()
	a.setStamped("s/", "", "stamped")

	a.wantGet("a", "1")
	a.wantGet("t", "1")
	a.wantRange(e.prefixedRange("a", "s"), store.RangeOptions{}, false, "a", "1", "r", "1")
	a.wantRange(e.prefixedRange("t", "z"), store.RangeOptions{}, false, "t", "1")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 2}, true, "a", "1", "r", "1")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 1, Reverse: true}, true, "t", "1")

	stamp := a.commitStamped()
	e.wantContents("a", "1", "r", "1", "s/"+stamp, "stamped", "t", "1")
}

func stampPhantom(e *env) {
	a, b := e.begin(), e.begin()
	a.wantRange(e.prefixedRange("s", "t"), store.RangeOptions{}, false)
	a.set("a", "1")
	b.setStamped("s/", "", "1")
	b.commit()
	a.wantConflict()
}

func stampOfWriters(e *env) {
	a := e.begin()
	a.wantMissing("a")
	a.commit()
	_, err := a.Versionstamp()
	e.wantErr("versionstamp of a read", err, store.ErrUnreadable)

	b := e.begin()
	b.wantMissing("a")
	b.set("b", "1")
	e.put("a", "1")
	b.wantConflict()
	_, err = b.Versionstamp()
	e.wantErr("versionstamp of a failed commit", err, store.ErrUnreadable)

	c := e.begin()
	c.set("c", "1")
	c.commitStamped()
}

// stampVersions checks that the version in a stamp is above the read version of the
// transaction, and not above the read version of a later one.
func stampVersions(e *env) {
	for range 5 {
		a := e.begin()
		before := a.readVersion()
		a.set("a", "1")
		at := binary.BigEndian.Uint64([]byte(a.commitStamped()))
		after := e.begin().readVersion()
		if at <= before || at > after {
			e.fail("versionstamp of version %d: not in (%d, %d]", at, before, after)
		}
	}
}

func versionChecks() []Check {
	return []Check{
		{Name: "a read version is fixed", check: versionFixed},
		{Name: "read versions grow with commits", check: versionsGrow},
		{Name: "the first read sees what was acknowledged before it", check: firstRead},
		{Name: "reads of one transaction are of one version", check: oneVersion},
	}
}

func (a *actor) readVersion() uint64 {
	v, err := a.ReadVersion(a.env.ctx)
	a.env.must("read version", err)
	return v
}

func versionFixed(e *env) {
	e.put("a", "1")
	a := e.begin()
	a.wantGet("a", "1")
	v := a.readVersion()
	e.put("a", "2")
	e.wantEqual("read version", a.readVersion(), v)
	a.wantGet("a", "1")
}

func versionsGrow(e *env) {
	last := uint64(0)
	for i := range 10 {
		e.put("a", fmt.Sprint(i))
		v := e.begin().readVersion()
		if v <= last && i > 0 {
			e.fail("read version %d after a commit, %d before", v, last)
		}
		last = v
	}
}

func firstRead(e *env) {
	e.put("a", "1")
	early, ranged, pinned := e.begin(), e.begin(), e.begin().pinVersion()
	e.put("a", "2")
	early.wantGet("a", "2")
	ranged.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "2")
	pinned.wantGet("a", "1")
}

func oneVersion(e *env) {
	e.put("a", "1", "b", "1", "c", "1")
	a := e.begin()
	a.wantGet("a", "1")

	// What comes after the first read must not be seen.
	e.put("a", "2", "b", "2", "d", "2")
	w := e.begin()
	w.clear("c")
	w.commit()

	a.wantGet("b", "1")
	a.wantGet("c", "1")
	a.wantMissing("d")
	a.wantRange(e.allKeys(), store.RangeOptions{}, false, "a", "1", "b", "1", "c", "1")
	a.wantRange(e.allKeys(), store.RangeOptions{Limit: 1, Reverse: true}, true, "c", "1")

	values, err := a.Snapshot().GetAll(e.ctx, [][]byte{e.prefixedKey("a"), e.prefixedKey("d")})
	e.must("get all", err)
	if !bytes.Equal(values[0], []byte("1")) || values[1] != nil {
		e.fail("get all by snapshot: got %q, want only what was there at the first read", values)
	}
}
