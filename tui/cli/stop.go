package cli

import (
	"github.com/spf13/cobra"

	"brood/runtime/event"
)

func stopCommand(s streams) *cobra.Command {
	var take bool
	c := &cobra.Command{Use: "stop SESSION|URL", Short: "Finish the round, save and end a running session", Args: exactly("a SESSION or URL"),
		RunE: func(c *cobra.Command, args []string) error {
			return send(c.Context(), args[0], "", take, event.Command{Action: event.Stop}, s)
		}}
	c.Flags().BoolVar(&take, "take", false, "take the writer's lease from whoever holds it")
	return c
}
