package schema //nolint:testpackage // what is kept is seen from within alone

import (
	"runtime"
	"testing"
)

// Equal schemas are read and kept once, for as long as somebody has them.
func TestEqualSchemasAreShared(t *testing.T) {
	s := newSharing()
	text := []byte("title: order\ntype: object\nproperties: {order: {type: string}}\n")
	first, err := s.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.parse([]byte(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Error("an equal schema was read and kept a second time")
	}
	if other, err := s.parse([]byte("title: city\ntype: object\nproperties: {city: {type: string}}\n")); err != nil || other == first {
		t.Errorf("another schema came to the same one, with %v", err)
	}
	runtime.KeepAlive(first) // and here it is held for the last time
	for range 200 {
		runtime.GC()
		s.mu.Lock()
		left := len(s.parsed)
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
	t.Error("schemas that nobody has any more are not forgotten")
}
