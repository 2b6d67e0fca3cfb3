package picture_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/picture"
)

// resum corrects the sum of the header of a PNG.
func resum(data []byte) {
	const from, to = 12, 29
	binary.BigEndian.PutUint32(data[to:], crc32.ChecksumIEEE(data[from:to]))
}

// tinyWebP is a picture of one pixel, as libwebp writes it.
const tinyWebP = "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"

// sound returns one picture of each format.
func sound(t testing.TB) map[string][]byte {
	t.Helper()
	m := drawn(color.White)
	return map[string][]byte{
		"jpeg":    must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) }),
		"exif":    withExif(must(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, m, nil) }), exif(6)),
		"png":     must(t, func(b *bytes.Buffer) error { return png.Encode(b, m) }),
		"tiff":    must(t, func(b *bytes.Buffer) error { return tiff.Encode(b, m, nil) }),
		"deflate": must(t, func(b *bytes.Buffer) error { return tiff.Encode(b, m, &tiff.Options{Compression: tiff.Deflate}) }),
		"pages":   pagesOf(t, 3, -1),
		"gif":     must(t, func(b *bytes.Buffer) error { return gif.Encode(b, m, nil) }),
		"bmp":     must(t, func(b *bytes.Buffer) error { return bmp.Encode(b, m) }),
		"webp":    []byte(tinyWebP),
	}
}

// hostile returns pictures that are damaged, or made to harm: more than 200.
func hostile(t testing.TB) map[string][]byte {
	t.Helper()
	all := make(map[string][]byte)
	random, whole := rand.New(rand.NewPCG(1, 2)), sound(t)
	for _, name := range slices.Sorted(maps.Keys(whole)) { // in order, so that the same bits are flipped each time
		data := whole[name]
		for i := range 9 {
			all["cut "+name+string(rune('0'+i))] = data[:len(data)*(i+1)/11]
		}
		for i := range 12 {
			bad := bytes.Clone(data)
			for range 1 << (i % 6) {
				bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
			}
			all["flipped "+name+string(rune('a'+i))] = bad
		}
		for other, more := range whole { // one picture, and behind it another
			if other < name {
				all["both "+name+other] = append(bytes.Clone(data), more...)
			}
		}
	}

	put := func(name string, of string, at int, value uint32, order binary.ByteOrder) {
		data := bytes.Clone(whole[of])
		order.PutUint32(data[at:], value)
		if of == "png" {
			resum(data)
		}
		all[name] = data
	}
	for _, n := range []uint32{0, 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		of := string(rune('a' + len(all)%26))
		put("png wide "+of, "png", 16, n, binary.BigEndian)
		put("png high "+of, "png", 20, n, binary.BigEndian)
		put("bmp wide "+of, "bmp", 18, n, binary.LittleEndian)
		put("bmp high "+of, "bmp", 22, n, binary.LittleEndian)
		put("tiff elsewhere "+of, "tiff", 4, n, binary.LittleEndian)
	}

	// A bomb: many pixels of a few bytes.
	all["bomb png"] = must(t, func(b *bytes.Buffer) error { return png.Encode(b, image.NewGray(image.Rect(0, 0, 20_000, 20_000))) })
	all["circle"], all["itself"] = pagesOf(t, 5, 2), pagesOf(t, 1, 0)
	all["many pages"] = pagesOf(t, 100_000, -1)
	all["jpeg of 65535"] = wide(whole["jpeg"])
	all["html"] = append([]byte("\x89PNG\r\n\x1a\n"), "<html><script>alert(1)</script>"...)
	all["pdf"] = append([]byte("\xff\xd8\xff\xe0%PDF-1.7\n"), whole["jpeg"]...)
	all["endless segments"] = append([]byte("\xff\xd8\xff"), bytes.Repeat([]byte{0xff}, 1<<20)...)
	maps.Copy(all, bombs(t))
	return all
}

// wide returns a JPEG whose header says that it has 65535 by 65535 pixels.
func wide(data []byte) []byte {
	data = bytes.Clone(data)
	at := bytes.Index(data, []byte{0xff, 0xc0})
	copy(data[at+5:], []byte{0xff, 0xff, 0xff, 0xff})
	return data
}

// TestHostile: each picture is refused for a reason, or read, and none takes the process with it.
func TestHostile(t *testing.T) {
	r := registry(t, new(spotter), picture.Config{})
	all := hostile(t)
	if len(all) < 200 {
		t.Errorf("%d pictures, want 200", len(all))
	}
	read := 0
	for name, data := range all {
		d, err := r.Parse(t.Context(), document.Input{Name: name, Content: bytes.NewReader(data)})
		switch refused := new(document.RefusedError); {
		case err == nil && d.Text == "":
			t.Errorf("%s: neither text nor a reason", name)
		case err == nil:
			read++
		case !errors.As(err, &refused):
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	t.Logf("%d of %d pictures have text", read, len(all))
}

// fuzz reads what begins as pictures of a format do.
func fuzz(f *testing.F, kind document.Kind, begin string) {
	f.Helper()
	const most = 64 << 10
	for _, all := range []map[string][]byte{sound(f), bombs(f)} {
		for _, data := range all {
			if len(data) <= most && len(data) >= len(begin) && strings.HasPrefix(string(data), begin[:2]) {
				f.Add(data)
			}
		}
	}

	r := registry(f, new(spotter), picture.Config{MaxPixels: 1 << 20, MaxMemory: 16 << 20})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < len(begin) {
			return
		}
		data = bytes.Clone(data)
		for i := range len(begin) {
			if begin[i] != '?' {
				data[i] = begin[i]
			}
		}

		d, err := r.Parse(t.Context(), document.Input{Content: bytes.NewReader(data), Limits: document.Limits{Pages: 8}})
		switch refused := new(document.RefusedError); {
		case err != nil && !errors.As(err, &refused):
			t.Errorf("got the error %v, want a refusal", err)
		case err == nil && (d.Text == "" || d.Kind != kind):
			t.Errorf("got %q of %s, want a text or a reason", d.Text, d.Kind)
		}
	})
}

func FuzzJPEG(f *testing.F) { fuzz(f, "jpeg", "\xff\xd8\xff") }

func FuzzPNG(f *testing.F) { fuzz(f, "png", "\x89PNG\r\n\x1a\n") }

func FuzzTIFF(f *testing.F) { fuzz(f, "tiff", "II*\x00") }

func FuzzWebP(f *testing.F) { fuzz(f, "webp", "RIFF????WEBP") }

func FuzzGIF(f *testing.F) { fuzz(f, "gif", "GIF89a") }

func FuzzBMP(f *testing.F) { fuzz(f, "bmp", "BM????\x00\x00\x00\x00") }
