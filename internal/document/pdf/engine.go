package pdf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	_ "unsafe" // for the module that go-pdfium embeds

	"github.com/coditect/mapreduce/internal/document/pdf/stoppable"
	_ "github.com/klippa-app/go-pdfium/webassembly" // which has that module
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// pdfiumModule is PDFium as a WebAssembly module, which go-pdfium embeds and does not export.
//
//go:linkname pdfiumModule github.com/klippa-app/go-pdfium/webassembly.pdfiumWasm
var pdfiumModule []byte

// An engine is PDFium in WebAssembly: compiled at its first use, which takes some 20 s
// and, with the compiled code in the cache, 0.3 s. It has no file system, no clock to
// wait by and no network. Each document gets an instance of its own, with memory of its
// own, which is thrown away.
type engine struct {
	config Config

	mu      sync.Mutex // Guards the variables below. Held while PDFium is compiled.
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// open makes the engine ready. Compiling is no work of the document that comes first, so the
// time of its thread does not count it.
func (e *engine) open() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.module != nil {
		return nil
	}
	// The time of a thread is measured, so another one compiles.
	done := make(chan struct{})

	go func() {
		defer close(done)
		err = e.compileModule()
	}()

	<-done
	return err
}

// compileModule compiles PDFium. mu is held.
func (e *engine) compileModule() error {
	ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
	module, err := stoppable.Make(pdfiumModule)
	if err != nil {
		return err
	}

	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(uint32(e.config.MaxMemory / wasmPage))
	if cache := openCache(e.config.CacheDir); cache != nil {
		config = config.WithCompilationCache(cache)
	}

	rt := wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := rt.CompileModule(ctx, module)
	if err == nil {
		_, err = wasi_snapshot_preview1.Instantiate(ctx, rt)
	}
	if err == nil {
		err = instantiateHost(ctx, rt, compiled)
	}

	if err != nil {
		dropError(rt.Close(ctx))
		return fmt.Errorf("pdf: start PDFium: %w", err)
	}

	e.runtime, e.module = rt, compiled
	return nil
}

// instantiateHost adds what PDFium imports of its host: the bytes of the document. All else is
// of viewers, such as timers and cursors; it does nothing, and returns 0.
func instantiateHost(ctx context.Context, rt wazero.Runtime, compiled wazero.CompiledModule) error {
	const readFile = "FPDF_FILEACCESS_CB"

	host := rt.NewHostModuleBuilder("env")
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module != "env" {
			continue
		}

		does := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			clear(stack[:len(f.ResultTypes())])
		})
		if name == readFile {
			does = readBlock
		}

		host.NewFunctionBuilder().WithGoModuleFunction(does, f.ParamTypes(), f.ResultTypes()).Export(name)
	}

	_, err := host.Instantiate(ctx)
	return err
}

// wasmPage is a page of WebAssembly's memory, in bytes.
const wasmPage = 64 << 10

// dropError drops the error of what is thrown away.
func dropError(error) {}

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
	if e.module == nil {
		return nil
	}
	rt := e.runtime
	e.runtime, e.module = nil, nil
	return rt.Close(context.Background())
}
