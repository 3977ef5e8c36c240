package cli

import (
	"github.com/spf13/cobra"

	"brood/runtime/event"
)

func stopCommand(s streams) *cobra.Command {
	var take bool
	var as, why string
	c := &cobra.Command{
		Use:   "stop SESSION|URL",
		Short: "Finish the round, save and end a running session",
		Args:  exactly("a SESSION or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			return send(c.Context(), args[0], as, take, event.Command{Action: event.Stop, Why: why}, s)
		},
	}
	c.Flags().BoolVar(&take, "take", false, "take the writer's lease from its holder")
	c.Flags().StringVar(&why, "why", "", "reason, recorded in the log")
	asFlag(c, &as)
	return c
}
