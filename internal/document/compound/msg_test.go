package compound_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/compound"
	"github.com/coditect/mapreduce/internal/document/internal/zipmake"
)

// FuzzParse reads compound files: a header, and sectors of any bytes.
func FuzzParse(f *testing.F) {
	header := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 504)...)
	header[24], header[26], header[28], header[29], header[30], header[32] = 0x3e, 3, 0xfe, 0xff, 9, 6
	f.Add(header, []byte{})
	f.Add(header, bytes.Repeat([]byte{0xfe, 0xff, 0xff, 0xff}, 256))
	f.Fuzz(func(t *testing.T, header, sectors []byte) {
		data := append(bytes.Clone(header), sectors...)
		if _, err := zipmake.Parse(t, compound.Format(), "a.msg", data); err != nil && !errors.As(err, new(*document.RefusedError)) {
			t.Errorf("got %v, which does not refuse the file", err)
		}
		for _, err := range compound.Format().Members(t.Context(), document.Input{Content: bytes.NewReader(data)}) {
			if err != nil && !errors.As(err, new(*document.RefusedError)) {
				t.Errorf("members: %v, which does not refuse the file", err)
			}
		}
	})
}
