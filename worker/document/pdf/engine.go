package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// An engine is PDFium in WebAssembly: compiled at its first use, which takes some 20 s
// and, with the compiled code in the cache, 0.3 s. It has no file system, no clock to
// wait by and no network. Each document gets an instance of its own, with memory of its
// own, which is thrown away.
type engine struct {
	config Config
	mu     sync.Mutex // Guards the variables below. Held while PDFium is compiled.
	pool   pdfium.Pool
}

// instance returns a new instance, which ends with ctx. The caller must call end, and may
// call the instance no more behind it.
func (e *engine) instance(ctx context.Context) (p pdfium.Pdfium, end func(), err error) {
	pool, err := e.open()
	if err != nil {
		return nil, nil, err
	}
	if p, err = pool.GetInstanceWithContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("pdf: instance of PDFium: %w", err)
	}
	var once sync.Once
	kill := func() { once.Do(func() { ignore(p.Kill()) }) } // whatever the document did to it
	if ctx.Err() != nil {
		kill()
		return nil, nil, context.Cause(ctx)
	}
	// Kill ends a call of the instance that is under way: nothing else does.
	stop := context.AfterFunc(ctx, kill)
	return p, func() {
		stop()
		kill()
	}, nil
}

// ignore drops the error of what is thrown away.
func ignore(error) {}

// open returns the pool of instances, and makes it at first.
func (e *engine) open() (pdfium.Pool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pool != nil {
		return e.pool, nil
	}
	rt := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(uint32(e.config.MaxMemory / wasmPage)).
		WithCloseOnContextDone(true)
	if cache := openCache(e.config.CacheDir); cache != nil {
		rt = rt.WithCompilationCache(cache)
	}
	slots := max(2, runtime.GOMAXPROCS(0))
	pool, err := webassembly.Init(webassembly.Config{
		MaxIdle: 1, MaxTotal: slots, RuntimeConfig: rt, FSConfig: wazero.NewFSConfig(), // the default would mount all files
		Stdout: io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("pdf: start PDFium: %w", err)
	}
	e.pool = pool
	return pool, nil
}

// wasmPage is a page of WebAssembly's memory, in bytes.
const wasmPage = 64 << 10

// openCache returns the cache of compiled code, nil if there is no place for it: it only
// saves time.
func openCache(dir string) wazero.CompilationCache {
	if dir = cacheDir(dir); dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil
	}
	return cache
}

// cacheDir returns the folder of compiled code: dir, or one in the user's cache; "" if
// there is none.
func cacheDir(dir string) string {
	if dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(base, "coditect", "wasm")
}

// close ends the engine, for tests.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pool == nil {
		return nil
	}
	pool := e.pool
	e.pool = nil
	return pool.Close()
}

// errTime is the cause by which a document ends that takes too long.
var errTime = errors.New("it takes too long")
