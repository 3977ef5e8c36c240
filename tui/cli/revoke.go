package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"brood/runtime/control"
)

func revokeCommand(s streams) *cobra.Command {
	var urls bool
	c := &cobra.Command{
		Use:   "revoke SESSION KEY",
		Short: "Exclude a worker, a viewer or an operator from a served run permanently, or revoke its URLs",
		Long: "Exclude a worker, a viewer or an operator from a served run permanently. KEY is a prefix of the\n" +
			"hash of its key: brood fleet status and the Fleet screen show it for workers, and the output of brood serve\n" +
			"names clients as NAME@KEY. With --urls all URLs of the run become invalid; peers that one has admitted\n" +
			"return by their keys. brood invite prints a new URL.",
		Args: func(_ *cobra.Command, args []string) error {
			if urls && len(args) == 2 {
				return usage("revoke takes a KEY or --urls: give one of them")
			}
			if !urls && (len(args) != 2 || args[1] == "") || urls && len(args) != 1 {
				return usage("revoke needs a SESSION or URL and a KEY, or --urls; see `brood revoke --help`")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			run, err := connect(c.Context(), args[0], clientName(), false)
			if err != nil {
				return err
			}
			defer run.Close()
			gate, done := control.Gate{Expire: true}, "all URLs are revoked; brood invite prints a new one"
			if !urls {
				gate, done = control.Gate{Revoke: args[1]}, "the key "+args[1]+" is revoked"
			}
			if _, err := run.Gate(c.Context(), gate); err != nil {
				return err
			}
			fmt.Fprintln(s.out, done)
			return nil
		},
	}
	c.Flags().BoolVar(&urls, "urls", false, "revoke all URLs of the run in place of a key")
	return c
}
