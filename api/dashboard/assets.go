package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

// assets are the scripts and the style of the pages, each at an address that changes with its
// content, so that browsers may keep it for ever.
type assets struct {
	prefix string
	files  map[string]*asset // by path: /assets/NAME
}

type asset struct {
	kind   string // media type
	data   []byte
	packed []byte // by gzip
	sum    string
}

func newAssets(prefix string) *assets {
	all := &assets{prefix: prefix, files: make(map[string]*asset)}
	entries, _ := assetFiles.ReadDir("assets") // it is embedded
	for _, e := range entries {
		data, _ := assetFiles.ReadFile("assets/" + e.Name())
		sum := sha256.Sum256(data)
		all.files["/assets/"+e.Name()] = &asset{
			kind: mime.TypeByExtension(path.Ext(e.Name())), data: data, packed: pack(data), sum: hex.EncodeToString(sum[:8]),
		}
	}
	return all
}

func pack(data []byte) []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	_, _ = w.Write(data)                                       // a buffer takes everything
	_ = w.Close()
	return packed.Bytes()
}

// buildOf returns a name of all that pages are made of, beside what they show.
func buildOf(version string) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, version) // a sum takes everything
	_, _ = sum.Write(catalogue)

	for _, files := range []fs.FS{assetFiles, templates} {
		err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := fs.ReadFile(files, name)
			_, _ = sum.Write(data)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// path returns the address of a file.
func (a *assets) path(name string) string {
	file := "/assets/" + name
	return a.prefix + file + "?" + a.files[file].sum
}

// ServeHTTP implements http.Handler.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file := a.files[r.URL.Path]
	if file == nil {
		http.NotFound(w, r)
		return
	}

	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", `"`+file.sum+`"`)
	if r.URL.RawQuery == file.sum {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}

	if r.Header.Get("If-None-Match") == `"`+file.sum+`"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}

	data := file.data
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		data = file.packed
	}
	_, _ = io.Copy(w, bytes.NewReader(data)) // a browser that is gone cannot be told
}
