package resultfile

import "testing"

// A reference is new once, however it is spelt, and no two are taken for one.
func TestRefSet(t *testing.T) {
	var s refSet
	all := []string{"REF_8553ca06", "REF_8553ca060", "REF_8553CA06", "REF_+553ca06", "REF_0x53ca06", "REF_00000000", "REF_ffffffff", "REF_", "", "8553ca06", "REF_8553ca0g"}
	for range 2 {
		for i, ref := range all {
			if first := len(s.short)+len(s.other) == i; s.add(ref) != first {
				t.Errorf("%q: new is %v, want %v", ref, !first, first)
			}
		}
	}
	if len(s.short) != 3 {
		t.Errorf("%d are kept as numbers, want 3", len(s.short))
	}
}
