package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

func versionCommand(p *program.Program) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  coditect version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return p.PrintData(v, func() { fmt.Fprintf(p.Stdout, "coditect %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch) })
		},
	}
}
