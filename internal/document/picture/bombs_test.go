package picture_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image/color"
	"image/gif"
	"math"
	"testing"

	"golang.org/x/image/tiff"
)

// segment returns a segment of a JPEG.
func segment(marker byte, body []byte) []byte {
	return append([]byte{0xff, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
}

// chunk returns a chunk of a PNG.
func chunk(name string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, name...), body...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// deflated returns many zeros, packed.
func deflated(t testing.TB, zeros int) []byte {
	t.Helper()
	return must(t, func(b *bytes.Buffer) error {
		w := zlib.NewWriter(b)
		if _, err := w.Write(make([]byte, zeros)); err != nil {
			return err
		}
		return w.Close()
	})
}

// manyScans returns a progressive JPEG of a side, all of whose blocks each of many scans goes through for some
// bytes.
func manyScans(side uint16, scans int) []byte {
	frame := []byte{8, 0, 0, 0, 0, 1, 1, 0x11, 0}
	binary.BigEndian.PutUint16(frame[1:], side)
	binary.BigEndian.PutUint16(frame[3:], side)
	quantities := append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)
	// A table of codes with one code of one bit each: no difference, and an end of 2^14 blocks.
	codes := func(class, value byte) []byte {
		return append(append([]byte{class, 1}, make([]byte, 15)...), value)
	}

	out := bytes.Join([][]byte{{0xff, 0xd8}, segment(0xdb, quantities), segment(0xc2, frame), segment(0xc4, codes(0x00, 0)), segment(0xc4, codes(0x10, 0xe0))}, nil)
	blocks := int(side/8) * int(side/8)
	out = append(append(out, segment(0xda, []byte{1, 1, 0, 0, 0, 0})...), make([]byte, blocks/8+1)...)
	for range scans {
		// A bit for the code, and 14 for how many more blocks there are.
		out = append(append(out, segment(0xda, []byte{1, 1, 0, 1, 1, 0})...), make([]byte, blocks*15/(1<<14)/8+2)...)
	}
	return append(out, 0xff, 0xd9)
}

// frames returns a GIF of many pictures.
func frames(t testing.TB, n int) []byte {
	t.Helper()
	one := must(t, func(b *bytes.Buffer) error { return gif.Encode(b, drawn(color.White), nil) })
	at := bytes.IndexByte(one[13:], 0x2c) // its picture, behind the header
	for at += 13; at < len(one) && (binary.LittleEndian.Uint16(one[at+5:]) != 60 || binary.LittleEndian.Uint16(one[at+7:]) != 40); at++ {
	}
	frame := one[at : len(one)-1]
	return append(append(bytes.Clone(one[:at]), bytes.Repeat(frame, n)...), ';')
}

// directory returns EXIF data, or a TIFF, whose directory has entries; next is where the next one is.
func directory(next uint32, entries ...[3]uint32) []byte {
	out := []byte("II*\x00\x08\x00\x00\x00")
	out = binary.LittleEndian.AppendUint16(out, uint16(len(entries)))
	for _, e := range entries { // a tag, a count of longs, and their value or where they are
		out = binary.LittleEndian.AppendUint16(out, uint16(e[0]))
		out = binary.LittleEndian.AppendUint16(out, 4)
		out = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(out, e[1]), e[2])
	}
	return binary.LittleEndian.AppendUint32(out, next)
}

// bombs returns pictures that are made to take time, memory or what stands behind them: profiles and notes that
// unpack to much, data about data that leads in circles, sizes that no picture has, and files of two kinds.
func bombs(t testing.TB) map[string][]byte {
	t.Helper()
	all := sound(t)
	jpeg, png, pdf, zip := all["jpeg"], all["png"], []byte("%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\n"), []byte("PK\x03\x04\x14\x00\x00\x00\x00\x00")
	header := len("\x89PNG\r\n\x1a\n") + 25
	into := func(c []byte) []byte { return bytes.Join([][]byte{png[:header], c, png[header:]}, nil) }
	behind := func(s ...[]byte) []byte { return bytes.Join(append(append([][]byte{jpeg[:2]}, s...), jpeg[2:]), nil) }
	lengthy := bytes.Repeat(segment(0xe2, append([]byte("ICC_PROFILE\x00\x01\xff"), make([]byte, 60_000)...)), 255)
	zeros := deflated(t, 8<<20)

	return map[string][]byte{
		"a profile in 255 parts":     behind(lengthy),
		"a profile without end":      behind(segment(0xe2, []byte("ICC_PROFILE\x00\x01\x02"))),
		"a profile that unpacks":     into(chunk("iCCP", append([]byte("all\x00\x00"), zeros...))),
		"a note that unpacks":        into(chunk("zTXt", append([]byte("note\x00\x00"), zeros...))),
		"a text that unpacks":        into(chunk("iTXt", append([]byte("note\x00\x01\x00\x00\x00"), zeros...))),
		"100,000 notes":              into(bytes.Repeat(chunk("tEXt", []byte("a\x00b")), 100_000)),
		"100,000 comments":           behind(bytes.Repeat(segment(0xfe, []byte("a comment")), 100_000)),
		"exif of itself":             withExif(jpeg, directory(8, [3]uint32{0x8769, 1, 8})),
		"exif of far away":           withExif(jpeg, directory(math.MaxUint32, [3]uint32{0x8769, math.MaxUint32, math.MaxUint32})),
		"exif of two circles":        withExif(jpeg, append(directory(26, [3]uint32{0x8769, 1, 26}), directory(8, [3]uint32{0x8825, 1, 8})[8:]...)),
		"exif of 65535 entries":      withExif(jpeg, []byte("II*\x00\x08\x00\x00\x00\xff\xff")),
		"exif in a PNG of itself":    into(chunk("eXIf", directory(8, [3]uint32{0x8769, 1, 8}))),
		"exif that begins elsewhere": withExif(jpeg, []byte("MM\x00*\xff\xff\xff\xf0\x00\x01")),
		"scans of all blocks":        manyScans(2000, 40),
		"scans of 65,528 pixels":     manyScans(65_528, 1),
		"100,000 frames":             frames(t, 100_000),
		"a GIF of 65535":             append([]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00"), all["gif"][13:]...),
		"a WebP of 16384":            []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\xff\xff\xff\x0f\x07\x10\x11\x11\x88\x88\xfe\x07\x00"),
		"a WebP of 2^24":             []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"),
		"a TIFF of 2^32":             directory(0, [3]uint32{256, 1, math.MaxUint32}, [3]uint32{257, 1, math.MaxUint32}, [3]uint32{273, 1, 8}, [3]uint32{279, 1, 8}),
		"a TIFF of 2^30 strips":      directory(0, [3]uint32{256, 1, 60}, [3]uint32{257, 1, 40}, [3]uint32{273, 1 << 30, 8}, [3]uint32{279, 1 << 30, 8}),
		"a TIFF of tiles of 2^31":    directory(0, [3]uint32{256, 1, 60}, [3]uint32{257, 1, 40}, [3]uint32{322, 1, 1 << 31}, [3]uint32{323, 1, 1 << 31}, [3]uint32{324, 1, 8}, [3]uint32{325, 1, 8}),
		"a TIFF that unpacks": must(t, func(b *bytes.Buffer) error {
			return tiff.Encode(b, drawn(color.White), &tiff.Options{Compression: tiff.Deflate, Predictor: true})
		}),
		"a BMP that is upside down": append(append(bytes.Clone(all["bmp"][:22]), 0, 0, 0, 0x80), all["bmp"][26:]...),
		"a picture and a PDF":       append(bytes.Clone(jpeg), pdf...),
		"a PDF in a comment":        behind(segment(0xfe, pdf)),
		"a picture and a zip":       append(bytes.Clone(png), zip...),
		"a page in a comment":       behind(segment(0xfe, []byte("<html><script>alert(1)</script>"))),
		"a script that is a GIF":    append([]byte("GIF89a/*\x00\x00\x00\x00\x00"), "*/=1;alert(1)//"...),
		"a program that is a BMP":   append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00"), "MZ\x90\x00This program cannot be run"...),
		"a PNG named otherwise":     append([]byte("\xff\xd8\xff"), png...),
		"a TIFF named otherwise":    append([]byte("\x89PNG\r\n\x1a\n"), all["tiff"]...),
	}
}
