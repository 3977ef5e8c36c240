package cli

import (
	"io"

	"github.com/spf13/cobra"

	"brood/models/program"
)

func programCommand(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "program",
		Short: "Print the Python module that serves a model of your own",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "python",
		Short: "Print brood.py, the module that serves a torch model or functions: brood program python > brood.py",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(s.out, program.Python)
			return err
		},
	})
	return c
}
