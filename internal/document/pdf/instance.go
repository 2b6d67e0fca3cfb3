package pdf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf16"

	"github.com/coditect/mapreduce/internal/document/pdf/stoppable"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// An instance is PDFium with memory of its own, for one document. It is for one goroutine.
//
// Calls take and return numbers and addresses in that memory, as PDFium's headers have them
// (fpdfview.h and others of the public folder of PDFium). Calls are many: some thousands a
// page. So each function is looked up once, and arguments and results have their places once.
type instance struct {
	module    api.Module
	memory    api.Memory
	file      context.Context // of all calls: it has the bytes of the document
	functions map[string]api.Function
	stack     [16]uint64 // arguments and the result of a call
	places    uint32     // address of placeCount numbers of 8 bytes that calls fill
	buffer    uint32     // address of bytes that calls fill; 0 if there are none yet
	room      uint32     // bytes of buffer
	gone      error      // why no call can be made any more
}

// placeCount is how many numbers a call may return by addresses.
const placeCount = 8

// fileKey is the key of the bytes of the document in the context of calls.
type fileKey struct{}

// readBlock is the function by which PDFium reads the document: of a parameter, a position, an
// address and a number of bytes.
func readBlock(ctx context.Context, module api.Module, stack []uint64) {
	data, _ := ctx.Value(fileKey{}).([]byte)
	from, address, n := uint64(uint32(stack[1])), uint32(stack[2]), uint64(uint32(stack[3]))
	stack[0] = 0
	if from+n <= uint64(len(data)) && module.Memory().Write(address, data[from:from+n]) {
		stack[0] = n
	}
}

// newInstance returns a new instance for a document. It stops when ctx ends. The caller must call
// end.
func (e *engine) newInstance(ctx context.Context, data []byte) (p *instance, end func(), err error) {
	if err := e.open(); err != nil {
		return nil, nil, err
	}
	file := context.WithValue(context.Background(), fileKey{}, data) // calls end by stop, not by a context, which costs a goroutine each
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize")
	module, err := e.runtime.InstantiateModule(withMemory(file), e.module, config)
	if err != nil {
		return nil, nil, fmt.Errorf("pdf: instance of PDFium: %w", err)
	}

	p = &instance{module: module, memory: module.Memory(), file: file, functions: make(map[string]api.Function)}
	stopping := module.ExportedGlobal(stoppable.Variable).(api.MutableGlobal)
	stop := context.AfterFunc(ctx, func() { stopping.Set(1) })
	end = func() {
		stop()
		dropError(module.Close(file))
	}
	p.call("FPDF_InitLibrary")
	if p.places = p.allocateBytes(8 * placeCount); p.gone != nil {
		end()
		return nil, nil, p.gone
	}
	return p, end, nil
}

// call calls a function of PDFium, and returns its result, if it has one. It returns 0, which
// most functions return when something is wrong, once the instance is gone.
func (p *instance) call(name string, args ...uint64) uint64 {
	if p.gone != nil {
		return 0
	}

	f := p.functions[name]
	if f == nil {
		if f = p.module.ExportedFunction(name); f == nil {
			p.gone = fmt.Errorf("pdf: PDFium has no function %s", name)
			return 0
		}
		p.functions[name] = f
	}

	// The stack takes the arguments, and then the result at its first place.
	p.stack[0] = 0
	copy(p.stack[:], args)

	if err := f.CallWithStack(p.file, p.stack[:]); err != nil {
		p.gone = err
		return 0
	}

	return p.stack[0]
}

// Arguments and results of functions that are no addresses.
func integer(n int) uint64           { return api.EncodeI32(int32(n)) }
func real32(x float32) uint64        { return api.EncodeF32(x) }
func real64(x float64) uint64        { return api.EncodeF64(x) }
func asInteger(result uint64) int    { return int(api.DecodeI32(result)) }
func asReal32(result uint64) float64 { return float64(api.DecodeF32(result)) }
func asReal64(result uint64) float64 { return api.DecodeF64(result) }

// allocateBytes returns the address of some bytes that live as long as the instance.
func (p *instance) allocateBytes(bytes int) uint32 {
	at := uint32(p.call("malloc", integer(bytes)))
	if at == 0 && p.gone == nil {
		p.gone = errMemory
	}
	return at
}

// errMemory is the error of an instance whose memory is used up.
var errMemory = errors.New("its memory is used up")

// place returns the address of the i-th number that calls fill.
func (p *instance) place(i int) uint64 { return uint64(p.places) + 8*uint64(i) }

// float64At, float32At and int32At return the i-th number that a call has filled.
func (p *instance) float64At(i int) float64 {
	x, _ := p.memory.ReadFloat64Le(p.places + 8*uint32(i))
	return x
}

func (p *instance) float32At(i int) float64 {
	x, _ := p.memory.ReadFloat32Le(p.places + 8*uint32(i))
	return float64(x)
}

func (p *instance) int32At(i int) int {
	x, _ := p.memory.ReadUint32Le(p.places + 8*uint32(i))
	return int(int32(x))
}

// filledNumber returns the i-th number of 4 bytes that a call has filled in the places of others.
func (p *instance) filledNumber(i int) float64 {
	x, _ := p.memory.ReadFloat32Le(p.places + 4*uint32(i))
	return float64(x)
}

// bytesFor returns the address of at least some bytes that calls fill, until the next call of
// bytesFor.
func (p *instance) bytesFor(n int) uint64 {
	if uint32(n) > p.room {
		p.call("free", uint64(p.buffer))
		p.room = max(uint32(n), 2*p.room, 4<<10)
		p.buffer = p.allocateBytes(int(p.room))
	}
	return uint64(p.buffer)
}

// filled returns bytes that a call has filled. They are valid until the next call.
func (p *instance) filled(n int) []byte {
	b, _ := p.memory.Read(p.buffer, uint32(n))
	return b
}

// longestText bounds the bytes of a name or a value of a form, in UTF-16.
const longestText = 4 << 20

// text returns the text that a function writes: it is called with the address and the size of
// a buffer, and returns how many bytes it needs, of UTF-16 with a zero at the end.
func (p *instance) text(write func(buffer, size uint64) uint64) string {
	n := int(uint32(write(0, 0)))
	if n <= 2 || n > longestText {
		return ""
	}
	write(p.bytesFor(n), uint64(n))
	return string(utf16.Decode(unitsOf(p.filled(n - 2))))
}

// unitsOf returns bytes as units of UTF-16.
func unitsOf(b []byte) []uint16 {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return units
}

// cString returns the address of a text with a zero at its end, which the caller frees.
func (p *instance) cString(s string) uint64 {
	at := p.allocateBytes(len(s) + 1)
	p.memory.Write(at, append([]byte(s), 0))
	return uint64(at)
}

// areFinite reports whether numbers are numbers.
func areFinite(all ...float64) bool {
	for _, x := range all {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
