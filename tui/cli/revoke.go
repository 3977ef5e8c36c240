package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"brood/runtime/control"
)

func revokeCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke SESSION KEY",
		Short: "Exclude a worker, a viewer or an operator from a served run permanently",
		Long: "Exclude a worker, a viewer or an operator from a served run permanently. KEY is a prefix of the hash of its key: the\n" +
			"Fleet screen shows it for workers, and the output of brood serve names clients as NAME@KEY.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[1] == "" {
				return usage("revoke needs a SESSION or URL and a KEY; see `brood revoke --help`")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			run, err := connect(c.Context(), args[0], clientName(), false)
			if err != nil {
				return err
			}
			defer run.Close()
			if _, err := run.Gate(c.Context(), control.Gate{Revoke: args[1]}); err != nil {
				return err
			}
			fmt.Fprintf(s.out, "the key %s is revoked\n", args[1])
			return nil
		},
	}
}
