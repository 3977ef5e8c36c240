package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"brood/runtime/control"
)

func revokeCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke SESSION KEY",
		Short: "Shut a worker, a viewer or an operator out of a served run, for good",
		Long:  "Shut a worker, a viewer or an operator out of a served run, for good. KEY is the beginning of its key's hash: the Fleet screen shows it\nfor workers, and what brood serve prints names visitors as NAME@KEY.",
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
			fmt.Fprintf(s.out, "the key %s is shut out\n", args[1])
			return nil
		},
	}
}
