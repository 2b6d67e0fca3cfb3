package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
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
			}{versionOf(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return a.printData(v, func() { fmt.Fprintf(a.stdout, "coditect %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch) })
		},
	}
}
