// Command calibrate says how often values that were recognised in pictures are right, by how sure recognition
// was of them and by their form, and how often what a model quotes of a picture is right, by the grade with which
// recognised text has the quote. Factors are chosen on one half of the pictures, by the hash of their names, and
// shown on the other half, and on other pictures.
//
// A folder of pictures has truth.jsonl, as `eval` reads it, words.jsonl, or both. A line of words.jsonl is
// {"picture": "a.jpg", "words": […], "lines": […]}: what people read in a picture, in any order. A schema.yaml in the
// folder goes before the one that is named.
//
// It reads pictures as jobs do, and decides nothing: docs/confidence.md has what it said.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/coditect/mapreduce/internal/text/confidence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "calibrate:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("calibrate", flag.ContinueOnError)
	folder := flags.String("pictures", "", "`folder` of pictures with truth.jsonl, words.jsonl or both")
	other := flags.String("other", "", "`folder` of other pictures, on which nothing is chosen")
	schemaFile := flags.String("schema", "examples/receipts/schema.yaml", "`file` with the schema of what truth.jsonl has")
	languages := flags.String("languages", "", "of the texts, as Tesseract names them, such as deu+eng")
	switch err := flags.Parse(args); {
	case err != nil:
		return err
	case *folder == "":
		return errors.New("name a folder of pictures with -pictures")
	}

	from := source{schemaFile: *schemaFile, languages: *languages}
	first, err := from.read(ctx, *folder)
	if err != nil {
		return err
	}
	chosen, held := first.halves()
	curves := make(map[confidence.Form]curve)
	for _, form := range confidence.Forms() {
		curves[form] = fit(chosen.sampleOf(form))
	}

	fmt.Fprintf(out, "Chosen on %d of %d pictures, of which %d have no text.\n\n", len(chosen.pages), len(first.pages), first.unread())
	showCurves(out, curves, chosen)
	showBySure(out, "values", chosen.values)
	showBySure(out, "words", chosen.words)
	show(out, "The other half", held, curves)
	if *other == "" {
		return nil
	}
	others, err := from.read(ctx, *other)
	if err != nil {
		return err
	}
	show(out, "Other pictures", others, curves)
	return nil
}
