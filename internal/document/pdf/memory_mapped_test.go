//go:build linux || darwin

package pdf_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/document/pdf"
)

// TestSetAside: memory grows to its bound and no further, and keeps what stands in it; also where
// the kernel sets none aside, as more than its addresses.
func TestSetAside(t *testing.T) {
	const page = 64 << 10
	for _, most := range []uint64{16 * page, 1 << 62} {
		m := pdf.SetAside(page, most)
		m.Reallocate(page)[page-1] = 7
		b := m.Reallocate(3 * page)
		if len(b) != 3*page || b[page-1] != 7 || b[page] != 0 || b[3*page-1] != 0 {
			t.Errorf("of %d bytes: after growth there are %d, which differ", most, len(b))
		}
		if most == 16*page && (len(m.Reallocate(most)) != 16*page || m.Reallocate(most+1) != nil) {
			t.Errorf("memory of %d bytes does not end there", most)
		}
		m.Free()
		m.Free()
	}
}
