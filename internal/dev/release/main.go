// Command release makes the files of a release in a folder: an archive for each platform, a
// software bill of materials beside it, notes and checksums. The same commit gives the same bytes
// each time. With -tag it then makes the annotated tag of the version.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	out := flag.String("out", "bin/release", "`folder` of the files; what is in it is removed")
	bom := flag.String("bom", "", "`version` of cyclonedx-gomod, which lists what programs are made of")
	tag := flag.Bool("tag", false, "tag the commit; without it only the files are made, and the version may have a tag")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := makeRelease(ctx, &commands{}, *out, *bom, *tag); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
