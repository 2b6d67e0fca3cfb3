package stoppable_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/internal/document/pdf/stoppable"
)

// part returns a section of a module, or the body of a function, with its length before it.
func part(id, content string) string { return id + string(rune(len(content))) + content }

// endless is a module with the functions "for_ever", which never returns, and "sum", of the
// numbers below its parameter.
var endless = "\x00asm\x01\x00\x00\x00" +
	part("\x01", "\x02\x60\x00\x00\x60\x01\x7f\x01\x7f") + // types
	part("\x02", "\x01\x01h\x02in\x00\x00") + // an import, so that numbers of functions are shifted
	part("\x03", "\x02\x00\x01") + // functions
	part("\x05", "\x01\x00\x01") + // memory
	part("\x06", "\x01\x7f\x01\x41\x07\x0b") + // a variable of its own
	part("\x07", "\x02\x08for_ever\x00\x01\x03sum\x00\x02") + // exports
	part("\x0a", "\x02"+
		part("", "\x00\x03\x40\x0c\x00\x0b\x0b")+ // a loop that begins again
		part("", "\x01\x01\x7f\x03\x40\x20\x00\x04\x40\x20\x00\x41\x01\x6b\x22\x00\x20\x01\x6a\x21\x01\x0c\x01\x0b\x0b\x20\x01\x0b"))

// TestStoppable stops a function that never returns, and runs one that does.
func TestStoppable(t *testing.T) {
	testenv.Raced(t)

	ctx := t.Context()
	rt := wazero.NewRuntime(ctx)
	defer func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	out, err := stoppable.Make([]byte(endless))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.NewHostModuleBuilder("h").NewFunctionBuilder().WithFunc(func() {}).Export("in").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := rt.Instantiate(ctx, out)
	if err != nil {
		t.Fatal(err)
	}
	const below = 300_000 // more than the turns between two looks
	sum, err := m.ExportedFunction("sum").Call(ctx, below)
	if want := uint64(uint32(below * (below - 1) / 2 % (1 << 32))); err != nil || uint64(uint32(sum[0])) != want {
		t.Errorf("the sum is %v, with error %v; want %d", sum, err, want)
	}

	ended := make(chan error)
	go func() {
		_, err := m.ExportedFunction("for_ever").Call(ctx)
		ended <- err
	}()
	m.ExportedGlobal(stoppable.Variable).(api.MutableGlobal).Set(1)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("the loop ended by %v", err)
	}
}

// TestStoppableOther makes what is no module stoppable.
func TestStoppableOther(t *testing.T) {
	for _, data := range []string{"", "\x00asm", "\x00asm\x01\x00\x00\x00", endless[:len(endless)-3], "\x00asm\x01\x00\x00\x00\x0a\xff\xff\xff\xff\x0f"} {
		if out, err := stoppable.Make([]byte(data)); err == nil {
			t.Errorf("of %q: %q and no error", data, out)
		}
	}
}
