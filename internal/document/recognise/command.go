package recognise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"time"

	"github.com/coditect/mapreduce/internal/document/program"
)

// commandTime is how long a program of the user's may take for a page, by the clock: it may ask a
// service, and then uses no processor of this machine.
const commandTime = time.Minute

// A Command is an engine that is a program of the user's. It gets a PNG on its standard input. On
// its standard output it writes a table of words as Tesseract does, or plain text.
type Command struct{ command []string }

var _ Engine = (*Command)(nil)

// NewCommand returns the engine that is a program with its arguments, of which the first is its
// name or path.
func NewCommand(command []string) *Command { return &Command{command} }

// Name implements Engine.
func (c *Command) Name() string { return c.command[0] }

// Missing implements Engine: whoever names a program says that it is there.
func (*Command) Missing() string { return "" }

// Words implements Engine.
func (c *Command) Words(ctx context.Context, page Page) ([]Word, error) {
	var picture bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&picture, page.Picture); err != nil {
		return nil, err
	}

	var words []Word
	err := page.wait(func() error {
		within, cancel := context.WithTimeout(ctx, commandTime)
		defer cancel()
		out, said, err := program.Run{Command: c.command, Stdin: &picture, Most: pageBytes}.Output(within)
		if err != nil {
			return failure(ctx, errors.Join(err, within.Err()), said)
		}
		words = parse(out, size(page.Picture))
		return nil
	})
	return words, err
}

// failure returns the error of a program that has failed and said something; that of ctx if this
// has ended.
func failure(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if said = strings.Join(strings.Fields(said), " "); said == "" {
		return err
	}
	return fmt.Errorf("%w: %.200s", err, said)
}

// size returns how wide and high a picture is.
func size(m *image.Gray) image.Point { return m.Rect.Size() }
