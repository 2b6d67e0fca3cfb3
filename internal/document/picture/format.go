package picture

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/coditect/mapreduce/internal/document"
)

// A codec is a format of pictures, and what decodes it.
type codec struct {
	kind       document.Kind
	name       string // with its article
	magic      []string
	mediaTypes []string
	extensions []string
	config     func(io.Reader) (image.Config, error)
	decode     func(io.Reader) (image.Image, error)
	turned     func(data []byte) int // orientation as EXIF numbers it
	// beside says how many bytes a pixel may take beside the picture while it is decoded.
	beside func(data []byte) int64
}

// codecs are all formats. A reader of a TIFF gets one page of it; see pages.
var codecs = [...]codec{
	{
		kind: "jpeg", name: "a JPEG picture", magic: []string{"\xff\xd8\xff"},
		mediaTypes: []string{"image/jpeg", "image/jpg", "image/pjpeg"}, extensions: []string{".jpg", ".jpeg", ".jpe", ".jfif"},
		config: jpeg.DecodeConfig, decode: jpeg.Decode,
		turned: func(data []byte) int { return orientationOf(jpegExif(data), 0) },
		beside: coefficientBytes,
	},
	{
		kind: "png", name: "a PNG picture", magic: []string{"\x89PNG\r\n\x1a\n"},
		mediaTypes: []string{"image/png", "image/x-png"}, extensions: []string{".png"},
		config: png.DecodeConfig, decode: png.Decode,
		turned: func(data []byte) int { return orientationOf(chunkOf(data, "eXIf", true), 0) },
		beside: none,
	},
	{
		kind: "tiff", name: "a TIFF picture", magic: []string{"II*\x00", "MM\x00*"},
		mediaTypes: []string{"image/tiff", "image/x-tiff"}, extensions: []string{".tif", ".tiff"},
		config: tiff.DecodeConfig, decode: tiff.Decode,
		turned: func(data []byte) int { return orientationOf(data, 0) },
		beside: none,
	},
	{
		kind: "webp", name: "a WebP picture", magic: []string{"RIFF????WEBP"},
		mediaTypes: []string{"image/webp"}, extensions: []string{".webp"},
		config: webp.DecodeConfig, decode: webp.Decode,
		turned: func(data []byte) int {
			return orientationOf(bytes.TrimPrefix(chunkOf(data, "EXIF", false), []byte("Exif\x00\x00")), 0)
		},
		beside: func([]byte) int64 { return 4 }, // before a lossless one is transformed
	},
	{
		kind: "gif", name: "a GIF picture", magic: []string{"GIF87a", "GIF89a"},
		mediaTypes: []string{"image/gif"}, extensions: []string{".gif"},
		config: gif.DecodeConfig, decode: gif.Decode,
		turned: func([]byte) int { return 1 },
		beside: none,
	},
	{
		kind: "bmp", name: "a BMP picture", magic: []string{"BM????\x00\x00\x00\x00"},
		mediaTypes: []string{"image/bmp", "image/x-bmp", "image/x-ms-bmp"}, extensions: []string{".bmp", ".dib"},
		config: bmp.DecodeConfig, decode: bmp.Decode,
		turned: func([]byte) int { return 1 },
		beside: none,
	},
}

// none is the beside of formats whose decoders write pixels as they read them.
func none([]byte) int64 { return 0 }

// coefficientBytes is the beside of JPEG: a progressive one is decoded when all of it was read, and until
// then each part of a pixel is a number of four bytes.
func coefficientBytes(data []byte) int64 {
	const progressive = 0xc2
	found := false
	segments(data, func(marker byte, _ []byte) bool {
		found = found || marker == progressive
		return !found
	})
	if found {
		return 12
	}
	return 0
}

// begins reports whether data begin as the format does. A question mark stands for any byte.
func (c *codec) begins(data []byte) bool {
	for _, magic := range c.magic {
		if len(data) >= len(magic) && matches(data, magic) {
			return true
		}
	}
	return false
}

func matches(data []byte, magic string) bool {
	for i := range len(magic) {
		if magic[i] != '?' && data[i] != magic[i] {
			return false
		}
	}
	return true
}

// sniff is the Sniff of document.Format: the bytes alone tell pictures. A text may begin with the
// letters of some, and has no zeros.
func (c *codec) sniff(begin []byte) document.Match {
	if c.begins(begin) && (bytes.IndexByte(begin, 0) >= 0 || begin[0] > '~') {
		return document.Certain
	}
	return document.Excluded
}
