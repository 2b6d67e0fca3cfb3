package picture

import (
	"bytes"
	"encoding/binary"
)

// orientationTag is that of the entry that says how a picture is turned, in EXIF and in TIFF.
const orientationTag = 0x0112

// maxEntries bounds the entries of a directory that are looked at. Only the first directory is: it
// has the orientation, and directories may refer to each other in a circle.
const maxEntries = 256

// orientationOf returns how a picture is turned and mirrored, in [1, 8] as EXIF numbers it, from
// data in the form of TIFF whose first directory, or the one at an offset, says it; 1, upright, if
// none does.
func orientationOf(data []byte, at int64) int {
	order, first, ok := tiffHeader(data)
	if !ok {
		return 1
	}
	if at == 0 {
		at = first
	}

	count, ok := countOf(data, order, at)
	if !ok {
		return 1
	}
	for i := range min(count, maxEntries) {
		entry := at + 2 + 12*int64(i)
		if entry+12 > int64(len(data)) {
			return 1
		}
		if e := data[entry:]; order.Uint16(e) == orientationTag && order.Uint16(e[2:]) == 3 { // a short
			if o := int(order.Uint16(e[8:])); o >= 1 && o <= 8 {
				return o
			}
			return 1
		}
	}
	return 1
}

// tiffHeader returns the order of bytes of data in the form of TIFF, and where its first directory
// is.
func tiffHeader(data []byte) (order binary.ByteOrder, first int64, ok bool) {
	switch {
	case len(data) < 8:
		return nil, 0, false
	case bytes.HasPrefix(data, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return nil, 0, false
	}
	return order, int64(order.Uint32(data[4:])), true
}

// countOf returns how many entries the directory at an offset has.
func countOf(data []byte, order binary.ByteOrder, at int64) (int, bool) {
	if at < 8 || at+2 > int64(len(data)) {
		return 0, false
	}
	return int(order.Uint16(data[at:])), true
}

// jpegExif returns the EXIF data of a JPEG, which stand before its picture; nil if it has none.
func jpegExif(data []byte) (exif []byte) {
	const app1 = 0xe1
	segments(data, func(marker byte, body []byte) bool {
		if marker == app1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")) {
			exif = body[6:]
		}
		return exif == nil
	})
	return exif
}

// segments calls each with the segments of a JPEG before its picture, until that returns false.
func segments(data []byte, each func(marker byte, body []byte) bool) {
	const startOfScan = 0xda
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker := data[at+1]
		if marker == 0xff { // a filling
			at++
			continue
		}
		size := int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == startOfScan || size < 2 || at+2+size > len(data) || !each(marker, data[at+4:at+2+size]) {
			return
		}
		at += 2 + size
	}
}

// chunkOf returns the data of the first chunk of a name: in a PNG, whose chunks have their length
// before their name and a sum behind them, or in a WebP, which has the name first.
func chunkOf(data []byte, name string, png bool) []byte {
	at, step := 12, 8 // behind "RIFF", the length, and "WEBP"
	if png {
		at, step = 8, 12
	}

	for at+8 <= len(data) {
		size, its := int64(binary.BigEndian.Uint32(data[at:])), string(data[at+4:at+8])
		if !png {
			its, size = string(data[at:at+4]), int64(binary.LittleEndian.Uint32(data[at+4:]))
		}
		if size > int64(len(data)-at-8) {
			return nil
		}
		if its == name {
			return data[at+8:][:size]
		}

		at += step + int(size)
		if !png {
			at += int(size & 1) // chunks of RIFF have an even length
		}
	}
	return nil
}
